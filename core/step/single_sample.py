"""One sample of a step without its rollout file, which is only read whole: from the parquet mirror and the train rows.

The train files are cut down to the sample's rows and joined as a step of one sample, so that every check of a whole
step is made of it too.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from dumptui.core.errors import DumpError
from dumptui.core.formats.miles.parquet_mirror import mirror_index, read_mirror
from dumptui.core.formats.miles.train_file import Shard
from dumptui.core.formats.sample import Rollout, Sample
from dumptui.core.parallel.shard_group import SlicingRule, find_slicing_rule, group_shards, take_recorded
from dumptui.core.process.forked_call import start_forked
from dumptui.core.run.run import StepFiles
from dumptui.core.step.step import Step, join, read_shards

MIRROR_NOTE = "read from the parquet mirror; the sample's other fields are shown once the whole step is read"


def load_single(files: StepFiles, index: int) -> Step | None:
    """A step that holds the one sample of that index, None where only the whole step can tell.

    So it is where the index repeats, the context-parallel layout is not recorded, or anything is odd. That the mirror
    holds what the rollout file does is told by the train row, which has to have its tokens and engine log-probs.
    """
    if files.rollout is None or files.mirror is None or not files.shards:
        return None
    read = partial(read_sample_of, files, index)
    # polars takes longer to import than the train files to read; but a fork would lack the threads that it has here.
    mirrored = read if "polars" in sys.modules else start_forked(read)
    shards, broken = read_shards(files, None)
    recorded = not broken and all(shard.cp_size is not None for shard in shards)
    cuts = find_cuts(shards) if recorded else {}
    sample = mirrored()
    if sample is None or not recorded:
        return None
    rows = [row for shard in shards if (row := row_of(shard, index)) is not None]
    rollout = Rollout(files.rollout.path, files.key.step, files.key.evaluation, (sample,))
    step = join(files, rollout, rows)
    # The widths of all rows have to tell the same rule as those of the one: a single row may fit by chance.
    alike = all(step.cut(column) == cut for column, cut in cuts.items())
    whole = step.trained == 1 and not step.orphans and alike and is_confirmed(step) and is_placed(step)
    return replace(step, alone=True) if whole else None


def read_sample_of(files: StepFiles, index: int) -> Sample | None:
    """As the mirror has it; None where it can't be read, or the index repeats in it."""
    assert files.mirror is not None
    path = files.mirror.path
    try:
        at = [row for row, one in enumerate(mirror_index(path)) if one.sample_index == index]
        return replace(read_mirror(path, at)[0], position=0, notes=(MIRROR_NOTE,)) if len(at) == 1 else None
    except DumpError:
        return None


def row_of(shard: Shard, index: int) -> Shard | None:
    """The shard as if it held that row only; None where it has no such row, or several."""
    if shard.indices.count(index) != 1:
        return None
    row = shard.indices.index(index)
    return replace(
        shard,
        columns=columns_of(shard.columns, row, shard.rows),
        indices=(index,),
        positions=shard.positions[row : row + 1],
        totals=shard.totals[row : row + 1],
        responses=shard.responses[row : row + 1],
        padded=None if shard.padded is None else shard.padded[row : row + 1],
    )


def columns_of(columns: Mapping[str, Any], row: int, rows: int) -> dict[str, Any]:
    """What is one a row, cut to the row; the rest of a train file concerns the batch and is left out."""
    return {
        name: [values[row]]
        for name, values in columns.items()
        if isinstance(values, (list, tuple)) and len(values) == rows
    }


def find_cuts(shards: Sequence[Shard]) -> dict[str, SlicingRule]:
    """How each per-token column was cut, told by the widths of all rows."""
    groups = group_shards(shards)
    for group in groups:
        group.positions = np.zeros(group.first.rows, np.int64)
        take_recorded(group)
    columns = {name for shard in shards for name in shard.per_token}
    return {column: find_slicing_rule(groups, column) for column in columns}


def is_confirmed(step: Step) -> bool:
    """Whether the train files hold all of the engine's log-probs of the mirror, but for their rounding."""
    return not step.samples[0].response_length or bool(step.confirmed(np.zeros(1, np.int64))[0])


def is_placed(step: Step) -> bool:
    """Whether every field of the sample is whole: what is refused is refused for the reason the whole step gives."""
    return all(step.gather(name).states[0] in ("ok", "not dumped") for name in step.fields)

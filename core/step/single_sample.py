"""One sample of a step from the parquet mirror and the train rows: the rollout file can only be read whole.

The train files are cut down to the sample's rows and joined as a step of one sample, so that it passes every check of a
whole step.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from dumptui.core.errors import DumpError
from dumptui.core.files.step_files import StepFiles
from dumptui.core.formats.format import readers_of
from dumptui.core.formats.sample import Rollout, Sample
from dumptui.core.formats.shard import Shard
from dumptui.core.parallel.shard_group import group_shards
from dumptui.core.parallel.slicing import SlicingRule, find_slicing_rule
from dumptui.core.process.forked_call import start_forked
from dumptui.core.step.load import join, read_shards
from dumptui.core.step.log_probs import confirmed
from dumptui.core.step.step import Step

MIRROR_NOTE = "read from the parquet mirror; the sample's other fields are shown once the whole step is read"


def load_single(files: StepFiles, index: int) -> Step | None:
    """Return a step that holds only the sample of an index; None if the whole step has to be read.

    That is so if the index repeats, the context-parallel layout is not recorded, or anything is odd. The train row has
    to have the mirror's tokens and engine log-probs, which shows that the mirror holds what the rollout file does.
    """
    if files.rollout is None or files.mirror is None or not files.shards:
        return None
    if files.outdated or files.mirror_outdated:  # both may be of an earlier attempt, and would confirm each other
        return None
    read = partial(read_sample_of, files, index)
    # polars takes longer to import than the train files to read; but a fork would lack the threads that it has here.
    mirrored = read if "polars" in sys.modules else start_forked(read)
    shards, broken = read_shards(files, None)
    recorded = not broken and all(shard.cp_size is not None for shard in shards)
    rules = recorded_rules(shards) if recorded else {}
    sample = mirrored()
    if sample is None or not recorded:
        return None
    rows = [row for shard in shards if (row := row_of(shard, index)) is not None]
    rollout = Rollout(files.rollout.path, files.key.step, files.key.evaluation, (sample,))
    step = join(files, rollout, rows)
    alignment = step.alignment
    # The widths of all rows have to fit the rule of the one row, which may fit by chance.
    same_rules = all(alignment.slicing_rule(column) == rule for column, rule in rules.items())
    whole = step.trained == 1 and not alignment.orphans and same_rules and is_confirmed(step) and is_placed(step)
    return replace(step, alone=True) if whole else None


def read_sample_of(files: StepFiles, index: int) -> Sample | None:
    """Return the sample as the mirror holds it; None if it can't be read, or the index repeats."""
    assert files.mirror is not None
    path, readers = files.mirror.path, readers_of(files)
    try:
        rows = [row for row, entry in enumerate(readers.mirror_index(path)) if entry.sample_index == index]
        return replace(readers.read_mirror(path, rows)[0], position=0, notes=(MIRROR_NOTE,)) if len(rows) == 1 else None
    except DumpError:
        return None


def row_of(shard: Shard, index: int) -> Shard | None:
    """Return the shard as if it held that row only; None if it has no such row, or several."""
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
    """Return the entry of a row in each column that has one a row; the other columns concern the batch."""
    return {
        name: [values[row]]
        for name, values in columns.items()
        if isinstance(values, (list, tuple)) and len(values) == rows
    }


def recorded_rules(shards: Sequence[Shard]) -> dict[str, SlicingRule]:
    """Return the slicing rule of each per-token column, by the recorded layout and the widths of all rows."""
    groups = [replace(group, positions=np.zeros(group.first.rows, np.int64)) for group in group_shards(shards)]
    columns = {name for shard in shards for name in shard.per_token}
    return {column: find_slicing_rule(groups, column) for column in columns}


def is_confirmed(step: Step) -> bool:
    """Whether the train files hold all of the engine's log-probs of the mirror, up to rounding."""
    return not step.samples[0].response_length or bool(confirmed(step.alignment.select(np.zeros(1, np.int64)))[0])


def is_placed(step: Step) -> bool:
    """Whether every field of the sample is whole: a refused field has to state the reason that the whole step gives."""
    return all(step.gather(name).states[0] in ("ok", "not dumped") for name in step.fields)

"""The borders within a response: between its turns, and between the chunks of context-parallel (cp) ranks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dumptui.core.arrays import Array, Ints
from dumptui.core.fields.registry import train_column
from dumptui.core.formats.sample import Sample
from dumptui.core.step.step import Step


def turn_starts(sample: Sample, mask: Array | None) -> Ints:
    """Return the absolute positions at which the model's turns begin.

    Those are the starts of its generate calls where recorded, else of its runs of trained tokens.
    """
    calls = [span.start for call in sample.calls for span in call.spans[:1] if span.start is not None]
    if calls and len(calls) == len(sample.calls):
        return np.unique(np.clip(calls, sample.prompt_length, sample.total_length))
    if mask is None:
        return np.full(int(sample.response_length > 0), sample.prompt_length, np.int64)
    return np.flatnonzero(np.diff((mask > 0).astype(np.int8), prepend=0) == 1) + sample.prompt_length


class Chunks(NamedTuple):
    """The chunks of `size` cp ranks.

    `ranks` is the cp rank of each response token, -1 where no rank held it; `edges` are absolute positions.
    """

    size: int
    ranks: Array
    edges: Ints


def chunks(step: Step, position: int) -> Chunks | None:
    """Return the chunks of a sample, by the rule of the trainer's first sliced column.

    None without cp, or where the layout is not known.
    """
    row, sample = step.alignment.rows[position], step.samples[position]
    if row is None or row.group.cp_size == 1 or row.group.problem is not None:
        return None
    names = {name for shard in row.group.shards for name in shard.per_token}
    columns = [column for name in step.fields if (column := train_column(name)) in names]
    rule = next((rule for column in columns if (rule := step.alignment.slicing_rule(column).first)), None)
    if rule in (None, "full"):
        return None
    ranks = np.full(int(row.group.first.responses[row.row]), -1, np.int8)
    starts = []
    for rank in range(row.group.cp_size):
        for part in row.group.spans(rule, row.group.cp_size, rank).at(row.row):
            if part.stop > part.start:
                ranks[part] = rank
                starts.append(part.start)
    alignment = row.group.token_alignments.get(row.row)
    found = np.sort(np.array(starts, np.int64))
    if alignment is not None:
        ranks, found = ranks[alignment.positions], np.searchsorted(alignment.positions, found)
    edges = np.unique(found[(found > 0) & (found < sample.response_length)])
    return Chunks(row.group.cp_size, ranks, edges + sample.prompt_length)

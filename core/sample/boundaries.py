"""The borders within a response: between its turns, and between the chunks of context-parallel (cp) ranks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dumptui.core.arrays import Array, Ints
from dumptui.core.formats.sample import Sample
from dumptui.core.step.step import DUMPED_NAMES, Step


def turn_starts(sample: Sample, mask: Array | None) -> Ints:
    """Return the absolute positions at which the model's turns begin.

    These are the starts of its generate calls where recorded, else of its runs of trained tokens.
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
    row, sample = step.rows[position], step.samples[position]
    if row is None or row.peers.cp_size == 1 or row.peers.problem is not None:
        return None
    names = {name for shard in row.peers.shards for name in shard.per_token}
    columns = [column for name in step.fields if (column := DUMPED_NAMES.get(name, name)) in names]
    rule = next((step.cut(column).rules[0] for column in columns if step.cut(column).rules), None)
    if rule in (None, "full"):
        return None
    ranks = np.full(int(row.peers.first.responses[row.row]), -1, np.int8)
    starts = []
    for rank in range(row.peers.cp_size):
        for part in row.peers.spans(rule, row.peers.cp_size, rank).at(row.row):
            if part.stop > part.start:
                ranks[part] = rank
                starts.append(part.start)
    alignment = row.peers.alignments.get(row.row)
    borders = np.sort(np.array(starts, np.int64))
    if alignment is not None:
        ranks, borders = ranks[alignment.at], np.searchsorted(alignment.at, borders)
    edges = np.unique(borders[(borders > 0) & (borders < sample.response_length)])
    return Chunks(row.peers.cp_size, ranks, edges + sample.prompt_length)

"""The loss masks of a step: the trainer's, which say what it trained on, else the samples' own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from dumptui.core.arrays import Array, Ints
from dumptui.core.fields.token_field import TokenField
from dumptui.core.formats.sample import WEIGHTED_MASK, Sample, is_weighted
from dumptui.core.parallel.row_evidence import Evidence, read_each
from dumptui.core.parallel.row_matching import Row
from dumptui.core.parallel.shard_group import ShardGroup

Wanted: TypeAlias = Sequence[tuple[ShardGroup, Ints, Ints]]
"""Per data-parallel shard, its samples by their place in the output, and their rows."""


def fill_masks(
    out: TokenField, samples: Sequence[Sample], rows: Sequence[Row | None], wanted: Wanted, evidence: Evidence
) -> None:
    """Write 0 and 1, and what can be said where there is none of the sample's length."""
    trained = train_masks(out, wanted, evidence)
    for at, position in enumerate(out.positions.tolist()):
        values, known = out.one(at)
        mask = sample_mask(samples[position], rows[position]) if trained[at] is None else trained[at]
        if mask is None:
            out.states[at], out.reasons[at] = "unreadable", "the loss mask in its train row is unreadable"
        elif len(mask) != len(values):
            reason = f"loss_mask has {len(mask)} entries for {len(values)} response tokens"
            odd = None if len(mask) else samples[position].note_on("loss_mask")
            out.states[at], out.reasons[at] = "unreadable", odd or reason
        else:
            values[:], known[:], out.states[at] = mask > 0, True, "ok"
            out.reasons[at] = WEIGHTED_MASK if is_weighted(mask) else None


def train_masks(out: TokenField, wanted: Wanted, evidence: Evidence) -> list[Array | None]:
    """From the first file of each shard that can be read and is of the sample's attempt."""
    found: list[Array | None] = [None] * len(out.positions)
    for peers, ats, rows in wanted:
        wanted_here = list(zip(ats.tolist(), rows.tolist(), out.positions[ats].tolist(), strict=True))
        for shard in peers.shards:
            left = [one for one in wanted_here if found[one[0]] is None]
            if not left:
                break
            masks = read_each(shard.tensors("loss_masks", [row for _, row, _ in left]))
            for (at, row, position), mask in zip(left, masks, strict=True):
                mine = shard is peers.first or evidence.same_tokens(shard, row, position)
                if mask is not None and mine:
                    whole = len(mask) == shard.responses[row]
                    alignment = peers.alignments.get(row) if whole else None
                    found[at] = mask if alignment is None else mask[alignment.at]
    return found


def sample_mask(sample: Sample, row: Row | None) -> Array | None:
    """None where the train row has a mask that can't be read: it may be another than the sample's."""
    if row is not None and any("loss_masks" in shard.columns for shard in row.peers.shards):
        return None
    if sample.removed:
        return np.zeros(sample.response_length, np.int8)
    return np.ones(sample.response_length, np.int8) if sample.loss_mask is None else sample.loss_mask

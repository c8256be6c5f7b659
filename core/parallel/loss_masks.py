"""The loss masks of a step: the trainer's, which say what it trained on, else the samples' own."""

from __future__ import annotations

import numpy as np

from dumptui.core.arrays import Array
from dumptui.core.fields.token_field import TokenField, empty
from dumptui.core.formats.sample import WEIGHTED_MASK, Sample, is_weighted
from dumptui.core.formats.values import read_each
from dumptui.core.parallel.alignment import Row, Selection


def loss_masks(selection: Selection) -> TokenField:
    """Return the loss masks, 0 and 1; one of another length than its response is unreadable."""
    out, alignment = empty("loss_mask", selection.positions, selection.lengths, np.int8), selection.alignment
    trained = train_masks(selection)
    for index, position in enumerate(out.positions.tolist()):
        values, known = out.one(index)
        sample = alignment.samples[position]
        mask = sample_mask(sample, alignment.rows[position]) if trained[index] is None else trained[index]
        if mask is None:
            out.states[index], out.reasons[index] = "unreadable", "the loss mask in its train row is unreadable"
        elif len(mask) != len(values):
            reason = f"loss_mask has {len(mask)} entries for {len(values)} response tokens"
            odd = None if len(mask) else sample.note_on("loss_mask")
            out.states[index], out.reasons[index] = "unreadable", odd or reason
        else:
            values[:], known[:], out.states[index] = mask > 0, True, "ok"
            out.reasons[index] = WEIGHTED_MASK if is_weighted(mask) else None
    return out


def train_masks(selection: Selection) -> list[Array | None]:
    """Return each sample's mask from the first file of its shard that can be read and is of the sample's attempt."""
    found: list[Array | None] = [None] * len(selection.positions)
    for group, indices, rows in selection.parts:
        wanted = list(zip(indices.tolist(), rows.tolist(), selection.positions[indices].tolist(), strict=True))
        for shard in group.shards:
            missing = [(index, row, position) for index, row, position in wanted if found[index] is None]
            if not missing:
                break
            masks = read_each(shard.tensors("loss_masks", [row for _, row, _ in missing]))
            for (index, row, position), mask in zip(missing, masks, strict=True):
                same = shard is group.first or selection.alignment.same_tokens(shard, row, position)
                if mask is not None and same:
                    whole = len(mask) == shard.responses[row]
                    tokens = group.token_alignments.get(row) if whole else None
                    found[index] = mask if tokens is None else mask[tokens.positions]
    return found


def sample_mask(sample: Sample, row: Row | None) -> Array | None:
    """Return a sample's own mask; None if its train row has one that can't be read, which may be another."""
    if row is not None and any("loss_masks" in shard.columns for shard in row.group.shards):
        return None
    if sample.removed:
        return np.zeros(sample.response_length, np.int8)
    return np.ones(sample.response_length, np.int8) if sample.loss_mask is None else sample.loss_mask

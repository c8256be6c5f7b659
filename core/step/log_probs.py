"""The engine's log-probs of a step, and how far the trainer's are from them.

The rollout file holds the engine's log-probs whole; the train files hold a copy of them, sliced over context-parallel
ranks, with the precision that the trainer uses.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TypeAlias

import numpy as np

from dumptui.core.arrays import Bools, Ints
from dumptui.core.fields.token_field import TokenField, empty, overlay, take_worse_states
from dumptui.core.parallel.alignment import Alignment, Selection
from dumptui.core.parallel.assembly import train_field
from dumptui.core.parallel.row_evidence import rounding, same_values
from dumptui.core.parallel.shard_group import ENGINE_COLUMN, ShardGroup
from dumptui.core.step.sample_fields import fill_from_samples

ENGINE_COPY_CONTRADICTED = "rollout_log_probs of the train files contradict the rollout file"
Pause: TypeAlias = Callable[[], object]


def engine_log_probs(selection: Selection, pause: Pause) -> TokenField:
    """Return the engine's log-probs: the rollout file's copy, which was never sliced, else the train files'."""
    out = of_rollout_file(selection)
    absent = np.array([index for index, state in enumerate(out.states) if state == "not dumped"], np.int64)
    if len(absent):
        overlay(out, absent, of_train_files(selection.alignment.select(selection.positions[absent]), pause))
    return out


def of_rollout_file(selection: Selection) -> TokenField:
    out = empty(ENGINE_COLUMN, selection.positions, selection.lengths)
    fill_from_samples(out, selection.alignment.samples, attrgetter("scored_log_probs"))
    return out


def of_train_files(selection: Selection, pause: Pause) -> TokenField:
    return train_field(selection, ENGINE_COLUMN, ENGINE_COLUMN, pause)


# Difference -----------------------------------------------------------------------------------------------


def difference(selection: Selection, trainer: TokenField, mask: TokenField, pause: Pause) -> TokenField:
    """Return trainer - engine log-prob, where the loss `mask` of the same samples is 1 and both are known.

    The values are written over those of `trainer`.
    """
    engine, contradicting = comparable_log_probs(selection, pause)
    pause()
    known = trainer.known & engine.known & mask.known & (mask.values > 0)
    values = trainer.values
    with np.errstate(invalid="ignore"):
        values -= engine.values
    values[~known] = 0
    states, reasons = list(trainer.states), list(trainer.reasons)
    for field in (engine, mask):
        take_worse_states(states, reasons, field)
    out = TokenField("lp_diff", selection.positions, trainer.offsets, values, known, states, reasons)
    for group, indices, rows in selection.parts:
        out.distrust(indices[selection.alignment.engine_verdict(group).moved[rows]], ENGINE_COPY_CONTRADICTED)
    out.distrust(contradicting, ENGINE_COPY_CONTRADICTED)
    return out


def comparable_log_probs(selection: Selection, pause: Pause) -> tuple[TokenField, Ints]:
    """Return the engine's log-probs to subtract, and the indices of the samples whose copies contradict each other.

    They are the train files' copy, which has the trainer's precision, else the rollout file's. A copy coarser than the
    trainer's own log-probs would show its rounding as divergence, so then the rollout file's is taken. Copies that hold
    the very same numbers, as nearly all do, are not read a second time.
    """
    out, alignment = engine_log_probs(selection, pause), selection.alignment
    finer: list[int] = []
    for group, indices, rows in selection.parts:
        other = ~alignment.engine_verdict(group).identical[rows]
        pairs = zip(indices[other].tolist(), rows[other].tolist(), strict=True)
        finer += [index for index, row in pairs if out.states[index] == "ok" and not is_coarser(group, row)]
    copy = of_train_files(alignment.select(selection.positions[finer]), pause)
    whole = [index for index, state in enumerate(copy.states) if state == "ok"]
    contradicting = [finer[index] for index in whole if not same_log_probs(alignment, out, finer[index], copy, index)]
    overlay(out, np.array(finer, np.int64)[whole], copy, whole)
    return out, np.array(contradicting, np.int64)


def same_log_probs(alignment: Alignment, out: TokenField, index: int, copy: TokenField, copy_index: int) -> bool:
    """Whether the train files' copy of a sample's engine log-probs is the one that is shown, up to rounding."""
    (shown, known), (copied, copy_known) = out.one(index), copy.one(copy_index)
    both = known & copy_known
    row = alignment.rows[int(out.positions[index])]
    relative = 0.0 if row is None else coarsest(row.group, ENGINE_COLUMN, row.row)
    return bool(same_values(copied[both], shown[both], relative, relative).all())


def is_coarser(group: ShardGroup, row: int) -> bool:
    """Whether the train files' copy of the engine's log-probs is coarser than the trainer's own."""
    return coarsest(group, ENGINE_COLUMN, row) > coarsest(group, "log_probs", row)


def coarsest(group: ShardGroup, column: str, row: int) -> float:
    """Return the relative error of the coarsest copy of a row; 0 if there is none."""
    tensors = (shard.tensor(column, row) for shard in group.shards)
    return max((rounding(tensor)[0] for tensor in tensors if tensor is not None), default=0.0)


def confirmed(selection: Selection) -> Bools:
    """Return for which samples the train files hold all of the rollout file's engine log-probs."""
    own, copy = of_rollout_file(selection), of_train_files(selection, lambda: None)
    indices, alignment = range(len(selection.positions)), selection.alignment
    whole = own.ok & copy.ok & np.array([own.one(at)[1].all() and copy.one(at)[1].all() for at in indices], bool)
    return np.array([bool(whole[at]) and same_log_probs(alignment, own, at, copy, at) for at in indices], bool)

"""Per-token values of several samples end to end, each sample with the state of its field."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from dumptui.core.arrays import Array, Bools, Ints
from dumptui.core.fields.registry import FieldDefinition

State: TypeAlias = Literal["ok", "partial", "unreadable", "not dumped"]


@dataclass(frozen=True, slots=True, eq=False)
class TokenField:
    """A per-token field of several samples end to end.

    Sample i of `positions` has values[offsets[i]:offsets[i+1]], one per response token; `known` is False where there is
    no value (NaN is a value).
    """

    name: str
    positions: Ints
    offsets: Ints
    values: Array
    known: Bools
    states: list[State]
    reasons: list[str | None]

    @property
    def lengths(self) -> Ints:
        return self.offsets[1:] - self.offsets[:-1]

    def one(self, at: int) -> tuple[Array, Bools]:
        cut = slice(int(self.offsets[at]), int(self.offsets[at + 1]))
        return self.values[cut], self.known[cut]

    def fail(self, at: int, reason: str) -> None:
        """Drop every value of a sample, as a value that can't be trusted is not shown, and set the reason."""
        values, known = self.one(at)
        values[:], known[:] = 0, False
        self.states[at], self.reasons[at] = "unreadable", reason

    def distrust(self, ats: Ints, reason: str) -> None:
        """Drop the values of these samples."""
        for at in ats.tolist():
            if self.states[at] in ("ok", "partial"):
                self.fail(at, reason)

    def keep_common(self, other: TokenField, at: int) -> bool:
        """Keep the values of a sample that both fields know; return False if these differ or there are none."""
        (mine, known), (theirs, also_known) = self.one(at), other.one(at)
        both = known & also_known
        if (known.any() and not both.any()) or not np.array_equal(mine[both], theirs[both], equal_nan=True):
            return False
        mine[~both], known[:] = 0, both
        return True

    @property
    def ok(self) -> Bools:
        return np.array([state == "ok" for state in self.states], bool)


def empty(name: str, positions: Ints, lengths: Ints, dtype: npt.DTypeLike = np.float32) -> TokenField:
    """Return a field for samples of `lengths` response tokens, without values."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    lengths.cumsum(out=offsets[1:])
    values, known = np.zeros(offsets[-1], dtype), np.zeros(offsets[-1], bool)
    count = len(positions)
    return TokenField(name, positions, offsets, values, known, ["not dumped"] * count, [None] * count)


def blank(like: TokenField) -> TokenField:
    """Return a field without values for the same samples."""
    return empty(like.name, like.positions, like.lengths, like.values.dtype)


def derive(definition: FieldDefinition, inputs: Sequence[TokenField]) -> TokenField:
    """Return a field computed from others, known where all of them are, with the worst of their states."""
    return computed(definition, inputs, [field.values for field in inputs])


def derive_for_statistics(definition: FieldDefinition, inputs: Sequence[TokenField]) -> TokenField:
    """Return the same of inputs that are clamped where the definition says so; NaN where one is infinite."""
    limit = definition.largest_input
    if limit is None:
        return derive(definition, inputs)
    clamped = []
    for field in inputs:
        values = np.clip(field.values, -limit, limit)
        values[np.isinf(field.values)] = np.nan
        clamped.append(values)
    return computed(definition, inputs, clamped)


def computed(definition: FieldDefinition, inputs: Sequence[TokenField], arrays: Sequence[Array]) -> TokenField:
    assert definition.derive is not None
    first, *others = inputs
    known = first.known
    states, reasons = list(first.states), list(first.reasons)
    for other in others:
        known = known & other.known
        take_worse_states(states, reasons, other)
    values = np.where(known, definition.derive(*arrays), np.float32(0))
    return TokenField(definition.name, first.positions, first.offsets, values, known, states, reasons)


def take_worse_states(states: list[State], reasons: list[str | None], other: TokenField) -> None:
    """Replace the state of each sample by that of another field where less of that one is there."""
    for at, state in enumerate(other.states):
        if state != "ok" and (states[at] == "ok" or (states[at] == "partial" and state != "partial")):
            states[at], reasons[at] = state, other.reasons[at]


def shown(flat: TokenField, mask: TokenField, at: int) -> Bools:
    """Return where the values of a sample are shown: known and, by the loss `mask`, trained on.

    A mask that doesn't fit hides nothing; the sample's notes report it.
    """
    known = flat.one(at)[1]
    return known & (mask.one(at)[0] > 0) if mask.states[at] == "ok" else known


def overlay(out: TokenField, at: Ints, source: TokenField, source_at: Sequence[int] | None = None) -> None:
    """Copy samples of `source`, all or those at `source_at`, over the samples `at` of `out`."""
    for to, origin in zip(at, range(len(at)) if source_at is None else source_at, strict=True):
        values, known = out.one(int(to))
        values[:], known[:] = source.one(origin)
        out.states[to], out.reasons[to] = source.states[origin], source.reasons[origin]

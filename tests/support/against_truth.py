"""A joined step held against the truth that was written: what is shown and is not so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from dumptui.core.arrays import Array
from dumptui.core.step.step import Step
from tests.support.writer import Truth

COMPARED = ("log_probs", "rollout_log_probs")


class Wrong(NamedTuple):
    """A field of a sample that shows a value which was never dumped for it."""

    field: str
    position: int
    shown: object
    true: object


def wrong_values(step: Step, truth: Truth) -> Iterator[Wrong]:
    """Lengths, token ids, loss masks and per-token values. Whatever is not shown is not wrong."""
    for position, (sample, dumped) in enumerate(zip(step.samples, truth.samples, strict=False)):
        for name, shown in (("index", sample.index), ("response_length", sample.response_length)):
            if shown != dumped[name]:
                yield Wrong(name, position, shown, dumped[name])
        if sample.tokens.tolist() != dumped["tokens"]:
            yield Wrong("tokens", position, sample.tokens, dumped["tokens"])
    yield from _wrong(step, "loss_mask", [mask > 0 for mask in truth.masks])
    for column, true in truth.fields.items():
        yield from _wrong(step, "train_log_probs" if column == "log_probs" else column, true)
    yield from _wrong(step, "lp_diff", [*map(_difference, *(truth.fields[name] for name in COMPARED))])


def _wrong(step: Step, name: str, truth: Sequence[Array | None]) -> Iterator[Wrong]:
    flat = step.masks() if name == "loss_mask" else step.gather(name)
    for at, true in enumerate(truth[: len(flat.positions)]):
        values, known = flat.one(at)
        if flat.states[at] not in ("ok", "partial") or (name == "loss_mask" and step.alignment.rows[at] is None):
            continue
        if true is None or len(true) != len(values):
            if known.any():
                yield Wrong(name, at, values, true)
        elif not _same(values[known], true[known]):
            yield Wrong(name, at, values, true)


def _same(shown: Array, true: Array) -> bool:
    return np.array_equal(shown, true, equal_nan=shown.dtype.kind == "f")


def _difference(trainer: Array | None, engine: Array | None) -> Array | None:
    return None if trainer is None or engine is None else trainer - engine


def states(step: Step, name: str) -> list[str]:
    return list(step.gather(name).states)

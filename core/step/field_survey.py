"""A field over a whole step: the range of its values, and its worst tokens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dumptui.core.arrays import Array, Ints
from dumptui.core.fields.quantiles import Quantiles
from dumptui.core.fields.registry import scale_of
from dumptui.core.step.step import Step

MOST_WORST = 1000
PART_TOKENS = 150_000  # tokens looked at in one go: 10 ms
NO_TOKENS = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))
TAIL_PERCENTS = (0.5, 99.5)  # percent


@dataclass(frozen=True, slots=True, eq=False)
class FieldSurvey:
    """The range and the worst tokens of a field over the trained tokens of a step.

    `span` is from the 0.5 to the 99.5 percentile, so that one outlier doesn't flatten the rest; (0, 0) without any
    values. The worst tokens are given by the `positions` of their samples in the rollout file, absolute `tokens` in
    these and `values`, the worst first.
    """

    span: tuple[float, float]
    positions: Ints
    tokens: Ints
    values: Array


def survey(step: Step, name: str) -> FieldSurvey:
    *_, found = surveying(step, name)
    assert found is not None
    return found


def surveying(step: Step, name: str) -> Iterator[FieldSurvey | None]:
    """Yield None after each part of the step, so that other work can be done in between, and at last the survey."""
    values, worst = Quantiles(), [NO_TOKENS]
    prompts = np.array([sample.prompt_length for sample in step.samples], np.int64)
    for positions in parts(step):
        flat, mask = step.gather(name, positions), step.masks(positions)
        at = np.flatnonzero(flat.known & mask.known & (mask.values > 0))
        part = flat.values[at]
        kept = order(name, part, MOST_WORST)
        owners = np.searchsorted(flat.offsets, at[kept], "right") - 1
        tokens = at[kept] - flat.offsets[owners] + prompts[positions[owners]]
        values.add(part)
        worst.append((positions[owners], tokens, part[kept]))
        yield None
    owner, token, value = (np.concatenate(column) for column in zip(*worst, strict=True))
    kept = order(name, value, MOST_WORST)
    span = (values.percentile(TAIL_PERCENTS[0]), values.percentile(TAIL_PERCENTS[1])) if values.count else (0.0, 0.0)
    yield FieldSurvey(span, owner[kept], token[kept], value[kept])


def parts(step: Step) -> list[Ints]:
    """Return the positions of all samples in order, in parts of about PART_TOKENS response tokens."""
    before = np.cumsum([0, *(sample.response_length for sample in step.samples)])[:-1]
    edges = np.flatnonzero(np.diff(before // PART_TOKENS)) + 1
    return np.split(np.arange(len(before)), edges) if len(before) else []


def order(name: str, values: npt.NDArray[np.floating], most: int | None = None) -> Ints:
    """Return the indices of the `most` worst values, the worst first; equal ones keep their order."""
    size = strength(name, values)
    if most is not None and len(size) > most:
        least = np.partition(size, len(size) - most)[len(size) - most]
        kept = np.concatenate([np.flatnonzero(size > least), np.flatnonzero(size == least)])[:most]
        return kept[np.argsort(-size[kept], kind="stable")]
    return np.argsort(-size, kind="stable")


def strength(name: str, values: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    """Return the magnitude of each value, for a ratio that of its logarithm; NaN counts as infinity."""
    exact = values.astype(np.float64)
    if scale_of(name) == "ratio":
        with np.errstate(divide="ignore", invalid="ignore"):
            exact = np.log(exact)
    size = np.abs(exact)
    size[np.isnan(size)] = np.inf
    return size

"""The values of a per-token field over all unmasked tokens of a step."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dumptui.core.context_parallel import Array, Ints
from dumptui.core.flat import Bools, Flat, safe_ratio
from dumptui.core.join import Step
from dumptui.core.quantiles import Quantiles
from dumptui.core.survey import TAILS, parts

BINS = 64


@dataclass(frozen=True, slots=True)
class Distribution:
    """Statistics of the finite values, None without any; `std` is that of a sample (n-1).

    `samples` of the step have values of the field, or `reason` says why none has. `bins` count the values from
    `ends[0]` to `ends[1]`, the 0.5 and 99.5 percentile; what lies beyond is counted in the outermost ones.
    """

    name: str
    samples: int
    count: int
    not_finite: int
    reason: str | None = None
    mean: float | None = None
    std: float | None = None
    low: float | None = None
    median: float | None = None
    p99: float | None = None
    high: float | None = None
    bins: tuple[int, ...] = ()
    ends: tuple[float, float] = (0.0, 0.0)


class Moments:
    """Mean and spread of finite values that come in parts."""

    def __init__(self) -> None:
        self.count, self.mean, self._squares = 0, 0.0, 0.0

    def add(self, values: Array) -> None:
        """Chan's sum of squares around a mean that moves: nothing is looked at twice."""
        exact = values[np.isfinite(values)].astype(np.float64)
        if not len(exact):
            return
        mean, before = float(exact.mean()), self.count
        self.count += len(exact)
        away = mean - self.mean
        self.mean += away * len(exact) / self.count
        self._squares += float(np.square(exact - mean).sum()) + away**2 * before * len(exact) / self.count

    @property
    def std(self) -> float | None:
        return math.sqrt(self._squares / (self.count - 1)) if self.count > 1 else None


def distributions(step: Step) -> Iterator[Distribution | None]:
    """One field after another, as the values of one take 4 bytes a token of the step.

    None after each part of one, in between which other work may be done.
    """
    trained: list[Bools] = []
    for positions in parts(step):
        mask = step.masks(positions)
        trained.append(mask.known & (mask.values > 0))
        yield None
    for name in step.fields:
        yield from distribution(step, name, trained)


def distribution(step: Step, name: str, trained: Sequence[Bools]) -> Iterator[Distribution | None]:
    """`trained` are the unmasked tokens of each part of the step."""
    quantiles, moments, total, samples = Quantiles(), Moments(), 0, 0
    reasons: list[str | None] = []
    for positions, unmasked in zip(parts(step), trained, strict=True):
        flat = statistic_field(step, name, positions)
        values = flat.values[flat.known & unmasked]
        quantiles.add(values)
        moments.add(values)
        total += len(values)
        samples += sum(state in ("ok", "partial") for state in flat.states)
        reasons += flat.reasons
        yield None
    reason = None if samples else next(filter(None, reasons), "not dumped")
    lost = total - quantiles.count
    if not quantiles.count:
        yield Distribution(name, samples, total, lost, reason)
        return
    low, median, p99, high = map(quantiles.at, (0, 50, 99, 100))
    yield None
    bins, ends = histogram(quantiles)
    yield Distribution(
        name=name,
        samples=samples,
        count=total,
        not_finite=lost,
        mean=moments.mean,
        std=moments.std,
        low=low,
        median=median,
        p99=p99,
        high=high,
        bins=bins,
        ends=ends,
    )


def statistic_field(step: Step, name: str, positions: Ints) -> Flat:
    """A field as statistics take it: a ratio of a difference that is clamped."""
    return safe_ratio(step.gather("lp_diff", positions)) if name == "imp_ratio" else step.gather(name, positions)


def histogram(values: Quantiles) -> tuple[tuple[int, ...], tuple[float, float]]:
    start, stop = values.at(TAILS[0]), values.at(TAILS[1])
    if start == stop:
        return (values.count,), (start, stop)
    return tuple(values.counts(np.linspace(start, stop, BINS + 1))), (start, stop)

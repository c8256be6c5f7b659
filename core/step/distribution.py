"""Statistics and histogram of a per-token field over all unmasked tokens of a step."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dumptui.core.arrays import Array, Bools, Ints
from dumptui.core.fields.quantiles import Quantiles
from dumptui.core.fields.registry import definition
from dumptui.core.fields.token_field import TokenField, derive_for_statistics
from dumptui.core.step.field_survey import TAIL_PERCENTS, parts
from dumptui.core.step.step import Step

BIN_COUNT = 64


@dataclass(frozen=True, slots=True)
class Distribution:
    """Statistics of the finite values of a field, None without any; `std` divides by n-1.

    `samples` is the number of samples with values of the field; where it is 0, `reason` says why. `bins` count the
    values between `ends`, the 0.5 and 99.5 percentiles; values beyond are counted in the first and last bin.
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
    """Mean and standard deviation of finite values that are added in parts."""

    def __init__(self) -> None:
        self.count, self.mean, self._squares = 0, 0.0, 0.0

    def add(self, values: Array) -> None:
        """Update the moments by the parallel algorithm of Chan et al. (1979): one pass over the values."""
        finite = values[np.isfinite(values)].astype(np.float64)
        if not len(finite):
            return
        mean, count_before = float(finite.mean()), self.count
        self.count += len(finite)
        shift = mean - self.mean
        self.mean += shift * len(finite) / self.count
        self._squares += float(np.square(finite - mean).sum()) + shift**2 * count_before * len(finite) / self.count

    @property
    def std(self) -> float | None:
        return math.sqrt(self._squares / (self.count - 1)) if self.count > 1 else None


def distributions(step: Step) -> Iterator[Distribution | None]:
    """Yield the distribution of each field in turn: the values of one take 4 bytes per token of the step.

    Yields None after each part of a field, so that the caller can do other work in between.
    """
    trained: list[Bools] = []
    for positions in parts(step):
        mask = step.masks(positions)
        trained.append(mask.known & (mask.values > 0))
        yield None
    for name in step.fields:
        yield from distribution(step, name, trained)


def distribution(step: Step, name: str, trained: Sequence[Bools]) -> Iterator[Distribution | None]:
    """Yield None after each part, then the distribution. `trained` marks the unmasked tokens of each part."""
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
    not_finite = total - quantiles.count
    if not quantiles.count:
        yield Distribution(name, samples, total, not_finite, reason)
        return
    low, median, p99, high = map(quantiles.percentile, (0, 50, 99, 100))
    yield None
    bins, ends = histogram(quantiles)
    yield Distribution(
        name=name,
        samples=samples,
        count=total,
        not_finite=not_finite,
        mean=moments.mean,
        std=moments.std,
        low=low,
        median=median,
        p99=p99,
        high=high,
        bins=bins,
        ends=ends,
    )


def statistic_field(step: Step, name: str, positions: Ints) -> TokenField:
    """Return a field as statistics take it: what is derived, of clamped inputs."""
    field = definition(name)
    if field.derive is None:
        return step.gather(name, positions)
    return derive_for_statistics(field, [step.gather(source, positions) for source in field.inputs])


def histogram(values: Quantiles) -> tuple[tuple[int, ...], tuple[float, float]]:
    start, stop = values.percentile(TAIL_PERCENTS[0]), values.percentile(TAIL_PERCENTS[1])
    if start == stop:
        return (values.count,), (start, stop)
    return tuple(values.counts(np.linspace(start, stop, BIN_COUNT + 1))), (start, stop)

"""The values of a per-token field over all unmasked tokens of a step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dumptui.core.context_parallel import Array
from dumptui.core.flat import Flat
from dumptui.core.join import Step

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


def distributions(step: Step) -> Iterator[Distribution]:
    """One field after another, as the values of one take 4 bytes a token of the step."""
    mask = step.masks()
    for name in step.fields:
        yield distribution(step.gather(name), mask)


def distribution(flat: Flat, mask: Flat) -> Distribution:
    values = flat.values[flat.known & mask.known & (mask.values > 0)].astype(np.float64)
    finite = values[np.isfinite(values)]
    samples = sum(state in ("ok", "partial") for state in flat.states)
    reason = None if samples else next((reason for reason in flat.reasons if reason), "not dumped")
    lost = len(values) - len(finite)
    if not len(finite):
        return Distribution(flat.name, samples, len(values), lost, reason)
    low, median, p99, high = np.percentile(finite, [0, 50, 99, 100]).tolist()
    bins, ends = histogram(finite)
    return Distribution(
        name=flat.name,
        samples=samples,
        count=len(values),
        not_finite=lost,
        mean=float(finite.mean()),
        std=float(finite.std(ddof=1)) if len(finite) > 1 else None,
        low=low,
        median=median,
        p99=p99,
        high=high,
        bins=bins,
        ends=ends,
    )


def histogram(finite: Array) -> tuple[tuple[int, ...], tuple[float, float]]:
    start, stop = np.percentile(finite, [0.5, 99.5]).tolist()
    if start == stop:
        return (len(finite),), (start, stop)
    counts, _ = np.histogram(np.clip(finite, start, stop), BINS, (start, stop))
    return tuple(counts.tolist()), (start, stop)

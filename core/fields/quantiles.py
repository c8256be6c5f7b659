"""Exact quantiles of values that are added in parts; each part is sorted by itself."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from dumptui.core.arrays import Array


class Quantiles:
    """Quantiles of the finite values added so far; `count` is their number."""

    def __init__(self) -> None:
        self.count = 0
        self._parts: list[Array] = []  # each sorted, none empty

    def add(self, values: Array) -> None:
        finite = np.sort(values[np.isfinite(values)])
        self.count += len(finite)
        if len(finite):
            self._parts.append(finite)

    def percentile(self, percent: float) -> float:
        """Return what np.percentile returns: linear interpolation between two values."""
        rank = percent / 100 * (self.count - 1)
        low = self._nth(int(rank))
        return low if rank == int(rank) else low + (self._nth(int(rank) + 1) - low) * (rank - int(rank))

    def counts(self, edges: npt.NDArray[np.float64]) -> list[int]:
        """Return the number of values in each bin [edge, next edge); values outside count in the first or last bin."""
        below = np.sum([part.searchsorted(edges[1:-1]) for part in self._parts], axis=0).tolist()
        return [high - low for low, high in pairwise([0, *below, self.count])]

    def _nth(self, rank: int) -> float:
        """Return the value that `rank` values precede in sorted order, by bisection of the widest remaining part."""
        first, last = [0] * len(self._parts), [len(part) for part in self._parts]
        while True:
            widest = max(range(len(first)), key=lambda part: last[part] - first[part])
            pivot = self._parts[widest][(first[widest] + last[widest]) // 2]
            below = [int(part.searchsorted(pivot)) for part in self._parts]
            if rank < sum(below):
                last = below
                continue
            within = [int(part.searchsorted(pivot, "right")) for part in self._parts]
            if rank < sum(within):
                return float(pivot)
            first = within

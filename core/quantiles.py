"""Exact quantiles of values that come in parts, of which never more than one is sorted in one go."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from dumptui.core.context_parallel import Array


class Quantiles:
    """Of the finite ones, of which there are `count`."""

    def __init__(self) -> None:
        self.count = 0
        self._parts: list[Array] = []  # each sorted, none empty

    def add(self, values: Array) -> None:
        finite = np.sort(values[np.isfinite(values)])
        self.count += len(finite)
        if len(finite):
            self._parts.append(finite)

    def at(self, percent: float) -> float:
        """As np.percentile has it: between two values in proportion."""
        rank = percent / 100 * (self.count - 1)
        low = self._nth(int(rank))
        return low if rank == int(rank) else low + (self._nth(int(rank) + 1) - low) * (rank - int(rank))

    def counts(self, edges: npt.NDArray[np.float64]) -> list[int]:
        """How many values lie between two edges each, the lower one included; what lies beyond, in the outermost."""
        below = np.sum([part.searchsorted(edges[1:-1]) for part in self._parts], axis=0).tolist()
        return [high - low for low, high in pairwise([0, *below, self.count])]

    def _nth(self, rank: int) -> float:
        """The value that `rank` values stand before, found by halving what may hold it in the widest part."""
        first, last = [0] * len(self._parts), [len(part) for part in self._parts]
        while True:
            widest = max(range(len(first)), key=lambda at: last[at] - first[at])
            pivot = self._parts[widest][(first[widest] + last[widest]) // 2]
            below = [int(part.searchsorted(pivot)) for part in self._parts]
            if rank < sum(below):
                last = below
                continue
            within = [int(part.searchsorted(pivot, "right")) for part in self._parts]
            if rank < sum(within):
                return float(pivot)
            first = within

"""Per-sample statistics of a per-token field over unmasked positions, a whole step in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dumptui.core.context_parallel import Array
from dumptui.core.flat import Flat
from dumptui.core.torch_mean import torch_mean

# A spread this small beside the mean is what float32 rounding makes of equal values.
RESIDUE = 1e-6


class Masked:
    """The values of a field where the loss mask is 1, and how many each sample has.

    Samples whose field or mask is not `ok` have no statistics: over a part they would be another number under the same name.
    """

    def __init__(self, flat: Flat, mask: Flat) -> None:
        chosen = flat.known & mask.known & (mask.values > 0)
        before = np.concatenate([[0], np.cumsum(chosen)])
        self.values: Array = flat.values[chosen].astype(np.float64)
        self.starts = before[flat.offsets[:-1]]
        self.filled = before[flat.offsets[1:]] > self.starts
        self.count = np.where(flat.ok & mask.ok, before[flat.offsets[1:]] - self.starts, 0)

    def mean(self) -> list[float | None]:
        return self._shown(self._reduce(np.add, self.values) / np.maximum(self.count, 1))

    def mean_abs(self) -> list[float | None]:
        return self._shown(self._reduce(np.add, np.abs(self.values)) / np.maximum(self.count, 1))

    def max(self) -> list[float | None]:
        return self._shown(self._reduce(np.maximum, self.values))

    def max_abs(self) -> list[float | None]:
        return self._shown(self._reduce(np.maximum, np.abs(self.values)))

    def std(self) -> list[float | None]:
        """Sample standard deviation (n-1), as torch.std gives it of float32 values; nothing for a single value."""
        count = np.maximum(self.count, 1)
        with np.errstate(invalid="ignore"):
            centre = self._reduce(np.add, self.values) / count
            spread = self._spread(centre)
            level = spread <= RESIDUE * np.abs(centre)
            for at in np.flatnonzero(level & self.filled):
                start = self.starts[at]
                centre[at] = torch_mean(self.values[start : start + count[at]].astype(np.float32))
            spread = self._spread(centre)
        return self._shown(spread, at_least=2)

    def _spread(self, centre: Array) -> Array:
        apart = self.values - np.repeat(centre[self.filled], self._lengths())
        return np.sqrt(self._reduce(np.add, apart**2) / np.maximum(self.count - 1, 1))

    def _lengths(self) -> Array:
        starts = self.starts[self.filled]
        return np.diff(np.append(starts, len(self.values)))

    def _reduce(self, ufunc: np.ufunc, values: Array) -> Array:
        out = np.zeros(len(self.starts))
        if self.filled.any():
            out[self.filled] = ufunc.reduceat(values, self.starts[self.filled])
        return out

    def _shown(self, values: Array, at_least: int = 1) -> list[float | None]:
        numbers: list[Any] = values.tolist()
        return [value if n >= at_least else None for value, n in zip(numbers, self.count, strict=True)]


def mean(values: Sequence[float | None]) -> float | None:
    """The plain mean of what is there; None of nothing."""
    there = [value for value in values if value is not None]
    with np.errstate(invalid="ignore"):  # infinite values of both signs
        return float(np.mean(there)) if there else None


def std(values: Sequence[float | None]) -> float | None:
    """Sample standard deviation (n-1) of what is there; None of fewer than two."""
    there = [value for value in values if value is not None]
    with np.errstate(invalid="ignore"):
        return float(np.std(there, ddof=1)) if len(there) > 1 else None

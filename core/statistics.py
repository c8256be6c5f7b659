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

    Samples whose field or mask is not `ok` have no statistics: over a part they would be another number under one name.
    """

    def __init__(self, flat: Flat, mask: Flat) -> None:
        self._values = flat.values
        self._chosen = flat.known & mask.known & (mask.values > 0)
        self._offsets = flat.offsets
        self._filled = flat.offsets[1:] > flat.offsets[:-1]
        self._starts = flat.offsets[:-1][self._filled]
        counted = self._reduce(np.add, self._chosen.view(np.int8), np.int64)
        self.count = np.where(flat.ok & mask.ok, counted, 0)

    def mean(self) -> list[float | None]:
        return self._shown(self._sum(self._values) / np.maximum(self.count, 1))

    def mean_abs(self) -> list[float | None]:
        return self._shown(self._sum(np.abs(self._values)) / np.maximum(self.count, 1))

    def max(self) -> list[float | None]:
        return self._shown(self._largest(self._values))

    def max_abs(self) -> list[float | None]:
        return self._shown(self._largest(np.abs(self._values)))

    def std(self) -> list[float | None]:
        """Sample standard deviation (n-1), as torch.std gives it of float32 values; nothing for a single value."""
        spreads: list[float | None] = [None] * len(self.count)
        for at in np.flatnonzero(self.count > 1):
            cut = slice(self._offsets[at], self._offsets[at + 1])
            spreads[at] = spread(self._values[cut][self._chosen[cut]])
        return spreads

    def _sum(self, values: Array) -> Array:
        return self._reduce(np.add, np.where(self._chosen, values, values.dtype.type(0)), np.float64)

    def _largest(self, values: Array) -> Array:
        return self._reduce(np.maximum, np.where(self._chosen, values, values.dtype.type(-np.inf)), values.dtype)

    def _reduce(self, ufunc: np.ufunc, values: Array, dtype: Any) -> Array:
        """Over each sample's stretch; 0 for an empty one."""
        out = np.zeros(len(self._filled), dtype)
        if len(self._starts):
            with np.errstate(invalid="ignore"):
                out[self._filled] = ufunc.reduceat(values, self._starts, dtype=dtype)
        return out

    def _shown(self, values: Array) -> list[float | None]:
        numbers: list[Any] = values.tolist()
        return [value if n else None for value, n in zip(numbers, self.count, strict=True)]


def spread(values: Array) -> float:
    """torch.std of two or more float32 values."""
    wide = values.astype(np.float64)
    with np.errstate(invalid="ignore"):
        found = float(np.std(wide, ddof=1))
        if not found <= RESIDUE * abs(float(wide.mean())):
            return found
        return float(np.sqrt(((wide - torch_mean(values.astype(np.float32))) ** 2).sum() / (len(wide) - 1)))


def mean(values: Sequence[float | None]) -> float | None:
    """The plain mean of what is there; None of nothing. numpy would take ten times as long over a group of 8."""
    there = [value for value in values if value is not None]
    return sum(there) / len(there) if there else None


def std(values: Sequence[float | None]) -> float | None:
    """Sample standard deviation (n-1) of what is there; None of fewer than two."""
    there = [value for value in values if value is not None]
    with np.errstate(invalid="ignore"):
        return float(np.std(there, ddof=1)) if len(there) > 1 else None

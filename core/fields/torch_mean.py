"""The float32 mean with the rounding of torch's CPU kernel.

`torch.std` measures the deviation from this mean, so for equal values it returns the rounding residue of the sum,
about 1e-7, instead of 0. The dashboard's `adv_std` is that number; this module reproduces it for comparison.
"""

from __future__ import annotations

import numpy as np

from dumptui.core.arrays import Array

_LANES = 8  # floats of an AVX2 register
_ROWS = 4  # registers summed in parallel
_LEVELS = 4  # of nested partial sums


def torch_mean(values: Array) -> np.float32:
    """Return the mean of a flat, non-empty float32 array."""
    width = _LANES if len(values) >= _LANES else 1
    registers = len(values) // width
    vectors = values[: registers * width].reshape(registers, width)
    whole = registers // _ROWS * _ROWS
    sums = _cascade(vectors[:whole].reshape(-1, _ROWS, width))
    lanes = _in_order(np.concatenate([sums[:1], vectors[whole:], sums[1:]]))
    total = _in_order(np.concatenate([np.zeros(1, np.float32), values[registers * width :], lanes]))
    return np.float32(total / np.float32(len(values)))


def _cascade(rows: Array) -> Array:
    """Sum over the first axis in nested blocks; rows that do not fill a block are summed at their level."""
    power = max(4, int(np.ceil(np.log2(max(len(rows), 1)))) // _LEVELS)
    step = 1 << power
    levels = []
    for _ in range(_LEVELS - 1):
        whole = len(rows) // step * step
        levels.append(_in_order(rows[whole:]))
        rows = rows[:whole].reshape(-1, step, *rows.shape[1:]).sum(axis=1)
    return _in_order(np.stack([*levels, _in_order(rows)]))


def _in_order(rows: Array) -> Array:
    """Sum over the first axis from first to last; numpy's own sum adds pairwise."""
    total: Array = np.add.accumulate(rows)[-1] if len(rows) else np.zeros(rows.shape[1:], np.float32)
    return total

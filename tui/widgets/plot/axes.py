"""The axes of a plot: their ranges, zooming and panning, and the labels of their ends."""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Range = tuple[float, float]

DOTS_X, DOTS_Y = 2, 4  # braille dots of a cell


class View(NamedTuple):
    """The ranges of the axes; the range of a y axis without a finite value is None."""

    x: Range
    left: Range | None
    right: Range | None = None


def zoomed(view: Range, full: Range, factor: float, about: float, closest: float) -> Range | None:
    """Return `view` scaled by `factor` around `about`, clamped to `full`; None where the result covers `full`."""
    width = max((view[1] - view[0]) * factor, closest)
    share = min(max((about - view[0]) / (view[1] - view[0]), 0.0), 1.0)
    return moved((about - share * width, about + (1 - share) * width), full)


def moved(part: Range, full: Range) -> Range | None:
    """Return `part` shifted into `full`; None where it is at least as wide as `full`."""
    width = part[1] - part[0]
    if width >= full[1] - full[0]:
        return None
    low = min(max(part[0], full[0]), full[1] - width)
    return low, low + width


def y_labels(ends: Range | None, rows: int) -> dict[int, str]:
    """Return the labels of a y axis by row: its two ends, and 0 if there is a row left for it."""
    if ends is None:
        return {}
    low, high = format_ends(*ends)
    labels = {rows - 1: low, 0: high}
    if ends[0] < 0 < ends[1]:
        dot = int(np.rint(scale(0.0, ends, DOTS_Y * rows)))
        labels.setdefault(rows - 1 - dot // DOTS_Y, "0")
    return labels


def format_number(value: float, digits: int = 4) -> str:
    """Return a number as a label: whole numbers below ten million in full, others to `digits` significant digits."""
    if abs(value) < 1e7 and value == int(value):
        return str(int(value))
    if 1e4 <= abs(value) < 1e6 and digits < 6:
        return f"{value:.0f}"
    mantissa, e, exponent = f"{value:.{digits}g}".partition("e")
    return f"{mantissa}e{int(exponent)}" if e else mantissa


def format_ends(low: float, high: float) -> tuple[str, str]:
    """Return both ends of an axis as text, with enough digits to distinguish them."""
    for digits in range(4, 17):
        ends = format_number(low, digits), format_number(high, digits)
        if ends[0] != ends[1]:
            break
    return ends


def spanned(values: npt.ArrayLike, pad: float | None = None) -> Range | None:
    """Return the finite range of `values`, a single value widened by `pad` or by half; None if none is finite."""
    finite = np.asarray(values, float)
    finite = finite[np.isfinite(finite)]
    if not finite.size:
        return None
    low, high = float(finite.min()), float(finite.max())
    if low < high:
        return low, high
    pad = pad or abs(low) / 2 or 1.0
    largest = sys.float_info.max
    return max(low - pad, -largest), min(high + pad, largest)


def scale(values: npt.ArrayLike, ends: Range, dots: int) -> Floats:
    """Return the positions of `values` on an axis of `dots` dots: 0 at its start, `dots - 1` at its end."""
    low, high = ends
    # a range from -1e308 to 1e308 overflows unless halved; one of 1e-323 vanishes if it is
    half = 1.0 if np.isfinite(high - low) else 0.5
    with np.errstate(over="ignore", invalid="ignore"):
        share = (np.asarray(values, float) * half - low * half) / (high * half - low * half)
    return np.asarray(share * (dots - 1))

"""The axes of a plot: what they span, which part of it is looked at, and the labels of their ends."""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Range = tuple[float, float]

DOTS_X, DOTS_Y = 2, 4  # braille dots of a cell


class View(NamedTuple):
    """What the axes span; a y axis without a finite value spans nothing."""

    x: Range
    left: Range | None
    right: Range | None = None


def zoomed(view: Range, full: Range, factor: float, about: float, closest: float) -> Range | None:
    """The part `factor` times as wide with `about` where it was; None where that is all of `full`."""
    width = max((view[1] - view[0]) * factor, closest)
    share = min(max((about - view[0]) / (view[1] - view[0]), 0.0), 1.0)
    return moved((about - share * width, about + (1 - share) * width), full)


def moved(wanted: Range, full: Range) -> Range | None:
    """`wanted` shifted into `full`; None where it is as wide."""
    width = wanted[1] - wanted[0]
    if width >= full[1] - full[0]:
        return None
    low = min(max(wanted[0], full[0]), full[1] - width)
    return low, low + width


def y_labels(ends: Range | None, rows: int) -> dict[int, str]:
    """The labels of a y axis by row: its ends, and 0 where there is a row for it."""
    if ends is None:
        return {}
    low, high = format_ends(*ends)
    labels = {rows - 1: low, 0: high}
    if ends[0] < 0 < ends[1]:
        dot = int(np.rint(scale(0.0, ends, DOTS_Y * rows)))
        labels.setdefault(rows - 1 - dot // DOTS_Y, "0")
    return labels


def format_number(value: float, digits: int = 4) -> str:
    """A number for a label: whole ones below ten million in full, others to `digits` significant digits."""
    if abs(value) < 1e7 and value == int(value):
        return str(int(value))
    if 1e4 <= abs(value) < 1e6 and digits < 6:
        return f"{value:.0f}"
    mantissa, e, exponent = f"{value:.{digits}g}".partition("e")
    return f"{mantissa}e{int(exponent)}" if e else mantissa


def format_ends(low: float, high: float) -> tuple[str, str]:
    """Both ends of an axis, with as many digits as it takes to tell them apart."""
    for digits in range(4, 17):
        ends = format_number(low, digits), format_number(high, digits)
        if ends[0] != ends[1]:
            break
    return ends


def spanned(values: npt.ArrayLike, pad: float | None = None) -> Range | None:
    """The finite range of `values`, widened by `pad` or by half if it is a single value; None without any."""
    seen = np.asarray(values, float)
    seen = seen[np.isfinite(seen)]
    if not seen.size:
        return None
    low, high = float(seen.min()), float(seen.max())
    if low < high:
        return low, high
    pad = pad or abs(low) / 2 or 1.0
    most = sys.float_info.max
    return max(low - pad, -most), min(high + pad, most)


def scale(values: npt.ArrayLike, ends: Range, dots: int) -> Floats:
    """Where `values` fall on an axis of `dots` dots: 0 at its start, `dots - 1` at its end."""
    low, high = ends
    # a range from -1e308 to 1e308 overflows unless halved; one of 1e-323 vanishes if it is
    half = 1.0 if np.isfinite(high - low) else 0.5
    with np.errstate(over="ignore", invalid="ignore"):
        share = (np.asarray(values, float) * half - low * half) / (high * half - low * half)
    return np.asarray(share * (dots - 1))

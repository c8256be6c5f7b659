"""The shade of a value of a statistic."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dumptui.core.fields.ratio_limits import LARGEST_LOG_RATIO
from dumptui.core.fields.registry import definition, scale_of
from dumptui.tui.cell_formats.tables import number

Floats = npt.NDArray[np.float64]
Range = tuple[float, float]

MIN_SPAN = 1e-9  # the narrowest range, so that a constant field is not amplified
LEAST_RATIO = 1e-6


def is_diverging(name: str, span: Range) -> bool:
    """Whether a field is shaded in two hues around zero: known to be signed, or unknown with values of both signs.

    A ratio is shaded by its logarithm.
    """
    return definition(name).signed or (scale_of(name) == "number" and span[0] < 0 < span[1])


def is_ratio(name: str) -> bool:
    return scale_of(name) == "ratio"


def is_log_prob(name: str) -> bool:
    return scale_of(name) == "log-prob"


def shades(name: str, values: npt.NDArray[np.floating], span: Range | None) -> Floats:
    """Return shades in [-1, 1] if the field diverges, else in [0, 1] with low log-probs strongest; NaN stays.

    `span` is the range of values that the scale covers. Without one, an imp_ratio has full shade at e and 1/e.
    """
    exact = values.astype(np.float64)
    low, high = span or (0.0, 0.0)
    if is_ratio(name):
        return np.clip(logarithm(exact) / (1.0 if span is None else reach(name, span)), -1, 1)
    if is_diverging(name, (low, high)):
        return np.clip(exact / reach(name, (low, high)), -1, 1)
    share = np.clip((exact - low) / max(high - low, MIN_SPAN), 0, 1)
    return 1 - share if is_log_prob(name) else share


def logarithm(values: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.maximum(values, LEAST_RATIO)))


def reach(name: str, span: Range) -> float:
    """Return the distance from the middle of a diverging scale to its ends."""
    if not is_ratio(name):
        return max(float(np.abs(np.array(span)).max()), MIN_SPAN)
    ends = np.abs(logarithm(np.array(span)))
    return min(max(float(ends.max()), MIN_SPAN), LARGEST_LOG_RATIO)


def span_text(name: str, span: Range | None) -> str:
    """Return in words the values at the ends of the scale."""
    if is_ratio(name):
        limit = np.exp(1.0 if span is None else reach(name, span))
        return "full at e and 1/e" if span is None else f"full at {number(limit)} and 1/{number(limit)}"
    low, high = span or (0.0, 0.0)
    return (
        f"±{number(reach(name, (low, high)))}"
        if is_diverging(name, (low, high))
        else f"{number(low)} to {number(high)}"
    )

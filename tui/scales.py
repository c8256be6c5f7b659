"""How strongly a value of a statistic is shaded, and in which hues: the one place that knows of colours of values."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dumptui.tui.output import number

Floats = npt.NDArray[np.float64]
Range = tuple[float, float]

# Fields with a sign: shaded on two hues around zero. imp_ratio is shaded by its logarithm.
SIGNED = ("lp_diff", "imp_ratio", "advantages", "returns", "opd_reverse_kl", "values")
SMALLEST = 1e-9  # no range is narrower: what is constant is not blown up
LEAST_RATIO = 1e-6


class Hue(NamedTuple):
    """The background of a full shade, as CSS names it; and where backgrounds can't be blended, the text on a strong one
    and the text that stands for a faint one."""

    background: str
    text: str = "#000000"
    faint: str = ""


class Hues(NamedTuple):
    """`negative` and `positive` are the ends of a diverging scale, `magnitude` is that of a sequential one."""

    negative: Hue
    positive: Hue
    magnitude: Hue


# The first of a name stands for what is above zero. Each two are told apart in the three common colour blindnesses, as
# red and green are not. Red and blue are those of the web dashboard, with its green.
PAIRS = {
    "orange-blue": Hues(Hue("#1f78d1"), Hue("#d9730d"), Hue("#d9730d")),
    "red-blue": Hues(Hue("#2a78d6"), Hue("#e34948"), Hue("#1baf7a")),
    "purple-green": Hues(Hue("#3a9a4a"), Hue("#8e44ad"), Hue("#8e44ad")),
}
DEFAULT_PAIR = "orange-blue"


def own(name: str, faint: str, text: str = "ansi_bright_white") -> Hue:
    return Hue(f"ansi_{name}", text, f"ansi_{faint}")


BLACK = "ansi_black"
# What stands in for the pairs in a theme of the terminal's own 16 colours. Text is faint in the hue that is read on the
# background: on black that is the bright one, on white the dark one, and red in place of a yellow that vanishes there.
ON_BLACK = {
    "orange-blue": Hues(own("blue", "bright_blue"), *[own("yellow", "yellow", BLACK)] * 2),
    "red-blue": Hues(own("blue", "bright_blue"), own("red", "bright_red"), own("green", "bright_green", BLACK)),
    "purple-green": Hues(own("green", "bright_green", BLACK), *[own("magenta", "bright_magenta")] * 2),
}
ON_WHITE = {
    "orange-blue": Hues(own("blue", "blue"), *[own("yellow", "red", BLACK)] * 2),
    "red-blue": Hues(own("blue", "blue"), own("red", "red"), own("green", "green", BLACK)),
    "purple-green": Hues(own("green", "green", BLACK), *[own("magenta", "magenta")] * 2),
}


def hues(pair: str, *, ansi: bool, dark: bool = True) -> Hues:
    pairs = PAIRS if not ansi else ON_BLACK if dark else ON_WHITE
    return pairs.get(pair, pairs[DEFAULT_PAIR])


def meaning(pair: str) -> str:
    """Which hue means what, in words."""
    above, _, below = pair.partition("-")
    return f"{above} is above zero, {below} below"


# Shades ---------------------------------------------------------------------------------------------------------


def is_diverging(name: str, span: Range) -> bool:
    """Whether a field is shaded around zero: known to have a sign, or not known and of both signs."""
    return name in SIGNED or (not is_log_prob(name) and "entropy" not in name and span[0] < 0 < span[1])


def is_log_prob(name: str) -> bool:
    return name.endswith("log_probs")


def shades(name: str, values: npt.NDArray[np.floating], span: Range | None) -> Floats:
    """In [-1, 1] if the field diverges, else in [0, 1] with low log-probs strongest; NaN stays.

    `span` is the range of values that the scale covers. An imp_ratio without one is full at e and 1/e.
    """
    exact = values.astype(np.float64)
    low, high = span or (0.0, 0.0)
    if name == "imp_ratio":
        return np.clip(logarithm(exact) / (1.0 if span is None else reach(name, span)), -1, 1)
    if is_diverging(name, (low, high)):
        return np.clip(exact / reach(name, (low, high)), -1, 1)
    share = np.clip((exact - low) / max(high - low, SMALLEST), 0, 1)
    return 1 - share if is_log_prob(name) else share


def logarithm(values: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.maximum(values, LEAST_RATIO)))


def reach(name: str, span: Range) -> float:
    """The distance from the middle of a diverging scale to its ends."""
    ends = logarithm(np.array(span)) if name == "imp_ratio" else np.array(span)
    return max(float(np.abs(ends).max()), SMALLEST)


def span_text(name: str, span: Range | None) -> str:
    """What the ends of the shades stand for."""
    if name == "imp_ratio":
        most = np.exp(1.0 if span is None else reach(name, span))
        return "full at e and 1/e" if span is None else f"full at {number(most)} and 1/{number(most)}"
    low, high = span or (0.0, 0.0)
    return (
        f"±{number(reach(name, (low, high)))}"
        if is_diverging(name, (low, high))
        else f"{number(low)} to {number(high)}"
    )

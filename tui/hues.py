"""In which hues values are shaded: those chosen last, in whatever run."""

from __future__ import annotations

from typing import NamedTuple

from dumptui.core.state import State

HUES = "hues"


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


def kept_hues() -> str:
    """The pair of hues for values, one of PAIRS."""
    kept = State.of(None).get(HUES)
    return kept if isinstance(kept, str) and kept in PAIRS else DEFAULT_PAIR


def keep_hues(pair: str) -> None:
    State.of(None).put(HUES, pair)

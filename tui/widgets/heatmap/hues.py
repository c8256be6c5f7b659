"""The hues of the shades: the last pair chosen, in any run."""

from __future__ import annotations

from typing import NamedTuple


class Hue(NamedTuple):
    """The background of a full shade, as CSS names it; where backgrounds can't be blended, the text on a strong shade
    and the text of a faint one.
    """

    background: str
    text: str = "#000000"
    faint: str = ""


class Hues(NamedTuple):
    """The hues of a pair: `negative` and `positive` end a diverging scale, `magnitude` a sequential one."""

    negative: Hue
    positive: Hue
    magnitude: Hue


# The first hue of a name is for values above zero. The two hues of a pair remain distinguishable in the three common
# kinds of colour blindness, unlike red and green. Red, blue and their green are those of the web dashboard.
HUE_PAIRS = {
    "orange-blue": Hues(Hue("#1f78d1"), Hue("#d9730d"), Hue("#d9730d")),
    "red-blue": Hues(Hue("#2a78d6"), Hue("#e34948"), Hue("#1baf7a")),
    "purple-green": Hues(Hue("#3a9a4a"), Hue("#8e44ad"), Hue("#8e44ad")),
}
DEFAULT_PAIR = "orange-blue"


def own(name: str, faint: str, text: str = "ansi_bright_white") -> Hue:
    return Hue(f"ansi_{name}", text, f"ansi_{faint}")


ANSI_BLACK = "ansi_black"
# The pairs in a theme of the terminal's own 16 colours. Faint text takes the variant that is readable on its
# background: bright on black, dark on white, and red on white instead of yellow, which would be invisible.
ON_BLACK = {
    "orange-blue": Hues(own("blue", "bright_blue"), *[own("yellow", "yellow", ANSI_BLACK)] * 2),
    "red-blue": Hues(own("blue", "bright_blue"), own("red", "bright_red"), own("green", "bright_green", ANSI_BLACK)),
    "purple-green": Hues(own("green", "bright_green", ANSI_BLACK), *[own("magenta", "bright_magenta")] * 2),
}
ON_WHITE = {
    "orange-blue": Hues(own("blue", "blue"), *[own("yellow", "red", ANSI_BLACK)] * 2),
    "red-blue": Hues(own("blue", "blue"), own("red", "red"), own("green", "green", ANSI_BLACK)),
    "purple-green": Hues(own("green", "green", ANSI_BLACK), *[own("magenta", "magenta")] * 2),
}


def hues(pair: str, *, ansi: bool, dark: bool = True) -> Hues:
    pairs = HUE_PAIRS if not ansi else ON_BLACK if dark else ON_WHITE
    return pairs.get(pair, pairs[DEFAULT_PAIR])


def meaning(pair: str) -> str:
    """Return in words which hue means what."""
    above, _, below = pair.partition("-")
    return f"{above} is above zero, {below} below"

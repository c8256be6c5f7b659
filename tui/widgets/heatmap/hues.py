"""The hues of the shades: the last pair chosen, in any run."""

from __future__ import annotations

from typing import NamedTuple


class Hue(NamedTuple):
    """The background of a full shade, as CSS names it; where backgrounds can't be blended, the text on a strong shade
    and the text of a faint one; where only 256 colours are shown, the background of each level.
    """

    background: str
    text: str = "#000000"
    faint: str = ""
    ramp: tuple[str, ...] = ()


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


def palette_colour(number: int) -> str:
    """Return a colour of the 256 of xterm, from the 16th on: a cube of 6 x 6 x 6, then 24 greys."""
    if number >= 232:
        return "#" + 3 * f"{8 + 10 * (number - 232):02x}"
    levels = (0, 95, 135, 175, 215, 255)
    return "#" + "".join(f"{levels[(number - 16) // place % 6]:02x}" for place in (36, 6, 1))


# The shades that a blend would have, rounded to the 256 colours, change hue from level to level: a faint orange becomes
# the dark red of an error. These are picked by eye, and ordered by lightness. A faint shade without its hue is grey.
RAMPS_ON_DARK = {
    "#d9730d": (236, 239, 94, 130, 166, 172, 208, 214),  # orange
    "#1f78d1": (18, 19, 20, 25, 26, 32, 33, 39),  # blue
    "#2a78d6": (18, 19, 20, 25, 26, 32, 33, 39),
    "#e34948": (52, 88, 124, 160, 167, 203, 210, 217),  # red
    "#1baf7a": (236, 22, 23, 29, 35, 36, 42, 43),  # green
    "#3a9a4a": (22, 22, 28, 28, 34, 35, 71, 77),
    "#8e44ad": (236, 53, 54, 90, 91, 97, 134, 140),  # purple
}
RAMPS_ON_LIGHT = {
    "#d9730d": (221, 215, 179, 208, 172, 166, 130, 94),
    "#1f78d1": (189, 153, 117, 111, 75, 33, 32, 26),
    "#2a78d6": (189, 153, 117, 111, 75, 33, 32, 26),
    "#e34948": (217, 210, 203, 167, 160, 124, 88, 52),
    "#1baf7a": (151, 115, 78, 79, 43, 36, 35, 29),
    "#3a9a4a": (151, 150, 114, 77, 71, 34, 28, 22),
    "#8e44ad": (183, 177, 141, 140, 134, 97, 91, 54),
}


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


def hues(pair: str, *, ansi: bool, dark: bool = True, palette: bool = False) -> Hues:
    """Return the hues of a pair: `ansi` for a theme of the terminal's own 16 colours, `palette` for 256 colours."""
    pairs = HUE_PAIRS if not ansi else ON_BLACK if dark else ON_WHITE
    found = pairs.get(pair, pairs[DEFAULT_PAIR])
    return Hues(*(with_ramp(hue, dark) for hue in found)) if palette and not ansi else found


def with_ramp(hue: Hue, dark: bool) -> Hue:
    ramps = RAMPS_ON_DARK if dark else RAMPS_ON_LIGHT
    return hue._replace(ramp=tuple(map(palette_colour, ramps.get(hue.background, ()))))


def meaning(pair: str) -> str:
    """Return in words which hue means what."""
    above, _, below = pair.partition("-")
    return f"{above} is above zero, {below} below"

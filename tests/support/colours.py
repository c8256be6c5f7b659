"""Colours compared."""

from __future__ import annotations

from rich.color import Color as RichColor


def brightness(colour: RichColor) -> float:
    """The relative luminance of WCAG 2."""
    red, green, blue = ((part / 255) ** 2.2 for part in colour.get_truecolor())
    return float(0.2126 * red + 0.7152 * green + 0.0722 * blue)

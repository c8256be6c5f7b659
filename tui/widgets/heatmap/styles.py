"""The look of a token: by its kind, and by how extreme its value is."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from rich.style import Style
from textual.color import Color

from dumptui.tui.widgets.heatmap.hues import Hue, Hues

Looks = npt.NDArray[np.int8]
KINDS = PROMPT, TRAINED, MASKED, MISSING = range(4)

SHADE_LEVELS = 8
STRONG_LEVEL = SHADE_LEVELS // 2  # the level from which bold or underline is added: |shade| >= 0.5, rounded to a level

# A look is a number: -8..8 are the shades, the other looks follow.
LOOK_PROMPT, LOOK_MASKED, LOOK_MISSING, LOOK_NO_VALUE = range(SHADE_LEVELS + 1, SHADE_LEVELS + 5)
COMPONENT_CLASSES = {LOOK_PROMPT: "prompt", LOOK_MASKED: "masked", LOOK_MISSING: "missing", LOOK_NO_VALUE: "missing"}
_LOOK_OF_KIND = np.array([LOOK_PROMPT, 0, LOOK_MASKED, LOOK_MISSING], np.int8)


def looks(shade: npt.NDArray[np.floating], kind: npt.NDArray[np.uint8], *, diverging: bool) -> Looks:
    """Return the look of each token; only trained tokens are shaded."""
    lowest = -1.0 if diverging else 0.0
    level = np.rint(np.clip(np.nan_to_num(shade, nan=0.0), lowest, 1.0) * SHADE_LEVELS).astype(np.int8)
    level[np.isnan(shade)] = LOOK_NO_VALUE
    return np.where(kind == TRAINED, level, _LOOK_OF_KIND[kind])


def is_shaded(look: int) -> bool:
    return 0 < abs(look) <= SHADE_LEVELS


def shade_styles(hues: Hues, base: Color, plain: Style, *, diverging: bool) -> Iterator[tuple[int, Style]]:
    """Yield each level with its style: blended from `base`, the background, to a hue, or of a hue's own ramp."""
    yield 0, plain
    for level in range(-SHADE_LEVELS if diverging else 1, SHADE_LEVELS + 1):
        if level:
            yield level, shade_style(level, hue_of(level, hues, diverging=diverging), base, plain)


def hue_of(level: int, hues: Hues, *, diverging: bool) -> Hue:
    return hues.negative if level < 0 else hues.positive if diverging else hues.magnitude


def shade_style(level: int, hue: Hue, base: Color, plain: Style) -> Style:
    hot, strong = Color.parse(hue.background), abs(level) >= STRONG_LEVEL
    sign = Style(bold=strong and level > 0, underline=strong and level < 0)
    if hot.ansi is not None:  # 16 colours don't blend: a hue of text, then of background
        if strong:
            return sign + Style(color=Color.parse(hue.text).rich_color, bgcolor=hot.rich_color)
        return plain + Style(color=Color.parse(hue.faint).rich_color)
    background = Color.parse(hue.ramp[abs(level) - 1]) if hue.ramp else base.blend(hot, abs(level) / SHADE_LEVELS)
    return sign + Style(color=background.get_contrast_text().rich_color, bgcolor=background.rich_color)

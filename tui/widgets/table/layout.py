"""The columns of a table, and which of them fit in its width."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from dumptui.core.text import cell_width, clip, visible

GUTTER_CELLS = 1  # the `>` of the cursor row; in the header, the sort arrow of the first column
GAP_CELLS = 2  # blanks before the others; in the header, `‹` and the sort arrow, so that no label is cut for them
MIN_TEXT_CELLS = 8  # cells below which a column of text is left out rather than shortened


class Column(NamedTuple):
    """`exact` says that its whole numbers are names, such as a sample index, of which no digit is rounded."""

    key: str
    label: str
    width: int
    right: bool = True
    tip: str = ""
    exact: bool = False


class Field(NamedTuple):
    """The place of a drawn column: its index, first cell and width, less than its own if it was shortened."""

    column: int
    x: int
    width: int


NUMBER = re.compile(r"([!~>]*\+?)(-?\d+(?:\.\d+)?)(%?)$")
"""The signs before a number, its digits, and what follows."""
SCALES = ((1e3, "k"), (1e6, "M"), (1e9, "G"))


def lay_out(columns: Sequence[Column], skipped: int, width: int) -> list[Field]:
    """Return the columns that fit in `width` cells when `skipped` columns after the frozen first one are scrolled away.

    Columns are shown whole or not at all, with two exceptions: a text column may be shortened down to 8 cells, and the
    first two fields are always shown, or a wide column could never be reached.
    """
    fields: list[Field] = []
    x = GUTTER_CELLS
    for index in [0, *range(1 + skipped, len(columns))] if columns else []:
        column = columns[index]
        room = width - x - (index < len(columns) - 1)  # one cell is kept for the `›`
        shortened = column.width > room
        if shortened and len(fields) > 1 and (column.right or room < MIN_TEXT_CELLS):
            break
        if room > 0:
            fields.append(Field(index, x, min(column.width, room)))
        x += column.width + GAP_CELLS
        if shortened:
            break
    return fields


def fit(text: str, width: int, right: bool, exact: bool = False) -> str:
    """Return a text cut or padded to `width` cells; a number loses decimals, then digits, never its magnitude."""
    text = visible(text)
    if cell_width(text) > width:
        text = clip(text if exact else rounded(text, width), width)
    blank = " " * (width - cell_width(text))
    return blank + text if right else text + blank


def rounded(text: str, width: int) -> str:
    """Return a number, with the sign before it, in at most `width` cells; any other text as it is."""
    match = NUMBER.match(text)
    if match is None:
        return text
    before, digits, after = match.groups()
    value, decimals = float(digits), len(digits.partition(".")[2])
    forms = [f"{value:.{places}f}" for places in range(decimals - 1, -1, -1)]
    forms += [f"{value / scale:.0f}{unit}" for scale, unit in SCALES if abs(value) >= scale]
    forms += [f"{value:.0e}".replace("e+0", "e").replace("e+", "e").replace("e-0", "e-")]
    shown = [before + form + after for form in forms if form.strip("-0.") or value == 0]
    return next((form for form in shown if cell_width(form) <= width), text)

"""The columns of a table, and which of them fit in its width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dumptui.core.text import cell_width, clip, visible

GUTTER_CELLS = 1  # the `>` of the cursor row; in the header, the sort arrow of the first column
GAP_CELLS = 2  # blanks before the others; in the header, `‹` and the sort arrow, so that no label is cut for them
MIN_TEXT_CELLS = 8  # cells below which a column of text is left out rather than shortened


class Column(NamedTuple):
    key: str
    label: str
    width: int
    right: bool = True
    tip: str = ""


class Field(NamedTuple):
    """The place of a drawn column: its index, first cell and width, less than its own if it was shortened."""

    column: int
    x: int
    width: int


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


def fit(text: str, width: int, right: bool) -> str:
    """Return a text cut or padded to `width` cells."""
    text = clip(visible(text), width)
    blank = " " * (width - cell_width(text))
    return blank + text if right else text + blank

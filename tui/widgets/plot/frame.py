"""A plot composed into lines: canvas, what lies behind it, and both gutters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from dumptui.core.text import cell_width
from dumptui.tui.widgets.plot.axes import DOTS_X, Range, View, scale, spanned, y_labels
from dumptui.tui.widgets.plot.canvas import Canvas, Series

BAND_GLYPHS = {"prompt": "▒", "masked": "░", "missing": "╱"}
MARK, FINE_MARK = "│", "┊"

StyleOf = Callable[[str], Style]


class Band(NamedTuple):
    """A stretch of the x axis to shade."""

    start: float
    stop: float
    kind: Literal["prompt", "masked", "missing"]


@dataclass(frozen=True)
class Picture:
    """What a plot shows, of any size. A y range is for the left axis; a range left out is that of the data in view;
    `empty` is said when there is no finite value.
    """

    series: tuple[Series, ...] = ()
    x_range: Range | None = None
    y_range: Range | None = None
    bands: tuple[Band, ...] = ()
    marks: tuple[float, ...] = ()
    fine_marks: tuple[float, ...] = ()
    x_label: str = ""
    empty: str = "no data"

    def full_x(self) -> Range | None:
        x = np.concatenate([[], *(one.x for one in self.series)])
        return spanned(x if self.x_range is None else self.x_range, pad=1.0)

    def view(self, window: Range | None = None) -> View | None:
        """The axes over a `window` of the x axis, all of it by default; None if there is nothing finite to draw.

        Over a window without values, the y axes are those of all of it.
        """
        x = window or self.full_x()
        if x is None:
            return None
        left, right = self._seen("left", x), self._seen("right", x)
        if left is None and right is None:
            whole = self.view() if window else None
            return whole and whole._replace(x=x)
        return View(x, left if left is None or self.y_range is None else spanned(self.y_range), right)

    def _seen(self, axis: str, x: Range) -> Range | None:
        mine = [one for one in self.series if one.axis == axis]
        return spanned(np.concatenate([[], *(one.y[(one.x >= x[0]) & (one.x <= x[1])] for one in mine)]))


class Frame(NamedTuple):
    """A drawn plot without its cursor: `strips` are the rows, of which the canvas begins at cell `gutter`."""

    picture: Picture
    view: View
    gutter: int
    columns: int
    canvas: Canvas
    strips: list[Strip]

    @property
    def rows(self) -> int:
        return len(self.strips)

    def cell(self, x: float) -> int | None:
        """The canvas column of a position; None outside the view."""
        return column_of(x, self.view.x, self.columns)

    def at(self, cell: int) -> float | None:
        """The position at a cell of a line; None in a gutter."""
        if not self.gutter <= cell < self.gutter + self.columns or self.columns < 2:
            return None
        low, high = self.view.x
        share = (cell - self.gutter) / (self.columns - 1)
        return low * (1 - share) + high * share


class Layout(NamedTuple):
    """How the cells of a line are divided, and the labels of both y axes by row."""

    gutter: int
    columns: int
    right_gutter: int
    left: dict[int, str]
    right: dict[int, str]


def lay_out(view: View, width: int, rows: int) -> Layout:
    """The gutters are left out where the wider one would take more than a third of the room."""
    left, right = y_labels(view.left, rows), y_labels(view.right, rows)
    gutter = 1 + max(map(cell_width, left.values()), default=0)
    right_gutter = 1 + max(map(cell_width, right.values())) if right else 0
    if width - gutter - right_gutter < 2 * max(gutter, right_gutter):
        gutter = right_gutter = 0
    return Layout(gutter, width - gutter - right_gutter, right_gutter, left, right)


def compose(picture: Picture, view: View, layout: Layout, canvas: Canvas, style: StyleOf, plain: Style) -> Frame:
    frame = Frame(picture, view, layout.gutter, layout.columns, canvas, [])
    behind, shaded = background(picture, frame)
    styles = cell_styles(picture.series, style, plain)
    for row, (chars, owners) in enumerate(zip(canvas.chars, canvas.owners, strict=True)):
        segments = [gutter(layout.gutter, layout.left.get(row), style("axis"))] if layout.gutter else []
        for char, owner, (glyph, sign), band in zip(chars, owners, behind, shaded, strict=True):
            segments.append(Segment(glyph, styles[sign, band]) if owner < 0 else Segment(char, styles[owner, band]))
        if layout.right_gutter:
            segments.append(right_gutter(layout.right_gutter, layout.right.get(row), style("axis")))
        width = layout.gutter + layout.columns + layout.right_gutter
        frame.strips.append(Strip(segments, width).simplify())
    return frame


def background(picture: Picture, frame: Frame) -> tuple[list[tuple[str, str]], list[bool]]:
    """For each canvas column: the glyph of its empty cells, what it is, and whether a band covers it."""
    behind = [(" ", "")] * frame.columns
    shaded = [False] * frame.columns
    for band in picture.bands:
        first = _dot(band.start, frame.view.x, frame.columns)
        last = max(first, _dot(band.stop, frame.view.x, frame.columns) - 1)
        for column in range(max(0, first // DOTS_X), min(last // DOTS_X, frame.columns - 1) + 1):
            behind[column], shaded[column] = (BAND_GLYPHS[band.kind], "band"), True
    for glyph, marks in ((FINE_MARK, picture.fine_marks), (MARK, picture.marks)):
        for mark in marks:
            if (cell := frame.cell(mark)) is not None:
                behind[cell] = (glyph, "mark")
    return behind, shaded


def cell_styles(series: Sequence[Series], style: StyleOf, plain: Style) -> dict[tuple[int | str, bool], Style]:
    """By what is in a cell, a series number or "mark", "band" or "", and whether a band is there."""
    band = style("band")
    styles: dict[tuple[int | str, bool], Style] = {("", False): plain, ("band", True): band}
    components: dict[int | str, str] = {number: one.component for number, one in enumerate(series)}
    for content, component in (components | {"mark": "mark"}).items():
        styles[content, False] = style(component) + Style(bgcolor=plain.bgcolor)
        styles[content, True] = style(component) + Style(bgcolor=band.bgcolor)
    return styles


def gutter(width: int, label: str | None, style: Style) -> Segment:
    return Segment("│".rjust(width) if label is None else (label + "┤").rjust(width), style)


def right_gutter(width: int, label: str | None, style: Style) -> Segment:
    return Segment("│".ljust(width) if label is None else ("├" + label).ljust(width), style)


def column_of(x: float, ends: Range, columns: int) -> int | None:
    dot = _dot(x, ends, columns)
    return dot // DOTS_X if 0 <= dot < DOTS_X * columns else None


def _dot(x: float, ends: Range, columns: int) -> int:
    return int(np.clip(np.floor(scale(x, ends, DOTS_X * columns) + 0.5), -1, DOTS_X * columns))


# The line below the canvas --------------------------------------------------------------------------------------


class Piece(NamedTuple):
    """A text of the line, from its first cell on."""

    at: int
    text: str
    component: str = "axis"


def arrange(width: int, wanted: Sequence[Piece]) -> list[Piece]:
    """The pieces that fit in `width` cells, a blank between them, the first ones first, by position."""
    placed: list[Piece] = []
    for piece in wanted:
        end = piece.at + cell_width(piece.text)
        free = all(end < other.at or piece.at > other.at + cell_width(other.text) for other in placed)
        if piece.text and free and piece.at >= 0 and end <= width:
            placed.append(piece)
    return sorted(placed)


def cursor_piece(at: int, number: str, width: int) -> Piece:
    """`^` at cell `at` with its number on the side that has room for it."""
    if at + 1 + len(number) <= width:
        return Piece(at, "^" + number, "cursor")
    if at >= len(number):
        return Piece(at - len(number), number + "^", "cursor")
    return Piece(at, "^", "cursor")

"""A line or dot plot with gaps, bands and a cursor. The only module that knows plotext."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.geometry import Region
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from dumptui.core.text import cell_width, centred, visible

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]
Range = tuple[float, float]

DOTS_X, DOTS_Y = 2, 4  # braille dots of a cell
BRAILLE_BITS = np.array([[0x40, 0x80], [0x04, 0x20], [0x02, 0x10], [0x01, 0x08]], np.uint8)  # from the bottom
BAND_GLYPHS = {"prompt": "▒", "masked": "░", "missing": "╱"}


class Series(NamedTuple):
    """Points to draw; a `y` that is not finite is a gap. `component` is the colour, "first" or "second"."""

    name: str
    x: npt.NDArray[Any]
    y: npt.NDArray[Any]
    component: str = "first"
    style: Literal["line", "dots"] = "line"


class Band(NamedTuple):
    """A stretch of the x axis to shade."""

    start: float
    stop: float
    kind: Literal["prompt", "masked", "missing"]


class View(NamedTuple):
    """What the axes span."""

    x: Range
    y: Range


def format_number(value: float, digits: int = 4) -> str:
    """A number for a label: whole ones below ten million in full, others to `digits` significant digits."""
    if abs(value) < 1e7 and value == int(value):
        return str(int(value))
    if 1e4 <= abs(value) < 1e6 and digits < 6:
        return f"{value:.0f}"
    mantissa, e, exponent = f"{value:.{digits}g}".partition("e")
    return f"{mantissa}e{int(exponent)}" if e else mantissa


def format_ends(low: float, high: float) -> tuple[str, str]:
    """Both ends of an axis, with as many digits as it takes to tell them apart."""
    for digits in range(4, 17):
        ends = format_number(low, digits), format_number(high, digits)
        if ends[0] != ends[1]:
            break
    return ends


def spanned(values: npt.ArrayLike, pad: float | None = None) -> Range | None:
    """The finite range of `values`, widened by `pad` or by half if it is a single value; None without any."""
    seen = np.asarray(values, float)
    seen = seen[np.isfinite(seen)]
    if not seen.size:
        return None
    low, high = float(seen.min()), float(seen.max())
    if low < high:
        return low, high
    pad = pad or abs(low) / 2 or 1.0
    most = sys.float_info.max
    return max(low - pad, -most), min(high + pad, most)


def scale(values: npt.ArrayLike, ends: Range, dots: int) -> Floats:
    """Where `values` fall on an axis of `dots` dots: 0 at its start, `dots - 1` at its end."""
    low, high = ends
    # a range from -1e308 to 1e308 overflows unless halved; one of 1e-323 vanishes if it is
    half = 1.0 if np.isfinite(high - low) else 0.5
    with np.errstate(over="ignore", invalid="ignore"):
        share = (np.asarray(values, float) * half - low * half) / (high * half - low * half)
    return np.asarray(share * (dots - 1))


def thin(position: Floats, y: Floats) -> Ints:
    """Which points to draw, in order: the lowest and the highest of each dot column, and one of each gap.

    `position` counts dot columns and ascends. A gap narrower than a column can't be seen and is not kept.
    """
    finite = np.flatnonzero(np.isfinite(y))
    if not finite.size:
        return finite
    value, at = y[finite], position[finite]
    column = np.floor(at + 0.5)
    starts = np.flatnonzero(np.diff(column, prepend=column[0] - 1))
    kept = [finite[_first(value, starts, extreme)] for extreme in (np.minimum, np.maximum)]
    gap = (np.diff(finite) > 1) & (np.diff(at) >= 1)
    return np.unique(np.concatenate([*kept, finite[:-1][gap] + 1]))


def _first(value: Floats, starts: Ints, extreme: np.ufunc) -> Ints:
    """In each group that begins at `starts`, the first index that holds its extreme."""
    groups = np.diff(starts, append=len(value))
    found = value == np.repeat(extreme.reduceat(value, starts), groups)
    index = np.where(found, np.arange(len(value)), len(value))
    return np.asarray(np.minimum.reduceat(index, starts))


def window(x: Floats, y: Floats, ends: Range) -> tuple[Floats, Floats]:
    """The points of a line within `ends`, and where the line enters and leaves."""
    low, high = ends
    start, stop = int(np.searchsorted(x, low, "left")), int(np.searchsorted(x, high, "right"))
    inner = slice(start, stop)
    xs, ys = [x[inner]], [y[inner]]
    if 0 < start < len(x) and x[start] > low:
        xs, ys = [np.array([low]), *xs], [_between(x, y, start, low), *ys]
    if 0 < stop < len(x) and x[stop - 1] < high:
        xs, ys = [*xs, np.array([high])], [*ys, _between(x, y, stop, high)]
    return np.concatenate(xs), np.concatenate(ys)


def _inside(x: Floats, y: Floats, ends: Range) -> tuple[Floats, Floats]:
    seen = (x >= ends[0]) & (x <= ends[1])
    return x[seen], y[seen]


def _between(x: Floats, y: Floats, index: int, at: float) -> Floats:
    share = (at - x[index - 1]) / (x[index] - x[index - 1])
    return np.asarray([y[index - 1] * (1 - share) + y[index] * share])


def stroke(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """The dots of the lines between points given in whole dots, and of the points; a NaN breaks the line."""
    known = np.isfinite(y)
    start = np.flatnonzero(known[:-1] & known[1:])
    dx, dy = x[start + 1] - x[start], y[start + 1] - y[start]
    steps = np.maximum(np.abs(dx), np.abs(dy)).astype(np.intp)
    line = np.repeat(np.arange(len(start)), steps)
    share = (np.arange(len(line)) - np.repeat(np.cumsum(steps) - steps, steps)) / steps[line]
    across = np.concatenate([x[start[line]] + share * dx[line], x[known]])
    up = np.concatenate([y[start[line]] + share * dy[line], y[known]])
    return np.rint(across), np.rint(up)


def dots_of(series: Series, view: View, columns: int, rows: int) -> tuple[Floats, Floats]:
    """The dots that a series lights on a canvas, counted from its lower left."""
    x, y = np.asarray(series.x, float), np.asarray(series.y, float)
    order = np.argsort(x, kind="stable")
    order = order[np.isfinite(x[order])]
    x, y = x[order], np.where(np.isfinite(y[order]), y[order], np.nan)
    line = series.style == "line"
    x, y = window(x, y, view.x) if line else _inside(x, y, view.x)
    position = scale(x, view.x, DOTS_X * columns)
    up = DOTS_Y * rows
    height = np.clip(np.rint(scale(y, view.y, up)), 0, up - 1)
    column = np.floor(position + 0.5)
    if not line:
        return column[np.isfinite(y)], height[np.isfinite(y)]
    kept = thin(position, y)
    return stroke(column[kept], height[kept])


def braille(across: Floats, up: Floats, columns: int, rows: int) -> npt.NDArray[np.uint8]:
    """The dots of each cell as the bits of its braille character, rows from the bottom."""
    lit = np.zeros((rows * DOTS_Y, columns * DOTS_X), np.uint8)
    lit[up.astype(np.intp), across.astype(np.intp)] = 1
    cells = lit.reshape(rows, DOTS_Y, columns, DOTS_X) * BRAILLE_BITS[:, None, :]
    return np.asarray(cells.sum(axis=(1, 3), dtype=np.uint8))


@cache
def figure_class() -> Callable[[], Any] | None:
    """plotext's figure, private but the only one that shares no state with another; None without plotext."""
    try:
        from plotext._figure import _figure_class
    except ImportError:
        return None
    found: Callable[[], Any] = _figure_class
    return found


class Canvas(NamedTuple):
    """Characters by row from the top, and for each the number of its series, -1 where nothing is drawn."""

    chars: list[list[str]]
    owners: list[list[int]]


def nothing(columns: int, rows: int) -> Canvas:
    return Canvas([[" "] * columns for _ in range(rows)], [[-1] * columns for _ in range(rows)])


def rasterise(series: Sequence[Series], view: View, columns: int, rows: int) -> Canvas:
    """The series in braille; of two in one cell the first is seen.

    plotext gets a finished character a cell: its own braille takes 10 µs a dot, 100 ms for noise that fills a
    canvas of 115 x 11, against 10 ms.
    """
    if not columns or (make := figure_class()) is None:
        return nothing(columns, rows)
    figure = make()
    figure._limit_size(False, False)  # or the canvas is clamped to the terminal
    figure._set_size(columns, rows)
    figure.frame(False)
    figure.xfrequency(0)
    figure.yfrequency(0)
    figure.xlim(0, max(1, columns - 1))
    figure.ylim(0, max(1, rows - 1))
    for number, one in reversed(list(enumerate(series))):
        bits = braille(*dots_of(one, view, columns, rows), columns, rows)
        row, column = np.nonzero(bits)
        if row.size:
            marker = [chr(0x2800 + each) for each in bits[row, column].tolist()]
            figure.scatter(column.tolist(), row.tolist(), marker=marker, color=number)
    figure.build()
    matrix = figure.monitor.matrix
    owners = [
        [int(colour) if char != " " else -1 for char, colour in zip(chars, colours, strict=True)]
        for chars, colours in zip(matrix.marker, matrix.fullground, strict=True)
    ]
    return Canvas(matrix.marker[::-1], owners[::-1])


class Piece(NamedTuple):
    """A text of the line below the canvas, from its first cell on."""

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


class Frame(NamedTuple):
    """A drawn plot without its cursor: `strips` are the rows, of which the canvas begins at cell `gutter`."""

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
        dot = _dot(x, self.view.x, self.columns)
        return dot // DOTS_X if 0 <= dot < DOTS_X * self.columns else None


def _dot(x: float, ends: Range, columns: int) -> int:
    return int(np.clip(np.floor(scale(x, ends, DOTS_X * columns) + 0.5), -1, DOTS_X * columns))


class Plot(Widget):
    """Series against a shared x axis, with both ends of both axes labelled.

    A band is shaded and, in cells without data, filled with `▒` (prompt), `░` (masked) or `╱` (missing); a
    mark is a `│`; the cursor is a line with `^` and its position below. Without colour two lines look alike:
    draw the second as "dots".
    """

    ALLOW_SELECT = False

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *("plot--first", "plot--second", "plot--band"),
        *("plot--mark", "plot--cursor", "plot--axis"),
    }

    DEFAULT_CSS = """
    Plot {
        width: 1fr;
        height: 1fr;
        background: $surface;
        color: $foreground;
        & > .plot--first { color: $text-primary; }
        & > .plot--second { color: $text-success; }
        & > .plot--band { background: $panel; color: $text-disabled; }
        & > .plot--mark { color: $text-muted; text-style: dim; }
        & > .plot--cursor { color: $text-accent; text-style: bold; }
        & > .plot--axis { color: $text-muted; }
    }
    """

    cursor: reactive[float | None] = reactive(None, repaint=False, init=False)
    """Where the cursor is on the x axis. Moving it repaints two columns and a line, and redraws nothing."""

    @dataclass
    class Clicked(Message):
        """A click on the canvas, at a position on the x axis."""

        plot: Plot
        x: float

        @property
        def control(self) -> Plot:
            return self.plot

    def __init__(self, **widget: Any) -> None:
        super().__init__(**widget)
        self._series: tuple[Series, ...] = ()
        self._x_range: Range | None = None
        self._y_range: Range | None = None
        self._bands: tuple[Band, ...] = ()
        self._marks: tuple[float, ...] = ()
        self._x_label = ""
        self._empty = "no data"
        self._drawn: tuple[object, Frame | str] | None = None
        self._awaits_plotext = False
        self._styles: dict[str, Style] = {}

    def show(
        self,
        *series: Series,
        x_range: Range | None = None,
        y_range: Range | None = None,
        bands: Sequence[Band] = (),
        marks: Sequence[float] = (),
        cursor: float | None = None,
        x_label: str = "",
        empty: str = "no data",
    ) -> None:
        """Draw `series`, the first on top.

        A range left out is that of the data; a value beyond `y_range` is drawn on the edge. `bands` are
        half-open, `marks` are positions of borders, `empty` is said when there is no finite value.
        """
        self._series = series
        self._x_range = x_range
        self._y_range = y_range
        self._bands = tuple(bands)
        self._marks = tuple(marks)
        self._x_label = visible(x_label)
        self._empty = empty
        self.set_reactive(Plot.cursor, cursor)
        self._redraw()

    def legend(self) -> Text:
        """One line that names the series and the bands at hand."""
        signs = {"line": "⠤⠒⠉", "dots": "⠂⠐⠠"}
        text = Text("  ").join(
            Text.assemble((signs[one.style], self._style(one.component)), " ", visible(one.name))
            for one in self._series
        )
        for kind in dict.fromkeys(band.kind for band in self._bands):
            text.append("  ").append(BAND_GLYPHS[kind], self._style("band")).append(f" {kind}")
        return text

    # Drawing

    def _redraw(self) -> None:
        self._drawn = None
        self.refresh()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._drawn = None
        self._styles.clear()

    def _style(self, component: str, on: Style | None = None) -> Style:
        if component not in self._styles:  # Textual forgets its own with each refresh
            self._styles[component] = self.get_component_rich_style(f"plot--{component}")
        style = self._styles[component]
        return style if on is None else style + Style(bgcolor=on.bgcolor)

    def _frame(self) -> Frame | str:
        """What to show: a drawing, made once for a size, or a sentence."""
        if self._drawn is None or self._drawn[0] != self.size:
            self._drawn = (self.size, self._draw(*self.size))
        return self._drawn[1]

    def _draw(self, width: int, height: int) -> Frame | str:
        view = self._view()
        if view is None:
            return self._empty
        rows = max(1, height - 1)
        labels = _y_labels(view.y, rows)
        gutter = 1 + max(map(cell_width, labels.values()))
        if width - gutter < 2 * gutter:
            gutter = 0
        columns = width - gutter
        if self._wait_for_plotext():
            canvas = nothing(columns, rows)
        elif figure_class() is None:
            return "plotext is not installed"
        else:
            canvas = rasterise(self._series, view, columns, rows)
        frame = Frame(view, gutter, columns, canvas, [])
        frame.strips.extend(self._compose_rows(frame, labels))
        return frame

    def _wait_for_plotext(self) -> bool:
        """Leave the 60 ms of its import until after the first paint."""
        if self._awaits_plotext or figure_class.cache_info().currsize:
            return False
        self._awaits_plotext = True
        self.call_after_refresh(self._redraw)
        return True

    def _view(self) -> View | None:
        """The axes; None if there is nothing finite to draw."""
        x = np.concatenate([[], *(one.x for one in self._series)])
        y = np.concatenate([[], *(one.y for one in self._series)])
        x_range = spanned(x if self._x_range is None else self._x_range, pad=1.0)
        if x_range is None:
            return None
        seen = spanned(y[(x >= x_range[0]) & (x <= x_range[1])])
        y_range = seen if self._y_range is None else spanned(self._y_range)
        return View(x_range, y_range) if seen and y_range else None

    def _compose_rows(self, frame: Frame, labels: dict[int, str]) -> list[Strip]:
        behind, shaded = self._background(frame)
        styles = self._cell_styles()
        strips = []
        for row, (chars, owners) in enumerate(zip(frame.canvas.chars, frame.canvas.owners, strict=True)):
            segments = [self._gutter(frame.gutter, labels.get(row))] if frame.gutter else []
            for char, owner, (glyph, sign), band in zip(chars, owners, behind, shaded, strict=True):
                if owner < 0:
                    segments.append(Segment(glyph, styles[sign, band]))
                else:
                    segments.append(Segment(char, styles[owner, band]))
            strips.append(Strip(segments, frame.gutter + frame.columns).simplify())
        return strips

    def _background(self, frame: Frame) -> tuple[list[tuple[str, str]], list[bool]]:
        """For each canvas column: the glyph of its empty cells, what it is, and whether a band covers it."""
        behind = [(" ", "")] * frame.columns
        shaded = [False] * frame.columns
        for band in self._bands:
            first = _dot(band.start, frame.view.x, frame.columns)
            last = max(first, _dot(band.stop, frame.view.x, frame.columns) - 1)
            for column in range(max(0, first // DOTS_X), min(last // DOTS_X, frame.columns - 1) + 1):
                behind[column], shaded[column] = (BAND_GLYPHS[band.kind], "band"), True
        for mark in self._marks:
            if (cell := frame.cell(mark)) is not None:
                behind[cell] = ("│", "mark")
        return behind, shaded

    def _cell_styles(self) -> dict[tuple[int | str, bool], Style]:
        """By what is in a cell, a series number or "mark", "band" or "", and whether a band is there."""
        plain, band = self.rich_style, self._style("band")
        styles: dict[tuple[int | str, bool], Style] = {("", False): plain, ("band", True): band}
        components: dict[int | str, str] = {number: one.component for number, one in enumerate(self._series)}
        for content, component in (components | {"mark": "mark"}).items():
            styles[content, False] = self._style(component, plain)
            styles[content, True] = self._style(component, band)
        return styles

    def _gutter(self, width: int, label: str | None) -> Segment:
        text = "│".rjust(width) if label is None else (label + "┤").rjust(width)
        return Segment(text, self._style("axis"))

    # Painting

    def render_line(self, y: int) -> Strip:
        frame = self._frame()
        if isinstance(frame, str):
            return Strip([Segment(centred(frame, *self.size)[y], self._style("axis"))], self.size.width)
        cell = None if self.cursor is None else frame.cell(self.cursor)
        if y == frame.rows:
            return self._foot(frame, cell)
        return frame.strips[y] if cell is None else self._with_cursor(frame, y, cell)

    def _with_cursor(self, frame: Frame, row: int, cell: int) -> Strip:
        strip, x = frame.strips[row], frame.gutter + cell
        (under,) = strip.crop(x, x + 1)
        char = under.text if frame.canvas.owners[row][cell] >= 0 else "│"
        here = Strip([Segment(char, self._style("cursor", under.style))], 1)
        return Strip.join([strip.crop(0, x), here, strip.crop(x + 1)])

    def _foot(self, frame: Frame, cell: int | None) -> Strip:
        width = frame.gutter + frame.columns
        left, right = format_ends(*frame.view.x)
        middle = frame.gutter + (frame.columns - cell_width(self._x_label)) // 2
        wanted = [Piece(frame.gutter, left), Piece(width - len(right), right), Piece(middle, self._x_label)]
        if cell is not None and self.cursor is not None:
            wanted.insert(0, _cursor_piece(frame.gutter + cell, format_number(self.cursor, 6), width))
        segments, x, blank = [], 0, self._style("axis")
        for piece in arrange(width, wanted):
            segments.append(Segment(" " * (piece.at - x), blank))
            segments.append(Segment(piece.text, self._style(piece.component)))
            x = piece.at + cell_width(piece.text)
        return Strip([*segments, Segment(" " * (width - x), blank)], width)

    # Events

    def watch_cursor(self, old: float | None, new: float | None) -> None:
        if self._drawn is None or isinstance(frame := self._drawn[1], str):
            return
        cells = {frame.cell(x) for x in (old, new) if x is not None} - {None}
        columns = [Region(frame.gutter + cell, 0, 1, frame.rows) for cell in cells if cell is not None]
        self.refresh(*columns, Region(0, frame.rows, self.size.width, 1))

    def on_click(self, event: events.Click) -> None:
        frame, offset = self._frame(), event.get_content_offset(self)
        if offset is None or isinstance(frame, str) or offset.x < frame.gutter or frame.columns < 2:
            return
        low, high = frame.view.x
        share = (offset.x - frame.gutter) / (frame.columns - 1)
        self.post_message(self.Clicked(self, low * (1 - share) + high * share))


def _y_labels(ends: Range, rows: int) -> dict[int, str]:
    """The labels of the y axis by row: its ends, and 0 where there is a row for it."""
    low, high = format_ends(*ends)
    labels = {rows - 1: low, 0: high}
    if ends[0] < 0 < ends[1]:
        dot = int(np.rint(scale(0.0, ends, DOTS_Y * rows)))
        labels.setdefault(rows - 1 - dot // DOTS_Y, "0")
    return labels


def _cursor_piece(at: int, number: str, width: int) -> Piece:
    """`^` at cell `at` with its number on the side that has room for it."""
    if at + 1 + len(number) <= width:
        return Piece(at, "^" + number, "cursor")
    if at >= len(number):
        return Piece(at - len(number), number + "^", "cursor")
    return Piece(at, "^", "cursor")

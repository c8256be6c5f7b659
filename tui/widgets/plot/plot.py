"""A line or dot plot with gaps, bands and a cursor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.geometry import Region
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from dumptui.core.text import cell_width, centred, visible
from dumptui.tui.widgets.message import FrozenMessage
from dumptui.tui.widgets.plot.axes import Range, View, format_ends, format_number
from dumptui.tui.widgets.plot.canvas import Series, figure_class, rasterise
from dumptui.tui.widgets.plot.frame import (
    BAND_GLYPHS,
    Band,
    Frame,
    Picture,
    Piece,
    arrange,
    compose,
    cursor_piece,
    lay_out,
)

__all__ = ["Band", "Plot", "Series"]


class Plot(Widget):
    """Series against a shared x axis, with both ends of every axis labelled.

    A band is shaded and, in cells without data, filled with `▒` (prompt), `░` (masked) or `╱` (missing); a
    mark is a `│`, a fine one `┊`; the cursor is a line with `^` and its position below. Without colour two lines
    look alike: draw the second as "dots".
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

    class Clicked(FrozenMessage):
        """A click on the canvas: at a position on the x axis, and at a value of the left axis, None without one."""

        plot: Plot
        x: float
        y: float | None = None

        @property
        def control(self) -> Plot:
            return self.plot

    def __init__(self, **widget: Any) -> None:
        super().__init__(**widget)
        self.picture = Picture()
        self._drawn: tuple[object, Frame | str] | None = None
        self._styles: dict[str, Style] = {}

    def show(
        self,
        *series: Series,
        x_range: Range | None = None,
        y_range: Range | None = None,
        bands: Sequence[Band] = (),
        marks: Sequence[float] = (),
        fine_marks: Sequence[float] = (),
        cursor: float | None = None,
        x_label: str = "",
        empty: str = "no data",
    ) -> None:
        """Draw `series`, the first on top.

        A range left out is that of the data; a value beyond `y_range` is drawn on the edge. `bands` are
        half-open, `marks` are positions of borders, `empty` is said when there is no finite value. It is drawn after
        the paint that shows what else is new: both at once are 30 ms in which no key is handled.
        """
        self.picture = Picture(
            series, x_range, y_range, tuple(bands), tuple(marks), tuple(fine_marks), visible(x_label), empty
        )
        self.set_reactive(Plot.cursor, cursor)
        self.call_after_refresh(self._redraw)

    def legend(self) -> Text:
        """One line that names the series, bands and marks at hand."""
        signs = {"line": "⠤⠒⠉", "dots": "⠂⠐⠠"}
        text = Text("  ").join(
            Text.assemble((one.marker or signs[one.style], self._style(one.component)), " ", visible(one.name))
            for one in self.picture.series
        )
        for kind in dict.fromkeys(band.kind for band in self.picture.bands):
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

    def _style(self, component: str) -> Style:
        if component not in self._styles:  # Textual forgets its own with each refresh
            self._styles[component] = self.get_component_rich_style(f"plot--{component}")
        return self._styles[component]

    def _frame(self) -> Frame | str:
        """What to show: a drawing, made once for a size, or a sentence. After `show` the old one stays for a paint."""
        if self._drawn is None or self._drawn[0] != self.size:
            self._drawn = (self.size, self._draw(*self.size))
        return self._drawn[1]

    def _current_frame(self) -> Frame | None:
        """The drawing of `picture`, on which the cursor is drawn and the mouse acts; None while an older one stands."""
        frame = self._frame()
        return frame if isinstance(frame, Frame) and frame.picture is self.picture else None

    def _view(self) -> View | None:
        return self.picture.view()

    def _draw(self, width: int, height: int) -> Frame | str:
        view = self._view()
        if view is None:
            return self.picture.empty
        rows = max(1, height - 1)
        layout = lay_out(view, width, rows)
        if figure_class() is None:
            return "plotext is not installed"
        canvas = rasterise(self.picture.series, view, layout.columns, rows)
        return compose(self.picture, view, layout, canvas, self._style, self.rich_style)

    # Painting

    def render_line(self, y: int) -> Strip:
        frame = self._frame()
        if isinstance(frame, str):
            return Strip([Segment(centred(frame, *self.size)[y], self._style("axis"))], self.size.width)
        cell = None if self.cursor is None or self._current_frame() is None else frame.cell(self.cursor)
        if y == frame.rows:
            return self._foot(frame, cell)
        return frame.strips[y] if cell is None else self._with_cursor(frame, y, cell)

    def _with_cursor(self, frame: Frame, row: int, cell: int) -> Strip:
        strip, x = frame.strips[row], frame.gutter + cell
        (under,) = strip.crop(x, x + 1)
        char = under.text if frame.canvas.owners[row][cell] >= 0 else "│"
        style = (
            self._style("cursor") if under.style is None else self._style("cursor") + Style(bgcolor=under.style.bgcolor)
        )
        return Strip.join([strip.crop(0, x), Strip([Segment(char, style)], 1), strip.crop(x + 1)])

    def _foot(self, frame: Frame, cell: int | None) -> Strip:
        end = frame.gutter + frame.columns
        left, right = format_ends(*frame.view.x)
        label = frame.picture.x_label
        middle = frame.gutter + (frame.columns - cell_width(label)) // 2
        wanted = [Piece(frame.gutter, left), Piece(end - len(right), right), Piece(middle, label)]
        if cell is not None and self.cursor is not None:
            wanted.insert(0, cursor_piece(frame.gutter + cell, format_number(self.cursor, 6), end))
        segments, x, blank = [], 0, self._style("axis")
        for piece in arrange(end, wanted):
            segments.append(Segment(" " * (piece.at - x), blank))
            segments.append(Segment(piece.text, self._style(piece.component)))
            x = piece.at + cell_width(piece.text)
        return Strip([*segments, Segment(" " * (self.size.width - x), blank)], self.size.width)

    # Events

    def watch_cursor(self, old: float | None, new: float | None) -> None:
        if self._drawn is None or isinstance(frame := self._drawn[1], str):
            return
        cells = {frame.cell(x) for x in (old, new) if x is not None} - {None}
        columns = [Region(frame.gutter + cell, 0, 1, frame.rows) for cell in cells if cell is not None]
        self.refresh(*columns, Region(0, frame.rows, self.size.width, 1))

    def position_of(self, event: events.MouseEvent) -> float | None:
        """Where on the x axis the mouse is; None beside the canvas."""
        frame, offset = self._current_frame(), event.get_content_offset(self)
        return None if offset is None or frame is None else frame.at(offset.x)

    def on_click(self, event: events.Click) -> None:
        if (x := self.position_of(event)) is not None:
            self.post_message(self.Clicked(self, x, self._value_of(event)))

    def _value_of(self, event: events.MouseEvent) -> float | None:
        """Return the value of the left axis at the line of the mouse."""
        frame, offset = self._current_frame(), event.get_content_offset(self)
        if frame is None or offset is None or frame.view.left is None:
            return None
        low, high = frame.view.left
        return high - (high - low) * min(offset.y, frame.rows - 1) / max(frame.rows - 1, 1)

    def cell_of(self, x: float) -> int | None:
        """Return the column of cells that a position on the x axis is drawn in; None outside the view. Until the next
        paint it is that of the drawing on screen.
        """
        frame = self._frame()
        return frame.cell(x) if isinstance(frame, Frame) else None

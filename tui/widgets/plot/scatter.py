"""Points that can be walked and clicked, on the axes of a plot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip

from dumptui.tui.widgets.focus import Focus
from dumptui.tui.widgets.plot.axes import DOTS_X, DOTS_Y, scale
from dumptui.tui.widgets.plot.canvas import Series
from dumptui.tui.widgets.plot.frame import Frame
from dumptui.tui.widgets.plot.plot import Plot

REVERSE_STYLE = Style(reverse=True)


class Point(NamedTuple):
    """`key` is whose point it is, `kind` the number of its series."""

    key: int
    x: float
    y: float
    kind: int


class Kind(NamedTuple):
    """A series of points: its name, the character a point is drawn as, and its colour, "first" or "second"."""

    name: str
    marker: str
    component: str


class Scatter(Focus, Plot, can_focus=True):
    """One point is the current one: left and right go along x, up and down to the nearest one above or below."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "along(-1)", "Point before", show=False, id="scatter.left"),
        Binding("right,l", "along(1)", "Point after", show=False, id="scatter.right"),
        Binding("up,k", "climb(1)", "Point above", show=False, id="scatter.up"),
        Binding("down,j", "climb(-1)", "Point below", show=False, id="scatter.down"),
        Binding("home,g", "along(-1000000)", "First point", show=False, id="scatter.first"),
        Binding("end,G", "along(1000000)", "Last point", show=False, id="scatter.last"),
        Binding("enter", "select", "Open", show=False, id="scatter.open"),
    ]

    point: reactive[int] = reactive(-1, repaint=False, init=False)
    """The current point by its place along x; -1 without points."""

    class Moved(Message):
        """Another point is the current one."""

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, Scatter.Moved)

    class Selected(Message):
        """Enter, or a click on the current point."""

    def __init__(self, **widget: Any) -> None:
        super().__init__(**widget)
        self.points: list[Point] = []

    def show_points(self, points: Sequence[Point], kinds: Sequence[Kind], *, x_label: str, empty: str) -> None:
        """Draw the points, the first kind on top; the current one stays with its key, else is the first."""
        before = self.key
        self.points = sorted(points, key=lambda one: (one.x, one.y, one.key))
        series = []
        for number, kind in enumerate(kinds):
            mine = [one for one in self.points if one.kind == number]
            x, y = np.array([one.x for one in mine]), np.array([one.y for one in mine])
            series.append(Series(kind.name, x, y, kind.component, "dots", marker=kind.marker))
        self.show(*series, x_label=x_label, empty=empty)
        self.set_reactive(Scatter.point, min(0, len(self.points) - 1))
        self.select(before)

    @property
    def key(self) -> int | None:
        return self.points[self.point].key if self.points else None

    def select(self, key: int | None) -> None:
        """Make the point of a key the current one, if it has any."""
        at = next((at for at, one in enumerate(self.points) if one.key == key), None)
        if at is not None:
            with self.prevent(Scatter.Moved):
                self.point = at

    # Painting

    def _cell(self, frame: Frame, at: int) -> tuple[int, int]:
        """Row and canvas column of a point."""
        one = self.points[at]
        across = int(np.floor(scale(one.x, frame.view.x, DOTS_X * frame.columns) + 0.5))
        assert frame.view.left is not None
        up = int(np.rint(scale(one.y, frame.view.left, DOTS_Y * frame.rows)))
        return frame.rows - 1 - up // DOTS_Y, across // DOTS_X

    def render_line(self, y: int) -> Strip:
        strip = super().render_line(y)
        frame = self._current_frame()
        if frame is None or self.point < 0 or y >= frame.rows:
            return strip
        row, column = self._cell(frame, self.point)
        if row != y:
            return strip
        x = frame.gutter + column
        (under,) = strip.crop(x, x + 1)
        reverse = self._style("cursor") + REVERSE_STYLE
        return Strip.join([strip.crop(0, x), Strip([Segment(under.text, reverse)], 1), strip.crop(x + 1)])

    # Moving

    def validate_point(self, at: int) -> int:
        return max(min(0, len(self.points) - 1), min(at, len(self.points) - 1))

    def watch_point(self, old: int, new: int) -> None:
        frame = self._current_frame() if self._drawn is not None else None
        if frame is not None:
            rows = {self._cell(frame, at)[0] for at in (old, new) if 0 <= at < len(self.points)}
            self.refresh(*(Region(0, row, self.size.width, 1) for row in rows))
        if self.points:
            self.post_message(self.Moved())

    def action_along(self, by: int) -> None:
        self.point += by

    def action_climb(self, by: int) -> None:
        if not self.points:
            return
        here = self.points[self.point]
        beyond = [at for at, one in enumerate(self.points) if (one.y - here.y) * by > 0]
        if beyond:
            self.point = min(beyond, key=lambda at: (abs(self.points[at].y - here.y), abs(self.points[at].x - here.x)))

    def action_select(self) -> None:
        if self.key is not None:
            self.post_message(self.Selected())

    def on_click(self, event: events.Click) -> None:
        """The nearest point becomes the current one; a click on it again opens it."""
        frame, offset = self._current_frame(), event.get_content_offset(self)
        if offset is None or frame is None or not self.points:
            return
        cells = [self._cell(frame, at) for at in range(len(self.points))]
        x = offset.x - frame.gutter
        # a cell is about twice as high as it is wide
        apart = [abs(row - offset.y) * 2 + abs(column - x) for row, column in cells]
        if apart[self.point] == min(apart) and event.chain == 1 and self.has_focus:
            self.action_select()
        else:
            self.point = apart.index(min(apart))

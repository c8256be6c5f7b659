"""A plot whose x axis can be looked at in parts, by keys of its pane or the mouse."""

from __future__ import annotations

from typing import Any

from rich.style import Style
from textual import events
from textual.strip import Strip

from dumptui.tui.widgets.plot.axes import Range, View, moved, zoomed
from dumptui.tui.widgets.plot.plot import Plot

ZOOM_FACTOR = 2.0  # how much a key, and
WHEEL_STEP = 1.4  # a notch of the wheel zooms
PAN_SHARE = 0.4  # of what is in view


class ZoomPlot(Plot):
    """A window on an x axis of whole numbers: it follows the cursor, and stays when other series are shown, whose y
    axes are fitted to it.

    The wheel zooms about the mouse, with shift it pans; a drag zooms to what it covers; a double click shows all.

    Args:
        closest: the narrowest window.
    """

    def __init__(self, *, closest: float, **widget: Any) -> None:
        super().__init__(**widget)
        self._closest = closest
        self._window: Range | None = None
        self._drag: tuple[int, int] | None = None
        self._dragged = False

    @property
    def window(self) -> Range | None:
        """The part of the x axis in view; None when that is all of it."""
        return self._window

    @window.setter
    def window(self, window: Range | None) -> None:
        if window is not None:
            window = float(round(window[0])), float(round(window[1]))
        if window != self._window:
            self._window = window
            self._redraw()

    def zoom(self, factor: float, about: float | None = None) -> None:
        """Look at a part `factor` times as wide, about the cursor by default."""
        if (full := self.picture.full_x()) is None:
            return
        view = self._window or full
        middle = (view[0] + view[1]) / 2
        about = about if about is not None else middle if self.cursor is None else self.cursor
        self.window = zoomed(view, full, factor, about, self._closest)

    def pan(self, share: float) -> None:
        """Move the window by a share of its width."""
        full = self.picture.full_x()
        if full is not None and self._window is not None:
            by = share * (self._window[1] - self._window[0])
            self.window = moved((self._window[0] + by, self._window[1] + by), full)

    def _view(self) -> View | None:
        return self.picture.view(self._window)

    def watch_cursor(self, old: float | None, new: float | None) -> None:
        window, full = self._window, self.picture.full_x()
        if window is not None and full is not None and new is not None and not window[0] <= new <= window[1]:
            half = (window[1] - window[0]) / 2
            self.window = moved((new - half, new + half), full)
        super().watch_cursor(old, new)

    # The mouse

    def render_line(self, y: int) -> Strip:
        strip = super().render_line(y)
        if self._drag is None or y >= self.size.height - 1:
            return strip
        first, last = sorted(self._drag)
        covered = strip.crop(first, last + 1).apply_style(Style(reverse=True))
        return Strip.join([strip.crop(0, first), covered, strip.crop(last + 1)])

    def on_mouse_down(self, event: events.MouseDown) -> None:
        if event.button == 1 and self.position_of(event) is not None:
            self._drag = (event.x, event.x)
            self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self._drag is not None and event.x != self._drag[1] and self.position_of(event) is not None:
            self._drag = (self._drag[0], event.x)
            self.refresh()

    def on_mouse_up(self, event: events.MouseUp) -> None:
        self.release_mouse()
        drag, self._drag = self._drag, None
        self._dragged = drag is not None and abs(drag[1] - drag[0]) > 1
        if drag is not None and self._dragged:
            self._zoom_to(*sorted(drag))

    def _zoom_to(self, first: int, last: int) -> None:
        frame, full = self._current_frame(), self.picture.full_x()
        if frame is None or full is None:
            return
        low, high = frame.at(first), frame.at(last)
        if low is not None and high is not None:
            spare = max(0.0, self._closest - (high - low)) / 2
            self.window = moved((low - spare, high + spare), full)
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        if self._dragged:
            event.prevent_default()
        elif event.chain == 2:
            event.prevent_default()
            self.window = None

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._wheel(event, 1 / WHEEL_STEP, -PAN_SHARE)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._wheel(event, WHEEL_STEP, PAN_SHARE)

    def _wheel(self, event: events.MouseEvent, factor: float, share: float) -> None:
        event.stop()
        if event.shift:
            self.pan(share)
        else:
            self.zoom(factor, self.position_of(event))

"""The mouse wheel over a widget that scrolls by lines of its own."""

from __future__ import annotations

from textual import events

LINES = 3  # a notch


class Wheel:
    """To stand before the widget's own base class, whose scrolling it takes the place of."""

    def wheel(self, event: events.MouseEvent, lines: int) -> None:
        """Scroll down by so many lines, up where they are negative."""
        raise NotImplementedError

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._turned(event, LINES)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._turned(event, -LINES)

    def _turned(self, event: events.MouseEvent, lines: int) -> None:
        event.stop()
        event.prevent_default()
        self.wheel(event, lines)

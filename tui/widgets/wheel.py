"""What widgets that scroll by lines of their own have in common: the mouse wheel and the bar."""

from __future__ import annotations

from textual import events
from textual.scroll_view import ScrollView

from dumptui.tui.widgets.focus import Focus

LINES = 3  # a notch


class Wheel(Focus, ScrollView):
    """Takes the place of the scrolling of ScrollView."""

    def on_mount(self) -> None:
        """Textual makes the bar when it is first shown, and forgets to draw what changes until that bar is mounted."""
        _ = self.vertical_scrollbar

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

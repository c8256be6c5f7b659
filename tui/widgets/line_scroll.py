"""The mouse wheel and scrollbar of widgets that scroll by lines."""

from __future__ import annotations

from textual import events
from textual.scroll_view import ScrollView

from dumptui.tui.widgets.focus import Focus

LINES_PER_NOTCH = 3  # per notch


class Wheel(Focus, ScrollView):
    """A base for widgets that scroll by lines, in place of the scrolling of ScrollView."""

    def on_mount(self) -> None:
        """Make the scrollbar early: Textual makes it when first shown, and until it is mounted draws no changes."""
        _ = self.vertical_scrollbar

    def wheel(self, event: events.MouseEvent, lines: int) -> None:
        """Scroll down by `lines`, up where it is negative."""
        raise NotImplementedError

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._turned(event, LINES_PER_NOTCH)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._turned(event, -LINES_PER_NOTCH)

    def _turned(self, event: events.MouseEvent, lines: int) -> None:
        event.stop()
        event.prevent_default()
        self.wheel(event, lines)

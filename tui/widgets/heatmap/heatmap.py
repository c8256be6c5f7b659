"""The tokens of a sample, with the keys and mouse actions that move the cursor."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message

from dumptui.tui.widgets.heatmap.shaded_text import ShadedText
from dumptui.tui.widgets.message import FrozenMessage


class Heatmap(ShadedText, can_focus=True, inherit_bindings=False):
    """Shaded text with a cursor that moves by tokens and lines."""

    ALLOW_SELECT = False

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "move(-1)", "Previous token", show=False, id="heatmap.left"),
        Binding("right,l", "move(1)", "Next token", show=False, id="heatmap.right"),
        Binding("up,k", "climb(-1)", "Line up", show=False, id="heatmap.up"),
        Binding("down,j", "climb(1)", "Line down", show=False, id="heatmap.down"),
        Binding("pageup", "page(-1)", "Page up", show=False, id="heatmap.page-up"),
        Binding("pagedown", "page(1)", "Page down", show=False, id="heatmap.page-down"),
        Binding("ctrl+u", "page(-0.5)", "Half a page up", show=False, id="heatmap.half-up"),
        Binding("ctrl+d", "page(0.5)", "Half a page down", show=False, id="heatmap.half-down"),
        Binding("home,g", "first", "First token", show=False, id="heatmap.first"),
        Binding("end,G", "last", "Last token", show=False, id="heatmap.last"),
    ]

    class Moved(FrozenMessage):
        """Posted when the cursor moves to another token."""

        heatmap: Heatmap

        @property
        def control(self) -> Heatmap:
            return self.heatmap

        @property
        def index(self) -> int:
            """The token under the cursor now: other tokens may be shown since this was posted."""
            return self.heatmap.cursor

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, Heatmap.Moved) and message.heatmap is self.heatmap

    _goal: tuple[int, int] | None = None
    """The token where the last move by lines ended, and the cell that it aimed at."""

    def goto(self, index: int) -> None:
        """Move the cursor to a token and scroll it into view, to the middle if it was off screen."""
        self._goal = None
        self.cursor = index
        self.reveal()

    def watch_cursor(self, old: int, new: int) -> None:
        super().watch_cursor(old, new)
        self.post_message(self.Moved(self))

    def action_move(self, by: int) -> None:
        """A folded run is one step."""
        self._goal = None
        flow = self.flow
        self.cursor = flow.after(self.cursor) if by > 0 else flow.holder(max(0, flow.holder(self.cursor) - 1))

    def action_climb(self, lines: int) -> None:
        # A short line on the way does not change the cell that is aimed at.
        if not len(self.flow):
            return
        is_same = self._goal is not None and self._goal[0] == self.cursor
        cell = self._goal[1] if is_same and self._goal is not None else self.flow.cell(self.cursor)
        line = max(0, min(self.flow.line_of(self.cursor) + lines, self.flow.lines - 1))
        self.cursor = self.flow.token_at(line, cell)
        self._goal = self.cursor, cell

    def action_page(self, pages: float) -> None:
        lines = int(self.page_height * pages)
        self.scroll_lines_to(self.scroll_offset.y + lines)
        self.action_climb(lines)

    def action_first(self) -> None:
        self.goto(0)

    def action_last(self) -> None:
        self.goto(len(self.flow) - 1)

    # The mouse

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is None:
            return
        line = offset.y + self.scroll_offset.y
        if line < self.flow.lines:
            self._goal = None
            self.cursor = self.flow.token_at(line, offset.x)

    def wheel(self, event: events.MouseEvent, lines: int) -> None:
        self.scroll_lines_to(self.scroll_offset.y + lines)

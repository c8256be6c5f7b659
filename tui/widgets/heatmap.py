"""The tokens of a sample with the keys and the mouse that move the cursor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message

from dumptui.tui.widgets.shaded import ShadedText


class Heatmap(ShadedText, can_focus=True, inherit_bindings=False):
    """Shaded text to go through token by token and line by line."""

    ALLOW_SELECT = False

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "move(-1)", "Token before", show=False, id="heatmap.left"),
        Binding("right,l", "move(1)", "Token after", show=False, id="heatmap.right"),
        Binding("up,k", "climb(-1)", "Line above", show=False, id="heatmap.up"),
        Binding("down,j", "climb(1)", "Line below", show=False, id="heatmap.down"),
        Binding("pageup", "page(-1)", "Page up", show=False, id="heatmap.page-up"),
        Binding("pagedown", "page(1)", "Page down", show=False, id="heatmap.page-down"),
        Binding("ctrl+u", "page(-0.5)", "Half a page up", show=False, id="heatmap.half-up"),
        Binding("ctrl+d", "page(0.5)", "Half a page down", show=False, id="heatmap.half-down"),
        Binding("home,g", "first", "First token", show=False, id="heatmap.first"),
        Binding("end,G", "last", "Last token", show=False, id="heatmap.last"),
    ]

    @dataclass
    class Moved(Message):
        """The cursor moved to another token."""

        heatmap: Heatmap
        index: int

        @property
        def control(self) -> Heatmap:
            return self.heatmap

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, Heatmap.Moved) and message.heatmap is self.heatmap

    _goal: tuple[int, int] | None = None
    """Where the last climb ended, and the cell that it kept to."""

    def goto(self, index: int) -> None:
        """Move the cursor to a token and bring it on screen, to the middle if it was off."""
        self._goal = None
        self.cursor = index
        self.reveal()

    def watch_cursor(self, old: int, new: int) -> None:
        super().watch_cursor(old, new)
        self.post_message(self.Moved(self, new))

    def action_move(self, by: int) -> None:
        """A folded run is one step."""
        self._goal = None
        flow = self.flow
        self.cursor = flow.after(self.cursor) if by > 0 else flow.holder(max(0, flow.holder(self.cursor) - 1))

    def action_climb(self, lines: int) -> None:
        """Go to the token above or below; over short lines the column is kept in mind."""
        if not len(self.flow):
            return
        kept = self._goal is not None and self._goal[0] == self.cursor
        cell = self._goal[1] if kept and self._goal is not None else self.flow.cell(self.cursor)
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

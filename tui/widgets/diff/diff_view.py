"""Two texts side by side, or one below the other on a narrow screen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, ClassVar, Literal

from rich.segment import Segment
from textual import events
from textual.binding import Binding, BindingType
from textual.cache import LRUCache
from textual.geometry import Size
from textual.reactive import reactive
from textual.strip import Strip

from dumptui.core.diff.sequences import Stretch
from dumptui.core.diff.texts import Comparison
from dumptui.core.text import centred, clip
from dumptui.tui.widgets.diff.hunks import EMPTY_SLICE, Row, lay_out
from dumptui.tui.widgets.line_scroll import Wheel
from dumptui.tui.widgets.message import FrozenMessage

WIDE_CELLS = 90  # cells from which the texts are shown side by side
CHUNK_ROWS = 1500  # rows laid out at a time: all rows of 100,000 items take 0.1 s
GUTTER_CELLS = 2
SEPARATOR = " │ "


class Beside(Wheel, can_focus=True, inherit_bindings=False):
    """Two compared texts: equal parts are muted, differences are not, and the first items of the current difference are
    marked. In the stacked form `-` stands before the left text and `+` before the right one.
    """

    ALLOW_SELECT = False

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right_square_bracket", "next(1)", "Next difference", key_display="]", id="beside.next"),
        Binding("left_square_bracket", "next(-1)", "Back", key_display="[", show=False, id="beside.previous"),
        Binding("up,k", "scroll_lines(-1)", "Line up", show=False, id="beside.up"),
        Binding("down,j", "scroll_lines(1)", "Line down", show=False, id="beside.down"),
        Binding("pageup", "page(-1)", "Page up", show=False, id="beside.page-up"),
        Binding("pagedown", "page(1)", "Page down", show=False, id="beside.page-down"),
        Binding("ctrl+u", "page(-0.5)", "Half a page up", show=False, id="beside.half-up"),
        Binding("ctrl+d", "page(0.5)", "Half a page down", show=False, id="beside.half-down"),
        Binding("home,g", "edge(0)", "First line", show=False, id="beside.first"),
        Binding("end,G", "edge(1)", "Last line", show=False, id="beside.last"),
    ]

    COMPONENT_CLASSES: ClassVar[set[str]] = {"beside--same", "beside--fold", "beside--cursor"}

    DEFAULT_CSS = """
    Beside {
        background: $surface;
        color: $foreground;
        overflow-x: hidden;
        scrollbar-gutter: stable;
        scrollbar-size-vertical: 1;
        & > .beside--same { color: $text-muted; text-style: dim; }
        & > .beside--fold { color: $text-muted; text-style: italic; }
        & > .beside--cursor { color: $text-accent; text-style: bold reverse; }
    }
    """

    cursor: reactive[int] = reactive(0, repaint=False, init=False)
    """The current difference, counted from 0."""

    class Moved(FrozenMessage):
        """Another difference is the current one."""

        beside: Beside

        @property
        def index(self) -> int:
            """The current one now: other texts may be compared since this was posted."""
            return self.beside.cursor

    def __init__(self, *, empty: str = "nothing to compare", **widget: Any) -> None:
        super().__init__(**widget)
        self.empty = empty
        self._shown: Comparison | None = None
        self._differences: list[Stretch] = []
        self._differs: tuple[bytearray, bytearray] = (bytearray(), bytearray())
        self._rows: list[Row] = []
        self._coming: Iterator[Row] = iter(())
        self._strips: LRUCache[int, Strip] = LRUCache(256)

    def show(self, shown: Comparison | None) -> None:
        """Show a comparison, with its first difference as the current one."""
        self._shown = shown
        stretches = () if shown is None else shown.difference.stretches
        self._differences = [stretch for stretch in stretches if not stretch.same]
        self._differs = differing(stretches, "left"), differing(stretches, "right")
        self.set_reactive(Beside.cursor, 0)
        self._lay_out()
        self._reveal()

    # Layout

    @property
    def _width(self) -> int:
        return self.scrollable_content_region.width

    @property
    def _stacked(self) -> bool:
        return self._width < WIDE_CELLS

    @property
    def _column(self) -> int:
        """The width of one text in cells."""
        room = self._width - GUTTER_CELLS
        return max(1, room if self._stacked else (room - len(SEPARATOR)) // 2)

    def _lay_out(self) -> None:
        self._rows = []
        self._strips.clear()
        if self._shown is not None and self._width:
            self._coming = lay_out(self._shown, self._column, self._stacked)
            self._lay_out_more(self._coming)
        self.refresh()

    def _lay_out_more(self, coming: Iterator[Row]) -> None:
        """Lay out the next rows: the first ones at once, the others between two keys."""
        if coming is self._coming:
            more = list(islice(coming, CHUNK_ROWS))
            self._rows += more
            self.virtual_size = Size(1, len(self._rows))
            if more:
                self.call_later(self._lay_out_more, coming)

    # Painting

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._strips.clear()

    def render_line(self, y: int) -> Strip:
        if not self._rows:
            empty = "" if self._differences else self.empty  # blank until the rows are laid out, which needs the width
            line = centred(empty, self._width, self.scrollable_content_region.height)[y]
            return Strip([Segment(line, self.rich_style)], self._width)
        row = y + self.scroll_offset.y
        if row >= len(self._rows):
            return Strip.blank(self._width, self.rich_style)
        strip = self._strips.get(row)
        if strip is None:
            strip = self._strips[row] = self._line(self._rows[row])
        return strip

    def _line(self, row: Row) -> Strip:
        if row.folded:
            text = f"  ┈┈ {row.folded:,} identical ┈┈"
            segments = [Segment(clip(text, self._width), self.get_component_rich_style("beside--fold"))]
        elif self._stacked:
            number = 0 if row.left is not EMPTY_SLICE else 1
            sign = "  " if row.right is not EMPTY_SLICE and not number else "-+"[number] + " "
            segments = [Segment(sign, self.rich_style), *self._text(row.right if number else row.left, number)]
        else:
            left = self._text(row.left, 0)
            blank = " " * (self._column - sum(segment.cell_length for segment in left))
            edge = Segment(blank + SEPARATOR, self.get_component_rich_style("beside--same"))
            segments = [Segment("  ", self.rich_style), *left, edge, *self._text(row.right, 1)]
        return Strip(segments).adjust_cell_length(self._width, self.rich_style).simplify()

    def _text(self, part: slice, number: int) -> list[Segment]:
        """Return a line of the left (0) or right (1) text as segments."""
        if self._shown is None or part.start == part.stop:
            return []
        texts = (self._shown.left, self._shown.right)[number].texts
        styles = (self.get_component_rich_style("beside--same"), self.rich_style)
        marked = self._marked(number)
        segments = []
        for item in range(part.start, part.stop):
            style = styles[self._differs[number][item]]
            if item == marked:
                style += self.get_component_rich_style("beside--cursor", partial=True)
            segments.append(Segment(clip(texts[item], self._column), style))
        return segments

    def _marked(self, number: int) -> int | None:
        """Return the index of the current difference's first item in a text; None if it has none there."""
        if not self._differences:
            return None
        current = self._differences[self.cursor]
        part = current.right if number else current.left
        return part.start if part.start < part.stop else None

    # Differences

    def validate_cursor(self, index: int) -> int:
        return max(0, min(index, len(self._differences) - 1))

    def watch_cursor(self, old: int, new: int) -> None:
        self._strips.clear()
        self._reveal()
        self.refresh()
        self.post_message(self.Moved(self))

    def _reveal(self) -> None:
        """Scroll the current difference to the upper third of the screen, if it is off screen."""
        height = self.scrollable_content_region.height
        row = self._row_of(self.cursor)
        if height and row is not None and not self.scroll_offset.y <= row < self.scroll_offset.y + height:
            self._scroll(row - height // 3)

    def _row_of(self, index: int) -> int | None:
        if not self._differences:
            return None
        _, left, right = self._differences[index]
        numbers = (
            number
            for number, row in enumerate(self._rows)
            if not row.folded
            and (row.left.start <= left.start < row.left.stop or row.right.start <= right.start < row.right.stop)
        )
        return next(numbers, None)

    def action_next(self, by: int) -> None:
        self.cursor += by

    # Scrolling

    def _scroll(self, y: int) -> None:
        # force: the scrollbar that allows scrolling appears only with the next layout
        self.scroll_to(y=y, animate=False, force=True)

    def action_scroll_lines(self, lines: int) -> None:
        self._scroll(self.scroll_offset.y + lines)

    def action_page(self, pages: float) -> None:
        self.action_scroll_lines(int(self.scrollable_content_region.height * pages))

    def action_edge(self, end: int) -> None:
        self._scroll(len(self._rows) * end)

    def on_resize(self) -> None:
        self._lay_out()
        self._reveal()

    def wheel(self, event: events.MouseEvent, lines: int) -> None:
        self.action_scroll_lines(lines)


def differing(stretches: Sequence[Stretch], name: Literal["left", "right"]) -> bytearray:
    """Return 1 for each item of a text that differs, 0 for each other item."""
    parts: list[slice] = [getattr(stretch, name) for stretch in stretches]
    flags = bytearray(parts[-1].stop if parts else 0)
    for stretch, part in zip(stretches, parts, strict=True):
        if not stretch.same:
            flags[part] = b"\1" * (part.stop - part.start)
    return flags

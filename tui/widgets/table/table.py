"""A table whose rows come from a function: only rows on screen are requested, so a million paint at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.cache import LRUCache
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip

from dumptui.core.text import cell_width, centred, clip, visible
from dumptui.tui.widgets.line_scroll import Wheel
from dumptui.tui.widgets.message import FrozenMessage
from dumptui.tui.widgets.table.layout import GUTTER_CELLS, Column, Field, fit, lay_out


class TableMessage(FrozenMessage):
    """A message of a table; `control` lets a handler choose its table by selector."""

    table: Table

    @property
    def control(self) -> Table:
        return self.table

    @property
    def row(self) -> int:
        """The row under the cursor now: the table may show other rows since this was posted."""
        return self.table.cursor


class Table(Wheel, can_focus=True, inherit_bindings=False):
    """Rows below a header, with a cursor.

    The first column stays while left and right scroll the others by whole columns; `‹` and `›` in the header mark more
    columns. The cursor row has a `>` before it, sorted columns `▲` or `▼`.

    Args:
        empty: the reason why there are no rows, shown in the middle.
    """

    ALLOW_SELECT = False

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False, id="table.up"),
        Binding("down,j", "move(1)", "Down", show=False, id="table.down"),
        Binding("pageup", "page(-1)", "Page up", show=False, id="table.page-up"),
        Binding("pagedown", "page(1)", "Page down", show=False, id="table.page-down"),
        Binding("ctrl+u", "page(-0.5)", "Half a page up", show=False, id="table.half-up"),
        Binding("ctrl+d", "page(0.5)", "Half a page down", show=False, id="table.half-down"),
        Binding("home,g", "first", "First row", show=False, id="table.first"),
        Binding("end,G", "last", "Last row", show=False, id="table.last"),
        Binding("left,h", "shift(-1)", "Columns to the left", show=False, id="table.left"),
        Binding("right,l", "shift(1)", "Columns to the right", show=False, id="table.right"),
        Binding("enter", "select", "Open", show=False, id="table.open"),
    ]

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *("table--header", "table--cursor", "table--focus", "table--empty"),
        *("table--bad", "table--warn", "table--dim", "table--mark"),
    }

    DEFAULT_CSS = """
    Table {
        background: $surface;
        color: $foreground;
        overflow-x: hidden;
        scrollbar-gutter: stable;
        scrollbar-size-vertical: 1;
        & > .table--header { background: $panel; color: $foreground; text-style: bold; }
        & > .table--empty { color: $text-muted; }
        & > .table--bad { color: $text-error; text-style: bold; }
        & > .table--warn { color: $text-warning; }
        & > .table--dim { color: $text-muted; }
        & > .table--mark { color: $text-accent; text-style: bold; }
        & > .table--cursor {
            background: $block-cursor-blurred-background;
            color: $block-cursor-blurred-foreground;
            text-style: bold;
        }
        & > .table--focus {
            background: $block-cursor-background;
            color: $block-cursor-foreground;
            text-style: $block-cursor-text-style;
        }
        &:ansi > .table--header { text-style: bold underline; }
    }
    """

    cursor: reactive[int] = reactive(0, repaint=False, init=False)
    """The row under the cursor, within the rows; 0 without rows."""

    class Highlighted(TableMessage):
        """Posted when the cursor moves to another row."""

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, Table.Highlighted) and message.table is self.table

    class Selected(TableMessage):
        """Posted by enter on a row, a double click, or a click on the row under the cursor."""

    class HeaderClicked(TableMessage):
        """Posted by a click on the label of a column; `more` if shift or control was held."""

        key: str
        more: bool = False

    def __init__(self, *, empty: str = "no rows", **widget: Any) -> None:
        super().__init__(**widget)
        self.empty = empty
        self._columns: tuple[Column, ...] = ()
        self._count = 0
        self._cells: Callable[[int], Sequence[str]] = lambda row: ()
        self._row_style: Callable[[int], str | None] | None = None
        self._sort: dict[str, bool] = {}
        self._skipped = 0
        self._fields: list[Field] = []
        self._moved_by_click = False
        self._strips: LRUCache[tuple[int, str], Strip] = LRUCache(512)
        self._styles: dict[str | None, Style] = {}
        self._laid_out = 0  # the width of the last layout

    @property
    def row_count(self) -> int:
        return self._count

    @property
    def columns(self) -> tuple[Column, ...]:
        return self._columns

    def texts(self, row: int) -> dict[str, str]:
        """Return the uncut cells of a row by the keys of their columns."""
        return {column.key: text for column, text in zip(self._columns, self._cells(row), strict=True)}

    def show(
        self,
        columns: Sequence[Column],
        count: int,
        cells: Callable[[int], Sequence[str]],
        *,
        style: Callable[[int], str | None] | None = None,
        sort: Sequence[tuple[str, bool]] = (),
        keep_cursor: bool = True,
    ) -> None:
        """Show `count` rows; `cells(row)` returns one string per column and is called when the row is drawn.

        `style(row)` is "bad", "warn", "dim", "mark" or None; style must not be the only sign, so a cell says it too.
        `sort` has the keys of the sorted columns and whether they descend. The cursor keeps its row number, or goes to
        the first row; Highlighted is posted only if that number changes.
        """
        if [c.key for c in columns] != [c.key for c in self._columns]:
            self._skipped = 0
        self._columns = tuple(columns)
        self._count = count
        self._cells = cells
        self._row_style = style
        self._sort = dict(sort)
        self.virtual_size = Size(1, count + 1)
        self._lay_out()
        self.cursor = self.cursor if keep_cursor else 0
        self._reveal()

    # Layout

    def _lay_out(self) -> None:
        width = self._laid_out = self._width
        while self._skipped and self._whole(self._skipped - 1, width):
            self._skipped -= 1
        self._fields = lay_out(self._columns, self._skipped, width)
        self._strips.clear()
        self.refresh()

    def _whole(self, skipped: int, width: int) -> bool:
        """Whether the last column is shown in full."""
        last = len(self._columns) - 1
        fields = lay_out(self._columns, skipped, width)
        return bool(fields) and fields[-1].column == last and fields[-1].width == self._columns[last].width

    @property
    def _width(self) -> int:
        return self.scrollable_content_region.width

    @property
    def _body(self) -> int:
        """The number of lines below the header."""
        return max(0, self.scrollable_content_region.height - 1)

    def _column_at(self, x: int) -> Column | None:
        field = next((field for field in self._fields if x < field.x + field.width), None)
        return None if field is None else self._columns[field.column]

    # Painting

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._strips.clear()
        self._styles.clear()

    def render_line(self, y: int) -> Strip:
        if y == 0:
            return self._header()
        if not self._count:
            line = centred(self.empty, self._width, self._body)[y - 1]
            return Strip([Segment(line, self.get_component_rich_style("table--empty"))], self._width)
        row = y - 1 + self.scroll_offset.y
        if row >= self._count:
            return Strip.blank(self._width, self._style(None))
        key = (row, "" if row != self.cursor else "focus" if self.has_focus else "cursor")
        strip = self._strips.get(key)
        if strip is None:
            strip = self._strips[key] = self._row(*key)
        return strip

    def _header(self) -> Strip:
        text = ""
        for position, field in enumerate(self._fields):
            column = self._columns[field.column]
            label = self._arrow(column.key) + clip(visible(column.label), field.width)
            text += ("‹" if position == 1 and self._skipped else " ") if position else ""
            text += fit(label, 1 + field.width, column.right)
        more = bool(self._fields) and self._fields[-1].column < len(self._columns) - 1
        text += " " * (self._width - cell_width(text) - more) + "›" * more
        return Strip([Segment(text, self.get_component_rich_style("table--header"))], self._width)

    def _arrow(self, key: str) -> str:
        return " " if key not in self._sort else "▼" if self._sort[key] else "▲"

    def _row(self, row: int, cursor: str) -> Strip:
        """Return a row as a strip; `cursor` is "focus", "cursor" (without focus) or empty."""
        cells = self._cells(row)
        text = ">" if cursor else " "
        x = GUTTER_CELLS
        for field in self._fields:
            column = self._columns[field.column]
            text += " " * (field.x - x) + fit(cells[field.column], field.width, column.right, column.exact)
            x = field.x + field.width
        text += " " * (self._width - x)
        name = cursor or (self._row_style(row) if self._row_style else None)
        return Strip([Segment(text, self._style(name))], self._width)

    def _style(self, name: str | None) -> Style:
        if name not in self._styles:  # Textual forgets its own with each refresh
            self._styles[name] = self.get_component_rich_style(f"table--{name}") if name else self.rich_style
        return self._styles[name]

    # Cursor

    def validate_cursor(self, row: int) -> int:
        return max(0, min(row, self._count - 1))

    def watch_cursor(self, old: int, new: int) -> None:
        self._reveal()
        self._refresh_row(old)
        self._refresh_row(new)
        self.post_message(self.Highlighted(self))

    def watch_has_focus(self, _has_focus: bool) -> None:
        self._refresh_row(self.cursor)

    def _refresh_row(self, row: int) -> None:
        y = row + 1 - self.scroll_offset.y
        if 0 < y <= self._body:
            self.refresh(Region(0, y, self._width, 1))

    def _reveal(self) -> None:
        """Scroll by the least that brings the cursor row on screen."""
        top = self.scroll_offset.y
        nearest = max(self.cursor - self._body + 1, min(top, self.cursor))
        if self._body and nearest != top:
            self._scroll(nearest)

    @property
    def cursor_line(self) -> int:
        """The line below the header that the cursor is on."""
        return self.cursor - self.scroll_offset.y

    def place_cursor(self, row: int, line: int) -> None:
        """Move the cursor to a row, and scroll so that it is on this line, as far as there are rows for it."""
        self._scroll(max(0, row - line))
        self.cursor = row

    def _scroll(self, y: int) -> None:
        # force: the scrollbar that allows scrolling appears only with the next layout
        self.scroll_to(y=y, animate=False, force=True)

    def action_move(self, rows: int) -> None:
        self.cursor += rows

    def action_page(self, pages: float) -> None:
        rows = int(self._body * pages)
        self._scroll(self.scroll_offset.y + rows)
        self.cursor += rows

    def action_first(self) -> None:
        self.cursor = 0

    def action_last(self) -> None:
        self.cursor = self._count - 1

    def action_shift(self, columns: int) -> None:
        skipped = self._skipped + columns
        if skipped < 0 or (columns > 0 and self._whole(self._skipped, self._width)):
            return
        self._skipped = min(skipped, max(0, len(self._columns) - 2))
        self._lay_out()

    def action_select(self) -> None:
        if self._count:
            self.post_message(self.Selected(self))

    # Events

    def on_resize(self) -> None:
        if self._width != self._laid_out:  # not when it is shown again at the same width
            self._lay_out()
        self._reveal()

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is None:
            return
        if offset.y == 0:
            if column := self._column_at(offset.x):
                self.post_message(self.HeaderClicked(self, column.key, event.shift or event.ctrl))
        elif (row := offset.y - 1 + self.scroll_offset.y) < self._count:
            self._click_row(row, event.chain)

    def _click_row(self, row: int, chain: int) -> None:
        """Move to the row or open it; the second click of a double click opens only if the first moved."""
        if row != self.cursor:
            self.cursor = row
            self._moved_by_click = True
        elif chain == 1 or self._moved_by_click:
            self._moved_by_click = False
            self.action_select()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        offset = event.get_content_offset(self)
        column = self._column_at(offset.x) if offset and offset.y == 0 else None
        tip = Content(column.tip) if column and column.tip else None
        if tip != self.tooltip:
            self.tooltip = tip

    def wheel(self, event: events.MouseEvent, lines: int) -> None:
        if event.shift or event.ctrl:
            self.action_shift(1 if lines > 0 else -1)
        else:
            self._scroll(self.scroll_offset.y + lines)

    def on_mouse_scroll_right(self, event: events.MouseScrollRight) -> None:
        event.stop()
        self.action_shift(1)

    def on_mouse_scroll_left(self, event: events.MouseScrollLeft) -> None:
        event.stop()
        self.action_shift(-1)

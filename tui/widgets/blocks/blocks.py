"""A column of blocks with foldable passages: 2,000 blocks or a text of 1 MB open at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.cache import LRUCache
from textual.geometry import Region, Size
from textual.reactive import reactive
from textual.strip import Strip

from dumptui.core.text import centred
from dumptui.tui.terminal.in_thread import in_thread
from dumptui.tui.widgets.blocks.block import Block, Row
from dumptui.tui.widgets.blocks.folding import CUT, FOLDED, FULL, Folds
from dumptui.tui.widgets.blocks.renderer import INDENT_CELLS, BlockLook
from dumptui.tui.widgets.blocks.search import BlockSearch, find, pattern_of
from dumptui.tui.widgets.dialogs.prompt import Ask
from dumptui.tui.widgets.line_scroll import Wheel
from dumptui.tui.widgets.message import FrozenMessage

SEARCH_HINT = "ignores case; leave empty to clear"


class Blocks(Wheel, can_focus=True, inherit_bindings=False):
    """A column of blocks, one of them current.

    | what | looks |
    | --- | --- |
    | current block | a bar at its left |
    | folded block | `▸`, its first words after the title |
    | cut passage | its first rows and `… 120 more lines` |
    | thinking | dim italic, labelled |
    """

    ALLOW_SELECT = False
    KINDS: ClassVar[tuple[str, ...]] = ("plain", "muted", "thinking", "first", "second", "third")

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", "Next block", show=False, id="blocks.down"),
        Binding("up,k", "move(-1)", "Previous block", show=False, id="blocks.up"),
        Binding("right,l", "fold(1)", "Unfold", show=False, id="blocks.unfold"),
        Binding("left,h", "fold(-1)", "Fold", show=False, id="blocks.fold"),
        Binding("space", "turn", "Fold", id="blocks.turn"),
        Binding("z", "fold_all", "Unfold all", show=False, id="blocks.fold-all"),
        Binding("slash", "search", "Search", key_display="/", id="blocks.search"),
        Binding("semicolon,f3", "hit(1)", "Next match", key_display=";", show=False, id="blocks.next-hit"),
        Binding("comma,shift+f3", "hit(-1)", "Previous match", key_display=",", show=False, id="blocks.previous-hit"),
        Binding("pageup", "page(-1)", "Page up", show=False, id="blocks.page-up"),
        Binding("pagedown", "page(1)", "Page down", show=False, id="blocks.page-down"),
        Binding("ctrl+u", "page(-0.5)", "Half a page up", show=False, id="blocks.half-up"),
        Binding("ctrl+d", "page(0.5)", "Half a page down", show=False, id="blocks.half-down"),
        Binding("home,g", "move(-999999)", "First block", show=False, id="blocks.first"),
        Binding("end,G", "move(999999)", "Last block", show=False, id="blocks.last"),
    ]

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *("blocks--plain", "blocks--muted", "blocks--thinking", "blocks--first", "blocks--second", "blocks--third"),
        *("blocks--label", "blocks--more", "blocks--bar", "blocks--mark"),
    }

    DEFAULT_CSS = """
    Blocks {
        background: $surface;
        color: $foreground;
        overflow-x: hidden;
        overflow-y: scroll;
        scrollbar-size-vertical: 1;
        & > .blocks--plain { color: $foreground; }
        & > .blocks--muted { color: $text-muted; }
        & > .blocks--thinking { color: $text-muted; text-style: italic; }
        & > .blocks--first { color: $text-primary; }
        & > .blocks--second { color: $text-success; }
        & > .blocks--third { color: $text-warning; }
        & > .blocks--label { color: $text-muted; text-style: bold; }
        & > .blocks--more { color: $text-muted; text-style: underline; }
        & > .blocks--bar { color: $text-accent; text-style: bold; }
        & > .blocks--mark { background: #ffe14d; color: #000000; text-style: bold italic; }
    }
    """

    current: reactive[int] = reactive(0, repaint=False, init=False)
    """The index of the block that keys act on; 0 without blocks."""

    class Moved(FrozenMessage):
        """Posted when another block becomes current."""

        blocks: Blocks

        @property
        def control(self) -> Blocks:
            return self.blocks

    def __init__(self, *, empty: str = "nothing to show", **widget: Any) -> None:
        super().__init__(**widget)
        self.empty = empty
        self._folds = Folds()
        self._sought = BlockSearch()
        self._look = BlockLook(self._find_style)
        self._columns = 0
        self._strips: LRUCache[tuple[int, bool], Strip] = LRUCache(512)

    # Content

    @property
    def blocks(self) -> Sequence[Block]:
        return self._folds.blocks

    def show(self, blocks: Sequence[Block], current: int = 0, *, same: bool = False, full: bool = False) -> None:
        """Show other blocks. With `same`, they are the blocks on screen, perhaps with more at the end, and keep their
        folding. Long passages are cut unless `full`.
        """
        self._folds.show(blocks, same=same, full=full)
        self._sought.look_through(blocks)
        self._place()
        self.set_reactive(Blocks.current, self.validate_current(current))
        if not same:
            self._scroll(0)
        self._reveal()

    def draw(self, block: int, passages: Mapping[int, Sequence[Strip]]) -> None:
        """Show passages of a block as strips of `text_width` cells instead of text; its other passages are shown as
        text.
        """
        with self._in_place():
            self._folds.draw(block, passages)

    def is_drawn(self, block: int) -> bool:
        return self._folds.is_drawn(block)

    @property
    def text_width(self) -> int:
        return self._folds.width

    def go_to(self, block: int) -> None:
        self.current = block
        self._reveal()

    # Layout

    def _place(self) -> None:
        self._strips.clear()
        self.virtual_size = Size(1, self._folds.starts[-1])
        self.refresh()

    @contextmanager
    def _in_place(self) -> Iterator[None]:
        """Keep the title of the current block on its screen line while blocks are folded or unfolded inside the
        context.
        """
        above = self._top - self.scroll_offset.y
        yield
        self._place()
        if 0 <= above < self._page:
            self._scroll(self._top - above)
            self._reveal()
        elif self.blocks and self._top + self._folds.height(self.current) <= self.scroll_offset.y:
            self._scroll(self._top)

    @property
    def _top(self) -> int:
        """The row of the current block's title."""
        return self._folds.starts[self.current]

    @property
    def _page(self) -> int:
        return self.scrollable_content_region.height

    # Painting

    def render_line(self, y: int) -> Strip:
        if not self.blocks:
            return Strip([Segment(centred(self.empty, self._columns, self._page)[y], self.rich_style)])
        line = y + self.scroll_offset.y
        if line >= self._folds.starts[-1]:
            return Strip.blank(self._columns, self.rich_style)
        key = (line, self._folds.block_at(line) == self.current)
        strip = self._strips.get(key)
        if strip is None:
            strip = self._strips[key] = self._strip(*self._folds.row(line))
        return strip

    def _strip(self, index: int, row: Row) -> Strip:
        block, is_current, is_folded = self.blocks[index], index == self.current, self._folds.is_folded(index)
        pattern = self._sought.pattern
        return self._look.strip(block, row, self._columns, current=is_current, folded=is_folded, pattern=pattern)

    def _find_style(self, name: str) -> Style:
        if not name:
            return self.rich_style
        return self.get_component_rich_style(f"blocks--{name}", partial=name == "mark")

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._strips.clear()
        self._look.forget()

    # Moving

    def validate_current(self, index: int) -> int:
        return max(0, min(index, len(self.blocks) - 1))

    def watch_current(self, old: int, new: int) -> None:
        for block in (old, new):
            if block < len(self.blocks):
                top = self._folds.starts[block] - self.scroll_offset.y
                bottom = min(top + self._folds.height(block), self._page)
                top = max(0, top)
                self.refresh(Region(0, top, self._columns, max(0, bottom - top)))
        self.post_message(self.Moved(self))

    def _reveal(self) -> None:
        """Scroll the current block into view: all of it if it fits, else its beginning."""
        if not self.blocks:
            return
        height, start, page = self._folds.height(self.current), self.scroll_offset.y, self._page
        if self._top < start or (height >= page and self._top >= start + page):
            self._scroll(self._top)
        elif self._top + height > start + page:
            self._scroll(min(self._top, self._top + height - page))

    def _scroll(self, y: int) -> None:
        # force: the scrollbar that allows scrolling appears only with the next layout
        self.scroll_to(y=y, animate=False, force=True)

    def action_move(self, by: int) -> None:
        self.go_to(self.current + by)

    def action_page(self, pages: float) -> None:
        if not self.blocks:
            return
        # The current block follows when it leaves the screen; at the end of the column the last one becomes current.
        end = max(0, self._folds.starts[-1] - self._page)
        top = max(0, min(self.scroll_offset.y + int(self._page * pages), end))
        self._scroll(top)
        first, last = self._folds.block_at(top), self._folds.block_at(min(top + self._page, self._folds.starts[-1]) - 1)
        if top == end and pages > 0:
            self.current = last
        elif top == 0 or not first <= self.current <= last:
            self.current = first

    # Folding

    def action_fold(self, by: int) -> None:
        if self.blocks:
            with self._in_place():
                self._folds.step(self.current, by)

    def action_turn(self) -> None:
        if self.blocks:
            # folded, then its beginning, then all of it, then folded again
            full = self._folds.level(self.current) == FULL
            with self._in_place():
                self._folds.step(self.current, -FULL if full else 1)

    def action_fold_all(self) -> None:
        if self.blocks:
            with self._in_place():
                self._folds.unfold_all()

    # Searching

    def action_search(self) -> None:
        def answered(text: str | None) -> None:
            if text is not None:
                self.search(text)

        async def check(text: str) -> str:
            count = await in_thread(lambda: sum(1 for _ in find(pattern_of(text), self.blocks)))
            return f"{count:,} {'line' if count == 1 else 'lines'}" if count else "no match"

        if self.blocks:
            ask = Ask("search for a text", check, value=self._sought.text, hint=SEARCH_HINT)
            self.app.push_screen(ask, answered)

    def search(self, text: str) -> None:
        """Mark every occurrence of a text and go to the next one; "" clears the search."""
        self._sought.begin(text, self.blocks, self.current)
        self._strips.clear()
        self.refresh()
        if text:
            self.action_hit(1)

    def action_hit(self, by: int) -> None:
        hit = self._sought.step(by)
        if hit is None:
            self.notify("no match" if self._sought.text else "no search yet; / starts one")
            return
        row = self._folds.row_of(hit)
        self._place()
        self.current = hit.block
        if not self.scroll_offset.y <= row < self.scroll_offset.y + self._page:
            self._scroll(max(0, row - self._page // 3))

    # Events

    def on_resize(self) -> None:
        if self._columns != self.scrollable_content_region.width:
            self._columns = self.scrollable_content_region.width
            with self._in_place():
                self._folds.wrap(self._columns - INDENT_CELLS)
        else:
            self._reveal()

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        line = -1 if offset is None else offset.y + self.scroll_offset.y
        if not 0 <= line < self._folds.starts[-1]:
            return
        block, row = self._folds.row(line)
        self.current = block
        with self._in_place():
            if row.what == "head":
                self._folds.set_level(block, CUT if self._folds.is_folded(block) else FOLDED)
            elif row.what == "more":
                self._folds.unfold_passage(block, row.passage)

    def wheel(self, event: events.MouseEvent, lines: int) -> None:
        self._scroll(self.scroll_offset.y + lines)

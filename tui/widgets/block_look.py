"""How a row of a block looks: the strip that stands for it on the screen."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from dumptui.core.text import cell_width, clip
from dumptui.tui.widgets.block import RULE, Block, Row

INDENT = 2
"""Cells before a row, the first of which shows the current block."""


class BlockLook:
    """Draws rows in the styles of a widget."""

    def __init__(self, find_style: Callable[[str], Style]) -> None:
        """`find_style` gives the style of a component; "" is that of the widget itself."""
        self._find_style = find_style
        self._styles: dict[str, Style] = {}

    def forget(self) -> None:
        """The theme is another one."""
        self._styles.clear()

    def style(self, name: str) -> Style:
        if name not in self._styles:
            self._styles[name] = self._find_style(name)
        return self._styles[name]

    def strip(
        self, block: Block, row: Row, columns: int, *, current: bool, folded: bool, pattern: re.Pattern[str] | None
    ) -> Strip:
        """A row in `columns` cells, what the pattern finds in it marked."""
        plain, width = self.style(""), columns - INDENT
        segments = [Segment(("▌" if current else " ") + " " * (INDENT - 1), self.style("bar") if current else plain)]
        if row.strip is not None:
            segments += row.strip.apply_style(plain)
        elif row.what == "head":
            segments += self._head(block, folded, width)
        else:
            ruled = row.what in ("text", "more") and block.passages[row.passage].label
            segments.append(Segment(RULE if ruled else "", self.style("muted")))
            segments += self._marked(clip(row.text.rstrip(" "), width), self._row_style(block, row), pattern)
        return Strip(segments).adjust_cell_length(columns, plain).simplify()

    def _marked(self, text: str, style: Style, pattern: re.Pattern[str] | None) -> Iterator[Segment]:
        at = 0
        for found in pattern.finditer(text) if pattern is not None else ():
            yield Segment(text[at : found.start()], style)
            yield Segment(found[0], style + self.style("mark"))
            at = found.end()
        yield Segment(text[at:], style)

    def _row_style(self, block: Block, row: Row) -> Style:
        if row.what in ("label", "more"):
            return self.style(row.what)
        return self.style(block.passages[row.passage].kind if row.what == "text" else "plain")

    def _head(self, block: Block, folded: bool, width: int) -> Iterator[Segment]:
        title = clip(f"{'▸' if folded else '▾'} {block.title}", width)
        yield Segment(title, self.style(block.kind) + Style(bold=True))
        room = width - cell_width(title)
        aside = clip(f"  {block.aside}", room) if block.aside else ""
        words = block.first_words if folded else block.lead
        words = clip(f"  {words}", room - cell_width(aside)) if words else ""
        yield Segment(words, self.style("muted"))
        yield Segment(" " * (room - cell_width(words) - cell_width(aside)) + aside, self.style("muted"))

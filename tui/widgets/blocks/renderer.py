"""The look of a block's rows: the strip drawn for each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from dumptui.core.text import cell_width, clip
from dumptui.tui.widgets.blocks.block import RULE_TEXT, Block, Row

INDENT_CELLS = 2
"""Cells before a row; the first one marks the current block."""


class BlockLook:
    """A painter of rows in the styles of a widget."""

    def __init__(self, find_style: Callable[[str], Style]) -> None:
        """`find_style` returns the style of a component; "" is the style of the widget itself."""
        self._find_style = find_style
        self._styles: dict[str, Style] = {}

    def forget(self) -> None:
        """Drop the cached styles, after a change of theme."""
        self._styles.clear()

    def style(self, name: str) -> Style:
        if name not in self._styles:
            self._styles[name] = self._find_style(name)
        return self._styles[name]

    def strip(
        self, block: Block, row: Row, columns: int, *, current: bool, folded: bool, pattern: re.Pattern[str] | None
    ) -> Strip:
        """Return a row in `columns` cells, with the matches of `pattern` marked."""
        plain, width = self.style(""), columns - INDENT_CELLS
        segments = [
            Segment(("▌" if current else " ") + " " * (INDENT_CELLS - 1), self.style("bar") if current else plain)
        ]
        if row.strip is not None:
            segments += row.strip.apply_style(plain)
        elif row.what == "head":
            segments += self._head(block, folded, width)
        else:
            ruled = row.what in ("text", "more") and block.passages[row.passage].label
            segments.append(Segment(RULE_TEXT if ruled else "", self.style("muted")))
            segments += self._marked(clip(row.text.rstrip(" "), width), self._row_style(block, row), pattern)
        return Strip(segments).adjust_cell_length(columns, plain).simplify()

    def _marked(self, text: str, style: Style, pattern: re.Pattern[str] | None) -> Iterator[Segment]:
        start = 0
        for match in pattern.finditer(text) if pattern is not None else ():
            yield Segment(text[start : match.start()], style)
            yield Segment(match[0], style + self.style("mark"))
            start = match.end()
        yield Segment(text[start:], style)

    def _row_style(self, block: Block, row: Row) -> Style:
        if row.what in ("label", "more"):
            return self.style(row.what)
        return self.style(block.passages[row.passage].kind if row.what == "text" else "plain")

    def _head(self, block: Block, folded: bool, width: int) -> Iterator[Segment]:
        title = clip(f"{'▸' if folded else '▾'} {block.title}", width)
        yield Segment(title, self.style(block.kind) + Style(bold=True))
        room = width - cell_width(title)
        aside = clip(f"  {block.aside}", room) if block.aside else ""
        preview = block.first_words if folded else block.lead
        preview = clip(f"  {preview}", room - cell_width(aside)) if preview else ""
        yield Segment(preview, self.style("muted"))
        yield Segment(" " * (room - cell_width(preview) - cell_width(aside)) + aside, self.style("muted"))

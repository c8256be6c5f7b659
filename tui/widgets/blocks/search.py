"""A text search in a column of blocks, and its hits."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from dumptui.core.text import visible
from dumptui.tui.widgets.blocks.block import Block, Hit


class BlockSearch:
    """A search that ignores case, with its hits in order and a position among them; -1 is before the first."""

    def __init__(self) -> None:
        self.text = ""
        self.pattern: re.Pattern[str] | None = None
        self._hits: list[Hit] = []
        self._position = -1

    def begin(self, text: str, blocks: Sequence[Block], current: int) -> None:
        """Search for another text, from the current block on; "" clears the search."""
        self.text = text
        self.pattern = pattern_of(text) if text else None
        self.look_through(blocks)
        self._position = next((position for position, hit in enumerate(self._hits) if hit.block >= current), 0) - 1

    def look_through(self, blocks: Sequence[Block]) -> None:
        """Search other blocks for the same text, folded or not."""
        self._position = -1
        self._hits = [] if self.pattern is None else list(find(self.pattern, blocks))

    def step(self, by: int) -> Hit | None:
        """Return the next hit, or the previous one; the first follows the last. None without hits."""
        if not self._hits:
            return None
        self._position = (self._position + by) % len(self._hits)
        return self._hits[self._position]


def pattern_of(text: str) -> re.Pattern[str]:
    return re.compile(re.escape(visible(text)), re.IGNORECASE)


def find(pattern: re.Pattern[str], blocks: Sequence[Block]) -> Iterator[Hit]:
    """Yield the lines that match."""
    for index, block in enumerate(blocks):
        for passage, part in enumerate(block.passages):
            for line, text in enumerate(part.text.lines):
                if pattern.search(text):
                    yield Hit(index, passage, line)

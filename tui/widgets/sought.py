"""A text that is searched for in a column of blocks, and where it is found."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from dumptui.core.text import visible
from dumptui.tui.widgets.block import Block, Hit


class Sought:
    """In any case of letters. The hit before the first is where a search begins."""

    def __init__(self) -> None:
        self.text = ""
        self.pattern: re.Pattern[str] | None = None
        self._hits: list[Hit] = []
        self._at = -1

    def begin(self, text: str, blocks: Sequence[Block], current: int) -> None:
        """Look for another text, from the current block on; "" ends the search."""
        self.text = text
        self.pattern = pattern_of(text) if text else None
        self.look_through(blocks)
        self._at = next((at for at, hit in enumerate(self._hits) if hit.block >= current), 0) - 1

    def look_through(self, blocks: Sequence[Block]) -> None:
        """Look for the same in other blocks, folded or not."""
        self._at = -1
        self._hits = [] if self.pattern is None else list(find(self.pattern, blocks))

    def step(self, by: int) -> Hit | None:
        """The next hit, or one before; the first comes behind the last."""
        if not self._hits:
            return None
        self._at = (self._at + by) % len(self._hits)
        return self._hits[self._at]


def pattern_of(text: str) -> re.Pattern[str]:
    return re.compile(re.escape(visible(text)), re.IGNORECASE)


def find(pattern: re.Pattern[str], blocks: Sequence[Block]) -> Iterator[Hit]:
    """The lines that hold it."""
    for block, one in enumerate(blocks):
        for passage, part in enumerate(one.passages):
            for line, text in enumerate(part.text.lines):
                if pattern.search(text):
                    yield Hit(block, passage, line)

"""Long texts wrapped into terminal cells: as many rows as are wanted, and none before."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice

from dumptui.core.text import cell_width, cell_widths, visible

WORD = 24
"""A row ends at a blank among its last so many cells; a longer word is cut."""


@dataclass(frozen=True, slots=True)
class Lines:
    """A text made visible, line by line, and the cells of its widest line."""

    lines: Sequence[str]
    widest: int

    @classmethod
    def of(cls, text: str) -> Lines:
        lines = [visible(line) for line in text.split("\n")]
        return cls(lines, max(map(cell_width, lines)))

    def rows(self, width: int) -> Iterable[str]:
        """The rows of `width` cells; lazily, where there is anything to wrap."""
        return self.lines if self.widest <= width else self._wrapped(width)

    def _wrapped(self, width: int) -> Iterator[str]:
        for line in self.lines:
            if len(line) <= width and line.isascii():  # nearly all of them: a generator for each would double the time
                yield line
            else:
                yield from wrap(line, width)

    def count(self, width: int, most: int | None = None) -> int:
        """How many rows it takes, counted up to `most`."""
        if self.widest <= width or (most is not None and len(self.lines) >= most):
            return len(self.lines) if most is None else min(len(self.lines), most)
        return sum(1 for _ in islice(self.rows(width), most))


def wrap(line: str, width: int) -> Iterator[str]:
    """A visible line in rows of at most `width` cells, at blanks where there are some; no character is lost.

    A blank that ends a row may be one cell too many. A character wider than a row has one to itself.
    """
    start = 0
    while start < len(line):
        end = row_end(line, start, width)
        yield line[start:end]
        start = end
    if not line:
        yield line


def row_end(line: str, start: int, width: int) -> int:
    row = line[start : start + width]
    if row.isascii():
        end = start + len(row)
    else:
        end = start + max(1, bisect_right(list(accumulate(cell_widths(row))), width))
        while end < len(line) and not cell_width(line[end]):  # a mark on the last character
            end += 1
    if end == len(line):
        return end
    if line[end] == " ":
        return end + 1
    blank = line.rfind(" ", max(start + 1, end - WORD), end)
    return end if blank < 0 else blank + 1

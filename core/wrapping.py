"""Long texts wrapped into terminal cells: all row ends are found at once, a row is cut out when it is looked at."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice

from dumptui.core.text import cell_widths, visible

WORD = 24
"""A row ends at a blank among its last so many cells; a longer word is cut."""
LONG = 10_000
"""Cells of a text whose rows are kept as soon as they are counted; of thousands of texts that would be much to keep."""


class Lines:
    """A text made visible, line by line. Measure it in the reader thread: a character that is not ASCII takes 50 ns."""

    def __init__(self, lines: Sequence[str]) -> None:
        """`lines` have been through `visible`."""
        self.lines = lines
        self._cells = {at: cells_of(line) for at, line in enumerate(lines) if not line.isascii()}
        self._widths = [len(line) for line in lines]
        for at, cells in self._cells.items():
            self._widths[at] = cells[-1]
        self.widest = max(self._widths)
        """Cells of the widest line."""
        self._total = sum(self._widths)
        self._wrapped: Wrapped | None = None

    @classmethod
    def of(cls, text: str) -> Lines:
        return cls([visible(line) for line in text.split("\n")])

    def wrapped(self, width: int) -> Wrapped:
        """All rows of `width` cells. 1 MB in lines that have to be wrapped takes 10 ms."""
        if self._wrapped is None or self._wrapped.width != width:
            long = [] if self.widest <= width else [at for at, cells in enumerate(self._widths) if cells > width]
            ends = [list(row_ends(self.lines[at], self._cells.get(at), width)) for at in long]
            above = accumulate((len(one) - 1 for one in ends), initial=0)
            first = [at + rows for at, rows in zip(long, above, strict=False)]
            self._wrapped = Wrapped(width, self.lines, long, ends, first)
        return self._wrapped

    def height(self, width: int) -> int:
        """How many rows it takes."""
        if self.widest <= width:
            return len(self.lines)
        if self._total > LONG or (self._wrapped is not None and self._wrapped.width == width):
            return len(self.wrapped(width))
        return sum(len(list(row_ends(line, self._cells.get(at), width))) for at, line in enumerate(self.lines))

    def first_rows(self, width: int, most: int) -> list[str]:
        """The first rows of `width` cells; nothing is worked out of those behind them."""
        return list(islice(self._rows(width), most))

    def count(self, width: int, most: int) -> int:
        """How many rows it takes, counted up to `most`."""
        if self.widest <= width or len(self.lines) >= most:
            return min(len(self.lines), most)
        return sum(1 for _ in islice(self._rows(width), most))

    def _rows(self, width: int) -> Iterator[str]:
        for at, line in enumerate(self.lines):
            if self._widths[at] <= width:
                yield line
            else:
                yield from wrap(line, width, self._cells.get(at))


@dataclass(frozen=True, slots=True)
class Wrapped:
    """The rows of some lines: `long` ones have rows that end at `ends` and are `first` and on, any other is a row."""

    width: int
    lines: Sequence[str]
    long: Sequence[int]
    ends: Sequence[Sequence[int]]
    first: Sequence[int]

    def __len__(self) -> int:
        return len(self.lines) if not self.long else self.row_of(len(self.lines))

    def __getitem__(self, row: int) -> str:
        at = bisect_right(self.first, row) - 1
        if at < 0:
            return self.lines[row]
        ends, within = self.ends[at], row - self.first[at]
        if within >= len(ends):
            return self.lines[self.long[at] + 1 + within - len(ends)]
        return self.lines[self.long[at]][ends[within - 1] if within else 0 : ends[within]]

    def row_of(self, line: int) -> int:
        """The row in which a line begins."""
        at = bisect_right(self.long, line - 1) - 1
        return line if at < 0 else self.first[at] + len(self.ends[at]) + line - self.long[at] - 1


def wrap(line: str, width: int, cells: Sequence[int] | None = None) -> Iterator[str]:
    """A visible line in rows of at most `width` cells, at blanks where there are some; no character is lost.

    A blank that ends a row may be one cell too many. A character wider than a row has one to itself.
    """
    start = 0
    for end in row_ends(line, cells, width):
        yield line[start:end]
        start = end


def row_ends(line: str, cells: Sequence[int] | None, width: int) -> Iterator[int]:
    """Where rows end. `cells` are those before each character, and all; None for a line of ASCII."""
    start, length = 0, len(line)
    while True:
        end = start + width if cells is None else fitting(cells, start, width)
        if end < length and line[end] == " ":
            end += 1
        elif end < length:
            blank = line.rfind(" ", max(start + 1, end - WORD), end)
            end = end if blank < 0 else blank + 1
        if end >= length:
            yield length
            return
        yield end
        start = end


def fitting(cells: Sequence[int], start: int, width: int) -> int:
    """How far a row reaches that begins at a character: one at least, with the marks on the last."""
    end = max(start + 1, bisect_right(cells, cells[start] + width, start + 1) - 1)
    while end < len(cells) - 1 and cells[end + 1] == cells[end]:
        end += 1
    return end


def cells_of(line: str) -> Sequence[int]:
    """The cells before each character, and all of them."""
    return array("I", accumulate(cell_widths(line), initial=0))

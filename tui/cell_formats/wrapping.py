"""Wrapping of long texts into rows of terminal cells: all row ends are computed at once, rows sliced on demand."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice

from dumptui.core.text import cell_widths, visible

MAX_WORD_CELLS = 24
"""A row ends at a blank within its last 24 cells; a longer word is cut."""
LONG_TEXT_CHARACTERS = 10_000
"""Cells above which a text's rows are cached when counted: for thousands of short texts that would cost memory."""


class Lines:
    """The lines of a text, with control characters made visible.

    Measure them in the reader thread: a character outside ASCII takes 50 ns.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        """`lines` must come from `visible`."""
        self.lines = lines
        self._cells = {number: cells_of(line) for number, line in enumerate(lines) if not line.isascii()}
        self._widths = [len(line) for line in lines]
        for number, cells in self._cells.items():
            self._widths[number] = cells[-1]
        self.widest = max(self._widths)
        """The width of the widest line in cells."""
        self._total = sum(self._widths)
        self._wrapped: Wrapped | None = None

    @classmethod
    def of(cls, text: str) -> Lines:
        return cls([visible(line) for line in text.split("\n")])

    def wrapped(self, width: int) -> Wrapped:
        """Return all rows of `width` cells. 1 MB of lines that need wrapping takes 10 ms."""
        if self._wrapped is None or self._wrapped.width != width:
            long = [] if self.widest <= width else [line for line, cells in enumerate(self._widths) if cells > width]
            ends = [list(row_ends(self.lines[line], self._cells.get(line), width)) for line in long]
            rows_before = accumulate((len(line_ends) - 1 for line_ends in ends), initial=0)
            first_rows = [line + rows for line, rows in zip(long, rows_before, strict=False)]
            self._wrapped = Wrapped(width, self.lines, long, ends, first_rows)
        return self._wrapped

    def height(self, width: int) -> int:
        """Return the number of rows of `width` cells."""
        if self.widest <= width:
            return len(self.lines)
        if self._total > LONG_TEXT_CHARACTERS or (self._wrapped is not None and self._wrapped.width == width):
            return len(self.wrapped(width))
        return sum(len(list(row_ends(line, self._cells.get(number), width))) for number, line in enumerate(self.lines))

    def first_rows(self, width: int, limit: int) -> list[str]:
        """Return the first `limit` rows of `width` cells, without computing the rest."""
        return list(islice(self._rows(width), limit))

    def count(self, width: int, limit: int) -> int:
        """Return the number of rows of `width` cells, at most `limit`."""
        if self.widest <= width or len(self.lines) >= limit:
            return min(len(self.lines), limit)
        return sum(1 for _ in islice(self._rows(width), limit))

    def _rows(self, width: int) -> Iterator[str]:
        for number, line in enumerate(self.lines):
            if self._widths[number] <= width:
                yield line
            else:
                yield from wrap(line, width, self._cells.get(number))


@dataclass(frozen=True, slots=True)
class Wrapped:
    """The rows of wrapped lines.

    `long` lists the lines of several rows; `ends` holds where their rows end, and `first` which rows they begin at.
    Any other line is one row.
    """

    width: int
    lines: Sequence[str]
    long: Sequence[int]
    ends: Sequence[Sequence[int]]
    first: Sequence[int]

    def __len__(self) -> int:
        return len(self.lines) if not self.long else self.row_of(len(self.lines))

    def __getitem__(self, row: int) -> str:
        index = bisect_right(self.first, row) - 1
        if index < 0:
            return self.lines[row]
        ends, offset = self.ends[index], row - self.first[index]
        if offset >= len(ends):
            return self.lines[self.long[index] + 1 + offset - len(ends)]
        return self.lines[self.long[index]][ends[offset - 1] if offset else 0 : ends[offset]]

    def row_of(self, line: int) -> int:
        """Return the row at which a line begins."""
        index = bisect_right(self.long, line - 1) - 1
        return line if index < 0 else self.first[index] + len(self.ends[index]) + line - self.long[index] - 1


def wrap(line: str, width: int, cells: Sequence[int] | None = None) -> Iterator[str]:
    """Yield a visible line in rows of at most `width` cells, broken at blanks where possible; no character is lost.

    A blank at the end of a row may exceed the width by one cell. A character wider than a row gets its own row.
    """
    start = 0
    for end in row_ends(line, cells, width):
        yield line[start:end]
        start = end


def row_ends(line: str, cells: Sequence[int] | None, width: int) -> Iterator[int]:
    """Yield the position at which each row ends. `cells` is the result of `cells_of`, None for a line of ASCII."""
    start, length = 0, len(line)
    while True:
        end = start + width if cells is None else fitting(cells, start, width)
        if end < length and line[end] == " ":
            end += 1
        elif end < length:
            blank = line.rfind(" ", max(start + 1, end - MAX_WORD_CELLS), end)
            end = end if blank < 0 else blank + 1
        if end >= length:
            yield length
            return
        yield end
        start = end


def fitting(cells: Sequence[int], start: int, width: int) -> int:
    """Return where a row that begins at `start` ends: after one character at least, and after its combining marks."""
    end = max(start + 1, bisect_right(cells, cells[start] + width, start + 1) - 1)
    while end < len(cells) - 1 and cells[end + 1] == cells[end]:
        end += 1
    return end


def cells_of(line: str) -> Sequence[int]:
    """Return the number of cells before each character, and the total at the end."""
    return array("I", accumulate(cell_widths(line), initial=0))

"""Tokens flowing over lines: the label of each, its width, and where the lines begin."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence, Set
from copy import copy
from itertools import accumulate

from dumptui.core.text import cell_width, visible

EMPTY_TOKEN = "◦"
MISSING_SIGN = "∅"
SPECIAL_QUOTES = "«»"  # distinguish <|im_end|> from the same text spelled out


def wrap(offsets: Sequence[int], breaks: Sequence[int], columns: int) -> list[int]:
    """Return the first token of each line, with the number of tokens as an end mark: line i is `starts[i]:starts[i +
    1]`.

    A line ends after a token in `breaks`, or before the token that would make it wider than `columns`. `offsets` are
    the cells before each token, and the total as the last entry.
    """
    starts: list[int] = []
    start, count = 0, len(offsets) - 1
    ends = iter([*breaks, count])
    forced = next(ends)
    while start < count:
        starts.append(start)
        fits = bisect_right(offsets, offsets[start] + columns, start + 2) - 1
        start = min(fits, forced + 1)
        while forced < start:
            forced = next(ends)
    return [*starts, count]


class _Labels(dict[str, str]):
    """The labels of token texts, made once per text: many of 100,000 tokens have the same text."""

    def __missing__(self, text: str) -> str:
        self[text] = visible(text) or EMPTY_TOKEN
        return self[text]


class Flow:
    """The lines of some tokens. Making one for 100,000 tokens takes 20 ms: do it before they are shown.

    Args:
        texts: the raw text of each token.
        special: indices of the tokens shown in quotes.
        borders: a glyph of one cell before a token, by index.
        folds: runs of one token that are shown once with their count; the end of each by its first index.
    """

    def __init__(
        self,
        texts: Sequence[str] = (),
        special: Set[int] = frozenset(),
        borders: Mapping[int, str] | None = None,
        folds: Mapping[int, int] | None = None,
    ) -> None:
        self._texts = texts
        self._shown = shown = _Labels()
        self._widths = [
            len(text) if text.isascii() and text.isprintable() and text else cell_width(shown[text]) for text in texts
        ]
        self._breaks = [index for index, text in enumerate(texts) if "\n" in text]
        self.special = special
        self.borders = dict(borders or {})
        self.missing: Set[int] = frozenset()
        self._folds = dict(sorted((folds or {}).items()))
        self._folded = list(self._folds)
        for index in special:
            self._widths[index] += 2
        for first, end in self._folds.items():
            self._widths[first:end] = [cell_width(self.label(first)), *[0] * (end - first - 1)]
        for index in self.borders:
            self._widths[index] += 1
        self._offsets = [0, *accumulate(self._widths)]
        self._columns = -1
        self.starts = [0]
        """The first token of each line, with the number of tokens as an end mark."""

    def __len__(self) -> int:
        return len(self._texts)

    def copy(self) -> Flow:
        """Return a flow of the same tokens whose lines and missing signs change without changing this one."""
        flow = copy(self)
        flow._widths = [*self._widths]
        return flow

    @property
    def lines(self) -> int:
        return len(self.starts) - 1

    def mark_missing(self, indices: Set[int]) -> None:
        """Show the missing sign before these tokens, and before no others."""
        if indices != self.missing:
            for index in indices ^ self.missing:
                self._widths[index] += 1 if index in indices else -1
            self.missing = indices
            self._offsets = [0, *accumulate(self._widths)]
            self._columns = -1

    def label(self, index: int) -> str:
        label = self._shown[self._texts[index]]
        quoted = label.join(SPECIAL_QUOTES) if index in self.special else label
        return f"{MISSING_SIGN * (index in self.missing)}{quoted}{self._count(index)}"

    def _count(self, index: int) -> str:
        return f"×{self._folds[index] - index:,}" if index in self._folds else ""

    def holder(self, index: int) -> int:
        """The token that stands for this one: the first of a folded run, else itself."""
        at = bisect_right(self._folded, index) - 1
        return self._folded[at] if at >= 0 and index < self._folds[self._folded[at]] else index

    def after(self, index: int) -> int:
        """The next token that stands for itself."""
        return self._folds.get(self.holder(index), index + 1)

    def wrap(self, columns: int) -> None:
        if columns != self._columns:
            self._columns = columns
            self.starts = wrap(self._offsets, self._breaks, max(1, columns))

    def line_of(self, index: int) -> int:
        return bisect_right(self.starts, index, 0, self.lines) - 1

    def bounds(self, line: int) -> tuple[int, int]:
        """Return the range of tokens [first, end) of a line."""
        return self.starts[line], self.starts[line + 1]

    def cell(self, index: int) -> int:
        """Return the cell at which a token begins in its line."""
        return self._offsets[index] - self._offsets[self.starts[self.line_of(index)]]

    def token_at(self, line: int, x: int) -> int:
        """Return the token of a line that covers cell `x`, or the last token of the line."""
        first, end = self.bounds(line)
        return bisect_right(self._offsets, self._offsets[first] + x, first, end) - 1

"""Tokens flowing over lines: what stands for each, how wide it is, and where lines begin."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence, Set
from itertools import accumulate

from dumptui.core.text import cell_width, visible

EMPTY_TOKEN = "◦"
MISSING_SIGN = "∅"
SPECIAL_QUOTES = "«»"  # what tells <|im_end|> from the same text spelled out


def wrap(widths: Sequence[int], breaks: Sequence[bool], columns: int) -> list[int]:
    """The first token of each line, and their number as an end mark: line i is `starts[i]:starts[i + 1]`.

    A line ends after a token of `breaks`, or before the token that would make it wider than `columns`.
    """
    starts: list[int] = []
    used = columns
    for index, width in enumerate(widths):
        if used + width > columns or not used:
            starts.append(index)
            used = 0
        used = columns if breaks[index] else used + width
    return [*starts, len(widths)]


class Flow:
    """The lines of some tokens.

    Args:
        texts: raw, one a token.
        missing, special: indices of tokens to be told apart by a sign.
        borders: a glyph of one cell to put before a token, by index.
    """

    def __init__(
        self,
        texts: Sequence[str] = (),
        missing: Set[int] = frozenset(),
        special: Set[int] = frozenset(),
        borders: Mapping[int, str] | None = None,
    ) -> None:
        faces = {text: visible(text) or EMPTY_TOKEN for text in set(texts)}
        self.labels = [faces[text] for text in texts]
        for index in special:
            self.labels[index] = self.labels[index].join(SPECIAL_QUOTES)
        for index in missing:
            self.labels[index] = MISSING_SIGN + self.labels[index]
        self.borders = dict(borders or {})
        widths = {label: cell_width(label) for label in set(self.labels)}
        self._widths = [widths[label] for label in self.labels]
        for index in self.borders:
            self._widths[index] += 1
        self._breaks = ["\n" in text for text in texts]
        self._offsets = [0, *accumulate(self._widths)]
        self.starts = [0]
        """The first token of each line, and their number as an end mark."""

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def lines(self) -> int:
        return len(self.starts) - 1

    def wrap(self, columns: int) -> None:
        self.starts = wrap(self._widths, self._breaks, max(1, columns))

    def line_of(self, index: int) -> int:
        return bisect_right(self.starts, index, 0, self.lines) - 1

    def bounds(self, line: int) -> tuple[int, int]:
        """The tokens [first, end) of a line."""
        return self.starts[line], self.starts[line + 1]

    def cell(self, index: int) -> int:
        """The cell at which a token begins in its line."""
        return self._offsets[index] - self._offsets[self.starts[self.line_of(index)]]

    def token_at(self, line: int, x: int) -> int:
        """The token of a line that covers cell `x`, or its last."""
        first, end = self.bounds(line)
        return bisect_right(self._offsets, self._offsets[first] + x, first, end) - 1

"""The difference of two sequences of integers, found in bounded time."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from difflib import Match as Block
from difflib import SequenceMatcher
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from dumptui.core.arrays import Ints

Pause: TypeAlias = Callable[[], object]
ANCHOR_ITEMS = 6  # consecutive items: a passage that occurs once on each side is taken as the same one
REACH_ITEMS = 4096  # items that are compared after an anchor at a time
_HASH_WEIGHTS = np.array([pow(1_000_003, power, 1 << 61) for power in range(ANCHOR_ITEMS)], np.uint64)

COMPARISON_BUDGET = 300_000
"""Pairs of equal items that difflib may compare, a second at most: its time grows with them, not with the length."""


class Match(NamedTuple):
    """An equal part: left[left:left + size] == right[right:right + size]."""

    left: int
    right: int
    size: int


class Stretch(NamedTuple):
    """A part of each sequence; the two are equal if `same`, else they have nothing in common."""

    same: bool
    left: slice
    right: slice


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of two sequences: stretches that cover both in order.

    `complete` is False where a stretch may hide more common items, because a full search would have taken too long.
    """

    stretches: tuple[Stretch, ...]
    complete: bool

    @property
    def first_difference(self) -> tuple[int, int] | None:
        """The positions, left and right, of the first items that differ; None if the sequences are equal.

        A position is the length of a sequence that ends there.
        """
        first = next((stretch for stretch in self.stretches if not stretch.same), None)
        return None if first is None else (first.left.start, first.right.start)

    @property
    def shared(self) -> int:
        """The number of items in equal stretches."""
        return sum(stretch.left.stop - stretch.left.start for stretch in self.stretches if stretch.same)


def difference(left: Ints, right: Ints, pause: Pause = lambda: None) -> Difference:
    """Compare two sequences. `pause` is called some ten times a second; an exception that it raises ends the search."""
    search = _Search(left, right, pause)
    matches = list(merged(search.matches(0, len(left), 0, len(right))))
    return Difference(tuple(stretches(matches, len(left), len(right))), search.complete)


class _Matcher(SequenceMatcher[int]):
    def __init__(self, left: Ints, right: Ints, pause: Pause) -> None:
        super().__init__(None, left.tolist(), right.tolist(), autojunk=False)
        self._pause = pause

    def find_longest_match(self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None) -> Block:
        self._pause()
        return super().find_longest_match(alo, ahi, blo, bhi)


class _Search:
    """A search that tries cheap methods first: equal ends, then difflib.

    Where difflib would take too long, the search anchors on passages that occur once on each side, and uses difflib
    between them until its budget is spent.
    """

    def __init__(self, left: Ints, right: Ints, pause: Pause) -> None:
        self._left, self._right, self._pause = left, right, pause
        self._budget = COMPARISON_BUDGET
        self.complete = True

    def matches(self, a: int, b: int, c: int, d: int, *, by_anchors: bool = True) -> Iterator[Match]:
        """Yield the matches of left[a:b] and right[c:d], in order."""
        head = common_prefix(self._left[a:b], self._right[c:d])
        tail = common_prefix(self._left[a + head : b][::-1], self._right[c + head : d][::-1])
        yield Match(a, c, head)
        yield from self._inside(a + head, b - tail, c + head, d - tail, by_anchors)
        yield Match(b - tail, d - tail, tail)

    def _inside(self, a: int, b: int, c: int, d: int, by_anchors: bool) -> Iterator[Match]:
        left, right = self._left[a:b], self._right[c:d]
        cost = equal_pairs(left, right)
        if cost <= self._budget:
            self._budget -= cost
            blocks = _Matcher(left, right, self._pause).get_matching_blocks()
            yield from (Match(a + block.a, c + block.b, block.size) for block in blocks)
        elif by_anchors:
            yield from self._between_anchors(a, b, c, d)
        else:
            self.complete = False

    def _between_anchors(self, a: int, b: int, c: int, d: int) -> Iterator[Match]:
        left_end, right_end = a, c
        for left_offset, right_offset in anchors(self._left[a:b], self._right[c:d]):
            left_start, right_start = a + left_offset, c + right_offset
            if left_start < left_end or right_start < right_end:  # the previous passage reaches past this anchor
                continue
            yield from self.matches(left_end, left_start, right_end, right_start, by_anchors=False)
            size = common_prefix(
                self._left[left_start : min(b, left_start + REACH_ITEMS)],
                self._right[right_start : min(d, right_start + REACH_ITEMS)],
            )
            yield Match(left_start, right_start, size)
            left_end, right_end = left_start + size, right_start + size
        yield from self.matches(left_end, b, right_end, d, by_anchors=False)


def common_prefix(left: Ints, right: Ints) -> int:
    """Return the number of leading items that are equal."""
    size = min(len(left), len(right))
    differing = np.flatnonzero(left[:size] != right[:size])
    return int(differing[0]) if len(differing) else size


def equal_pairs(left: Ints, right: Ints) -> int:
    """Return the number of pairs, an item of each side, that are equal."""
    left_items, left_counts = np.unique(left, return_counts=True)
    right_items, right_counts = np.unique(right, return_counts=True)
    _, left_rows, right_rows = np.intersect1d(left_items, right_items, assume_unique=True, return_indices=True)
    return int(np.dot(left_counts[left_rows], right_counts[right_rows]))


def anchors(left: Ints, right: Ints) -> list[tuple[int, int]]:
    """Return the positions, left and right, of passages that occur once on each side and in the same order."""
    left_hashes, left_starts = unique(passage_hashes(left))
    right_hashes, right_starts = unique(passage_hashes(right))
    _, left_rows, right_rows = np.intersect1d(left_hashes, right_hashes, assume_unique=True, return_indices=True)
    pairs = sorted(zip(left_starts[left_rows].tolist(), right_starts[right_rows].tolist(), strict=True))
    same = [(i, j) for i, j in pairs if np.array_equal(left[i : i + ANCHOR_ITEMS], right[j : j + ANCHOR_ITEMS])]
    return longest_ascending(same)


def passage_hashes(items: Ints) -> npt.NDArray[np.uint64]:
    """Return a hash of the ANCHOR items from each position on."""
    if len(items) < ANCHOR_ITEMS:
        return np.empty(0, np.uint64)
    windows = np.lib.stride_tricks.sliding_window_view(items.astype(np.uint64), ANCHOR_ITEMS)
    return np.asarray((windows * _HASH_WEIGHTS).sum(axis=1, dtype=np.uint64))


def unique(values: npt.NDArray[np.uint64]) -> tuple[npt.NDArray[np.uint64], Ints]:
    hashes, first, counts = np.unique(values, return_index=True, return_counts=True)
    return hashes[counts == 1], first[counts == 1]


def longest_ascending(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest subsequence of `pairs`, sorted by the first number, in which the second ascends too."""
    ends: list[int] = []
    owners: list[int] = []  # the pair that each of `ends` belongs to
    before: list[int | None] = []
    for number, (_, value) in enumerate(pairs):
        index = bisect_left(ends, value)
        before.append(owners[index - 1] if index else None)
        ends[index : index + 1], owners[index : index + 1] = [value], [number]
    chosen: list[tuple[int, int]] = []
    last = owners[-1] if owners else None
    while last is not None:
        chosen.append(pairs[last])
        last = before[last]
    return chosen[::-1]


def merged(matches: Iterable[Match]) -> Iterator[Match]:
    """Yield the matches, adjacent ones merged, empty ones left out."""
    last = Match(0, 0, 0)
    for match in matches:
        if (last.left + last.size, last.right + last.size) == (match.left, match.right):
            last = Match(last.left, last.right, last.size + match.size)
        elif match.size:
            if last.size:
                yield last
            last = match
    if last.size:
        yield last


def stretches(matches: Iterable[Match], left_length: int, right_length: int) -> Iterator[Stretch]:
    left_end, right_end = 0, 0
    for match in [*matches, Match(left_length, right_length, 0)]:
        if left_end < match.left or right_end < match.right:
            yield Stretch(False, slice(left_end, match.left), slice(right_end, match.right))
        left_end, right_end = match.left + match.size, match.right + match.size
        if match.size:
            yield Stretch(True, slice(match.left, left_end), slice(match.right, right_end))

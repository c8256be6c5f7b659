"""What two sequences have in common, in bounded time."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from difflib import Match as Block
from difflib import SequenceMatcher
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from dumptui.core.context_parallel import Ints

Pause: TypeAlias = Callable[[], object]
ANCHOR = 6  # items in a row that each side has once are the same passage in both
REACH = 4096  # items that a passage is followed along at a time
_WEIGHTS = np.array([pow(1_000_003, at, 1 << 61) for at in range(ANCHOR)], np.uint64)

BUDGET = 300_000
"""Pairs of equal items to go through: difflib's time grows with them, a second at most, and not with the length."""


class Match(NamedTuple):
    """left[left:left + size] is right[right:right + size]."""

    left: int
    right: int
    size: int


class Stretch(NamedTuple):
    """A part of the left and one of the right sequence, which are the same or have nothing in common."""

    same: bool
    left: slice
    right: slice


@dataclass(frozen=True, slots=True)
class Difference:
    """Stretches that cover both sequences in order.

    `whole` is False where stretches may have more in common: to look for it would have taken too long.
    """

    stretches: tuple[Stretch, ...]
    whole: bool

    @property
    def parting(self) -> tuple[int, int] | None:
        """Where the first items stand that differ, past the end for a sequence that ends there; None of equal ones."""
        first = next((one for one in self.stretches if not one.same), None)
        return None if first is None else (first.left.start, first.right.start)

    @property
    def shared(self) -> int:
        """How many items both have."""
        return sum(one.left.stop - one.left.start for one in self.stretches if one.same)


def difference(left: Ints, right: Ints, pause: Pause = lambda: None) -> Difference:
    """`pause` is called some ten times a second; what it raises ends the search."""
    search = _Search(left, right, pause)
    matches = list(joined(search.matches(0, len(left), 0, len(right))))
    return Difference(tuple(stretches(matches, len(left), len(right))), search.whole)


class _Matcher(SequenceMatcher[int]):
    def __init__(self, left: Ints, right: Ints, pause: Pause) -> None:
        super().__init__(None, left.tolist(), right.tolist(), autojunk=False)
        self._pause = pause

    def find_longest_match(self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None) -> Block:
        self._pause()
        return super().find_longest_match(alo, ahi, blo, bhi)


class _Search:
    """Goes for what is cheap first: equal ends, then difflib, and where that would take too long passages that stand
    once on each side, with difflib between them for as long as the budget lasts.
    """

    def __init__(self, left: Ints, right: Ints, pause: Pause) -> None:
        self._left, self._right, self._pause = left, right, pause
        self._budget = BUDGET
        self.whole = True

    def matches(self, a: int, b: int, c: int, d: int, *, by_anchors: bool = True) -> Iterator[Match]:
        """The matches of left[a:b] and right[c:d], in order."""
        head = alike(self._left[a:b], self._right[c:d])
        tail = alike(self._left[a + head : b][::-1], self._right[c + head : d][::-1])
        yield Match(a, c, head)
        yield from self._inside(a + head, b - tail, c + head, d - tail, by_anchors)
        yield Match(b - tail, d - tail, tail)

    def _inside(self, a: int, b: int, c: int, d: int, by_anchors: bool) -> Iterator[Match]:
        left, right = self._left[a:b], self._right[c:d]
        cost = equal_pairs(left, right)
        if cost <= self._budget:
            self._budget -= cost
            found = _Matcher(left, right, self._pause).get_matching_blocks()
            yield from (Match(a + one.a, c + one.b, one.size) for one in found)
        elif by_anchors:
            yield from self._between_anchors(a, b, c, d)
        else:
            self.whole = False

    def _between_anchors(self, a: int, b: int, c: int, d: int) -> Iterator[Match]:
        at, to = a, c
        for left, right in anchors(self._left[a:b], self._right[c:d]):
            start, place = a + left, c + right
            if start < at or place < to:  # the passage before went further than this anchor
                continue
            yield from self.matches(at, start, to, place, by_anchors=False)
            size = alike(self._left[start : min(b, start + REACH)], self._right[place : min(d, place + REACH)])
            yield Match(start, place, size)
            at, to = start + size, place + size
        yield from self.matches(at, b, to, d, by_anchors=False)


def alike(left: Ints, right: Ints) -> int:
    """How many items are the same, from the start on."""
    size = min(len(left), len(right))
    other = np.flatnonzero(left[:size] != right[:size])
    return int(other[0]) if len(other) else size


def equal_pairs(left: Ints, right: Ints) -> int:
    """How many pairs of equal items there are between both."""
    items, counts = np.unique(left, return_counts=True)
    others, other_counts = np.unique(right, return_counts=True)
    _, mine, theirs = np.intersect1d(items, others, assume_unique=True, return_indices=True)
    return int(np.dot(counts[mine], other_counts[theirs]))


def anchors(left: Ints, right: Ints) -> list[tuple[int, int]]:
    """Where passages begin that stand once on each side, as many as are in the same order on both."""
    (names, mine), (others, theirs) = once(passages(left)), once(passages(right))
    _, at, to = np.intersect1d(names, others, assume_unique=True, return_indices=True)
    pairs = sorted(zip(mine[at].tolist(), theirs[to].tolist(), strict=True))
    same = [(i, j) for i, j in pairs if np.array_equal(left[i : i + ANCHOR], right[j : j + ANCHOR])]
    return rising(same)


def passages(items: Ints) -> npt.NDArray[np.uint64]:
    """A number for the ANCHOR items from each place on; equal for equal passages, hardly ever for others."""
    if len(items) < ANCHOR:
        return np.empty(0, np.uint64)
    windows = np.lib.stride_tricks.sliding_window_view(items.astype(np.uint64), ANCHOR)
    return np.asarray((windows * _WEIGHTS).sum(axis=1, dtype=np.uint64))


def once(names: npt.NDArray[np.uint64]) -> tuple[npt.NDArray[np.uint64], Ints]:
    found, first, counts = np.unique(names, return_index=True, return_counts=True)
    return found[counts == 1], first[counts == 1]


def rising(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest choice of `pairs`, which ascend in the first number, that ascends in the second as well."""
    ends: list[int] = []
    at: list[int] = []  # the pair that each of `ends` belongs to
    before: list[int | None] = []
    for number, (_, value) in enumerate(pairs):
        place = bisect_left(ends, value)
        before.append(at[place - 1] if place else None)
        ends[place : place + 1], at[place : place + 1] = [value], [number]
    chosen: list[tuple[int, int]] = []
    last = at[-1] if at else None
    while last is not None:
        chosen.append(pairs[last])
        last = before[last]
    return chosen[::-1]


def joined(matches: Iterable[Match]) -> Iterator[Match]:
    """Matches that go on from one another as one, empty ones left out."""
    last = Match(0, 0, 0)
    for one in matches:
        if (last.left + last.size, last.right + last.size) == (one.left, one.right):
            last = Match(last.left, last.right, last.size + one.size)
        elif one.size:
            if last.size:
                yield last
            last = one
    if last.size:
        yield last


def stretches(matches: Iterable[Match], left_length: int, right_length: int) -> Iterator[Stretch]:
    at, to = 0, 0
    for one in [*matches, Match(left_length, right_length, 0)]:
        if at < one.left or to < one.right:
            yield Stretch(False, slice(at, one.left), slice(to, one.right))
        at, to = one.left + one.size, one.right + one.size
        if one.size:
            yield Stretch(True, slice(one.left, at), slice(one.right, to))

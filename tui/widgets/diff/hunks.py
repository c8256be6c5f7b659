"""Two texts cut into rows, side by side or one below the other; long equal passages are folded."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from dumptui.core.diff.sequences import Stretch
from dumptui.core.diff.texts import Comparison, Side

CONTEXT_ITEMS = 8  # equal items shown before and after a difference
MIN_COMMON_ITEMS = 4  # equal items from which a passage of the stacked form is shown once, without a sign
EMPTY_SLICE = slice(0, 0)


class Row(NamedTuple):
    """A line: items of the left text, the right text or both; or the number of equal items folded here."""

    left: slice = EMPTY_SLICE
    right: slice = EMPTY_SLICE
    folded: int = 0


class Hunk(NamedTuple):
    """Differences with their context; or, if `folded`, a passage of equal items."""

    left: slice
    right: slice
    folded: bool


def hunks(stretches: Sequence[Stretch]) -> Iterator[Hunk]:
    """Yield the hunks of a comparison: equal passages are folded, except for their ends next to a difference."""
    left = right = 0  # where the next hunk begins on both sides
    for number, stretch in enumerate(stretches):
        if not stretch.same:
            continue
        head = CONTEXT_ITEMS if number else 0
        tail = CONTEXT_ITEMS if number < len(stretches) - 1 else 0
        start, stop = stretch.left.start + head, stretch.left.stop - tail
        if stop - start <= CONTEXT_ITEMS:
            continue
        shift = stretch.right.start - stretch.left.start
        if start > left or start + shift > right:
            yield Hunk(slice(left, start), slice(right, start + shift), False)
        yield Hunk(slice(start, stop), slice(start + shift, stop + shift), True)
        left, right = stop, stop + shift
    if stretches and (left < stretches[-1].left.stop or right < stretches[-1].right.stop):
        yield Hunk(slice(left, stretches[-1].left.stop), slice(right, stretches[-1].right.stop), False)


def wrap(side: Side, part: slice, width: int) -> Iterator[slice]:
    """Yield lines of at most `width` cells; a wider item has a line of its own."""
    first = part.start
    while first < part.stop:
        before = side.ends[first - 1] if first else 0
        end = max(first + 1, bisect_right(side.ends, before + width, first, part.stop))
        line_end = bisect_right(side.breaks, first)
        if line_end < len(side.breaks):
            end = min(end, side.breaks[line_end])
        yield slice(first, end)
        first = end


def lay_out(shown: Comparison, width: int, stacked: bool) -> Iterator[Row]:
    """Yield the rows, with `width` cells per text. In the stacked form an equal row has items on both sides."""
    stretches = shown.difference.stretches
    for hunk in hunks(stretches):
        if hunk.folded:
            yield Row(hunk.left, hunk.right, hunk.left.stop - hunk.left.start)
        elif stacked:
            for passage in passages(stretches, hunk):
                left, right = wrap(shown.left, passage.left, width), wrap(shown.right, passage.right, width)
                if passage.same:
                    shift = passage.right.start - passage.left.start
                    yield from (Row(part, slice(part.start + shift, part.stop + shift)) for part in left)
                else:
                    yield from (Row(left=part) for part in left)
                    yield from (Row(right=part) for part in right)
        else:
            left, right = wrap(shown.left, hunk.left, width), wrap(shown.right, hunk.right, width)
            yield from (Row(a, b) for a, b in zip_longest(left, right, fillvalue=EMPTY_SLICE))


def passages(stretches: Sequence[Stretch], hunk: Hunk) -> Iterator[Stretch]:
    """Yield a hunk cut at equal passages; shorter ones than PASSAGE would only tear the text and stay inside."""
    left, right = hunk.left.start, hunk.right.start
    first = bisect_right(stretches, left, key=lambda stretch: stretch.left.stop)
    for stretch in stretches[first:]:
        if stretch.left.start >= hunk.left.stop:
            break
        start, stop = max(stretch.left.start, left), min(stretch.left.stop, hunk.left.stop)
        if not stretch.same or stop - start < MIN_COMMON_ITEMS:
            continue
        shift = stretch.right.start - stretch.left.start
        if left < start or right < start + shift:
            yield Stretch(False, slice(left, start), slice(right, start + shift))
        yield Stretch(True, slice(start, stop), slice(start + shift, stop + shift))
        left, right = stop, stop + shift
    if left < hunk.left.stop or right < hunk.right.stop:
        yield Stretch(False, slice(left, hunk.left.stop), slice(right, hunk.right.stop))

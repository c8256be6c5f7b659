"""Two texts cut to rows, beside each other or one under the other; what both have is folded."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from dumptui.core.difference import Stretch
from dumptui.core.pairs import Comparison, Side

CONTEXT = 8  # items that both have, shown before and after a difference
PASSAGE = 4  # items that both have, from which one under the other they are shown once, without a sign
NOTHING = slice(0, 0)


class Row(NamedTuple):
    """A line: items of the left text, of the right one, or of both; or how many that both have are folded here."""

    left: slice = NOTHING
    right: slice = NOTHING
    folded: int = 0


class Hunk(NamedTuple):
    """Differences and what is around them; or, with `folded`, a passage that both have."""

    left: slice
    right: slice
    folded: bool


def hunks(stretches: Sequence[Stretch]) -> Iterator[Hunk]:
    """Passages that both have are folded but for their ends, where those are next to a difference."""
    at = to = 0  # where the part not yet told of begins on both sides
    for number, one in enumerate(stretches):
        if not one.same:
            continue
        head = CONTEXT if number else 0
        tail = CONTEXT if number < len(stretches) - 1 else 0
        start, stop = one.left.start + head, one.left.stop - tail
        if stop - start <= CONTEXT:
            continue
        shift = one.right.start - one.left.start
        if start > at or start + shift > to:
            yield Hunk(slice(at, start), slice(to, start + shift), False)
        yield Hunk(slice(start, stop), slice(start + shift, stop + shift), True)
        at, to = stop, stop + shift
    if stretches and (at < stretches[-1].left.stop or to < stretches[-1].right.stop):
        yield Hunk(slice(at, stretches[-1].left.stop), slice(to, stretches[-1].right.stop), False)


def wrap(side: Side, part: slice, width: int) -> Iterator[slice]:
    """Lines of at most `width` cells; a text wider than that has one of its own."""
    at = part.start
    while at < part.stop:
        before = side.ends[at - 1] if at else 0
        end = max(at + 1, bisect_right(side.ends, before + width, at, part.stop))
        line_end = bisect_right(side.breaks, at)
        if line_end < len(side.breaks):
            end = min(end, side.breaks[line_end])
        yield slice(at, end)
        at = end


def lay_out(shown: Comparison, width: int, stacked: bool) -> Iterator[Row]:
    """The rows, `width` cells for a text. One under the other, what both have is a row with the same on both sides."""
    stretches = shown.difference.stretches
    for hunk in hunks(stretches):
        if hunk.folded:
            yield Row(hunk.left, hunk.right, hunk.left.stop - hunk.left.start)
        elif stacked:
            for one in passages(stretches, hunk):
                left, right = wrap(shown.left, one.left, width), wrap(shown.right, one.right, width)
                if one.same:
                    shift = one.right.start - one.left.start
                    yield from (Row(part, slice(part.start + shift, part.stop + shift)) for part in left)
                else:
                    yield from (Row(left=part) for part in left)
                    yield from (Row(right=part) for part in right)
        else:
            left, right = wrap(shown.left, hunk.left, width), wrap(shown.right, hunk.right, width)
            yield from (Row(a, b) for a, b in zip_longest(left, right, fillvalue=NOTHING))


def passages(stretches: Sequence[Stretch], hunk: Hunk) -> Iterator[Stretch]:
    """A hunk cut at what both have, but for bits of it so short that they would only tear the text."""
    at, to = hunk.left.start, hunk.right.start
    first = bisect_right(stretches, at, key=lambda one: one.left.stop)
    for one in stretches[first:]:
        if one.left.start >= hunk.left.stop:
            break
        start, stop = max(one.left.start, at), min(one.left.stop, hunk.left.stop)
        if not one.same or stop - start < PASSAGE:
            continue
        shift = one.right.start - one.left.start
        if at < start or to < start + shift:
            yield Stretch(False, slice(at, start), slice(to, start + shift))
        yield Stretch(True, slice(start, stop), slice(start + shift, stop + shift))
        at, to = stop, stop + shift
    if at < hunk.left.stop or to < hunk.right.stop:
        yield Stretch(False, slice(at, hunk.left.stop), slice(to, hunk.right.stop))

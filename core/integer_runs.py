"""Lists of integers of several sizes in a pickle: token ids, which are an opcode and 1, 2 or 4 bytes each.

Where an item starts is told only by the one before, so a batch can't be cut up at once. But batches can be walked
side by side: one step of numpy takes one item of each of a thousand batches, in a quarter of the time that making
Python's integers takes, and in an eighth of the memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from dumptui.core.context_parallel import Array, Ints

BATCH = 1000  # items that pickle appends at once, in C and in Python
_SIDE_BY_SIDE = 512  # batches: their items take 4 MB, and 25 ms
_LONGEST = 16 << 20  # bytes of one list, 3 million integers: what follows a longer one is not searched for its end
_MARK, _APPENDS = b"("[0], b"e"[0]
_WIDTHS = np.zeros(256, np.int64)
_WIDTHS[list(b"KMJ")] = 2, 3, 5
_BITS = np.zeros(256, np.int32)
_BITS[list(b"KMJ")] = 0xFF, 0xFFFF, -1
_NOTHING = np.empty(0, np.int32)


Buffer: TypeAlias = bytes | memoryview


class Integers(NamedTuple):
    values: Array
    """Empty where the list holds something else too."""
    end: int
    """Where the list ends in the stream, or the other thing is."""


class Batch(NamedTuple):
    values: Array
    end: int
    """Behind its last item."""


class Batches(dict[int, Batch]):
    """By the place of their mark; one that was not walked with the others is walked when it is asked for."""

    def __init__(self, data: Buffer) -> None:
        self.data = data
        self.stream = np.frombuffer(data, np.uint8)

    def walk(self, marks: Ints) -> None:
        self.update(zip(marks.tolist(), walk(self.data, self.stream, marks + 1), strict=True))

    def __missing__(self, mark: int) -> Batch:
        self.walk(np.array([mark]))
        return self[mark]


def read_integers(data: Buffer, spans: Iterable[tuple[int, int]]) -> Iterator[Integers]:
    """The lists whose first marks stand at the start of each span, which reaches at most to its end, most likely."""
    stream = np.frombuffer(data, np.uint8)
    waiting: list[Ints] = []
    for start, end in spans:
        waiting.append(batch_marks(stream, start, end))
        if sum(map(len, waiting)) >= _SIDE_BY_SIDE:
            yield from read_lists(data, waiting)
            waiting = []
    yield from read_lists(data, waiting)


def read_lists(data: Buffer, marks: Sequence[Ints]) -> Iterator[Integers]:
    if marks:
        batches = Batches(data)
        batches.walk(np.concatenate(marks))
        yield from (chain(batches, int(one[0])) for one in marks)


def batch_marks(stream: Array, start: int, end: int) -> Ints:
    """Where a batch of integers may begin: the first mark, and each one behind the end of another batch."""
    piece = stream[start : min(end, start + _LONGEST)]
    marks = np.flatnonzero(piece[1:-1] == _MARK) + 1
    between = (piece[marks - 1] == _APPENDS) & (_WIDTHS[piece[marks + 1]] > 0)
    return np.concatenate([[0], marks[between]]) + start


def walk(data: Buffer, stream: Array, starts: Ints) -> Iterator[Batch]:
    """What every one of the batches holds whose first item is at `starts`."""
    places = np.empty((BATCH + 1, len(starts)), np.int64)
    places[0] = starts
    for item in range(BATCH):
        np.add(places[item], _WIDTHS[stream.take(places[item], mode="clip")], out=places[item + 1])
    counts = (places[1:] != places[:-1]).sum(0)
    values = values_at(data, stream, np.ascontiguousarray(places[:-1].T))
    for row, count, end in zip(values, counts.tolist(), places[-1].tolist(), strict=True):
        yield Batch(row[:count], end)


def values_at(data: Buffer, stream: Array, places: Ints) -> Array:
    """The int32 that each opcode at `places` brings."""
    behind = np.ndarray((len(data) - 4,), "<i4", data, 1, (1,))
    bits = _BITS[stream.take(places, mode="clip")]
    found: Array = behind[np.minimum(places, len(behind) - 1)] & bits
    return found


def chain(batches: Batches, mark: int) -> Integers:
    """The batches that follow each other from a mark on, and a last number alone."""
    stream = batches.stream
    parts: list[Array] = []
    while mark < len(stream) and stream[mark] == _MARK:
        batch = batches[mark]
        if batch.end >= len(stream) or stream[batch.end] != _APPENDS or not len(batch.values):
            return Integers(_NOTHING, batch.end)
        parts.append(batch.values)
        mark = batch.end + 1
    last = bytes(stream[mark : mark + 6])
    width = int(_WIDTHS[last[0]]) if last else 0
    if width and last[width : width + 1] != b"a":
        return Integers(_NOTHING, mark)
    if width:
        parts.append(np.array([int.from_bytes(last[1:width], "little", signed=width == 5)], np.int32))
        mark += width + 1
    return Integers(np.concatenate(parts), mark)

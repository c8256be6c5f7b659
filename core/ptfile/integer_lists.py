"""Lists of integers of several sizes in a pickle: token ids, each an opcode and 1, 2 or 4 bytes.

The start of an item follows from the size of the previous one, so a batch can't be split at once. But batches can be
walked in parallel: one numpy step reads one item of each of 512 batches. That takes a quarter of the time of making
Python integers, and an eighth of the memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from dumptui.core.arrays import Array, Ints

APPENDED_ITEMS = 1000  # items that pickle appends at once, in C and in Python
_SIDE_BY_SIDE = 512  # batches in parallel: their items take 4 MB and 25 ms
_MAX_LIST_BYTES = 16 << 20  # bytes of one list, 3 million integers: batches beyond are not walked in parallel
_MARK, _APPENDS = b"("[0], b"e"[0]
_OPCODE_WIDTHS = np.zeros(256, np.int64)
_OPCODE_WIDTHS[list(b"KMJ")] = 2, 3, 5
_OPCODE_BITS = np.zeros(256, np.int32)
_OPCODE_BITS[list(b"KMJ")] = 0xFF, 0xFFFF, -1
_NO_INTEGERS = np.empty(0, np.int32)


Buffer: TypeAlias = bytes | memoryview


class Integers(NamedTuple):
    """The integers of a list and where it ends in the stream.

    If the list holds other items too, `values` is empty and `end` is the position of the first of those.
    """

    values: Array
    end: int


class Batch(NamedTuple):
    """The integers of a batch and the position after its last item."""

    values: Array
    end: int


class Batches(dict[int, Batch]):
    """Batches by the position of their mark; a batch that is not walked yet is walked on access."""

    def __init__(self, data: Buffer) -> None:
        self.data = data
        self.stream = np.frombuffer(data, np.uint8)

    def walk(self, marks: Ints) -> None:
        self.update(zip(marks.tolist(), walk(self.data, self.stream, marks + 1), strict=True))

    def __missing__(self, mark: int) -> Batch:
        self.walk(np.array([mark]))
        return self[mark]


def read_integers(data: Buffer, spans: Iterable[tuple[int, int]]) -> Iterator[Integers]:
    """Yield the list whose first mark is at the start of each span; its batches are searched up to the span's end."""
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
        yield from (chain(batches, int(list_marks[0])) for list_marks in marks)


def batch_marks(stream: Array, start: int, end: int) -> Ints:
    """Return the positions where a batch of integers may begin: the first mark, and each mark after a batch's end."""
    piece = stream[start : min(end, start + _MAX_LIST_BYTES)]
    marks = np.flatnonzero(piece[1:-1] == _MARK) + 1
    is_start = (piece[marks - 1] == _APPENDS) & (_OPCODE_WIDTHS[piece[marks + 1]] > 0)
    return np.concatenate([[0], marks[is_start]]) + start


def walk(data: Buffer, stream: Array, starts: Ints) -> Iterator[Batch]:
    """Yield the batch whose first item is at each of `starts`."""
    positions = np.empty((APPENDED_ITEMS + 1, len(starts)), np.int64)
    positions[0] = starts
    for item in range(APPENDED_ITEMS):
        np.add(positions[item], _OPCODE_WIDTHS[stream.take(positions[item], mode="clip")], out=positions[item + 1])
    counts = (positions[1:] != positions[:-1]).sum(0)
    values = values_at(data, stream, np.ascontiguousarray(positions[:-1].T))
    for row, count, end in zip(values, counts.tolist(), positions[-1].tolist(), strict=True):
        yield Batch(row[:count], end)


def values_at(data: Buffer, stream: Array, positions: Ints) -> Array:
    """Return the int32 after each opcode at `positions`."""
    following = np.ndarray((len(data) - 4,), "<i4", data, 1, (1,))
    bits = _OPCODE_BITS[stream.take(positions, mode="clip")]
    values: Array = following[np.minimum(positions, len(following) - 1)] & bits
    return values


def chain(batches: Batches, mark: int) -> Integers:
    """Return the integers of the consecutive batches from a mark on, and of a single last item."""
    stream = batches.stream
    parts: list[Array] = []
    while mark < len(stream) and stream[mark] == _MARK:
        batch = batches[mark]
        if batch.end >= len(stream) or stream[batch.end] != _APPENDS or not len(batch.values):
            return Integers(_NO_INTEGERS, batch.end)
        parts.append(batch.values)
        mark = batch.end + 1
    last = bytes(stream[mark : mark + 6])
    width = int(_OPCODE_WIDTHS[last[0]]) if last else 0
    if width and last[width : width + 1] != b"a":
        return Integers(_NO_INTEGERS, mark)
    if width:
        parts.append(np.array([int.from_bytes(last[1:width], "little", signed=width == 5)], np.int32))
        mark += width + 1
    return Integers(np.concatenate(parts), mark)

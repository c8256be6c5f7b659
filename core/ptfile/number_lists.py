"""Long lists of numbers in a pickle, decoded by numpy before the unpickler makes objects of them.

A rollout file consists mostly of such lists: the ids, log-probs and masks of 512 samples of 9,000 tokens become 400 MB
of objects. In the stream a float is `G` and 8 bytes, an integer `K`, `M` or `J` and 1, 2 or 4 bytes. A list appends its
items in batches of 1,000 between a mark and `e`; a single last item is followed by `a`. This module cuts such lists out
of the stream and puts a persistent id in the place of each.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeAlias

import numpy as np

from dumptui.core.arrays import Array
from dumptui.core.ptfile.integer_lists import APPENDED_ITEMS, Buffer, read_integers

REFERENCE_BYTES = 6  # bytes of a persistent id in place of a list
MIN_LIST_ITEMS = 64  # a shorter list costs less to unpickle than to cut
LIST_OPENING = re.compile(rb"\](q.|r....)(?=\([GKMJ])", re.DOTALL)  # empty list, its memo, and a mark before a number
_MARK, _APPENDS, _APPEND = b"("[0], b"e"[0], b"a"[0]
_ITEM_BYTES = {b"G"[0]: 9, b"K"[0]: 2}


OnCut: TypeAlias = Callable[[int], object]


class Cut(NamedTuple):
    """A pickle without its long lists of numbers; persistent id n stands for `arrays[n]`."""

    pickle: bytes
    arrays: list[Array]


class Run(NamedTuple):
    """A list in the stream, from its opcode to its end; `values` is empty where they could not be decoded."""

    start: int
    memo: bytes
    end: int
    values: Array


def cut_number_runs(data: Buffer, on_cut: OnCut | None = None) -> Cut:
    """Cut the long lists of numbers out of a pickle; short and mixed lists and lists of other items stay in it.

    Bytes of a text that look like such a list are cut too: if the load fails, load the uncut pickle. `on_cut` is called
    with the number of bytes cut so far.
    """
    pieces: list[Buffer] = []
    arrays: list[Array] = []
    done = run_end = 0
    for run in sorted(report_progress(find_runs(data), on_cut or (lambda done: None)), key=lambda run: run.start):
        if run.start < run_end:  # token ids of the previous list that look like a list: 1 step in 1,000 has one
            continue
        run_end = run.end
        if len(run.values) < MIN_LIST_ITEMS:
            continue
        pieces += [data[done : run.start], b"J", struct.pack("<i", len(arrays)), b"Q", run.memo]
        arrays.append(run.values)
        done = run.end
    pieces.append(data[done:])
    return Cut(b"".join(pieces), arrays)


def report_progress(runs: Iterable[Run], on_cut: OnCut) -> Iterator[Run]:
    """Yield the runs unchanged, and call `on_cut` with the number of bytes cut before each."""
    done = 0
    for run in runs:
        if len(run.values) >= MIN_LIST_ITEMS:
            done += run.end - run.start - len(run.memo) - REFERENCE_BYTES
        on_cut(done)
        yield run


def find_runs(data: Buffer) -> Iterator[Run]:
    """Yield first the lists whose items have one size, each when it is found; then the others, decoded together."""
    stream = np.frombuffer(data, np.uint8)
    mixed: list[re.Match[bytes]] = []
    limits: list[int] = []
    position = 0
    while (match := LIST_OPENING.search(data, position)) is not None:
        if len(limits) < len(mixed):
            limits.append(match.start())
        position = match.end()
        parts, end = read_batches(stream, position)
        if sum(map(len, parts)) >= MIN_LIST_ITEMS:
            yield Run(match.start(), match[1], end, decode(parts))
            position = end
        elif not parts and stream[position + 1] != b"G"[0]:
            mixed.append(match)
    limits += [len(data)] * (len(mixed) - len(limits))
    spans = [(match.end(), limit) for match, limit in zip(mixed, limits, strict=True)]
    for match, run in zip(mixed, read_integers(data, spans), strict=True):
        yield Run(match.start(), match[1], run.end, run.values)


def read_batches(stream: Array, position: int) -> tuple[list[Array], int]:
    """Return the raw items, (n, stride), of each batch of the list with its first mark at `position`, and its end."""
    kind = int(stream[position + 1])
    stride = _ITEM_BYTES.get(kind, 0)
    parts: list[Array] = []
    while stride and position < len(stream) and stream[position] == _MARK:
        items = stream[position + 1 : position + 1 + APPENDED_ITEMS * stride]
        items = items[: len(items) // stride * stride].reshape(-1, stride)
        count = len(items) if (items[:, 0] == kind).all() else int(np.argmax(items[:, 0] != kind))
        end = position + 1 + count * stride
        if not count or end >= len(stream) or stream[end] != _APPENDS:
            return [], position  # another list, or one that continues with other items
        parts.append(items[:count])
        position = end + 1
    single = stream[position : position + stride + 1]
    if len(single) == stride + 1 and single[0] == kind and single[-1] == _APPEND:
        parts.append(single[:-1].reshape(1, stride))
        position += stride + 1
    elif parts and len(single) and single[0] in b"GKMJ":
        return [], position  # a number of another size follows: the list is mixed
    return parts, position


def decode(parts: list[Array]) -> Array:
    """Return the numbers of raw items: uint8, or float32 where that loses nothing, else float64."""
    items = np.concatenate(parts)
    if items.shape[1] == 2:
        return items[:, 1].copy()
    wide = np.ndarray((len(items),), ">f8", items, 1, items.strides[:1]).astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        narrow = wide.astype(np.float32)
    # A comparison that treats NaN as equal takes five times as long.
    exact = np.array_equal(narrow, wide) or np.array_equal(narrow, wide, equal_nan=True)
    return narrow if exact else wide

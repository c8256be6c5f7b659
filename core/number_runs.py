"""Long lists of numbers in a pickle, decoded by numpy before the unpickler makes objects of them.

A rollout file is little else: of a step of 512 samples of 9,000 tokens, ids, log-probs and masks become 400 MB of
objects. In the stream a float is `G` and 8 bytes, an integer `K`, `M` or `J` and 1, 2 or 4; a list appends its items in
batches of 1,000 between a mark and `e`, a last one alone before `a`. Such a list is cut out of the stream, and a
persistent id put in its place.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeAlias

import numpy as np

from dumptui.core.context_parallel import Array
from dumptui.core.integer_runs import BATCH, Buffer, read_integers

REFERENCE = 6  # bytes of a persistent id in place of a list
SHORTEST = 64  # a shorter list costs less as it is
LIST = re.compile(rb"\](q.|r....)(?=\([GKMJ])", re.DOTALL)  # empty list, its memo, and a mark before a number
_MARK, _APPENDS, _APPEND = b"("[0], b"e"[0], b"a"[0]
_STRIDES = {b"G"[0]: 9, b"K"[0]: 2}


OnCut: TypeAlias = Callable[[int], object]


class Cut(NamedTuple):
    """A pickle without its long lists of numbers: number n of them is persistent id n."""

    pickle: bytes
    arrays: list[Array]


class Run(NamedTuple):
    """A list in the stream, from its opcode to its end, and what it holds: nothing where that is not known."""

    start: int
    memo: bytes
    end: int
    values: Array


def cut_number_runs(data: Buffer, on_cut: OnCut | None = None) -> Cut:
    """Lists of other things, short ones and mixed ones stay in the stream.

    Bytes of a text that look like such a list would be cut too: a load that fails is to be tried again uncut.
    `on_cut` is told how many bytes were cut so far.
    """
    kept: list[Buffer] = []
    arrays: list[Array] = []
    done = covered = 0
    for run in sorted(counted(find_runs(data), on_cut or (lambda done: None)), key=lambda run: run.start):
        if run.start < covered:  # what looks like a list within the ids of another one: a step in 1,000 has one
            continue
        covered = run.end
        if len(run.values) < SHORTEST:
            continue
        kept += [data[done : run.start], b"J", struct.pack("<i", len(arrays)), b"Q", run.memo]
        arrays.append(run.values)
        done = run.end
    kept.append(data[done:])
    return Cut(b"".join(kept), arrays)


def counted(runs: Iterable[Run], on_cut: OnCut) -> Iterator[Run]:
    done = 0
    for run in runs:
        if len(run.values) >= SHORTEST:
            done += run.end - run.start - len(run.memo) - REFERENCE
        on_cut(done)
        yield run


def find_runs(data: Buffer) -> Iterator[Run]:
    """First the lists whose items are of one size, found as they come; then the others, all at once."""
    stream = np.frombuffer(data, np.uint8)
    mixed: list[re.Match[bytes]] = []
    limits: list[int] = []
    at = 0
    while (found := LIST.search(data, at)) is not None:
        if len(limits) < len(mixed):
            limits.append(found.start())
        at = found.end()
        parts, end = read_batches(stream, at)
        if sum(map(len, parts)) >= SHORTEST:
            yield Run(found.start(), found[1], end, decode(parts))
            at = end
        elif not parts and stream[at + 1] != b"G"[0]:
            mixed.append(found)
    limits += [len(data)] * (len(mixed) - len(limits))
    spans = [(found.end(), limit) for found, limit in zip(mixed, limits, strict=True)]
    for found, run in zip(mixed, read_integers(data, spans), strict=True):
        yield Run(found.start(), found[1], run.end, run.values)


def read_batches(stream: Array, at: int) -> tuple[list[Array], int]:
    """The raw items, (n, stride), of each batch of one list from the mark at `at`, and where the list ends."""
    kind = int(stream[at + 1])
    stride = _STRIDES.get(kind, 0)
    parts: list[Array] = []
    while stride and at < len(stream) and stream[at] == _MARK:
        items = stream[at + 1 : at + 1 + BATCH * stride]
        items = items[: len(items) // stride * stride].reshape(-1, stride)
        count = len(items) if (items[:, 0] == kind).all() else int(np.argmax(items[:, 0] != kind))
        end = at + 1 + count * stride
        if not count or end >= len(stream) or stream[end] != _APPENDS:
            return [], at  # another list, or this one goes on with something else
        parts.append(items[:count])
        at = end + 1
    single = stream[at : at + stride + 1]
    if len(single) == stride + 1 and single[0] == kind and single[-1] == _APPEND:
        parts.append(single[:-1].reshape(1, stride))
        at += stride + 1
    elif parts and len(single) and single[0] in b"GKMJ":
        return [], at  # another number is appended that this does not read: the list is mixed
    return parts, at


def decode(parts: list[Array]) -> Array:
    items = np.concatenate(parts)
    if items.shape[1] == 2:
        return items[:, 1].copy()
    wide = np.ndarray((len(items),), ">f8", items, 1, items.strides[:1]).astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        narrow = wide.astype(np.float32)
    # A comparison that takes NaN for equal takes five times as long.
    exact = np.array_equal(narrow, wide) or np.array_equal(narrow, wide, equal_nan=True)
    return narrow if exact else wide

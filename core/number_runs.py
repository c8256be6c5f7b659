"""Long lists of floats or small integers in a pickle, decoded by numpy before the unpickler makes objects of them.

A rollout file is little else: of a step of 512 samples of 9,000 tokens the log-probs and masks alone become 180 MB of
objects. In the stream a float is `G` and 8 bytes, an integer below 256 `K` and one; a list appends its items in batches
of 1,000 between a mark and `e`, a last one alone before `a`. Such a list is cut out of the stream, and a persistent id
put in its place.
"""

from __future__ import annotations

import re
import struct
from typing import NamedTuple

import numpy as np

from dumptui.core.context_parallel import Array

BATCH = 1000  # pickle's own, in C and in Python
SHORTEST = 64  # a shorter list costs less as it is
LIST = re.compile(rb"\](q.|r....)(?=\([GK])", re.DOTALL)  # empty list, its memo, and a mark before a number
_MARK, _APPENDS, _APPEND = b"("[0], b"e"[0], b"a"[0]
_STRIDES = {b"G"[0]: 9, b"K"[0]: 2}


class Cut(NamedTuple):
    """A pickle without its long lists of numbers: number n of them is persistent id n."""

    pickle: bytes
    arrays: list[Array]


def cut_number_runs(data: bytes) -> Cut:
    """Lists of other things, short ones and mixed ones stay in the stream.

    Bytes of a text that look like such a list would be cut too: a load that fails is to be tried again uncut.
    """
    stream = np.frombuffer(data, np.uint8)
    kept: list[bytes] = []
    arrays: list[Array] = []
    done = at = 0
    while (found := LIST.search(data, at)) is not None:
        at = found.end()
        parts, end = read_batches(stream, at)
        if sum(map(len, parts)) < SHORTEST:
            continue
        kept += [data[done : found.start()], b"J", struct.pack("<i", len(arrays)), b"Q", found[1]]
        arrays.append(decode(parts))
        done = at = end
    kept.append(data[done:])
    return Cut(b"".join(kept), arrays)


def read_batches(stream: Array, at: int) -> tuple[list[Array], int]:
    """The raw items, (n, stride), of each batch of one list from the mark at `at`, and where the list ends."""
    kind = int(stream[at + 1])
    stride = _STRIDES[kind]
    parts: list[Array] = []
    while at < len(stream) and stream[at] == _MARK:
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
    elif len(single) and single[0] in _STRIDES:
        return [], at  # another number is appended that this does not read: the list is mixed
    return parts, at


def decode(parts: list[Array]) -> Array:
    items = np.concatenate(parts)
    if items.shape[1] == 2:
        return items[:, 1].copy()
    wide = items[:, 1:].copy().view(">f8").ravel()
    with np.errstate(over="ignore", invalid="ignore"):
        narrow = wide.astype(np.float32)
    return narrow if np.array_equal(narrow, wide, equal_nan=True) else wide.astype(np.float64)

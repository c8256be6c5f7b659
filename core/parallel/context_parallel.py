"""The response positions that a context-parallel (cp) rank holds, and the assembly of its slices.

The sequence is cut into 2·W chunks; rank r of W holds chunks r and 2W-1-r (zigzag), with any attention kernel.
The log-prob of the token at position p comes from the logit at p-1, so a chunk of logits [lo, hi) holds the response
positions [lo-(P-1), hi-(P-1)), where P is the prompt length. Chunks divide the padded length of the batch in the bshd
format and the sample's own length in thd.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dumptui.core.arrays import Array, Ints


class MissingRank(ValueError):
    """An error for a missing slice, which `assemble` never fills with zeros."""


class Spans(NamedTuple):
    """The two half-open response intervals of one rank, one entry per sample.

    The stored slice is the first interval followed by the second.
    """

    first_start: Ints
    first_stop: Ints
    second_start: Ints
    second_stop: Ints

    @property
    def width(self) -> Ints:
        return self.first_stop - self.first_start + self.second_stop - self.second_start

    def at(self, row: int) -> tuple[slice, slice]:
        """Return the two intervals of one sample."""
        return (
            slice(int(self.first_start[row]), int(self.first_stop[row])),
            slice(int(self.second_start[row]), int(self.second_stop[row])),
        )

    def at_all(self, rows: Ints | list[int]) -> Iterator[tuple[slice, slice]]:
        """Yield the two intervals of each of `rows`."""
        edges = [edge[rows].tolist() for edge in self]
        for first, first_end, second, second_end in zip(*edges, strict=True):
            yield slice(first, first_end), slice(second, second_end)


def spans(
    total: npt.ArrayLike, response: npt.ArrayLike, cp_size: int, cp_rank: int, padded: npt.ArrayLike | None = None
) -> Spans:
    """Return the response positions that `cp_rank` holds of each sample.

    `total` and `response` are lengths in tokens, one per sample; `padded` is the padded length (`max_seq_lens`) in the
    bshd format and None in thd. A run without context parallelism (`cp_size` 1) holds everything, also the first
    token after an empty prompt: it has no logit, so with a larger `cp_size` no rank holds it.
    """
    total, response = np.atleast_1d(np.asarray(total, np.int64)), np.atleast_1d(np.asarray(response, np.int64))
    if cp_size == 1:
        return Spans(np.zeros_like(response), response, response, response)
    length = total if padded is None else np.atleast_1d(np.asarray(padded, np.int64))
    chunk = -(-length // (2 * cp_size))
    before = total - response - 1

    def edge(chunks: int) -> Ints:
        position: Ints = np.clip(chunks * chunk - before, 0, response)
        return position

    last = 2 * cp_size - 1 - cp_rank
    return Spans(edge(cp_rank), edge(cp_rank + 1), edge(last), edge(last + 1))


def split(values: Array, total: int, cp_size: int, padded: int | None = None) -> list[Array]:
    """Return the slice that each rank stores of one sample's per-token `values` (length R)."""
    slices = []
    for rank in range(cp_size):
        first, second = spans(total, len(values), cp_size, rank, padded).at(0)
        slices.append(np.concatenate([values[first], values[second]]))
    return slices


def assemble(slices: Sequence[Array | None], total: int, response: int, padded: int | None = None) -> Array:
    """Return one sample's values (length R) from the slices of all ranks, in rank order.

    Raises MissingRank when a slice is None, even if it would be empty, and ValueError when the width of a slice is not
    the one that the slicing rule gives, or when the slicing rule gives a token to no rank.
    """
    missing = [rank for rank, part in enumerate(slices) if part is None]
    if missing:
        raise MissingRank(f"cp rank {missing[0]} of {len(slices)} missing")
    parts = [part for part in slices if part is not None]
    if sum(map(len, parts)) != response:
        raise ValueError(f"{len(parts)} slices hold {sum(map(len, parts))} of {response} values")
    out = np.zeros(response, parts[0].dtype if parts else np.float32)
    for rank, part in enumerate(parts):
        intervals = spans(total, response, len(parts), rank, padded)
        if len(part) != intervals.width[0]:
            raise ValueError(f"cp rank {rank} holds {len(part)} values, the slicing rule gives {intervals.width[0]}")
        put(out, part, *intervals.at(0))
    return out


def put(out: Array, part: Array, first: slice, second: slice) -> None:
    """Write a stored slice to its two intervals in `out`."""
    width = first.stop - first.start
    out[first] = part[:width]
    out[second] = part[width:]

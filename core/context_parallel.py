"""Which response positions a context-parallel (cp) rank holds, and putting its slices back.

The sequence is cut into 2·W chunks; rank r of W holds chunks r and 2W-1-r (zigzag), whatever attention kernel ran.
The log-prob of the token at position p comes from the logit at p-1, so a chunk of logits [lo, hi) holds the response
positions [lo-(P-1), hi-(P-1)), P being the prompt length. Chunks count the padded length of the batch in the bshd
format and the sample's own length in thd.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.int64]
Array: TypeAlias = npt.NDArray[Any]


class MissingRank(ValueError):
    """A slice that is not there; the strict `assemble` never fills it with zeros."""


class Spans(NamedTuple):
    """The two half-open response intervals of one rank, one entry a sample.

    The stored slice is the first, then the second.
    """

    first_start: Ints
    first_stop: Ints
    second_start: Ints
    second_stop: Ints

    @property
    def width(self) -> Ints:
        return self.first_stop - self.first_start + self.second_stop - self.second_start

    def at(self, row: int) -> tuple[slice, slice]:
        return (
            slice(int(self.first_start[row]), int(self.first_stop[row])),
            slice(int(self.second_start[row]), int(self.second_stop[row])),
        )

    def at_all(self, rows: Ints | list[int]) -> Iterator[tuple[slice, slice]]:
        edges = [edge[rows].tolist() for edge in self]
        for first, first_end, second, second_end in zip(*edges, strict=True):
            yield slice(first, first_end), slice(second, second_end)


def spans(
    total: npt.ArrayLike, response: npt.ArrayLike, cp_size: int, cp_rank: int, padded: npt.ArrayLike | None = None
) -> Spans:
    """The response positions that `cp_rank` holds of each sample.

    `total` and `response` are lengths in tokens, one a sample; `padded` is the padded length (`max_seq_lens`) in the
    bshd format and None in thd. A run without context parallelism (`cp_size` 1) holds everything, also the first
    token of an empty prompt, which has no logit and which no rank of a larger `cp_size` holds.
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
    """The slice that each rank stores of one sample's per-token `values` (length R)."""
    slices = []
    for rank in range(cp_size):
        first, second = spans(total, len(values), cp_size, rank, padded).at(0)
        slices.append(np.concatenate([values[first], values[second]]))
    return slices


def assemble(slices: Sequence[Array | None], total: int, response: int, padded: int | None = None) -> Array:
    """One sample's values (length R) from the slice of every rank, in rank order.

    Raises MissingRank when a slice is None, also an empty one, and ValueError when a slice has another width than the
    rule gives, or the rule gives a token to no rank.
    """
    missing = [rank for rank, part in enumerate(slices) if part is None]
    if missing:
        raise MissingRank(f"cp rank {missing[0]} of {len(slices)} missing")
    parts = [part for part in slices if part is not None]
    if sum(map(len, parts)) != response:
        raise ValueError(f"{len(parts)} slices hold {sum(map(len, parts))} of {response} values")
    out = np.zeros(response, parts[0].dtype if parts else np.float32)
    for rank, part in enumerate(parts):
        held = spans(total, response, len(parts), rank, padded)
        if len(part) != held.width[0]:
            raise ValueError(f"cp rank {rank} holds {len(part)} values, the slicing rule gives {held.width[0]}")
        put(out, part, *held.at(0))
    return out


def put(out: Array, part: Array, first: slice, second: slice) -> None:
    """Write a stored slice to its two places in `out`."""
    cut = first.stop - first.start
    out[first] = part[:cut]
    out[second] = part[cut:]

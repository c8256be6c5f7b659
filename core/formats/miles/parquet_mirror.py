"""The parquet mirror of a rollout file, which gives single samples fast.

The mirror holds tokens, masks and engine log-probs, one row per sample in the file's order. One sample of a mirror of
30 MB costs 6 ms, all 512 of them 190 ms; a rollout file can only be read whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from dumptui.core.arrays import Array
from dumptui.core.errors import DumpError
from dumptui.core.formats.format import MirrorRow
from dumptui.core.formats.miles.parquet_columns import read_index, read_lists
from dumptui.core.formats.miles.rollout_file import read_sample
from dumptui.core.formats.sample import Sample
from dumptui.core.process.isolated_reader import read_isolated
from dumptui.core.ptfile.tensor import most_values

# A row group: reading one of its rows costs as much as reading all of them.
_GROUP = 8
# Tokens a byte: a mirror is compressed, and the same token over and over takes hardly any.
_MOST_PACKED = 8


def read_mirror(path: Path, rows: Sequence[int] | None = None) -> list[Sample]:
    """Return the samples at `rows`, all by default, without what the mirror lacks: reward, status, text.

    Raises DumpError, also for a row that the mirror does not have.
    """
    index = mirror_index(path)
    selected = range(len(index)) if rows is None else rows
    beyond = [row for row in selected if not 0 <= row < len(index)]
    if beyond:
        raise DumpError(path, f"has no row {beyond[0]}: it holds {len(index)} samples")
    if sum(index[row].total_length or 0 for row in set(selected)) > _MOST_PACKED * most_values(path.stat().st_size):
        raise DumpError(path, "is damaged: it claims more tokens than it can hold")
    lists = read_isolated(read_lists, path, list(_ranges(selected)))
    occurrences = _occurrences(index)
    return [_sample(path, row, occurrences[row], index[row], lists[row]) for row in selected]


def mirror_index(path: Path) -> list[MirrorRow]:
    """Return the index and lengths of each sample, in the order of the rollout file. Raises DumpError."""
    return read_isolated(read_index, path)


def _ranges(rows: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield half-open ranges that cover the rows; rows less than a row group from each other share a range."""
    start = stop = 0
    for row in sorted(rows):
        if stop > start and row - stop >= _GROUP:
            yield start, stop
            start = row
        elif stop == start:
            start = row
        stop = row + 1
    if stop > start:
        yield start, stop


def _occurrences(numbers: Iterable[MirrorRow]) -> list[int]:
    seen: Counter[int | None] = Counter()
    occurrences = []
    for index, *_ in numbers:
        occurrences.append(seen[index])
        seen[index] += 1
    return occurrences


def _sample(path: Path, row: int, occurrence: int, numbers: MirrorRow, lists: tuple[Array | None, ...]) -> Sample:
    index, response, total = numbers
    tokens, mask, log_probs = lists
    held = 0 if tokens is None else len(tokens)
    if held != total or response is None or not 0 <= response <= held:
        raise DumpError(path, f"is damaged: row {row} holds {held} tokens for lengths of {total} and {response}")
    fields = {"response_length": response, "tokens": tokens, "loss_mask": mask, "rollout_log_probs": log_probs}
    return read_sample(fields, row, index, occurrence)

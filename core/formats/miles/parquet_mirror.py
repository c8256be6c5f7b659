"""The parquet mirror of a rollout file, which reads single samples fast, and the replacements for a lost rollout file.

The mirror holds tokens, masks and engine log-probs, one row per sample in the file's order. One sample of a mirror of
30 MB costs 6 ms, all 512 of them 190 ms; a rollout file can only be read whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from dumptui.core.arrays import Array
from dumptui.core.errors import BeingWritten, DumpError
from dumptui.core.formats.miles.parquet_columns import Index, read_index, read_lists
from dumptui.core.formats.miles.train_file import Shard
from dumptui.core.formats.sample import OnRead, Rollout, Sample, read_rollout, read_sample, read_samples
from dumptui.core.parallel.shard_group import group_shards
from dumptui.core.process.isolated_reader import read_isolated
from dumptui.core.run.run import StepFiles, read_file

Fields: TypeAlias = dict[str, Any]

# A row group: reading one of its rows costs as much as reading all of them.
_GROUP = 8


def read_mirror(path: Path, rows: Sequence[int] | None = None) -> list[Sample]:
    """Return the samples at `rows`, all by default, without what the mirror lacks: reward, status, text.

    Raises DumpError, also for a row that the mirror does not have.
    """
    index = mirror_index(path)
    selected = range(len(index)) if rows is None else rows
    beyond = [row for row in selected if not 0 <= row < len(index)]
    if beyond:
        raise DumpError(path, f"has no row {beyond[0]}: it holds {len(index)} samples")
    lists = read_isolated(read_lists, path, list(_ranges(selected)))
    occurrences = _occurrences(index)
    return [_sample(path, row, occurrences[row], index[row], lists[row]) for row in selected]


def mirror_index(path: Path) -> list[Index]:
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


def _occurrences(numbers: Iterable[Index]) -> list[int]:
    seen: Counter[int | None] = Counter()
    occurrences = []
    for index, *_ in numbers:
        occurrences.append(seen[index])
        seen[index] += 1
    return occurrences


def _sample(path: Path, row: int, occurrence: int, numbers: Index, lists: tuple[Array | None, ...]) -> Sample:
    index, response, total = numbers
    tokens, mask, log_probs = lists
    held = 0 if tokens is None else len(tokens)
    if held != total or response is None or not 0 <= response <= held:
        raise DumpError(path, f"is damaged: row {row} holds {held} tokens for lengths of {total} and {response}")
    fields = {"response_length": response, "tokens": tokens, "loss_mask": mask, "rollout_log_probs": log_probs}
    return read_sample(fields, row, index, occurrence)


# In place of a rollout file -------------------------------------------------------------------------------


def read_samples_of(
    files: StepFiles, shards: Sequence[Shard], on_read: OnRead | None = None
) -> tuple[Rollout, DumpError | None]:
    """The samples of a step, and why they are not from its rollout file but from the mirror or the train rows.

    The train rows stand in only where there is neither of the other two. Raises the DumpError of the rollout file when
    nothing else is left, BeingWritten while it is not whole.
    """
    key = files.key
    if files.rollout is None:
        problem = DumpError(str(key), "its rollout file is missing")
        if files.mirror is None and shards:
            return _rollout_of_rows(files, shards), problem
    else:
        try:
            read = partial(read_rollout, step=key.step, evaluation=key.evaluation, on_read=on_read)
            return read_file(files.rollout.path, read), None
        except BeingWritten:
            raise
        except DumpError as error:
            problem = error
    if files.mirror is None:
        raise problem
    return _rollout_of_mirror(files, files.mirror.path, problem), problem


def _rollout_of_mirror(files: StepFiles, mirror: Path, problem: DumpError) -> Rollout:
    gone = files.rollout is None or isinstance(problem.__cause__, FileNotFoundError)
    what = "missing" if gone else "unreadable"
    note = f"the rollout file is {what}: read from its parquet mirror, without rewards, status and text"
    try:
        samples = read_mirror(mirror)
    except DumpError as error:
        raise problem from error
    return _rollout(files, mirror, samples, note)


def _rollout_of_rows(files: StepFiles, shards: Sequence[Shard]) -> Rollout:
    """By sample_index, which is the order that indices are given in."""
    rows = [_row_fields(peers.first, row) for peers in group_shards(shards) for row in range(peers.first.rows)]
    rows.sort(key=lambda row: (row["index"] is None, row["index"] or 0))
    note = "no rollout file: read from the train files, without rewards, status and text"
    samples = list(read_samples(rows))
    shared = {sample.index for sample in samples if sample.occurrence}
    return _rollout(files, shards[0].path, [_unordered(one) if one.index in shared else one for one in samples], note)


def _unordered(sample: Sample) -> Sample:
    told = "several samples have this index; only the rollout file shows which one this is"
    return replace(sample, notes=(*sample.notes, told))


def _row_fields(shard: Shard, row: int) -> Fields:
    return {
        "index": shard.indices[row],
        "response_length": int(shard.responses[row]),
        "tokens": shard.tensor("tokens", row),
        "weight_versions": shard.value("weight_versions", row),
    }


def _rollout(files: StepFiles, path: Path, samples: Iterable[Sample], note: str) -> Rollout:
    noted = tuple(replace(sample, notes=(*sample.notes, note)) for sample in samples)
    return Rollout(path, files.key.step, files.key.evaluation, noted, notes=(note,))

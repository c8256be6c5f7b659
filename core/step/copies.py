"""Contradictions between files that should hold copies of the same values; the values of the first file are shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from dumptui.core.arrays import Array
from dumptui.core.errors import DumpError
from dumptui.core.fields.registry import shown_name
from dumptui.core.formats.shard import Shard
from dumptui.core.formats.values import Dumped, alike, as_list
from dumptui.core.parallel.shard_group import ENGINE_COLUMN, ShardGroup
from dumptui.core.ptfile.file import Tensor
from dumptui.core.step.step import Step

# Columns that every rank holds whole.
UNSLICED_COLUMNS = ("tokens", "loss_masks", "rewards", "truncated")


class Contradiction(NamedTuple):
    """Two files with different values of a column in a sample: the one that is shown, and the other.

    `name` is that of the column on screen.
    """

    name: str
    position: int
    shown: str
    other: str


def contradictions(step: Step, positions: Sequence[int] | None = None) -> Iterator[Contradiction]:
    """Yield the contradictions in the samples at `positions`, all by default, one for each two files and column."""
    for group, rows in placed(step, positions):
        yield from in_train_files(step, group, rows)
        yield from with_rollout_file(step, group, rows)
    yield from of_batch(step, None if positions is None else set(positions))


def placed(step: Step, positions: Sequence[int] | None) -> Iterator[tuple[ShardGroup, list[tuple[int, int]]]]:
    """Yield the shard groups of samples, with their rows and positions."""
    if positions is None:
        for group in step.alignment.groups:
            yield group, [(row, position) for row, position in enumerate(group.positions.tolist()) if position >= 0]
        return
    rows = ((position, step.alignment.rows[position]) for position in positions)
    yield from ((row.group, [(row.row, position)]) for position, row in rows if row is not None)


def in_train_files(step: Step, group: ShardGroup, rows: Sequence[tuple[int, int]]) -> Iterator[Contradiction]:
    other_attempt: dict[int, set[int]] = {}
    for column, copies in same_columns(step, group):
        for other in copies[1:]:
            skipped = other_attempt.setdefault(id(other), set())
            shown, copied = copies[0].entries(column), other.entries(column)
            if shown is None or copied is None:
                continue
            for row, position in rows:
                if row not in skipped and differ(shown[row], copied[row]):
                    yield Contradiction(shown_name(column), position, copies[0].path.name, other.path.name)
                    if column == "tokens":  # the row is of another attempt, whose other values are not shown
                        skipped.add(row)


def same_columns(step: Step, group: ShardGroup) -> Iterator[tuple[str, list[Shard]]]:
    """Yield each column with the files that hold copies of it, tokens first; of slices, by context-parallel rank."""
    for column in UNSLICED_COLUMNS:
        yield column, [shard for shard in group.shards if column in shard.columns]
    if group.problem is not None:
        return
    for column in dict.fromkeys(name for shard in group.shards for name in shard.per_token):
        whole = group.cp_size == 1 or step.alignment.slicing_rule(column).first == "full"
        by_rank: dict[int, list[Shard]] = {}
        for shard, rank in group.placed():
            if column in shard.per_token:
                by_rank.setdefault(0 if whole else rank, []).append(shard)
        yield from ((column, copies) for copies in by_rank.values())


def differ(value: object, other: object) -> bool:
    """Whether two copies are there and hold other values; most are known to be equal by checksum, without reading."""
    if value is None or other is None or value is other or same_bytes(value, other):
        return False
    if not isinstance(value, Dumped) or not isinstance(other, Dumped):
        return not (alike(value, other) or (value != value and other != other))
    try:
        return not np.array_equal(comparable(value.numpy()), comparable(other.numpy()))
    except DumpError:
        return False  # reported where its values would be shown


def comparable(values: Array) -> Array:
    """Return the values with NaN replaced by a number that equals itself."""
    return np.where(np.isnan(values), np.finfo(np.float32).max, values) if values.dtype.kind == "f" else values


def same_bytes(value: object, other: object) -> bool:
    """Whether two tensors are the same view of storages with equal checksums."""
    if not isinstance(value, Tensor) or not isinstance(other, Tensor):
        return False
    storage, other_storage = value.storage, other.storage
    if not storage.crc == other_storage.crc != 0 or storage.size != other_storage.size or value.dtype != other.dtype:
        return False
    return (value.offset, value.shape, value.stride) == (other.offset, other.shape, other.stride)


def with_rollout_file(step: Step, group: ShardGroup, rows: Sequence[tuple[int, int]]) -> Iterator[Contradiction]:
    """Yield the rows whose engine log-probs contradict the rollout file; if sliced, the column is refused instead."""
    if group.cp_size == 1:
        moved = step.alignment.engine_verdict(group).moved
        yield from (
            Contradiction(ENGINE_COLUMN, position, step.rollout.path.name, group.first.path.name)
            for row, position in rows
            if moved[row]
        )


def of_batch(step: Step, positions: set[int] | None) -> Iterator[Contradiction]:
    """Yield the raw rewards that differ: every file holds those of the whole rollout file, in its order."""
    shards = [shard for group in step.alignment.groups if group.joined for shard in group.shards]
    columns = ((shard, as_list(shard.columns.get("raw_reward"))) for shard in shards)
    copies = [(shard, values) for shard, values in columns if values is not None and len(values) == len(step.samples)]
    for other, values in copies[1:]:
        first, shown = copies[0]
        for position in range(len(values)) if positions is None else sorted(positions):
            if differ(shown[position], values[position]):
                yield Contradiction("raw_reward", position, first.path.name, other.path.name)


def in_words(contradictions: Iterable[Contradiction]) -> list[str]:
    """Return a sentence for each two files, with all columns whose values differ."""
    columns: dict[tuple[str, str], dict[str, None]] = {}
    for contradiction in contradictions:
        columns.setdefault((contradiction.other, contradiction.shown), {})[contradiction.name] = None
    return [
        f"{other} contradicts {shown} in {', '.join(names)}: the values of {shown} are shown"
        for (other, shown), names in columns.items()
    ]

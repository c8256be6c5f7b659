"""Where files that should hold copies of the same values contradict each other: the first one is shown of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from dumptui.core.arrays import Array
from dumptui.core.errors import DumpError
from dumptui.core.formats.miles.train_file import Shard, as_list
from dumptui.core.formats.values import Dumped, alike
from dumptui.core.parallel.shard_group import ENGINE_COLUMN, ShardGroup
from dumptui.core.ptfile.file import Tensor
from dumptui.core.step.step import SHOWN_NAMES, Step

# What every rank has whole, of each of its rows.
UNSLICED_COLUMNS = ("tokens", "loss_masks", "rewards", "truncated")


class Contradiction(NamedTuple):
    """`shown` and `other` are the names of the files, `name` is that of the column on screen."""

    name: str
    position: int
    shown: str
    other: str


def contradictions(step: Step, positions: Sequence[int] | None = None) -> Iterator[Contradiction]:
    """Of these samples, all by default, once for each two files and column."""
    for group, rows in placed(step, positions):
        yield from in_train_files(step, group, rows)
        yield from with_rollout_file(step, group, rows)
    yield from of_batch(step, None if positions is None else set(positions))


def placed(step: Step, positions: Sequence[int] | None) -> Iterator[tuple[ShardGroup, list[tuple[int, int]]]]:
    """The data-parallel shards of samples, with their rows and positions."""
    if positions is None:
        for group in step.alignment.groups:
            yield group, [(row, at) for row, at in enumerate(group.positions.tolist()) if at >= 0]
        return
    rows = ((at, step.alignment.rows[at]) for at in positions)
    yield from ((row.group, [(row.row, at)]) for at, row in rows if row is not None)


def in_train_files(step: Step, group: ShardGroup, rows: Sequence[tuple[int, int]]) -> Iterator[Contradiction]:
    strangers: dict[int, set[int]] = {}
    for column, copies in same_columns(step, group):
        for other in copies[1:]:
            skipped = strangers.setdefault(id(other), set())
            mine, theirs = copies[0].entries(column), other.entries(column)
            if mine is None or theirs is None:
                continue
            for row, at in rows:
                if row not in skipped and differ(mine[row], theirs[row]):
                    yield Contradiction(SHOWN_NAMES.get(column, column), at, copies[0].path.name, other.path.name)
                    if column == "tokens":  # of another attempt, of which nothing is shown
                        skipped.add(row)


def same_columns(step: Step, group: ShardGroup) -> Iterator[tuple[str, list[Shard]]]:
    """Each column with the files that hold copies of it, tokens first: of slices those of one context-parallel rank."""
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


def differ(one: object, other: object) -> bool:
    """Whether two copies are there and hold other values; most are told to be equal by their checksums, unread."""
    if one is None or other is None or one is other or same_bytes(one, other):
        return False
    if not isinstance(one, Dumped) or not isinstance(other, Dumped):
        return not (alike(one, other) or (one != one and other != other))
    try:
        return not np.array_equal(comparable(one.numpy()), comparable(other.numpy()))
    except DumpError:
        return False  # which is said where its values would be shown


def comparable(values: Array) -> Array:
    """NaN stands for itself."""
    return np.where(np.isnan(values), np.finfo(np.float32).max, values) if values.dtype.kind == "f" else values


def same_bytes(one: object, other: object) -> bool:
    if not isinstance(one, Tensor) or not isinstance(other, Tensor):
        return False
    a, b = one.storage, other.storage
    if not a.crc == b.crc != 0 or a.size != b.size or one.dtype != other.dtype:
        return False
    return (one.offset, one.shape, one.stride) == (other.offset, other.shape, other.stride)


def with_rollout_file(step: Step, group: ShardGroup, rows: Sequence[tuple[int, int]]) -> Iterator[Contradiction]:
    """The engine's log-probs; where they are cut, the whole column is refused for it."""
    if group.cp_size == 1:
        moved = step.alignment.engine_verdict(group).moved
        yield from (
            Contradiction(ENGINE_COLUMN, at, step.rollout.path.name, group.first.path.name)
            for row, at in rows
            if moved[row]
        )


def of_batch(step: Step, wanted: set[int] | None) -> Iterator[Contradiction]:
    """The raw rewards, which every file holds of the whole rollout file, in its order."""
    shards = [shard for group in step.alignment.groups if group.joined for shard in group.shards]
    columns = ((shard, as_list(shard.columns.get("raw_reward"))) for shard in shards)
    copies = [(shard, values) for shard, values in columns if values is not None and len(values) == len(step.samples)]
    for other, values in copies[1:]:
        first, shown = copies[0]
        for at in range(len(values)) if wanted is None else sorted(wanted):
            if differ(shown[at], values[at]):
                yield Contradiction("raw_reward", at, first.path.name, other.path.name)


def in_words(found: Iterable[Contradiction]) -> list[str]:
    """A sentence for each two files, with all columns of which they hold different values."""
    columns: dict[tuple[str, str], dict[str, None]] = {}
    for one in found:
        columns.setdefault((one.other, one.shown), {})[one.name] = None
    return [
        f"{other} contradicts {shown} in {', '.join(names)}: the values of {shown} are shown"
        for (other, shown), names in columns.items()
    ]

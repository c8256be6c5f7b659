"""The raw rewards of a step's samples, which every train file holds of the whole batch."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dumptui.core.formats.sample import Sample
from dumptui.core.formats.values import as_float, as_list
from dumptui.core.parallel.shard_group import ShardGroup


def raw_rewards(
    groups: Sequence[ShardGroup], samples: Sequence[Sample], trained: Sequence[int]
) -> tuple[object, ...] | None:
    """Return the batch-global `raw_reward` column by position in the rollout file; None without one that can be placed.

    `trained` are the positions with a train row. The column counts the whole rollout file, or only the samples that
    were trained: the first ones, where it was trimmed and not all train files are there, which the samples' own rewards
    have to confirm.
    """
    shards = (shard for group in groups if group.joined and group.all_joined for shard in group.shards)
    columns = (as_list(shard.columns.get("raw_reward")) for shard in shards)
    placed = (place_rewards(column, samples, trained) for column in columns if column)
    return next((rewards for rewards in placed if rewards is not None), None)


def place_rewards(
    column: Sequence[object], samples: Sequence[Sample], trained: Sequence[int]
) -> tuple[object, ...] | None:
    count = len(samples)
    positions = trained if len(column) == len(trained) < count else range(len(column))
    if len(column) > count or (len(column) < count and not same_rewards(column, positions, samples, trained)):
        return None
    by_position = dict(zip(positions, column, strict=True))
    return tuple(by_position.get(position) for position in range(count))


def same_rewards(
    column: Sequence[object], positions: Sequence[int], samples: Sequence[Sample], trained: Sequence[int]
) -> bool:
    """Whether a column at these positions has every trained sample, with the reward that the sample has itself."""
    if list(positions) == list(trained):
        return True
    placed = dict(zip(positions, column, strict=True))
    pairs = [(as_float(samples[position].reward), as_float(placed.get(position))) for position in trained]
    known = [(own, dumped) for own, dumped in pairs if own is not None]
    return bool(known) and all(dumped is not None and math.isclose(own, dumped, rel_tol=1e-6) for own, dumped in known)

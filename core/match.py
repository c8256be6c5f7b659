"""Which rollout sample each train row is: by place or index, where that repeats by lengths, then tokens, then order."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dumptui.core.context_parallel import Array
from dumptui.core.evidence import Evidence, equal_tokens
from dumptui.core.layout import Peers
from dumptui.core.sample import Sample
from dumptui.core.shard import Shard, as_list
from dumptui.core.values import as_float


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """Where a sample's train row is. `tied` if another sample fitted as well, so that order decided."""

    peers: Peers
    row: int
    tied: bool = False


class Matcher:
    """Pairs rows with samples, each sample at most once; `orphans` says which rows found none and why."""

    def __init__(self, samples: Sequence[Sample], evidence: Evidence) -> None:
        self.samples = samples
        self.evidence = evidence
        self.rows: list[Row | None] = [None] * len(samples)
        self.orphans: list[str] = []
        self._by_index: dict[int, list[int]] = defaultdict(list)
        self._without_index: list[int] = []
        for sample in samples:
            places = self._without_index if sample.index is None else self._by_index[sample.index]
            places.append(sample.position)

    def add(self, peers: Peers) -> None:
        """Match every row of a data-parallel shard and set its `positions`."""
        first = peers.first
        peers.positions = np.full(first.rows, -1, np.int64)
        lengths = zip(first.totals.tolist(), first.responses.tolist(), strict=True)
        for row, (tokens, (total, response)) in enumerate(zip(self.evidence.read_tokens(peers), lengths, strict=True)):
            found = self._find(first, row, tokens, total, response)
            if isinstance(found, str):
                self.orphans.append(f"{first.path.name} row {row}: {found}")
            else:
                position, tied = found
                peers.positions[row] = position
                self.rows[position] = Row(peers, row, tied)

    def _find(self, shard: Shard, row: int, tokens: Array | None, total: int, response: int) -> tuple[int, bool] | str:
        """The position of a row's sample and whether others fitted as well, or why there is none."""
        named, candidates = self._candidates(shard.positions[row], shard.indices[row])
        if not candidates:
            return f"{named} is not in the rollout file"
        fitting = self._fitting(total, response, candidates)
        if not fitting:
            return f"{named} has other lengths in the rollout file"
        same = {position: equal_tokens(tokens, response, self.samples[position]) for position in fitting}
        sure = [position for position in fitting if same[position]]
        if named == _NAMELESS and len(sure) != 1:
            return f"cannot join: {named}, and its tokens match no single sample"
        possible = sure or [position for position in fitting if same[position] is None]
        if not possible:
            return f"{named} has other tokens in the rollout file"
        free = [position for position in possible if self.rows[position] is None]
        return (free[0], len(possible) > 1) if free else f"{named} already has its train row"

    def _candidates(self, position: int | None, index: int | None) -> tuple[str, list[int]]:
        """What the row says it is, and the samples that this may be."""
        if position is not None:
            return f"rollout_position {position}", [position] if 0 <= position < len(self.samples) else []
        if index is not None:
            return f"sample_index {index}", self._by_index.get(index, [])
        return _NAMELESS, self._without_index or list(range(len(self.samples)))

    def _fitting(self, total: int, response: int, candidates: Sequence[int]) -> list[int]:
        """The samples with a row's lengths, else those that are shorter, as media are expanded on the train side."""
        lengths = [
            (position, self.samples[position].total_length, self.samples[position].response_length)
            for position in candidates
        ]
        exact = [position for position, t, r in lengths if (t, r) == (total, response)]
        return exact or [position for position, t, r in lengths if t < total and r <= response]


_NAMELESS = "it has no sample_index"


def raw_rewards(shards: Sequence[Shard], samples: Sequence[Sample], rows: Sequence[Row | None]) -> list[object] | None:
    """The batch-global `raw_reward` column by position in the rollout file; None without one that can be placed.

    It counts the whole rollout file, or only the samples that were trained: the first ones, where it was trimmed and
    not all train files are there. That they are is taken from the samples' own rewards.
    """
    columns = (as_list(shard.columns.get("raw_reward")) for shard in shards)
    placed = (place_rewards(column, samples, rows) for column in columns if column)
    return next((found for found in placed if found is not None), None)


def place_rewards(
    column: Sequence[object], samples: Sequence[Sample], rows: Sequence[Row | None]
) -> list[object] | None:
    trained = [position for position, row in enumerate(rows) if row is not None]
    places = trained if len(column) == len(trained) < len(rows) else range(len(column))
    if len(column) > len(rows) or (len(column) < len(rows) and not same_rewards(column, places, samples, trained)):
        return None
    found: list[object] = [None] * len(rows)
    for position, value in zip(places, column, strict=True):
        found[position] = value
    return found


def same_rewards(
    column: Sequence[object], places: Sequence[int], samples: Sequence[Sample], trained: Sequence[int]
) -> bool:
    """Whether a column at these places has every trained sample, with the reward that the sample has itself."""
    if list(places) == list(trained):
        return True
    placed = dict(zip(places, column, strict=True))
    pairs = [(as_float(samples[position].reward), as_float(placed.get(position))) for position in trained]
    told = [(own, given) for own, given in pairs if own is not None]
    return bool(told) and all(given is not None and math.isclose(own, given, rel_tol=1e-6) for own, given in told)

"""Which rollout sample each train row is: by place or index, where that repeats by lengths, then tokens, then order."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dumptui.core.arrays import Array
from dumptui.core.fields.token_field import State
from dumptui.core.formats.miles.train_file import Shard, as_list
from dumptui.core.formats.sample import Sample
from dumptui.core.formats.values import as_float
from dumptui.core.parallel.alignment import Alignment
from dumptui.core.parallel.row_evidence import Evidence, has_media
from dumptui.core.parallel.shard_group import ShardGroup


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """Where a sample's train row is. `tied` if another sample fitted as well, so that order decided."""

    peers: ShardGroup
    row: int
    tied: bool = False


class Matcher:
    """Pairs rows with samples, each sample at most once; `orphans` says which rows found none and why."""

    def __init__(self, samples: Sequence[Sample], evidence: Evidence) -> None:
        self.samples = samples
        self.evidence = evidence
        self.rows: list[Row | None] = [None] * len(samples)
        self.orphans: list[str] = []
        self.refused: dict[int, tuple[State, str]] = {}
        """What is to be said of the train data of a sample whose own row, by its index, was refused."""
        self._by_index: dict[int, list[int]] = defaultdict(list)
        self._without_index: list[int] = []
        for sample in samples:
            places = self._without_index if sample.index is None else self._by_index[sample.index]
            places.append(sample.position)

    def add(self, peers: ShardGroup) -> None:
        """Match every row of a data-parallel shard and set its `positions`."""
        first = peers.first
        peers.positions = np.full(first.rows, -1, np.int64)
        lengths = zip(first.totals.tolist(), first.responses.tolist(), strict=True)
        for row, (tokens, (total, response)) in enumerate(zip(self.evidence.read_tokens(peers), lengths, strict=True)):
            found = self._find(peers, row, tokens, total, response)
            if isinstance(found, str):
                self.orphans.append(f"{first.path.name} row {row}: {found}")
                continue
            position, tied, alignment = found
            peers.positions[row] = position
            self.rows[position] = Row(peers, row, tied)
            if alignment is not None and response != self.samples[position].response_length:
                peers.alignments[row] = alignment

    def _find(
        self, peers: ShardGroup, row: int, tokens: Array | None, total: int, response: int
    ) -> tuple[int, bool, Alignment | None] | str:
        """The position of a row's sample, whether others fitted as well, and where it lies in an expanded response; or
        why there is none.
        """
        shard = peers.first
        named, candidates = self._candidates(shard.positions[row], shard.indices[row])
        if not candidates:
            return f"{named} is not in the rollout file"
        exact, longer = self._fitting(total, response, candidates)
        if not exact and not longer:
            return self._refuse(candidates, f"the lengths of {named} differ from the rollout file", "not dumped")
        same: dict[int, Alignment | None] = {
            position: None for position in exact if self._is_row(peers, row, tokens, response, position)
        }
        if not same and tokens is not None:
            found = ((position, self.evidence.alignment(shard, row, tokens, position)) for position in longer)
            same = {position: alignment for position, alignment in found if alignment is not None}
        if named == _NO_INDEX and len(same) != 1:
            return f"cannot join: {named}, and its tokens match no single sample"
        if not same and tokens is None:
            return self._refuse(candidates, f"{named} is not confirmed: the tokens of the row can't be read")
        if not same:
            if any(has_media(shard, row, self.samples[position]) for position in longer):
                return self._refuse(candidates, f"{named} has media in the train file that can't be aligned")
            return self._refuse(candidates, f"the tokens of {named} differ from the rollout file", "not dumped")
        free = [position for position in same if self.rows[position] is None]
        return (free[0], len(same) > 1, same[free[0]]) if free else f"{named} already has a train row"

    def _is_row(self, peers: ShardGroup, row: int, tokens: Array | None, response: int, position: int) -> bool:
        if tokens is None:
            return self.evidence.same_engine(peers, row, position)
        return self.evidence.equal_tokens(tokens, response, position)

    def _refuse(self, candidates: Sequence[int], why: str, state: State = "unreadable") -> str:
        """Keep why a row is no sample's for the sample that it should be of; of several it is not known which."""
        if len(candidates) == 1:
            self.refused.setdefault(candidates[0], (state, why))
        return why

    def _candidates(self, position: int | None, index: int | None) -> tuple[str, list[int]]:
        """What the row says it is, and the samples that this may be."""
        if position is not None:
            return f"rollout_position {position}", [position] if 0 <= position < len(self.samples) else []
        if index is not None:
            return f"sample_index {index}", self._by_index.get(index, [])
        return _NO_INDEX, self._without_index or list(range(len(self.samples)))

    def _fitting(self, total: int, response: int, candidates: Sequence[int]) -> tuple[list[int], list[int]]:
        """The samples with a row's lengths, and those that are shorter, as media are expanded on the train side."""
        lengths = [
            (position, self.samples[position].total_length, self.samples[position].response_length)
            for position in candidates
        ]
        exact = [position for position, t, r in lengths if (t, r) == (total, response)]
        return exact, [position for position, t, r in lengths if t < total and r <= response]


_NO_INDEX = "it has no sample_index"


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

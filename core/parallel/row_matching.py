"""Matching of train rows to samples: by position or index and, if that repeats, by lengths, then tokens, then order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from dumptui.core.arrays import Array
from dumptui.core.fields.token_field import State
from dumptui.core.formats.sample import Sample
from dumptui.core.parallel.row_evidence import Evidence, has_media, has_tokens
from dumptui.core.parallel.shard_group import ShardGroup
from dumptui.core.parallel.token_alignment import TokenAlignment

NO_INDEX = "it has no sample_index"


class Match(NamedTuple):
    """The train row of a sample: the `number` of its shard group and the row in that.

    `tied` if another sample fitted as well, so that order decided.
    """

    number: int
    row: int
    tied: bool


class Refusal(NamedTuple):
    """The state of the train data of a sample whose own row, by its index, was refused, and the reason."""

    state: State
    reason: str


class Matcher:
    """Pairs rows with samples, each sample at most once.

    `matches` has the row of each sample; `orphans` says which rows found no sample and why; `refused` has the samples
    whose own row was refused.
    """

    def __init__(self, samples: Sequence[Sample], evidence: Evidence) -> None:
        self.samples = samples
        self.evidence = evidence
        self.matches: list[Match | None] = [None] * len(samples)
        self.orphans: list[str] = []
        self.refused: dict[int, Refusal] = {}
        self._by_index: dict[int, list[int]] = defaultdict(list)
        self._without_index: list[int] = []
        for sample in samples:
            positions = self._without_index if sample.index is None else self._by_index[sample.index]
            positions.append(sample.position)

    def match(self, number: int, group: ShardGroup) -> ShardGroup:
        """Match every row of a data-parallel shard and return it with the positions of its samples."""
        first = group.first
        positions = np.full(first.rows, -1, np.int64)
        alignments: dict[int, TokenAlignment] = {}
        lengths = zip(first.totals.tolist(), first.responses.tolist(), strict=True)
        for row, (tokens, (total, response)) in enumerate(zip(self.evidence.read_tokens(group), lengths, strict=True)):
            found = self._find(group, row, tokens, total, response)
            if isinstance(found, str):
                self.orphans.append(f"{first.path.name} row {row}: {found}")
                continue
            position, tied, alignment = found
            positions[row] = position
            self.matches[position] = Match(number, row, tied)
            if alignment is not None and response != self.samples[position].response_length:
                alignments[row] = alignment
        return replace(group, positions=positions, token_alignments=alignments)

    def _find(
        self, group: ShardGroup, row: int, tokens: Array | None, total: int, response: int
    ) -> tuple[int, bool, TokenAlignment | None] | str:
        """Return the position of a row's sample, whether others fitted as well, and its alignment in an expanded
        response; or the reason why there is no sample.
        """
        shard = group.first
        name, candidates = self._candidates(shard.positions[row], shard.indices[row])
        if not candidates:
            return f"{name} is not in the rollout file"
        exact, shorter = self._fitting(total, response, candidates)
        if not exact and not shorter:
            return self._refuse(candidates, f"the lengths of {name} differ from the rollout file", "not dumped")
        same: dict[int, TokenAlignment | None] = {
            position: None for position in exact if self._is_row(group, row, tokens, response, position)
        }
        if not same and tokens is not None:
            found = ((position, self.evidence.token_alignment(shard, row, tokens, position)) for position in shorter)
            same = {position: alignment for position, alignment in found if alignment is not None}
        if name == NO_INDEX and len(same) != 1:
            return f"cannot join: {name}, and its tokens match no single sample"
        if not same and tokens is None:
            return self._refuse(candidates, f"{name} is not confirmed: the tokens of the row can't be read")
        if not same:
            if any(has_media(shard, row, self.samples[position]) for position in shorter):
                return self._refuse(candidates, f"{name} has media in the train file that can't be aligned")
            return self._refuse(candidates, f"the tokens of {name} differ from the rollout file", "not dumped")
        free = [position for position in same if self.matches[position] is None]
        return (free[0], len(same) > 1, same[free[0]]) if free else f"{name} already has a train row"

    def _is_row(self, group: ShardGroup, row: int, tokens: Array | None, response: int, position: int) -> bool:
        if tokens is None:
            return self.evidence.same_engine(group, row, position)
        return has_tokens(self.samples[position], tokens, response)

    def _refuse(self, candidates: Sequence[int], why: str, state: State = "unreadable") -> str:
        """Record why a row was refused for the sample that it names, if that is a single one, and return it."""
        if len(candidates) == 1:
            self.refused.setdefault(candidates[0], Refusal(state, why))
        return why

    def _candidates(self, position: int | None, index: int | None) -> tuple[str, list[int]]:
        """Return what a row names as its sample, and the positions that this may be."""
        if position is not None:
            return f"rollout_position {position}", [position] if 0 <= position < len(self.samples) else []
        if index is not None:
            return f"sample_index {index}", self._by_index.get(index, [])
        return NO_INDEX, self._without_index or list(range(len(self.samples)))

    def _fitting(self, total: int, response: int, candidates: Sequence[int]) -> tuple[list[int], list[int]]:
        """Return the samples with a row's lengths, and the shorter ones, as media are expanded on the train side."""
        lengths = [
            (position, self.samples[position].total_length, self.samples[position].response_length)
            for position in candidates
        ]
        exact = [position for position, t, r in lengths if (t, r) == (total, response)]
        return exact, [position for position, t, r in lengths if t < total and r <= response]

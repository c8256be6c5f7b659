"""The alignment of a step's train rows with its samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import RLock
from typing import NamedTuple

import numpy as np

from dumptui.core.arrays import Bools, Ints
from dumptui.core.formats.sample import Sample
from dumptui.core.formats.shard import Shard
from dumptui.core.parallel.layout_inference import infer_layout
from dumptui.core.parallel.raw_rewards import raw_rewards
from dumptui.core.parallel.row_evidence import Evidence, RowVerdict
from dumptui.core.parallel.row_matching import Matcher, Refusal
from dumptui.core.parallel.shard_group import ENGINE_COLUMN, ShardGroup, group_shards
from dumptui.core.parallel.slicing import SlicingRule, find_slicing_rule


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """The train row of a sample. `tied` if another sample fitted as well, so that order decided."""

    group: ShardGroup
    row: int
    tied: bool = False


class GroupRows(NamedTuple):
    """The samples of one shard group in a selection: their indices in the selection, and their rows."""

    group: ShardGroup
    indices: Ints
    rows: Ints


class EngineVerdict(NamedTuple):
    """What all slices of the engine's log-probs say about each row of a shard group.

    `moved`: one holds other values than the rollout file at its positions. `identical`: all are equal bit by bit.
    """

    moved: Bools
    identical: Bools


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """Some samples of a step, by `positions`, with their train rows by shard group.

    `without_row` are the indices of those that have no train row.
    """

    alignment: Alignment
    positions: Ints
    lengths: Ints
    parts: tuple[GroupRows, ...]
    without_row: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Alignment:
    """Which train row is which sample of a step, and how the slices of the rows lie; built once and never changed.

    `rows` has the train row of each sample, `orphans` says which rows have no sample and why, `refused` has the samples
    whose own row was refused. `raw_rewards` is by position, None where it can't be placed. By position, too, are the
    response `lengths`, and as `places` the number of the shard group and the row there, -1 without one.

    Any thread may ask. The verdicts on the files and the slicing rules are worked out when they are first asked for:
    they read the engine's log-probs of every copy, and many steps are only listed. One lock guards them, and nothing
    else of a step is filled later.
    """

    samples: tuple[Sample, ...]
    groups: tuple[ShardGroup, ...]
    rows: tuple[Row | None, ...]
    orphans: tuple[str, ...]
    refused: Mapping[int, Refusal]
    raw_rewards: tuple[object, ...] | None
    lengths: Ints
    places: tuple[Ints, Ints]
    _evidence: Evidence
    _slicing_rules: dict[str, SlicingRule] = field(default_factory=dict)
    _lock: RLock = field(default_factory=RLock)

    # Rows ----------------------------------------------------------------------------------------------------------

    @cached_property
    def trained(self) -> int:
        """The number of samples with a train row."""
        return sum(row is not None for row in self.rows)

    def select(self, positions: Ints) -> Selection:
        """Return the samples at `positions` with their train rows."""
        numbers, rows = self.places[0][positions], self.places[1][positions]
        each = ((group, np.flatnonzero(numbers == number)) for number, group in enumerate(self.groups))
        parts = tuple(GroupRows(group, indices, rows[indices]) for group, indices in each if len(indices))
        return Selection(self, positions, self.lengths[positions], parts, tuple(np.flatnonzero(numbers < 0).tolist()))

    def refusal(self, position: int) -> Refusal:
        """Return the state of the train data of a sample without a train row, and the reason."""
        refusal = self.refused.get(position)
        return Refusal(refusal.state, f"no train row: {refusal.reason}") if refusal else NO_ROW

    # Slices --------------------------------------------------------------------------------------------------------

    def slicing_rule(self, column: str) -> SlicingRule:
        """Return the rule by which a column of the train files was cut."""
        with self._lock:
            if column not in self._slicing_rules:
                self._slicing_rules[column] = find_slicing_rule(self.groups, column)
            return self._slicing_rules[column]

    def engine_rule(self, group: ShardGroup) -> str | None:
        """Return the rule by which the engine's log-probs of a shard group were cut; None if no rule fits."""
        return "full" if group.cp_size == 1 else self.slicing_rule(ENGINE_COLUMN).first

    # Verdicts ------------------------------------------------------------------------------------------------------

    def verdict(self, group: ShardGroup, shard: Shard) -> RowVerdict:
        """Return what the tokens and the engine's log-probs of a file say about its rows."""
        with self._lock:
            return self._evidence.judge(group, shard, self.engine_rule(group))

    def same_tokens(self, shard: Shard, row: int, position: int) -> bool | None:
        """Whether a row holds the tokens of a sample; None if that is not known."""
        with self._lock:
            return self._evidence.same_tokens(shard, row, position)

    def engine_verdict(self, group: ShardGroup) -> EngineVerdict:
        """Return what the slices of the engine's log-probs say about the rows of a shard group."""
        moved, identical = np.zeros(group.first.rows, bool), np.ones(group.first.rows, bool)
        holders = [*group.holders(ENGINE_COLUMN)] if group.problem is None else []
        first_of_rank = {rank: shard for shard, rank in reversed(holders)}
        for shard in first_of_rank.values():
            verdict = self.verdict(group, shard)
            moved |= verdict.moved
            identical &= verdict.identical
        return EngineVerdict(moved, identical)

    def contradicted_rows(self, group: ShardGroup) -> Bools:
        """Return, by row, whether the rollout file contradicts the places of its slices; one row is enough for all."""
        if group.cp_size == 1:
            return np.zeros(group.first.rows, bool)
        return self.engine_verdict(group).moved | self.contradicted

    @cached_property
    def contradicted(self) -> bool:
        """Whether the engine's log-probs contradict the place of any slice of the step."""
        moved = {id(group): self.engine_verdict(group).moved for group in self.groups if group.cp_size > 1}
        sliced = (row for row in self.rows if row is not None and id(row.group) in moved and not row.tied)
        return any(moved[id(row.group)][row.row] for row in sliced)


NO_ROW = Refusal("not dumped", "no train row")


def align_rows(samples: tuple[Sample, ...], shards: Sequence[Shard], *, with_rewards: bool = True) -> Alignment:
    """Group the files of a step, match their rows to the samples and work out the layout.

    Without `with_rewards` raw rewards are not placed: the samples are in no order that the train files know.
    """
    groups = group_shards(shards)
    evidence = Evidence(samples)
    matcher = Matcher(samples, evidence)
    groups = [matcher.match(number, group) for number, group in enumerate(groups)]
    groups = with_layout(groups, evidence)
    trained = [position for position, match in enumerate(matcher.matches) if match is not None]
    numbers = [(-1, -1) if match is None else (match.number, match.row) for match in matcher.matches]
    places = np.array(numbers, np.int64).reshape(-1, 2).T
    return Alignment(
        samples=samples,
        groups=tuple(groups),
        rows=tuple(match and Row(groups[match.number], match.row, match.tied) for match in matcher.matches),
        orphans=tuple(matcher.orphans),
        refused=matcher.refused,
        raw_rewards=raw_rewards(groups, samples, trained) if with_rewards else None,
        lengths=np.array([sample.response_length for sample in samples], np.int64),
        places=(places[0], places[1]),
        _evidence=evidence,
    )


def with_layout(groups: Sequence[ShardGroup], evidence: Evidence) -> list[ShardGroup]:
    """Return the groups, those of this attempt that record no layout with the one that is inferred."""
    numbers = [number for number, group in enumerate(groups) if group.joined and not group.records_layout]
    inferred = infer_layout([groups[number] for number in numbers], evidence) if numbers else []
    by_number = dict(zip(numbers, inferred, strict=True))
    return [by_number.get(number, group) for number, group in enumerate(groups)]

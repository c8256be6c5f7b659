"""Inference of the context-parallel layout of dumps that don't record it: the one that fits every file of the step.

A layout fits a column if every slice has the width that its rule gives and, for the engine's log-probs, if every slice
holds the rollout file's values at those positions. Layouts that put every value at the same position count as one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from dumptui.core.arrays import Ints
from dumptui.core.fields.registry import train_columns
from dumptui.core.formats.shard import Shard
from dumptui.core.formats.values import read_each
from dumptui.core.parallel.row_evidence import Evidence
from dumptui.core.parallel.shard_group import ENGINE_COLUMN, ShardGroup
from dumptui.core.parallel.slicing import edges

CP_SIZES = (*range(1, 17), 24, 32, 48, 64)
MOST_STRIDES = 4096  # a file's name may claim any rank


class Candidate(NamedTuple):
    """A layout in which `stride` consecutive ranks, those of tensor parallelism, share a context-parallel rank.

    cp rank = rank // stride % cp.
    """

    cp: int
    stride: int

    def rank_of(self, shard: Shard) -> int:
        return shard.rank // self.stride % self.cp


def assignments(ranks: Sequence[int]) -> Iterator[Candidate]:
    """Yield every assignment of context-parallel ranks to files of these ranks, once."""
    numbers = np.array(ranks)
    strides = [*range(1, min(max(ranks), MOST_STRIDES) + 1), max(ranks) + 1]
    for cp in CP_SIZES:
        seen = set()
        for stride in strides:
            cp_ranks = (numbers // stride % cp).tobytes()
            if cp_ranks not in seen:
                seen.add(cp_ranks)
                yield Candidate(cp, stride)


def infer_layout(groups: Sequence[ShardGroup], evidence: Evidence) -> list[ShardGroup]:
    """Return groups that record no layout with the one that fits them all, or with the problem."""
    layout = Search(groups, evidence).run()
    evidence.forget_slices()
    if isinstance(layout, str):
        problem = f"the context-parallel layout is not recorded and can't be inferred: {layout}"
        return [replace(group, problem=problem) for group in groups]
    return [
        replace(
            group,
            cp_size=layout.cp,
            inferred=layout.cp > 1,
            cp_ranks=tuple(layout.rank_of(shard) for shard in group.shards),
        )
        for group in groups
    ]


class Search:
    """A search that tries all layouts on the files of one step."""

    def __init__(self, groups: Sequence[ShardGroup], evidence: Evidence) -> None:
        self.groups = groups
        self.evidence = evidence
        names = {name for group in groups for shard in group.shards for name in shard.per_token}
        # Columns that are known to be sliced; their widths show the layout.
        self.columns = [name for name in train_columns() if name in names] or sorted(names)
        self.candidates = list(assignments([shard.rank for group in groups for shard in group.shards]))
        self._fits_by_slice: dict[tuple[int, str, int, int, str], bool] = {}
        self._widths_by_column: dict[tuple[int, str], tuple[Ints, Ints]] = {}

    def run(self) -> Candidate | str:
        """Return the layout, or the reason why there is none."""
        misfit = self._misfit()
        if misfit is None:
            return Candidate(1, 1)
        fitting = {column: self._fitting(column) for column in self.columns}
        # A column that no layout fits is ignored, but if no layout fits the engine's log-probs, there is no layout.
        columns = [column for column in self.columns if fitting[column] or column == ENGINE_COLUMN]
        candidates = set.intersection(*(fitting[column] for column in columns)) if columns else set()
        if not candidates:
            return f"no layout fits the widths and the rollout file ({misfit})"
        layouts = self._by_positions([layout for layout in self.candidates if layout in candidates], columns)
        if len(layouts) > 1:
            layouts = [same for same in layouts if self._copies_agree(same[0], columns)]
        if len(layouts) == 1:
            return min(layouts[0], key=self._oddness)
        sizes = sorted({min(same).cp for same in layouts})
        if not sizes:
            return "files that should be copies of one slice differ"
        fit = f"cp {' and '.join(map(str, sizes))}" if len(sizes) > 1 else f"several rank orders of cp {sizes[0]}"
        return f"{fit} fit with different values"

    def _oddness(self, candidate: Candidate) -> tuple[bool, Candidate]:
        """Return a sort key for layouts with equal positions: first those that divide the rank count, then small cp."""
        ranks = {shard.rank for group in self.groups for shard in group.shards}
        return len(ranks) % candidate.cp > 0, candidate

    def _fitting(self, column: str) -> set[Candidate]:
        return {candidate for candidate in self.candidates if self._rule(candidate, column) is not None}

    def _rule(self, candidate: Candidate, column: str) -> str | None:
        """Return the first rule that fits every slice of a column, as one rule places all slices of a column."""
        holders = [(group, shard) for group in self.groups for shard in group.shards if column in shard.per_token]
        for rule in dict.fromkeys(rule for group in self.groups for rule in group.rules):
            if all(self._fits(group, shard, column, candidate, rule) for group, shard in holders):
                return rule
        return None

    def _fits(self, group: ShardGroup, shard: Shard, column: str, candidate: Candidate, rule: str) -> bool:
        cp_rank = candidate.rank_of(shard)
        key = id(shard), column, candidate.cp, cp_rank, rule
        if key not in self._fits_by_slice:
            self._fits_by_slice[key] = self._slice_fits(group, shard, column, candidate.cp, cp_rank, rule)
        return self._fits_by_slice[key]

    def _slice_fits(self, group: ShardGroup, shard: Shard, column: str, cp: int, cp_rank: int, rule: str) -> bool:
        if shard.cp_size is not None and (shard.cp_size, shard.cp_rank) != (cp, cp_rank):
            return False
        spans = group.spans(rule, cp, cp_rank)
        rows, widths = self._widths(group, shard, column)
        if not np.array_equal(spans.width[rows], widths):
            return False
        return column != ENGINE_COLUMN or self.evidence.engine_agrees(group, shard, spans)

    def _widths(self, group: ShardGroup, shard: Shard, column: str) -> tuple[Ints, Ints]:
        """Return the rows whose widths depend on the layout, and those widths."""
        key = id(shard), column
        if key not in self._widths_by_column:
            widths = shard.widths(column)
            telling = (widths >= 0) & (group.positions >= 0)
            if column == ENGINE_COLUMN:  # the engine's own list may have another length than its sample, layout or not
                telling &= [self._has_engine(int(position)) for position in group.positions]
            rows = np.flatnonzero(telling)
            self._widths_by_column[key] = rows, widths[rows]
        return self._widths_by_column[key]

    def _has_engine(self, position: int) -> bool:
        if position < 0:
            return False
        sample = self.evidence.samples[position]
        return sample.rollout_log_probs is None or len(sample.rollout_log_probs) == sample.response_length

    def _by_positions(self, candidates: Iterable[Candidate], columns: Sequence[str]) -> list[list[Candidate]]:
        """Return the candidates, grouped by the positions at which they put all values."""
        by_positions: dict[bytes, list[Candidate]] = {}
        for candidate in candidates:
            by_positions.setdefault(self._positions(candidate, columns), []).append(candidate)
        return list(by_positions.values())

    def _positions(self, candidate: Candidate, columns: Sequence[str]) -> bytes:
        digest = hashlib.blake2b()
        for column in columns:
            rule = self._rule(candidate, column) or "full"
            for group in self.groups:
                for shard in group.shards:
                    if column in shard.per_token:
                        digest.update(edges(group.spans(rule, candidate.cp, candidate.rank_of(shard))))
        return digest.digest()

    def _copies_agree(self, candidate: Candidate, columns: Sequence[str]) -> bool:
        """Whether files that hold copies of one slice, by this layout, hold equal values."""
        for group in self.groups:
            first: dict[tuple[int, str], Shard] = {}
            for shard in group.shards:
                for column in columns:
                    if column in shard.per_token:
                        copy = first.setdefault((candidate.rank_of(shard), column), shard)
                        if copy is not shard and not equal_columns(copy, shard, column):
                            return False
        return True

    def _misfit(self) -> str | None:
        """Return a description of the first slice that is not a whole response."""
        for group in self.groups:
            for shard in group.shards:
                for column in self.columns:
                    if column not in shard.per_token:
                        continue
                    widths, responses = shard.widths(column), group.first.responses
                    wrong = np.flatnonzero((widths >= 0) & (widths != responses) & (group.positions >= 0))
                    if len(wrong):
                        row = wrong[0]
                        expected = f"for {responses[row]} response tokens"
                        return f"{shard.path.name} row {row} holds {widths[row]} {column} {expected}"
        return None


def equal_columns(shard: Shard, other: Shard, column: str) -> bool:
    """Whether two files hold equal values of a column in all rows that both have."""
    rows, other_rows = (read_each(file.tensors(column, range(file.rows))) for file in (shard, other))
    return all(
        a is None or b is None or np.array_equal(a, b, equal_nan=True) for a, b in zip(rows, other_rows, strict=True)
    )

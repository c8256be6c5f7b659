"""How the files of a step divide its samples: which are peers of one data-parallel shard, and which context-parallel rank each is.

Newer dumps record cp_rank and cp_size. For older ones the layout is inferred for the whole step: a layout is kept only when the width of every
slice is the one its rule gives and every slice of the engine's log-probs equals what the rollout file holds at those positions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from dumptui.core.context_parallel import Array, Ints, Spans, spans
from dumptui.core.errors import DumpError
from dumptui.core.shard import Shard

ENGINE = "rollout_log_probs"


@dataclass(eq=False)
class Peers:
    """The files of one data-parallel shard: equal rows on every tensor, pipeline and context-parallel rank.

    `positions` gives for each row the sample's position in the rollout file, -1 where it has none. `problem` is why nothing
    that is sliced over context-parallel ranks can be placed.
    """

    shards: list[Shard]
    positions: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    cp_size: int = 1
    cp_ranks: list[int] = field(default_factory=list)
    inferred: bool = False
    problem: str | None = None

    @property
    def first(self) -> Shard:
        return self.shards[0]

    def rules(self) -> list[Ints | None]:
        """The padded lengths to try, the batch's own format first. Some columns of a bshd run are cut by the thd rule."""
        padded = next((shard.padded for shard in self.shards if shard.padded is not None), None)
        return [None] if padded is None else [padded, None]

    def spans(self, cp_size: int, cp_rank: int, rule: Ints | None) -> Spans:
        return spans(self.first.totals, self.first.responses, cp_size, cp_rank, rule)


def group_peers(shards: Sequence[Shard]) -> list[Peers]:
    """Files with the same rows together, in order of their first rank."""
    groups: dict[object, list[Shard]] = {}
    for shard in shards:
        groups.setdefault(shard.key, []).append(shard)
    return [Peers(group) for group in groups.values()]


def resolve(peers: Sequence[Peers], engine: Sequence[Array | None]) -> None:
    """Set cp_size and cp_ranks, or the problem, of every group. `engine` holds the rollout file's log-probs by position."""
    unrecorded = [group for group in peers if any(shard.cp_size is None for shard in group.shards)]
    for group in peers:
        if group not in unrecorded:
            take_recorded(group)
    if unrecorded:
        infer(unrecorded, engine)


def take_recorded(group: Peers) -> None:
    sizes = {shard.cp_size for shard in group.shards if shard.cp_size is not None}
    group.cp_size = max(sizes)
    group.cp_ranks = [shard.cp_rank or 0 for shard in group.shards]
    if len(sizes) > 1:
        group.problem = f"the files of one shard record different cp sizes: {sorted(sizes)}"
    elif not all(0 <= rank < group.cp_size for rank in group.cp_ranks):
        group.problem = f"a recorded cp rank lies outside cp size {group.cp_size}"
    elif group.cp_size > 1 and group.first.qkv_format == "bshd" and group.rules() == [None]:
        group.problem = "bshd without max_seq_lens: the padded length that the slices were cut by is not dumped"


# Inference ------------------------------------------------------------------------------------------------------


class Candidate(NamedTuple):
    """Ranks count tensor parallel fastest, then context parallel: cp rank = rank // tp % cp."""

    tp: int
    cp: int

    def rank_of(self, shard: Shard) -> int:
        return shard.rank // self.tp % self.cp


def infer(peers: Sequence[Peers], engine: Sequence[Array | None]) -> None:
    """Take the one layout that fits every file of the step, or say why there is none."""
    reader = EngineSlices(engine)
    placements: dict[bytes, list[Candidate]] = {}
    for tier in tiers(peers):
        for candidate in tier:
            placed = placement(peers, candidate, reader)
            if placed is not None:
                placements.setdefault(placed, []).append(candidate)
        if placements:
            break
    if len(placements) == 1:
        candidate = min(next(iter(placements.values())), key=lambda one: (one.cp, one.tp))
        for group in peers:
            group.cp_size, group.inferred = candidate.cp, candidate.cp > 1
            group.cp_ranks = [candidate.rank_of(shard) for shard in group.shards]
        return
    sizes = sorted({one.cp for same in placements.values() for one in same})
    why = f"cp {' and '.join(map(str, sizes))} fit with different values" if sizes else "no layout fits the widths and the rollout file"
    for group in peers:
        group.cp_ranks = [0] * len(group.shards)
        group.problem = f"the context-parallel layout is not recorded and can't be inferred: {why}"


def tiers(peers: Sequence[Peers]) -> Iterator[list[Candidate]]:
    """Candidate layouts, those that the files at hand fill evenly before those that would need files that are not there."""
    ranks = [[shard.rank for shard in group.shards] for group in peers]
    most = max(map(len, ranks))
    every = [Candidate(tp, cp) for cp in range(1, most + 1) for tp in range(1, max(map(max, ranks)) + 2)]
    even, present = [], []
    for candidate in every:
        counts = [np.bincount([rank // candidate.tp % candidate.cp for rank in group], minlength=candidate.cp) for group in ranks]
        if all(count.min() == count.max() for count in counts):
            even.append(candidate)
        elif all(count.min() > 0 for count in counts):
            present.append(candidate)
    yield even
    yield present
    seen = {*even, *present}
    yield [one for one in every if one not in seen]


def placement(peers: Sequence[Peers], candidate: Candidate, reader: EngineSlices) -> bytes | None:
    """Where a candidate puts every value, as bytes to compare; None when a width or the engine's log-probs contradict it."""
    placed = []
    for group in peers:
        for shard in group.shards:
            found = shard_placement(group, shard, candidate, reader)
            if found is None:
                return None
            placed.append(found)
    return b"".join(placed)


def shard_placement(group: Peers, shard: Shard, candidate: Candidate, reader: EngineSlices) -> bytes | None:
    rank = candidate.rank_of(shard)
    rules = [group.spans(candidate.cp, rank, rule) for rule in group.rules()]
    placed = []
    for column in shard.per_token:
        widths = shard.widths(column)
        fitting = [held for held in rules if np.all((widths < 0) | (widths == held.width))]
        if column == ENGINE:
            fitting = [held for held in fitting if reader.agree(group, shard, held)]
        if not fitting:
            return None
        placed.append(np.stack([np.where(widths > 0, edge, 0) for edge in fitting[0]]).tobytes())
    return b"".join(placed)


class EngineSlices:
    """The train files' slices of the engine's log-probs against the rollout file's full copy; each slice is read once."""

    def __init__(self, engine: Sequence[Array | None]) -> None:
        self.engine = engine
        self._read: dict[int, list[Array | None]] = {}

    def agree(self, group: Peers, shard: Shard, held: Spans) -> bool:
        return all(
            self._row_agrees(part, int(position), held.at(row))
            for row, (part, position) in enumerate(zip(self._slices(shard), group.positions, strict=True))
            if part is not None and position >= 0
        )

    def _row_agrees(self, part: Array, position: int, held: tuple[slice, slice]) -> bool:
        full = self.engine[position]
        if full is None or held[1].stop > len(full) or len(part) != sum(one.stop - one.start for one in held):
            return True
        return bool(same_values(part, np.concatenate([full[held[0]], full[held[1]]]), rounded=False).all())

    def _slices(self, shard: Shard) -> list[Array | None]:
        if id(shard) not in self._read:
            self._read[id(shard)] = [self._slice(shard, row) for row in range(shard.rows)]
        return self._read[id(shard)]

    @staticmethod
    def _slice(shard: Shard, row: int) -> Array | None:
        tensor = shard.tensor(ENGINE, row)
        try:
            return None if tensor is None else tensor.numpy()
        except DumpError:  # said where the value would be shown; a slice that can't be read contradicts nothing
            return None


def same_values(part: Array, full: Array, *, rounded: bool) -> Array:
    """Per value, whether two copies of the same log-probs are equal; `rounded` allows for a copy in 16-bit floats (bfloat16: 2**-8)."""
    equal: Array = np.isclose(part, full, rtol=2.0**-8 if rounded else 1e-6, atol=1e-7, equal_nan=True)
    return equal

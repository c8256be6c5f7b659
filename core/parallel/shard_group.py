"""The layout of a step's train files: which files belong to one data-parallel shard, which context-parallel (cp) rank
each file is, and by which rule the slices of a column were cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from dumptui.core.arrays import Ints
from dumptui.core.errors import DumpError
from dumptui.core.fields.registry import FIELDS
from dumptui.core.formats.miles.train_file import Shard
from dumptui.core.parallel.alignment import Alignment
from dumptui.core.parallel.context_parallel import Spans, spans

ENGINE_COLUMN = "rollout_log_probs"
# Some advantage estimators slice these by the thd rule in bshd runs too, so the run's format does not show the rule.
AMBIGUOUS_COLUMNS = frozenset(field.train_column for field in FIELDS if field.either_rule)
QKV_FORMATS = ("thd", "bshd")
MAX_CP_SIZE = 1024
# Rows whose tokens distinguish two files with equal indices and lengths: other attempts and siblings differ in nearly
# all rows.
_PROBED_ROWS = 4


@dataclass(eq=False)
class ShardGroup:
    """The files of one data-parallel shard: equal rows on every tensor, pipeline and context-parallel rank.

    `positions` gives for each row the sample's position in the rollout file, -1 where it has none. `alignments` are of
    the rows with a response that is longer than the sample's, as its media are expanded. `problem` is why nothing that
    is sliced over context-parallel ranks can be placed.
    """

    shards: list[Shard]
    positions: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    alignments: dict[int, Alignment] = field(default_factory=dict)
    cp_size: int = 1
    cp_ranks: list[int] = field(default_factory=list)
    inferred: bool = False
    problem: str | None = None
    _spans: dict[tuple[str, int, int], Spans] = field(default_factory=dict)

    @property
    def first(self) -> Shard:
        return self.shards[0]

    @property
    def joined(self) -> bool:
        """Whether any row is a sample of the rollout file."""
        return bool((self.positions >= 0).any())

    @property
    def all_joined(self) -> bool:
        """Whether every row is: a file with rows of other samples may be of another attempt."""
        return bool((self.positions >= 0).all())

    @property
    def missing(self) -> list[int]:
        """The context-parallel ranks without a file."""
        return sorted(set(range(self.cp_size)) - set(self.cp_ranks)) if self.problem is None else []

    @property
    def caveats(self) -> list[str]:
        """Notes for every value that this layout places."""
        return [f"layout inferred (cp {self.cp_size})"] if self.inferred else []

    @property
    def padded(self) -> Ints | None:
        return next((shard.padded for shard in self.shards if shard.padded is not None), None)

    @property
    def qkv_format(self) -> str:
        recorded = next((shard.qkv_format for shard in self.shards if shard.qkv_format is not None), None)
        return recorded or ("thd" if self.padded is None else "bshd")

    def rules(self) -> list[str]:
        """Return the rules to try, the run's own first; "full" is for columns that were not sliced."""
        own = self.qkv_format
        others = [name for name in QKV_FORMATS if name != own and (name == "thd" or self.padded is not None)]
        return [own, *others, "full"]

    def spans(self, rule: str, cp_size: int, cp_rank: int) -> Spans:
        key = rule, cp_size, cp_rank
        if key not in self._spans:
            padded = self.padded if rule == "bshd" else None
            size, rank = (1, 0) if rule == "full" else (cp_size, cp_rank)
            self._spans[key] = spans(self.first.totals, self.first.responses, size, rank, padded)
        return self._spans[key]

    def placed(self) -> Iterator[tuple[Shard, int]]:
        """Yield each file with its context-parallel rank."""
        yield from zip(self.shards, self.cp_ranks, strict=True)


# Peers ----------------------------------------------------------------------------------------------------


def group_shards(shards: Iterable[Shard]) -> list[ShardGroup]:
    """Return the files grouped by equal rows, in the order of their first ranks."""
    groups: dict[object, list[ShardGroup]] = {}
    probe = cache(probe_tokens)
    for shard in shards:
        alike = groups.setdefault(shard.key, [])
        peers = next((one for one in alike if may_be_copies(probe(one.first), probe(shard))), None)
        if peers is None:
            alike.append(ShardGroup([shard]))
        else:
            peers.shards.append(shard)
    return [peers for alike in groups.values() for peers in alike]


def may_be_copies(mine: bytes | None, theirs: bytes | None) -> bool:
    """Whether two files of equal indices and lengths hold the same tokens, so far as both can be read."""
    return mine is None or theirs is None or mine == theirs


def probe_tokens(shard: Shard) -> bytes | None:
    """Return the tokens of a few rows as bytes; None where they can't be read."""
    rows = sorted({at * (shard.rows - 1) // (_PROBED_ROWS - 1) for at in range(_PROBED_ROWS)}) if shard.rows else []
    tensors = shard.tensors("tokens", rows)
    try:
        return b"".join(b"" if tensor is None else tensor.numpy().tobytes() for tensor in tensors)
    except DumpError:
        return None


def take_recorded(group: ShardGroup) -> None:
    """Set the layout that the files record."""
    sizes = {shard.cp_size for shard in group.shards if shard.cp_size is not None}
    group.cp_size = max(sizes)
    group.cp_ranks = [shard.cp_rank or 0 for shard in group.shards]
    group.problem = recorded_problem(group, sizes)


def recorded_problem(group: ShardGroup, sizes: set[int]) -> str | None:
    if len(sizes) > 1:
        return f"the files of one shard record different cp sizes: {sorted(sizes)}"
    if group.cp_size == 1:
        return None
    if group.cp_size > MAX_CP_SIZE:
        return f"cp size {group.cp_size} is impossible"
    if any(shard.cp_rank is None or not 0 <= shard.cp_rank < group.cp_size for shard in group.shards):
        return f"a file records no cp rank of cp size {group.cp_size}"
    if group.qkv_format not in QKV_FORMATS:
        return f"unknown qkv_format {group.qkv_format!r}"
    if group.qkv_format == "bshd" and group.padded is None:
        return "bshd without max_seq_lens: the padded length used for slicing is not dumped"
    return None


# Rules ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SlicingRule:
    """The rules by which a column may have been sliced in the whole step.

    Each fits every slice, and they place the slices differently; without any, `problem` says why.
    """

    rules: tuple[str, ...]
    problem: str | None = None


def find_slicing_rule(groups: Sequence[ShardGroup], column: str) -> SlicingRule:
    """Return the rules that fit every slice of a column: all slices of a column are cut by one rule.

    The first rule that fits is taken, the run's own if possible; columns in EITHER_RULE keep all that fit.
    """
    sliced = [group for group in groups if group.cp_size > 1 and group.problem is None and group.joined]
    if not sliced:
        return SlicingRule(("full",))
    misfits = {
        rule: misfit(sliced, column, rule) for rule in dict.fromkeys(r for group in sliced for r in group.rules())
    }
    fitting = [rule for rule, problem in misfits.items() if problem is None]
    if not fitting:
        return SlicingRule((), f"widths are not zigzag: {next(iter(misfits.values()))}")
    kept = fitting[:1]
    if column in AMBIGUOUS_COLUMNS:
        kept += [rule for rule in fitting[1:] if not same_places(sliced, column, fitting[0], rule)]
    return SlicingRule(tuple(kept))


def misfit(groups: Sequence[ShardGroup], column: str, rule: str) -> str | None:
    """Return a description of the first slice whose width differs from the rule's; None if all fit."""
    for group in groups:
        for shard, cp_rank in group.placed():
            if column not in shard.per_token:
                continue
            held, widths = group.spans(rule, group.cp_size, cp_rank).width, shard.widths(column)
            wrong = np.flatnonzero((widths >= 0) & (widths != held) & (group.positions >= 0))
            if len(wrong):
                row = wrong[0]
                holds = f"cp rank {cp_rank} of {group.cp_size} holds {widths[row]} values"
                return f"{holds} where the layout gives {held[row]} ({shard.path.name} row {row})"
    return None


def same_places(groups: Sequence[ShardGroup], column: str, one: str, other: str) -> bool:
    return all(
        edges(group.spans(one, group.cp_size, cp_rank)) == edges(group.spans(other, group.cp_size, cp_rank))
        for group in groups
        for shard, cp_rank in group.placed()
        if column in shard.per_token
    )


def edges(held: Spans) -> bytes:
    """Return a rank's positions as bytes to compare; the positions of empty intervals don't matter."""
    first, second = held.first_stop > held.first_start, held.second_stop > held.second_start
    joined = first & second & (held.first_stop == held.second_start)
    starts = np.where(first, held.first_start, held.second_start)
    stops = np.where(second, held.second_stop, held.first_stop)
    gap_from, gap_to = np.where(first & second & ~joined, (held.first_stop, held.second_start), 0)
    some = first | second
    return np.stack([starts * some, stops * some, gap_from, gap_to]).tobytes()

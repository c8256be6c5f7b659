"""The files of one data-parallel shard, and the context-parallel (cp) rank that each of them records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np

from dumptui.core.arrays import Ints
from dumptui.core.errors import DumpError
from dumptui.core.formats.shard import Shard
from dumptui.core.parallel.context_parallel import Spans, spans
from dumptui.core.parallel.token_alignment import TokenAlignment

ENGINE_COLUMN = "rollout_log_probs"
QKV_FORMATS = ("thd", "bshd")
MAX_CP_SIZE = 1024
# Rows whose tokens distinguish two files with equal indices and lengths: other attempts and siblings differ in nearly
# all rows.
_PROBED_ROWS = 4


@dataclass(frozen=True, eq=False)
class ShardGroup:
    """The files of one data-parallel shard: equal rows on every tensor, pipeline and context-parallel rank.

    `positions` gives for each row the sample's position in the rollout file, -1 if it has none. `token_alignments` are
    those of the rows whose response is longer than the sample's, as its media are expanded. `problem` is why nothing
    that is sliced over context-parallel ranks can be placed.
    """

    shards: tuple[Shard, ...]
    positions: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    token_alignments: Mapping[int, TokenAlignment] = field(default_factory=dict)
    cp_size: int = 1
    cp_ranks: tuple[int, ...] = ()
    inferred: bool = False
    problem: str | None = None
    # Needs no lock: an entry depends on its key alone, so that two threads at worst work out the same one.
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
        """Whether every row is a sample of the rollout file: otherwise the file may be of another attempt."""
        return bool((self.positions >= 0).all())

    @property
    def records_layout(self) -> bool:
        return all(shard.cp_size is not None for shard in self.shards)

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

    @property
    def rules(self) -> list[str]:
        """The rules to try, the run's own first; "full" is for columns that were not sliced."""
        own = self.qkv_format
        others = [name for name in QKV_FORMATS if name != own and (name == "thd" or self.padded is not None)]
        return [own, *others, "full"]

    def spans(self, rule: str, cp_size: int, cp_rank: int) -> Spans:
        """Return the response positions of every row that a rank holds by a rule."""
        key = rule, cp_size, cp_rank
        if key not in self._spans:
            padded = self.padded if rule == "bshd" else None
            size, rank = (1, 0) if rule == "full" else (cp_size, cp_rank)
            self._spans[key] = spans(self.first.totals, self.first.responses, size, rank, padded)
        return self._spans[key]

    def placed(self) -> Iterator[tuple[Shard, int]]:
        """Yield each file with its context-parallel rank."""
        yield from zip(self.shards, self.cp_ranks, strict=True)

    def holders(self, column: str) -> Iterator[tuple[Shard, int]]:
        """Yield each file that has a per-token column, with its context-parallel rank."""
        yield from ((shard, rank) for shard, rank in self.placed() if column in shard.per_token)


# Grouping -------------------------------------------------------------------------------------------------


def group_shards(shards: Iterable[Shard]) -> list[ShardGroup]:
    """Return the files grouped by equal rows, in the order of their first ranks, with the layout that they record."""
    by_key: dict[object, list[list[Shard]]] = {}
    probe = cache(probe_tokens)
    for shard in shards:
        groups = by_key.setdefault(shard.key, [])
        group = next((group for group in groups if may_be_copies(probe(group[0]), probe(shard))), None)
        if group is None:
            groups.append([shard])
        else:
            group.append(shard)
    return [with_recorded_layout(tuple(group)) for groups in by_key.values() for group in groups]


def may_be_copies(tokens: bytes | None, other_tokens: bytes | None) -> bool:
    """Whether two files of equal indices and lengths hold the same tokens, so far as both can be read."""
    return tokens is None or other_tokens is None or tokens == other_tokens


def probe_tokens(shard: Shard) -> bytes | None:
    """Return the tokens of a few rows as bytes; None if they can't be read."""
    rows = sorted({at * (shard.rows - 1) // (_PROBED_ROWS - 1) for at in range(_PROBED_ROWS)}) if shard.rows else []
    tensors = shard.tensors("tokens", rows)
    try:
        return b"".join(b"" if tensor is None else tensor.numpy().tobytes() for tensor in tensors)
    except DumpError:
        return None


# Recorded layout ------------------------------------------------------------------------------------------


def with_recorded_layout(shards: tuple[Shard, ...]) -> ShardGroup:
    """Return a group with the layout that its files record; without one, every file is on cp rank 0 of 1."""
    if any(shard.cp_size is None for shard in shards):
        return ShardGroup(shards, cp_ranks=(0,) * len(shards))
    sizes = {shard.cp_size for shard in shards if shard.cp_size is not None}
    group = ShardGroup(shards, cp_size=max(sizes), cp_ranks=tuple(shard.cp_rank or 0 for shard in shards))
    return replace(group, problem=recorded_problem(group, sizes))


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

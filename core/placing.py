"""Putting a per-token column of a data-parallel shard together: which slice of which file goes where, copies as fallback."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dumptui.core.context_parallel import Array, Spans, put
from dumptui.core.errors import DumpError
from dumptui.core.flat import Flat, State
from dumptui.core.layout import Peers
from dumptui.core.ptfile import read_all
from dumptui.core.sample import Dumped
from dumptui.core.shard import Shard


@dataclass(slots=True)
class Slot:
    """The slice of one row that one cp rank holds: its sample in the output, its two places among the row's `response` tokens, its copies."""

    at: int
    response: int
    first: slice
    second: slice
    copies: list[tuple[Shard, Dumped]]


class Column:
    """One column of one data-parallel shard, and the rule that its slices' widths follow."""

    def __init__(self, peers: Peers, name: str) -> None:
        self.peers = peers
        self.name = name
        self.holders = [
            (shard, rank, shard.widths(name))
            for shard, rank in zip(peers.shards, peers.cp_ranks, strict=True)
            if name in shard.per_token
        ]
        self.spans = self._choose_rule()

    def _choose_rule(self) -> list[Spans]:
        """The spans of every cp rank by the rule, bshd or thd, that most rows follow: fields of one file may differ."""
        tried = [
            [self.peers.spans(self.peers.cp_size, rank, rule) for rank in range(self.peers.cp_size)]
            for rule in self.peers.rules()
        ]
        return max(tried, key=self._fitting)

    def _fitting(self, by_rank: list[Spans]) -> int:
        return sum(int((widths == by_rank[rank].width).sum()) for _, rank, widths in self.holders)

    def slots(self, at: int, row: int) -> tuple[list[Slot], State, str | None]:
        """The slices of one row, and what can be said of them before they are read."""
        slots: list[Slot] = []
        missing: list[int] = []
        size = self.peers.cp_size
        for rank, held in enumerate(self.spans):
            width = int(held.width[row])
            here = [(shard, int(widths[row])) for shard, cp_rank, widths in self.holders if cp_rank == rank and widths[row] >= 0]
            copies = [(shard, tensor) for shard, found in here if found == width and (tensor := shard.tensor(self.name, row)) is not None]
            if here and not copies:
                wrong = f"cp rank {rank} of {size} holds {here[0][1]} values where the layout gives {width}"
                return [], "unreadable", f"widths don't fit the layout: {wrong}"
            if width and not copies:
                missing.append(rank)
            elif width:
                slots.append(Slot(at, int(self.peers.first.responses[row]), *held.at(row), copies))
        if missing:
            reason = f"cp rank {', '.join(map(str, missing))} of {size} missing"
            return slots, "partial" if slots else "unreadable", reason
        return slots, "ok", f"layout inferred (cp {size})" if self.peers.inferred else None


def place(peers: Peers, name: str, wanted: Sequence[tuple[int, int]], out: Flat) -> None:
    """Write column `name` of the rows `wanted` (index in `out`, row) to `out`, with the state of each."""
    if not any(name in shard.per_token for shard in peers.shards):
        return
    if peers.problem is not None:
        for at, _ in wanted:
            out.fail(at, peers.problem)
        return
    column = Column(peers, name)
    slots: list[Slot] = []
    for at, row in wanted:
        found, out.states[at], out.reasons[at] = column.slots(at, row)
        slots += found
    fill(slots, out)


def fill(slots: Sequence[Slot], out: Flat) -> None:
    """Read every slot, file by file in one go; a slice that can't be read falls back to a copy of it, else costs its positions."""
    by_file: dict[int, list[Slot]] = defaultdict(list)
    for slot in slots:
        by_file[id(slot.copies[0][0].file)].append(slot)
    lost: dict[int, str] = {}
    for mine in by_file.values():
        for slot, array in zip(mine, read_slots(mine, lost), strict=True):
            if array is not None:
                write(slot, array, out)
    for at, reason in lost.items():
        out.states[at], out.reasons[at] = ("partial" if out.one(at)[1].any() else "unreadable"), reason


def read_slots(slots: Sequence[Slot], lost: dict[int, str]) -> list[Array | None]:
    try:
        return list(read_all([slot.copies[0][1] for slot in slots]))
    except DumpError:
        return [read_one(slot, lost) for slot in slots]


def read_one(slot: Slot, lost: dict[int, str]) -> Array | None:
    for _, tensor in slot.copies:
        try:
            return tensor.numpy()
        except DumpError as error:
            lost[slot.at] = str(error)
    return None


def write(slot: Slot, array: Array, out: Flat) -> None:
    """Put a slice in its place. Where the trainer's response has another length than the sample's (media expanded), the ends are aligned."""
    values, known = out.one(slot.at)
    if slot.response == len(values):
        put(values, array, slot.first, slot.second)
        known[slot.first] = known[slot.second] = True
        return
    there, held = np.zeros(slot.response, values.dtype), np.zeros(slot.response, bool)
    put(there, array, slot.first, slot.second)
    held[slot.first] = held[slot.second] = True
    shared = min(slot.response, len(values))
    tail, end = slice(len(values) - shared, None), slice(slot.response - shared, None)
    values[tail] = np.where(held[end], there[end], values[tail])
    known[tail] |= held[end]



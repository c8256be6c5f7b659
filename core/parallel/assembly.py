"""Putting a per-token column of a data-parallel shard together: which slice of which file goes where, copies as
fallback.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dumptui.core.arrays import Array, Bools, Ints
from dumptui.core.errors import DumpError
from dumptui.core.fields.token_field import State, TokenField, blank
from dumptui.core.formats.miles.train_file import ODD_WIDTH, Shard
from dumptui.core.formats.values import Dumped, other_shape
from dumptui.core.parallel.context_parallel import put
from dumptui.core.parallel.row_evidence import Evidence
from dumptui.core.parallel.shard_group import ShardGroup, SlicingRule
from dumptui.core.ptfile.file import read_all


@dataclass(slots=True)
class Slot:
    """The slice of one row that one cp rank holds: its sample in the output, its two places among the row's
    `response` tokens, its copies.
    """

    column: Column
    at: int
    row: int
    response: int
    first: slice
    second: slice
    copies: list[tuple[Shard, Dumped]]


class Column:
    """One column of one data-parallel shard, cut by `rule`.

    `engine_rule` is how the engine's log-probs were cut, which tell whose a row is.
    """

    def __init__(self, peers: ShardGroup, name: str, rule: str, evidence: Evidence, engine_rule: str | None) -> None:
        self.peers, self.name, self.rule = peers, name, rule
        self.evidence, self.engine_rule = evidence, engine_rule
        self.holders = [
            (shard, 0 if rule == "full" else rank, shard.widths(name))
            for shard, rank in peers.placed()
            if name in shard.per_token
        ]
        ranks = range(1 if rule == "full" else peers.cp_size)
        self.spans = [peers.spans(rule, peers.cp_size, rank) for rank in ranks]

    def first_holder(self, rank: int) -> tuple[Shard, Ints] | None:
        """The first file of a cp rank that has the column, and how many values each of its rows holds."""
        found = ((shard, widths) for shard, cp_rank, widths in self.holders if cp_rank == rank)
        return next(found, None)

    def plain(self, rows: Ints) -> Bools:
        """Which rows have every slice in the first file of its rank, as wide as the rule gives: nearly all."""
        given = [held.width[rows] for held in self.spans]
        fine: Bools = sum(given[1:], given[0]) == self.peers.first.responses[rows]
        for rank, width in enumerate(given):
            if (holder := self.first_holder(rank)) is None:
                fine &= width == 0
                continue
            shard, widths = holder
            fine &= (widths[rows] == width) & ~self.others(shard)[rows]
        return fine

    def slots(self, at: int, row: int) -> tuple[list[Slot], State, str | None]:
        """The slices of one row, and what can be said of them before they are read."""
        if all(widths[row] < 0 for _, _, widths in self.holders):
            if any(widths[row] == ODD_WIDTH for _, _, widths in self.holders):
                return [], "unreadable", odd_row(self.peers, self.name, row) or f"{self.name} is not a list of floats"
            return [], "not dumped", "the column holds nothing for this sample"
        response = int(self.peers.first.responses[row])
        slots: list[Slot] = []
        missing: list[int] = []
        problems: list[str] = []
        for rank, held in enumerate(self.spans):
            width = int(held.width[row])
            copies, problem = self._copies(row, rank, width)
            if copies:
                slots.append(Slot(self, at, row, response, *held.at(row), copies))
            elif width or problem is not None:
                missing.append(rank)
                problems += [problem] if problem else []
        without_rank = response - int(sum(held.width[row] for held in self.spans))
        if without_rank > 0:
            problems.append(f"{without_rank} of {response} tokens belong to no cp rank")
        if missing and self.rule != "full":
            problems.insert(0, f"cp rank {', '.join(map(str, missing))} of {self.peers.cp_size} missing")
        state: State = "ok" if not missing and without_rank <= 0 else "partial" if slots else "unreadable"
        problems += self.peers.caveats
        return slots, state, "; ".join(problems) or None

    def _copies(self, row: int, rank: int, width: int) -> tuple[list[tuple[Shard, Dumped]], str | None]:
        """The files that hold a slice of this row, of which the first is sure to be of this sample; without one, what
        is in its place.
        """
        mine = [
            (shard, int(widths[row])) for shard, cp_rank, widths in self.holders if cp_rank == rank and widths[row] >= 0
        ]
        if mine and all(found != width for _, found in mine):
            shard, found = mine[0]
            return [], f"{self.name} holds {found} values for {width} response tokens ({shard.path.name})"
        copies = [shard for shard, found in mine if found == width]
        while copies and self.is_other(copies[0], row):
            shard = copies.pop(0)
            if not copies:
                return [], f"the tokens in {shard.path.name} differ from the sample's"
        return [(shard, tensor) for shard in copies if (tensor := shard.tensor(self.name, row)) is not None], None

    def is_other(self, shard: Shard, row: int) -> bool:
        return bool(self.others(shard)[row])

    def others(self, shard: Shard) -> Bools:
        return self.evidence.judge(self.peers, shard, self.engine_rule).others


def place(
    peers: ShardGroup,
    name: str,
    ats: Ints,
    rows: Ints,
    out: TokenField,
    cut: SlicingRule,
    evidence: Evidence,
    engine_rule: str | None,
) -> None:
    """Write column `name` of `rows` to the samples `ats` of `out`, with the state of each."""
    problem = peers.problem or (cut.problem if peers.cp_size > 1 else None)
    if not any(name in shard.per_token for shard in peers.shards):
        problem = malformed(peers, name)
        if problem is None:
            return
    if problem is not None:
        for at, row in zip(ats.tolist(), rows.tolist(), strict=True):
            out.fail(at, odd_row(peers, name, row) or problem)
        return
    rules = cut.rules if peers.cp_size > 1 else ("full",)
    place_by_rule(Column(peers, name, rules[0], evidence, engine_rule), ats, rows, out)
    for rule in rules[1:]:
        other = blank(out)
        place_by_rule(Column(peers, name, rule, evidence, engine_rule), ats, rows, other)
        for at in ats.tolist():
            if not out.keep_common(other, at):
                out.fail(at, f"the {rules[0]} and the {rule} rule both fit its widths, with different values")


def malformed(peers: ShardGroup, name: str) -> str | None:
    file = next((shard.path.name for shard in peers.shards if name in shard.malformed), None)
    return None if file is None else f"{name} of {file} is not a list of floats for each row"


def odd_row(peers: ShardGroup, name: str, row: int) -> str | None:
    """What a row holds in place of one value a token, where these are several values."""
    response = int(peers.first.responses[row])
    columns = ((shard, shard.columns[name]) for shard in peers.shards if name in shard.columns)
    values = (column if shard.entries(name) is None else shard.value(name, row) for shard, column in columns)
    shape = next((found for value in values if (found := other_shape(value, response))), None)
    return None if shape is None else f"{name} {shape}"


def place_by_rule(column: Column, ats: Ints, rows: Ints, out: TokenField) -> None:
    plain = column.plain(rows) & (out.lengths[ats] == column.peers.first.responses[rows])
    if not fill_plain(column, ats[plain], rows[plain], out):
        plain[:] = False
    slots: list[Slot] = []
    for at, row in zip(ats[~plain].tolist(), rows[~plain].tolist(), strict=True):
        found, out.states[at], out.reasons[at] = column.slots(at, row)
        slots += found
    fill(slots, out)


def fill_plain(column: Column, ats: Ints, rows: Ints, out: TokenField) -> bool:
    """Read rows that need no choice, a rank at a time; False when a slice can't be read."""
    starts = out.offsets[ats].tolist()
    for rank, held in enumerate(column.spans):
        if (holder := column.first_holder(rank)) is not None:
            try:
                arrays = read_all([holder[0].columns[column.name][row] for row in rows.tolist()])
            except DumpError:
                return False
            for start, array, places in zip(starts, arrays, held.at_all(rows), strict=True):
                put(out.values[start:], array, *places)
    reason = "; ".join(column.peers.caveats) or None
    for at, start, length in zip(ats.tolist(), starts, out.lengths[ats].tolist(), strict=True):
        out.known[start : start + length] = True
        out.states[at], out.reasons[at] = "ok", reason
    return True


def fill(slots: Sequence[Slot], out: TokenField) -> None:
    """Read every slot, file by file in one go; a slice that can't be read falls back to a copy of it, else costs its
    positions.
    """
    by_file: dict[int, list[Slot]] = defaultdict(list)
    for slot in slots:
        by_file[id(slot.copies[0][0].file)].append(slot)
    lost: dict[int, list[str]] = defaultdict(list)
    for mine in by_file.values():
        for slot, array in zip(mine, read_slots(mine, lost), strict=True):
            if array is not None:
                write(slot, array, out)
    for at, problems in lost.items():
        out.states[at] = "partial" if out.one(at)[1].any() else "unreadable"
        out.reasons[at] = "; ".join(dict.fromkeys([*problems, *filter(None, [out.reasons[at]])]))


def read_slots(slots: Sequence[Slot], lost: dict[int, list[str]]) -> list[Array | None]:
    try:
        return list(read_all([slot.copies[0][1] for slot in slots]))
    except DumpError:
        return [read_one(slot, lost) for slot in slots]


def read_one(slot: Slot, lost: dict[int, list[str]]) -> Array | None:
    problems = []
    for at, (shard, tensor) in enumerate(slot.copies):
        try:
            if not at or not slot.column.is_other(shard, slot.row):
                return tensor.numpy()
        except DumpError as error:
            problems.append(str(error))
    lost[slot.at] += problems
    return None


def write(slot: Slot, array: Array, out: TokenField) -> None:
    """Put a slice in its place; where the trainer's response is longer than the sample's, by their alignment."""
    values, known = out.one(slot.at)
    found = slot.column.peers.alignments.get(slot.row)
    if found is None:
        put(values, array, slot.first, slot.second)
        known[slot.first] = known[slot.second] = True
        return
    there, held = np.zeros(slot.response, values.dtype), np.zeros(slot.response, bool)
    put(there, array, slot.first, slot.second)
    held[slot.first] = held[slot.second] = True
    mine = found.own & held[found.at]
    values[mine], known[mine] = there[found.at[mine]], True

"""Assembly of a per-token column from the slices of its files, copies as fallback."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dumptui.core.arrays import Array, Bools, Ints
from dumptui.core.errors import DumpError
from dumptui.core.fields.token_field import State, TokenField, blank, empty
from dumptui.core.formats.shard import ODD_WIDTH, Shard
from dumptui.core.formats.values import Dumped, other_shape
from dumptui.core.parallel.alignment import Alignment, GroupRows, Selection
from dumptui.core.parallel.context_parallel import put
from dumptui.core.parallel.shard_group import ShardGroup
from dumptui.core.ptfile.file import read_all

ORDER_CONTRADICTED = "order contradicted by the rollout file"


def train_field(selection: Selection, name: str, column: str, pause: Callable[[], object]) -> TokenField:
    """Return a column of the train files as a field of a `name`, with the state in each sample.

    `pause` is called before each shard group.
    """
    out, alignment = empty(name, selection.positions, selection.lengths), selection.alignment
    for part in selection.parts:
        pause()
        contradicted = alignment.contradicted_rows(part.group)[part.rows]
        place(alignment, part, column, out)
        out.distrust(part.indices[contradicted], ORDER_CONTRADICTED)
    for index in selection.without_row:
        out.states[index], out.reasons[index] = alignment.refusal(int(out.positions[index]))
    return out


def place(alignment: Alignment, part: GroupRows, column: str, out: TokenField) -> None:
    """Write a column of one shard group to its samples."""
    group, indices, rows = part
    rule = alignment.slicing_rule(column)
    problem = group.problem or (rule.problem if group.cp_size > 1 else None)
    if not any(column in shard.per_token for shard in group.shards):
        problem = malformed(group, column)
        if problem is None:
            return
    if problem is not None:
        for index, row in zip(indices.tolist(), rows.tolist(), strict=True):
            out.fail(index, odd_row(group, column, row) or problem)
        return
    first, *others = rule.rules if group.cp_size > 1 else ("full",)
    ColumnAssembler(alignment, group, column, first).fill(indices, rows, out)
    for other in others:
        by_other = blank(out)
        ColumnAssembler(alignment, group, column, other).fill(indices, rows, by_other)
        for index in indices.tolist():
            if not out.keep_common(by_other, index):
                out.fail(index, f"the {first} and the {other} rule both fit its widths, with different values")


def malformed(group: ShardGroup, column: str) -> str | None:
    """Return why a column that no file holds per token is not shown; None if no file holds it at all."""
    file = next((shard.path.name for shard in group.shards if column in shard.malformed), None)
    return None if file is None else f"{column} of {file} is not a list of floats for each row"


def odd_row(group: ShardGroup, column: str, row: int) -> str | None:
    """Return what a row holds in place of one value per token, if that is several values per token."""
    response = int(group.first.responses[row])
    columns = ((shard, shard.columns[column]) for shard in group.shards if column in shard.columns)
    values = (entries if shard.entries(column) is None else shard.value(column, row) for shard, entries in columns)
    shape = next((shape for value in values if (shape := other_shape(value, response))), None)
    return None if shape is None else f"{column} {shape}"


@dataclass(slots=True)
class Slice:
    """The part of one row that one cp rank holds.

    `index` is the sample's in the output; `first` and `second` are the intervals of the slice among the `response`
    tokens of the row; `copies` are the files that hold it, with its values.
    """

    index: int
    row: int
    response: int
    first: slice
    second: slice
    copies: list[tuple[Shard, Dumped]]


class ColumnAssembler:
    """Puts one column of one data-parallel shard together, which was cut by `rule`."""

    def __init__(self, alignment: Alignment, group: ShardGroup, name: str, rule: str) -> None:
        self.alignment, self.group, self.name, self.rule = alignment, group, name, rule
        self.holders = [
            (shard, 0 if rule == "full" else rank, shard.widths(name)) for shard, rank in group.holders(name)
        ]
        ranks = range(1 if rule == "full" else group.cp_size)
        self.spans = [group.spans(rule, group.cp_size, rank) for rank in ranks]

    def fill(self, indices: Ints, rows: Ints, out: TokenField) -> None:
        """Write `rows` to the samples at `indices` of `out`."""
        plain = self._plain(rows) & (out.lengths[indices] == self.group.first.responses[rows])
        if not self._fill_plain(indices[plain], rows[plain], out):
            plain[:] = False
        slices: list[Slice] = []
        for index, row in zip(indices[~plain].tolist(), rows[~plain].tolist(), strict=True):
            parts, out.states[index], out.reasons[index] = self._slices(index, row)
            slices += parts
        if slices:
            self._fill_slices(slices, out)

    # Rows that need no choice ----------------------------------------------------------------------------------

    def _plain(self, rows: Ints) -> Bools:
        """Return which rows have every slice in the first file of its rank, as wide as the rule gives: nearly all."""
        widths_by_rank = [spans.width[rows] for spans in self.spans]
        plain: Bools = sum(widths_by_rank[1:], widths_by_rank[0]) == self.group.first.responses[rows]
        for rank, width in enumerate(widths_by_rank):
            if (holder := self._first_holder(rank)) is None:
                plain &= width == 0
                continue
            shard, widths = holder
            plain &= (widths[rows] == width) & ~self._others(shard)[rows]
        return plain

    def _fill_plain(self, indices: Ints, rows: Ints, out: TokenField) -> bool:
        """Read rows that need no choice, a rank at a time; False when a slice can't be read."""
        starts = out.offsets[indices].tolist()
        for rank, spans in enumerate(self.spans):
            if (holder := self._first_holder(rank)) is not None:
                try:
                    arrays = read_all([holder[0].columns[self.name][row] for row in rows.tolist()])
                except DumpError:
                    return False
                for start, array, intervals in zip(starts, arrays, spans.at_all(rows), strict=True):
                    put(out.values[start:], array, *intervals)
        reason = "; ".join(self.group.caveats) or None
        for index, start, length in zip(indices.tolist(), starts, out.lengths[indices].tolist(), strict=True):
            out.known[start : start + length] = True
            out.states[index], out.reasons[index] = "ok", reason
        return True

    def _first_holder(self, rank: int) -> tuple[Shard, Ints] | None:
        """Return the first file of a cp rank that has the column, and how many values each of its rows holds."""
        holders = ((shard, widths) for shard, cp_rank, widths in self.holders if cp_rank == rank)
        return next(holders, None)

    # Other rows ------------------------------------------------------------------------------------------------

    def _slices(self, index: int, row: int) -> tuple[list[Slice], State, str | None]:
        """Return the slices of one row, and its state and reason so far as they are known before reading."""
        if all(widths[row] < 0 for _, _, widths in self.holders):
            if any(widths[row] == ODD_WIDTH for _, _, widths in self.holders):
                return [], "unreadable", odd_row(self.group, self.name, row) or f"{self.name} is not a list of floats"
            return [], "not dumped", "the column holds nothing for this sample"
        response = int(self.group.first.responses[row])
        slices: list[Slice] = []
        missing: list[int] = []
        problems: list[str] = []
        for rank, spans in enumerate(self.spans):
            width = int(spans.width[row])
            copies, problem = self._copies(row, rank, width)
            if copies:
                slices.append(Slice(index, row, response, *spans.at(row), copies))
            elif width or problem is not None:
                missing.append(rank)
                problems += [problem] if problem else []
        without_rank = response - int(sum(spans.width[row] for spans in self.spans))
        if without_rank > 0:
            problems.append(f"{without_rank} of {response} tokens belong to no cp rank")
        if missing and self.rule != "full":
            problems.insert(0, f"cp rank {', '.join(map(str, missing))} of {self.group.cp_size} missing")
        state: State = "ok" if not missing and without_rank <= 0 else "partial" if slices else "unreadable"
        problems += self.group.caveats
        return slices, state, "; ".join(problems) or None

    def _copies(self, row: int, rank: int, width: int) -> tuple[list[tuple[Shard, Dumped]], str | None]:
        """Return the files that hold a slice of this row, the first of which is sure to be of this sample; without one,
        what is in its place.
        """
        holders = [
            (shard, int(widths[row])) for shard, cp_rank, widths in self.holders if cp_rank == rank and widths[row] >= 0
        ]
        if holders and all(count != width for _, count in holders):
            shard, count = holders[0]
            return [], f"{self.name} holds {count} values for {width} response tokens ({shard.path.name})"
        copies = [shard for shard, count in holders if count == width]
        while copies and self._is_other(copies[0], row):
            shard = copies.pop(0)
            if not copies:
                return [], f"{shard.path.name} holds other tokens than the sample"
        return [(shard, tensor) for shard in copies if (tensor := shard.tensor(self.name, row)) is not None], None

    def _is_other(self, shard: Shard, row: int) -> bool:
        return bool(self._others(shard)[row])

    def _others(self, shard: Shard) -> Bools:
        """Return which rows of a file hold other tokens than their sample."""
        return self.alignment.verdict(self.group, shard).others

    def _fill_slices(self, slices: Sequence[Slice], out: TokenField) -> None:
        """Read every slice, file by file in one go; one that can't be read falls back to a copy of it, else costs its
        positions.
        """
        by_file: dict[int, list[Slice]] = defaultdict(list)
        for part in slices:
            by_file[id(part.copies[0][0].file)].append(part)
        lost: dict[int, list[str]] = defaultdict(list)
        for parts in by_file.values():
            for part, array in zip(parts, self._read(parts, lost), strict=True):
                if array is not None:
                    self._write(part, array, out)
        for index, problems in lost.items():
            out.states[index] = "partial" if out.one(index)[1].any() else "unreadable"
            out.reasons[index] = "; ".join(dict.fromkeys([*problems, *filter(None, [out.reasons[index]])]))

    def _read(self, slices: Sequence[Slice], lost: dict[int, list[str]]) -> list[Array | None]:
        try:
            return list(read_all([part.copies[0][1] for part in slices]))
        except DumpError:
            return [self._read_one(part, lost) for part in slices]

    def _read_one(self, part: Slice, lost: dict[int, list[str]]) -> Array | None:
        """Return a slice from its first readable copy; else None, with the problems added to those of its sample."""
        problems = []
        for number, (shard, tensor) in enumerate(part.copies):
            try:
                if not number or not self._is_other(shard, part.row):
                    return tensor.numpy()
            except DumpError as error:
                problems.append(str(error))
        lost[part.index] += problems
        return None

    def _write(self, part: Slice, array: Array, out: TokenField) -> None:
        """Put a slice in its place, by the token alignment if the trainer's response is longer than the sample's."""
        values, known = out.one(part.index)
        alignment = self.group.token_alignments.get(part.row)
        if alignment is None:
            put(values, array, part.first, part.second)
            known[part.first] = known[part.second] = True
            return
        row_values, held = np.zeros(part.response, values.dtype), np.zeros(part.response, bool)
        put(row_values, array, part.first, part.second)
        held[part.first] = held[part.second] = True
        own = alignment.own & held[alignment.positions]
        values[own], known[own] = row_values[alignment.positions[own]], True

"""The packing of a step's samples for training: tokens per shard and micro-batch, and the untrained samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dumptui.core.parallel.shard_group import ShardGroup
from dumptui.core.step.schedule import schedule_of
from dumptui.core.step.step import Step
from dumptui.core.tables.steps import group_key
from dumptui.core.types import Record


@dataclass(frozen=True, slots=True)
class Load:
    """The load of a data-parallel shard: the `tokens` of its samples, prompts included, in total and by micro-batch.

    `steps` holds the number of micro-batches of each optimizer step. Where the schedule is not known, `micro_batches`
    and `steps` are None and `reason` says why.
    """

    tokens: int
    rows: int
    micro_batches: tuple[int, ...] | None = None
    steps: tuple[int, ...] | None = None
    reason: str | None = None

    def by_step(self) -> list[int]:
        """Return the tokens of each optimizer step, or one total where the dump does not record the steps."""
        if self.micro_batches is None or self.steps is None:
            return [self.tokens]
        totals, first = [], 0
        for size in self.steps:
            totals.append(sum(self.micro_batches[first : first + size]))
            first += size
        return totals


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Samples that were not trained, by position, and the `fact` that they have in common."""

    fact: str
    positions: tuple[int, ...]


def loads(step: Step) -> list[Load]:
    """Return one load per data-parallel shard, in the order of their first ranks."""
    return [load_of(group) for group in step.alignment.groups]


def load_of(group: ShardGroup) -> Load:
    tokens, rows = int(group.first.totals.sum()), group.first.rows
    schedule = schedule_of(group)
    if isinstance(schedule, str):
        return Load(tokens, rows, reason=schedule)
    return Load(tokens, rows, schedule.tokens, schedule.steps)


def imbalance(tokens: Sequence[int]) -> float:
    """Return max/mean - 1: how much longer the largest shard takes than an average one."""
    return max(tokens) * len(tokens) / sum(tokens) - 1.0 if tokens and sum(tokens) else 0.0


def worst_imbalance(loads: Sequence[Load]) -> float:
    """Return the imbalance between data-parallel shards in the optimizer step where it is largest."""
    steps = [load.by_step() for load in loads]
    if len({len(tokens) for tokens in steps}) > 1:
        steps = [[load.tokens] for load in loads]
    return max((imbalance(tokens) for tokens in zip(*steps, strict=True)), default=0.0)


def left_out(step: Step, table: Sequence[Record]) -> list[LeftOut]:
    """Return the samples without a train row or an unmasked token. `table` holds the rows of the samples table."""
    if step.files.key.evaluation:
        return []
    facts = untrained(step, table) | {
        "removed by a filter (loss mask is zero)": [
            position for position, row in enumerate(table) if row["trained"] and row["remove_sample"]
        ],
        "without unmasked tokens": [
            position
            for position, row in enumerate(table)
            if row["trained"] and not row["remove_sample"] and row["effective_length"] == 0
        ],
    }
    return [LeftOut(fact, tuple(positions)) for fact, positions in facts.items() if positions]


def untrained(step: Step, table: Sequence[Record]) -> dict[str, list[int]]:
    """Return the positions of the samples without a train row, by what is known about the cause."""
    positions = [position for position, row in enumerate(table) if not row["trained"]]
    if step.broken:
        return {"without a train row (an unreadable file may hold it)": positions}
    groups = whole_groups(table)
    return {
        "without a train row, like their whole group": [
            position for position in positions if group_key(table[position]) in groups
        ],
        "without a train row": [position for position in positions if group_key(table[position]) not in groups],
    }


def whole_groups(table: Sequence[Record]) -> set[object]:
    """Return the groups of two samples or more without any train row; none if every group of the step lacks them."""
    by_group: dict[object, list[bool]] = {}
    for row in table:
        if row["group_index"] is not None:
            by_group.setdefault(group_key(row), []).append(bool(row["trained"]))
    untrained = {key for key, trained in by_group.items() if len(trained) > 1 and not any(trained)}
    return untrained if len(untrained) < len(by_group) else set()

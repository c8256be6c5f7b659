"""How a step's samples were packed for training: tokens a shard and micro-batch, and what was left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dumptui.core.join import Step
from dumptui.core.layout import Peers
from dumptui.core.record import Record
from dumptui.core.schedule import schedule_of
from dumptui.core.tables import group_key


@dataclass(frozen=True, slots=True)
class Load:
    """A data-parallel shard: `tokens` of its samples, prompts included, in all and by micro-batch in order.

    `steps` has how many micro-batches each optimizer step took. Both are None where `reason` says why.
    """

    tokens: int
    rows: int
    micro_batches: tuple[int, ...] | None = None
    steps: tuple[int, ...] | None = None
    reason: str | None = None

    def by_step(self) -> list[int]:
        """Tokens an optimizer step; of all together where the dump doesn't say."""
        if self.micro_batches is None or self.steps is None:
            return [self.tokens]
        found, at = [], 0
        for size in self.steps:
            found.append(sum(self.micro_batches[at : at + size]))
            at += size
        return found


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Samples that nothing was learnt from, by their positions, and what the dump says of them."""

    fact: str
    positions: tuple[int, ...]


def loads(step: Step) -> list[Load]:
    """One a data-parallel shard, in the order of their first ranks."""
    return [load_of(peers) for peers in step.peers]


def load_of(peers: Peers) -> Load:
    tokens, rows = int(peers.first.totals.sum()), peers.first.rows
    found = schedule_of(peers)
    if isinstance(found, str):
        return Load(tokens, rows, reason=found)
    return Load(tokens, rows, found.tokens, found.steps)


def imbalance(tokens: Sequence[int]) -> float:
    """How far the largest is above the mean, as a share of it: the time that the others wait."""
    return max(tokens) * len(tokens) / sum(tokens) - 1.0 if tokens and sum(tokens) else 0.0


def worst_imbalance(found: Sequence[Load]) -> float:
    """Between data-parallel shards, of the optimizer step in which it is the largest."""
    steps = [load.by_step() for load in found]
    if len({len(one) for one in steps}) > 1:
        steps = [[load.tokens] for load in found]
    return max((imbalance(each) for each in zip(*steps, strict=True)), default=0.0)


def left_out(step: Step, table: Sequence[Record]) -> list[LeftOut]:
    """Samples without a train row or an unmasked token; `table` are the rows of the samples table."""
    if step.files.key.evaluation:
        return []
    facts = untrained(step, table) | {
        "removed by a filter (loss mask is zero)": [
            at for at, row in enumerate(table) if row["trained"] and row["remove_sample"]
        ],
        "without unmasked tokens": [
            at
            for at, row in enumerate(table)
            if row["trained"] and not row["remove_sample"] and row["effective_length"] == 0
        ],
    }
    return [LeftOut(fact, tuple(positions)) for fact, positions in facts.items() if positions]


def untrained(step: Step, table: Sequence[Record]) -> dict[str, list[int]]:
    """The samples without a train row, by what is known of why."""
    without = [at for at, row in enumerate(table) if not row["trained"]]
    if step.broken:
        return {"without a train row (an unreadable file may hold it)": without}
    whole = whole_groups(table)
    return {
        "without a train row, like their whole group": [at for at in without if group_key(table[at]) in whole],
        "without a train row": [at for at in without if group_key(table[at]) not in whole],
    }


def whole_groups(table: Sequence[Record]) -> set[object]:
    """Groups of two samples or more of which none has a train row; all of a step without train data are not told."""
    by_group: dict[object, list[bool]] = {}
    for row in table:
        if row["group_index"] is not None:
            by_group.setdefault(group_key(row), []).append(bool(row["trained"]))
    found = {key for key, trained in by_group.items() if len(trained) > 1 and not any(trained)}
    return found if len(found) < len(by_group) else set()

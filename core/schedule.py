"""Which micro-batch and optimizer step trained a row of a shard, as far as the dump tells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from dumptui.core.join import Step
from dumptui.core.layout import Peers
from dumptui.core.shard import Shard
from dumptui.core.values import as_int


@dataclass(frozen=True, slots=True)
class Schedule:
    """Of a data-parallel shard: the micro-batch of each row, the tokens of each micro-batch, prompts included, and how
    many micro-batches each optimizer step took, None where that is not dumped. All are counted from 0, as ranks are.
    """

    batches: tuple[int, ...]
    tokens: tuple[int, ...]
    steps: tuple[int, ...] | None

    def optimizer_step(self, batch: int) -> int | None:
        stops = accumulate(self.steps or ())
        return next((at for at, stop in enumerate(stops) if batch < stop), None)


def schedule_of(peers: Peers) -> Schedule | str:
    """That of a data-parallel shard, or why there is none."""
    holder = next((shard for shard in peers.shards if shard.columns.get("micro_batch_indices") is not None), None)
    if holder is None:
        return "micro_batch_indices is not dumped"
    rows = row_numbers(holder)
    if rows is None:
        return "micro_batch_indices doesn't name each row once"
    batch_of = {row: at for at, batch in enumerate(rows) for row in batch}
    tokens = tuple(int(holder.totals[batch].sum()) for batch in rows)
    return Schedule(tuple(batch_of[row] for row in range(holder.rows)), tokens, steps_of(holder, len(rows)))


def row_numbers(shard: Shard) -> list[list[int]] | None:
    """The rows of each micro-batch; None where they are not all the shard's rows, each once."""
    dumped = shard.columns["micro_batch_indices"]
    if not isinstance(dumped, (list, tuple)) or not all(isinstance(batch, (list, tuple)) for batch in dumped):
        return None
    batches = [[row for one in batch if (row := as_int(one)) is not None] for batch in dumped]
    named = sorted(row for batch in batches for row in batch)
    return batches if named == list(range(shard.rows)) else None


def steps_of(shard: Shard, count: int) -> tuple[int, ...] | None:
    dumped = shard.columns.get("num_microbatches")
    sizes = [as_int(one) for one in dumped] if isinstance(dumped, (list, tuple)) else []
    found = tuple(size for size in sizes if size is not None)
    return found if found and len(found) == len(sizes) and sum(found) == count else None


def schedule_columns(step: Step) -> dict[str, Sequence[object]]:
    """The micro-batch and the optimizer step of each sample of a step, None where the dump doesn't say."""
    schedules = {id(peers): schedule_of(peers) for peers in step.peers}
    places = [(None, None) if row is None else place_of(schedules[id(row.peers)], row.row) for row in step.rows]
    return {"micro_batch": [batch for batch, _ in places], "optimizer_step": [update for _, update in places]}


def place_of(schedule: Schedule | str, row: int) -> tuple[int | None, int | None]:
    """The micro-batch and optimizer step of a row."""
    if isinstance(schedule, str):
        return None, None
    batch = schedule.batches[row]
    return batch, schedule.optimizer_step(batch)

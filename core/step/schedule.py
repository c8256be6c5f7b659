"""The micro-batch and the optimizer step that trained each row of a shard, where the dump records them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from dumptui.core.formats.shard import Shard
from dumptui.core.formats.values import as_int
from dumptui.core.parallel.shard_group import ShardGroup
from dumptui.core.step.step import Step


@dataclass(frozen=True, slots=True)
class Schedule:
    """The schedule of a data-parallel shard.

    `batches` is the micro-batch of each row, counted from 0; `tokens` the tokens of each micro-batch, prompts included;
    `steps` the number of micro-batches of each optimizer step, None where that is not dumped.
    """

    batches: tuple[int, ...]
    tokens: tuple[int, ...]
    steps: tuple[int, ...] | None

    def optimizer_step(self, batch: int) -> int | None:
        """Return the optimizer step, counted from 0, that trained a micro-batch."""
        stops = accumulate(self.steps or ())
        return next((step for step, stop in enumerate(stops) if batch < stop), None)


def schedule_of(group: ShardGroup) -> Schedule | str:
    """Return the schedule of a data-parallel shard, or the reason why it is not known."""
    holder = next((shard for shard in group.shards if shard.columns.get("micro_batch_indices") is not None), None)
    if holder is None:
        return "micro_batch_indices is not dumped"
    rows = row_numbers(holder)
    if rows is None:
        return "micro_batch_indices doesn't list each row exactly once"
    batch_of = {row: number for number, batch in enumerate(rows) for row in batch}
    tokens = tuple(int(holder.totals[batch].sum()) for batch in rows)
    return Schedule(tuple(batch_of[row] for row in range(holder.rows)), tokens, steps_of(holder, len(rows)))


def row_numbers(shard: Shard) -> list[list[int]] | None:
    """Return the rows of each micro-batch; None unless they are all rows of the shard, each once."""
    dumped = shard.columns["micro_batch_indices"]
    if not isinstance(dumped, (list, tuple)) or not all(isinstance(batch, (list, tuple)) for batch in dumped):
        return None
    batches = [[row for entry in batch if (row := as_int(entry)) is not None] for batch in dumped]
    named = sorted(row for batch in batches for row in batch)
    return batches if named == list(range(shard.rows)) else None


def steps_of(shard: Shard, count: int) -> tuple[int, ...] | None:
    dumped = shard.columns.get("num_microbatches")
    sizes = [as_int(size) for size in dumped] if isinstance(dumped, (list, tuple)) else []
    steps = tuple(size for size in sizes if size is not None)
    return steps if steps and len(steps) == len(sizes) and sum(steps) == count else None


def lost_rollouts(step: Step) -> str | None:
    """Return how many rollouts the schedule has and the train files lack; None unless a shard must be missing.

    A data-parallel shard that is lost would have about as many rows as the others.
    """
    joined = [group.first for group in step.alignment.groups if group.joined]
    planned = max((sum(whole_numbers(shard.columns.get("num_rollouts"))) for shard in joined), default=0)
    rows = [
        (shard.value("rollout_ids", row), number, row)
        for number, shard in enumerate(joined)
        for row in range(shard.rows)
    ]
    dumped = len({as_int(rollout) if rollout is not None else (number, row) for rollout, number, row in rows})
    lost = planned - dumped
    if lost <= 0 or lost < min(shard.rows for shard in joined) or counts_trained(step, joined):
        return None
    return f"the schedule has {planned} rollouts, the train files {dumped}: a data-parallel shard is missing"


def counts_trained(step: Step, shards: Sequence[Shard]) -> bool:
    """Whether the raw rewards, which are of the whole batch, are as many as the rows."""
    columns = (shard.columns.get("raw_reward") for shard in shards)
    return any(isinstance(column, (list, tuple)) and len(column) == step.trained for column in columns)


def whole_numbers(dumped: object) -> list[int]:
    numbers = [as_int(entry) for entry in dumped] if isinstance(dumped, (list, tuple)) else []
    return [number for number in numbers if number is not None]


def schedule_columns(step: Step) -> dict[str, Sequence[object]]:
    """Return the micro-batch and the optimizer step of each sample of a step, None where they are not known."""
    alignment = step.alignment
    schedules = {id(group): schedule_of(group) for group in alignment.groups}
    pairs = [(None, None) if row is None else place_of(schedules[id(row.group)], row.row) for row in alignment.rows]
    return {"micro_batch": [batch for batch, _ in pairs], "optimizer_step": [update for _, update in pairs]}


def place_of(schedule: Schedule | str, row: int) -> tuple[int | None, int | None]:
    """Return the micro-batch and the optimizer step of a row."""
    if isinstance(schedule, str):
        return None, None
    batch = schedule.batches[row]
    return batch, schedule.optimizer_step(batch)

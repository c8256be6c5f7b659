"""The rows of the views: groups, batch and steps; samples stand in sample_rows.

Names and formulas are those of the miles dashboard where it has them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from dumptui.core.errors import DumpError
from dumptui.core.join import MOVED, Step
from dumptui.core.layout import Peers
from dumptui.core.passing import is_binary, pass_rates
from dumptui.core.record import Record
from dumptui.core.run import Entry, StepFiles
from dumptui.core.sample_rows import samples
from dumptui.core.schedule import Schedule, schedule_of
from dumptui.core.statistics import mean, std
from dumptui.core.values import as_float

__all__ = ["batch", "coverage", "groups", "samples", "step_row", "train_reason", "unreadable_step"]

EARLIER_ATTEMPT = "train files are older than the rollout file: of an earlier attempt"

MOST_PROBLEMS = 4  # of train files, in the reason of a step: Health has them all

# Two rewards closer than this count as equal: shaped rewards that differ only by float rounding are still one value.
SAME_REWARD = 1e-12


# Groups ---------------------------------------------------------------------------------------------------------


def groups(table: Sequence[Record], *, evaluation: bool = False) -> list[Record]:
    """A row a prompt group of the samples `table`; samples without a group index form one group.

    Evals dump no group index: their groups are the runs of equal prompts, numbered over the file.
    """
    key = reward_column(table, evaluation)
    binary = is_binary(floats(table, key))
    return [
        group_row(index, dataset, [table[at] for at in positions], key, binary)
        for (dataset, index), positions in members(table).items()
    ]


def members(table: Sequence[Record]) -> dict[tuple[int | None, int | None], list[int]]:
    """The positions of each group's samples by its key, in the order of the groups table."""
    found: dict[tuple[int | None, int | None], list[int]] = {}
    for at, row in enumerate(table):
        found.setdefault(group_key(row), []).append(at)
    return dict(sorted(found.items(), key=lambda one: (one[0][0] or 0, one[0][1] is None, one[0][1] or 0)))


def group_key(row: Record) -> tuple[int | None, int | None]:
    """The dataset of an eval sample, and its group in there."""
    dataset, group = row.get("dataset"), row["group_index"]
    group = row.get("prompt_group") if group is None else group
    assert isinstance(dataset, int | None) and isinstance(group, int | None)
    return dataset, group


def reward_column(table: Sequence[Record], evaluation: bool) -> str:
    """The trainer's raw reward where the step has it, else the sample's own."""
    trained = not evaluation and any(row["raw_reward"] is not None for row in table)
    return "raw_reward" if trained else "reward"


def group_row(index: int | None, dataset: int | None, rows: Sequence[Record], key: str, binary: bool) -> Record:
    """`zero_std` is the dashboard's flag, which is set for a single reward too; `zero_std_known` tells whether there
    are two to compare. pass@k is of the group's own k, its members with a reward, and only of `binary` rewards.
    """
    rewards = floats(rows, key)
    passes = pass_rates(rewards) if binary else {}
    centre, spread = mean(rewards), std(rewards)
    rewarded = sum(reward is not None for reward in rewards)
    return {
        "group_index": index,
        **({} if dataset is None else {"dataset": dataset}),
        "n": len(rows),
        "reward_mean": centre,
        "reward_std": spread,
        "response_length_mean": mean(floats(rows, "response_length")),
        "truncated_frac": mean([float(bool(row["truncated"])) for row in rows]),
        "zero_std": centre is not None and (spread or 0.0) <= SAME_REWARD,
        "zero_std_known": rewarded > 1,
        "rewarded": rewarded,
        "pass_at_1": passes.get(1),
        "pass_at_k": passes.get(rewarded),
        "mean_abs_lp_diff": mean(floats(rows, "mean_abs_lp_diff")),
        "samples": [row["sample_index"] for row in rows],
    }


def episode_mean(table: Sequence[Record], rewards: Sequence[float | None]) -> float | None:
    """The mean over executions of the mean reward of an execution's samples: siblings of one execution count once
    together.
    """
    episodes: dict[object, list[float | None]] = {}
    for at, (row, reward) in enumerate(zip(table, rewards, strict=True)):
        name = row["execution"], row.get("dataset"), row["sample_index"]
        episode = name[:1] if name[0] is not None else name[1:] if name[2] is not None else at
        episodes.setdefault(episode, []).append(reward)
    return mean([mean(episode) for episode in episodes.values()])


def floats(rows: Sequence[Record], key: str) -> list[float | None]:
    return [as_float(row.get(key)) for row in rows]


# Batch ----------------------------------------------------------------------------------------------------------


def batch(step: Step) -> list[Record]:
    """A row a train file, in rank order."""
    number = {id(shard): (at, cp) for at, peers in enumerate(step.peers) for shard, cp in peers.placed()}
    schedules = [schedule_of(peers) for peers in step.peers]
    rows: list[Record] = []
    for shard in step.shards:
        dp, cp = number[id(shard)]
        peers = step.peers[dp]
        known = peers.problem is None and (peers.joined or shard.cp_size is not None)
        problem = peers.problem or (MOVED if peers.cp_size > 1 and step.layout_contradicted else None)
        rows.append(
            {
                "file": shard.path.name,
                "rank": shard.rank,
                "cp_rank": cp if known else None,
                "cp_size": peers.cp_size if known else None,
                "dp_shard": dp,
                "rows": shard.rows,
                "tokens": int(shard.totals.sum()),
                **packed(schedules[dp]),
                "bytes": shard.size,
                "fields": list(shard.per_token),
                "state": "ok" if problem is None else "unreadable",
                "reason": problem or layout_note(peers),
            }
        )
    listed = {str(entry.path): (rank, entry) for rank, entry in step.files.shards}
    rows += [broken_row(*listed[error.path], error) for error in step.broken]
    return rows


def packed(schedule: Schedule | str) -> Record:
    """Tokens a micro-batch, and micro-batches an optimizer step."""
    if isinstance(schedule, str):
        return {"micro_batch_tokens": None, "num_microbatches": None}
    steps = None if schedule.steps is None else list(schedule.steps)
    return {"micro_batch_tokens": list(schedule.tokens), "num_microbatches": steps}


def layout_note(peers: Peers) -> str | None:
    if peers.first.rows and not peers.joined:
        return "no row of it is a sample of the rollout file"
    return "; ".join(peers.caveats) or None


def broken_row(rank: int | None, entry: Entry, error: DumpError) -> Record:
    unknown = ("cp_rank", "cp_size", "dp_shard", "rows", "tokens", "micro_batch_tokens", "num_microbatches")
    blank: Record = dict.fromkeys(unknown)
    return {
        "file": entry.path.name,
        "rank": rank,
        **blank,
        "bytes": entry.size,
        "fields": [],
        "state": error.state,
        "reason": error.problem,
    }


def coverage(step: Step) -> Record:
    """How many samples have train data, and what the files at hand say of the others."""
    return {
        "samples": len(step.samples),
        "trained": step.trained,
        "files": len(step.files.shards),
        "unreadable": [error.path.rsplit("/", 1)[-1] for error in step.broken],
        "orphans": step.orphans,
        "reason": train_reason(step),
    }


def train_reason(step: Step) -> str | None:
    """Why samples are without train data, or without a part of it; None when all have it or none should."""
    if step.files.key.evaluation:
        return None
    without = len(step.samples) - step.trained
    if without and not step.files.shards:
        return "no train files"
    said = []
    if without and step.orphans:
        said.append(EARLIER_ATTEMPT if step.files.outdated else "the train files have rows of other samples")
    if without:
        said.append(f"{without} of {len(step.samples)} samples have no train row")
        said += why_broken(step.broken)
    lost = {
        f"cp rank {rank} of {peers.cp_size} missing" for peers in step.peers if peers.joined for rank in peers.missing
    }
    return "; ".join(said + sorted(lost)) or None


def why_broken(errors: Sequence[DumpError]) -> list[str]:
    """A part of the reason for each problem, not for each file: a step of 64 dead ranks has the same one 64 times."""
    alike: dict[str, list[DumpError]] = {}
    for error in errors:
        alike.setdefault(re.sub(r"\d+", "", error.problem), []).append(error)
    said = []
    for first, *others in alike.values():
        name = first.path.rsplit("/", 1)[-1]
        said.append(f"{name}{f' and {len(others)} more' * bool(others)}: {first.problem}")
    return [*said[:MOST_PROBLEMS], *([f"{len(said) - MOST_PROBLEMS} other problems"] * (len(said) > MOST_PROBLEMS))]


# Steps ----------------------------------------------------------------------------------------------------------


def step_row(step: Step, table: Sequence[Record]) -> Record:
    """The aggregates of one step: unweighted means over its samples, as the dashboard has them."""
    evaluation = step.files.key.evaluation
    key = reward_column(table, evaluation)
    rewards = floats(table, key)
    spreads = [std([rewards[at] for at in positions]) for positions in members(table).values()]
    mixed = [float(bool(row["mixed_version"])) for row in table if row["mixed_version"] is not None]
    without_train = train_reason(step)
    reasons = [*step.rollout.notes, *([] if without_train is None else [without_train])]
    return {
        **step_head(step.files),
        "samples": len(table),
        "train_samples": step.trained,
        "state": "not dumped" if without_train and not step.trained else "partial" if reasons else "ok",
        "reason": "; ".join(reasons) or None,
        "groups": len(spreads),
        "reward_mean": mean(rewards),
        "reward_std": std(rewards),
        "reward_episode_mean": episode_mean(table, rewards),
        "response_length_mean": mean(floats(table, "response_length")),
        "truncated_frac": mean([float(bool(row["truncated"])) for row in table]),
        "zero_std_frac": mean([float(spread <= SAME_REWARD) for spread in spreads if spread is not None]),
        "mixed_version_frac": mean(mixed),
        "staleness_mean": None if evaluation else mean(floats(table, "staleness")),
        "mean_abs_lp_diff": mean(floats(table, "mean_abs_lp_diff")),
        "max_abs_lp_diff": largest(floats(table, "max_abs_lp_diff")),
        "mean_entropy": mean(floats(table, "mean_entropy")),
        "statuses": dict(Counter(str(row["status"]) for row in table)),
    }


def step_head(files: StepFiles) -> Record:
    return {"step": files.key.step, "evaluation": files.key.evaluation}


def unreadable_step(files: StepFiles, error: DumpError) -> Record:
    return {**step_head(files), "samples": None, "train_samples": None, "state": error.state, "reason": error.problem}


def largest(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)

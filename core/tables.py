"""The rows of the views: samples, groups, batch and steps. Names and formulas are those of the miles dashboard where it has them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np

from dumptui.core.errors import DumpError
from dumptui.core.flat import ratio
from dumptui.core.join import Step
from dumptui.core.run import StepFiles
from dumptui.core.sample import Sample, as_float, reward_value
from dumptui.core.statistics import Masked, mean, std

Record: TypeAlias = dict[str, object]

# Two rewards closer than this count as equal: shaped rewards that differ only by float rounding are still one value.
SAME_REWARD = 1e-12


def samples(step: Step, reward_key: str | None = None) -> list[Record]:
    """A row a sample in file order. A statistic is over unmasked positions, None where there is none or a slice is missing."""
    current = current_version(step)
    table = [sample_facts(step, sample, current, reward_key) for sample in step.samples]
    for name, column in statistics(step).items():
        for row, value in zip(table, column, strict=True):
            row[name] = value
    return table


def sample_facts(step: Step, sample: Sample, current: int, reward_key: str | None) -> Record:
    versions = sample.versions
    oldest = oldest_version(versions)
    spec, cache = sample.spec_info, sample.prefix_cache
    return {
        "sample_index": sample.index,
        "occurrence": sample.occurrence,
        "group_index": sample.group,
        "status": sample.status,
        "remove_sample": sample.removed,
        "response_length": sample.response_length,
        "total_length": sample.total_length,
        "reward": reward_value(sample.reward, reward_key),
        "weight_version": versions[-1] if versions else None,
        "weight_version_min": oldest,
        "mixed_version": len(set(versions)) > 1 if versions else None,
        "staleness": None if oldest is None else current - oldest,
        "turns": len(sample.calls) or None,
        "tool_calls": tool_calls(sample.prompt),
        "non_generation_time": sample.non_generation_time,
        "spec_accept_rate": share(
            spec, ("spec_accept_token_num", "spec_num_correct_drafts"), ("spec_draft_token_num", "spec_num_proposed_drafts")
        ),
        "prefix_cache_hit_rate": share(cache, ("cached_tokens",), ("total_prompt_tokens",)),
        **train_facts(step, sample),
    }


def train_facts(step: Step, sample: Sample) -> Record:
    row = step.rows[sample.position]
    truncated = sample.status == "truncated"
    if row is None:
        return {"raw_reward": None, "normalized_reward": None, "truncated": truncated, "dumped_rank": None, "trained": False}
    columns = row.peers.first.columns
    flags, rewards = columns.get("truncated"), columns.get("rewards")
    return {
        "raw_reward": None if step.raw_rewards is None else as_float(step.raw_rewards[sample.position]),
        "normalized_reward": as_float(rewards[row.row]) if isinstance(rewards, (list, tuple)) else None,
        "truncated": bool(flags[row.row]) if isinstance(flags, (list, tuple)) else truncated,
        "dumped_rank": row.peers.first.rank,
        "trained": True,
    }


def statistics(step: Step) -> dict[str, Sequence[object]]:
    """The per-token columns of the samples table, one value a sample."""
    mask = step.masks()
    lengths = np.add.reduceat(np.append(mask.values, 0), mask.offsets[:-1], dtype=np.int64) if len(mask.positions) else []
    empty = np.diff(mask.offsets) == 0
    effective = [int(n) if ok and not none else 0 if ok else None for n, ok, none in zip(lengths, mask.ok, empty, strict=True)]

    def over(name: str) -> Masked:
        return Masked(step.gather(name), mask)

    entropy, difference, advantage = over("entropy"), step.gather("lp_diff"), over("advantages")
    apart = Masked(difference, mask)
    return {
        "mean_entropy": entropy.mean(),
        "max_entropy": entropy.max(),
        "ref_entropy_mean": over("ref_entropy").mean(),
        "mean_abs_lp_diff": apart.mean_abs(),
        "max_abs_lp_diff": apart.max_abs(),
        "mean_imp_ratio": Masked(ratio(difference), mask).mean(),
        "adv_mean": advantage.mean(),
        "adv_std": advantage.std(),
        "return_mean": over("returns").mean(),
        "alignment_failed": [state == "unreadable" for state in difference.states],
        "effective_length": effective,
    }


def current_version(step: Step) -> int:
    """The weight version of a sample that was written wholly on-policy in this step.

    The counter is raised before the first rollout, so a fresh run's step N is written by version N + 1, a plain counter's by version N.
    """
    oldest = [version for sample in step.samples if (version := oldest_version(sample.versions)) is not None]
    return max([step.rollout.step, *oldest])


def oldest_version(versions: Iterable[str]) -> int | None:
    return min((int(version) for version in versions if version.isdigit()), default=None)


def tool_calls(prompt: object) -> int | None:
    """Messages of role `tool` in the prompt; None for a prompt that is plain text."""
    if not isinstance(prompt, (list, tuple)):
        return None
    return sum(isinstance(message, dict) and message.get("role") == "tool" for message in prompt)


def share(info: object, part_names: Sequence[str], whole_names: Sequence[str]) -> float | None:
    """part / whole under whichever spelling is dumped; None of nothing."""
    if not isinstance(info, dict):
        return None
    part = next((as_float(info[name]) for name in part_names if name in info), None)
    whole = next((as_float(info[name]) for name in whole_names if name in info), None)
    return part / whole if part is not None and whole else None


# Groups ---------------------------------------------------------------------------------------------------------


def groups(table: Sequence[Record], *, evaluation: bool = False) -> list[Record]:
    """A row a prompt group of the samples `table`; samples without a group index form one group."""
    members: dict[object, list[Record]] = {}
    for row in table:
        members.setdefault(row["group_index"], []).append(row)
    key = reward_column(table, evaluation)
    return [group_row(index, rows, key) for index, rows in sorted(members.items(), key=lambda item: (item[0] is None, item[0]))]  # type: ignore[type-var]


def reward_column(table: Sequence[Record], evaluation: bool) -> str:
    """The trainer's raw reward where the step has it, else the sample's own."""
    trained = not evaluation and any(row["raw_reward"] is not None for row in table)
    return "raw_reward" if trained else "reward"


def group_row(index: object, rows: Sequence[Record], key: str) -> Record:
    rewards = floats(rows, key)
    centre, spread = mean(rewards), std(rewards)
    return {
        "group_index": index,
        "n": len(rows),
        "reward_mean": centre,
        "reward_std": spread,
        "response_length_mean": mean(floats(rows, "response_length")),
        "truncated_frac": mean([float(bool(row["truncated"])) for row in rows]),
        "zero_std": centre is not None and (spread or 0.0) <= SAME_REWARD,
        "rewarded": sum(reward is not None for reward in rewards),
        "mean_abs_lp_diff": mean(floats(rows, "mean_abs_lp_diff")),
        "samples": [row["sample_index"] for row in rows],
    }


def floats(rows: Sequence[Record], key: str) -> list[float | None]:
    return [as_float(row.get(key)) for row in rows]


# Batch ----------------------------------------------------------------------------------------------------------


def batch(step: Step) -> list[Record]:
    """A row a train file, in rank order."""
    number = {id(shard): (at, cp) for at, peers in enumerate(step.peers) for shard, cp in zip(peers.shards, peers.cp_ranks, strict=True)}
    rows: list[Record] = []
    for shard in step.shards:
        dp, cp = number[id(shard)]
        peers = step.peers[dp]
        rows.append(
            {
                "file": shard.path.name,
                "rank": shard.rank,
                "cp_rank": cp if peers.problem is None else None,
                "cp_size": peers.cp_size if peers.problem is None else None,
                "dp_shard": dp,
                "rows": shard.rows,
                "tokens": int(shard.totals.sum()),
                "bytes": shard.size,
                "fields": list(shard.per_token),
                "state": "ok" if peers.problem is None else "unreadable",
                "reason": peers.problem or ("layout inferred" if peers.inferred else None),
            }
        )
    rows += [broken_row(step, error) for error in step.broken]
    return rows


def broken_row(step: Step, error: DumpError) -> Record:
    rank, entry = next((rank, entry) for rank, entry in step.files.shards if str(entry.path) == error.path)
    blank: Record = dict.fromkeys(("cp_rank", "cp_size", "dp_shard", "rows", "tokens"))
    return {
        "file": entry.path.name,
        "rank": rank,
        **blank,
        "bytes": entry.size,
        "fields": [],
        "state": "unreadable",
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
    """Why samples are without train data; None when all have it or none should."""
    without = len(step.samples) - step.trained
    if step.files.key.evaluation or not without:
        return None
    if not step.files.shards:
        return "no train files"
    said = [f"{without} of {len(step.samples)} samples have no train row"]
    said += [str(error.path.rsplit("/", 1)[-1]) + ": " + error.problem for error in step.broken]
    return "; ".join(said)


# Steps ----------------------------------------------------------------------------------------------------------


def step_row(step: Step, table: Sequence[Record]) -> Record:
    """The aggregates of one step: unweighted means over its samples, as the dashboard has them."""
    evaluation = step.files.key.evaluation
    grouped = groups(table, evaluation=evaluation)
    rewarded = [row for row in grouped if row["reward_mean"] is not None]
    rewards = floats(table, reward_column(table, evaluation))
    mixed = [float(bool(row["mixed_version"])) for row in table if row["mixed_version"] is not None]
    reason = train_reason(step)
    return {
        **step_head(step.files),
        "samples": len(table),
        "train_samples": step.trained,
        "state": "ok" if reason is None else "partial" if step.trained else "not dumped",
        "reason": reason,
        "groups": len(grouped),
        "reward_mean": mean(rewards),
        "reward_std": std(rewards),
        "response_length_mean": mean(floats(table, "response_length")),
        "truncated_frac": mean([float(bool(row["truncated"])) for row in table]),
        "zero_std_frac": mean([float(bool(row["zero_std"])) for row in rewarded]),
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
    return {**step_head(files), "samples": None, "train_samples": None, "state": "unreadable", "reason": error.problem}


def largest(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)

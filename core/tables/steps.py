"""The rows of the groups, batch and steps tables; `core/tables/samples` has those of samples.

Names and formulas are those of the miles dashboard where it has them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from dumptui.core.errors import DumpError
from dumptui.core.fields.statistics import finite, mean, std
from dumptui.core.files.step_files import Entry, StepFiles
from dumptui.core.formats.values import as_float
from dumptui.core.parallel.assembly import ORDER_CONTRADICTED
from dumptui.core.parallel.shard_group import ShardGroup
from dumptui.core.step.schedule import Schedule, schedule_of
from dumptui.core.step.step import Step
from dumptui.core.tables.columns import STEP_COLUMNS, ColumnDefinition, ReductionName, in_order, names_of
from dumptui.core.tables.pass_at_k import is_binary, pass_rates
from dumptui.core.tables.samples import samples
from dumptui.core.tables.view_columns import GROUP_COLUMNS
from dumptui.core.types import Record
from dumptui.core.weight_counter import versions_of

__all__ = ["batch", "coverage", "groups", "samples", "step_row", "train_reason", "unreadable_step"]

EARLIER_ATTEMPT = "train files are older than the rollout file: they belong to an earlier attempt"

MOST_PROBLEMS = 4  # of train files, in the reason of a step: Health has them all

# Two rewards closer than this count as equal: shaped rewards that differ only by float rounding are still one value.
SAME_REWARD = 1e-12


# Groups ---------------------------------------------------------------------------------------------------------


def groups(table: Sequence[Record], *, evaluation: bool = False) -> list[Record]:
    """One row per prompt group of the samples `table`; samples without a group index form one group.

    Evals dump no group index: their groups are the runs of equal prompts, numbered over the file.
    """
    key = reward_column(table, evaluation)
    binary = is_binary(attempts(table, floats(table, key)))
    return [
        group_row(group, [table[at] for at in positions], key, binary) for group, positions in members(table).items()
    ]


class GroupKey(NamedTuple):
    """The dataset of an eval sample, its group in there, and which of the groups of that index it is."""

    dataset: int | None
    group: int | None
    part: int

    @property
    def order(self) -> tuple[int, bool, int, int]:
        return self.dataset or 0, self.group is None, self.group or 0, self.part


def members(table: Sequence[Record]) -> dict[GroupKey, list[int]]:
    """The positions of each group's samples by its key, in the order of the groups table."""
    found: dict[GroupKey, list[int]] = {}
    for at, row in enumerate(table):
        found.setdefault(group_key(row), []).append(at)
    return dict(sorted(found.items(), key=lambda one: one[0].order))


def group_key(row: Record) -> GroupKey:
    dataset, group, part = row.get("dataset"), row["group_index"], row.get("group_part", 0)
    group = row.get("prompt_group") if group is None else group
    # `isinstance(_, int | None)` would make a type at each call, and there are three calls a sample.
    assert isinstance(part, int)
    assert (dataset is None or isinstance(dataset, int)) and (group is None or isinstance(group, int))
    return GroupKey(dataset, group, part)


def reward_column(table: Sequence[Record], evaluation: bool) -> str:
    """The trainer's raw reward where the step has it, else the sample's own. Where an entry of rewards that are dicts
    is chosen, the sample's, as the trainer's may be of the entry that the run took: but where that is a dict too.
    """
    if any(row["reward_chosen"] for row in table):
        own = any(row["reward"] is not None for row in table) or not any(row["raw_chosen"] for row in table)
        return "reward" if own else "raw_reward"
    trained = not evaluation and any(row["raw_reward"] is not None for row in table)
    return "raw_reward" if trained else "reward"


def group_row(name: GroupKey, rows: Sequence[Record], key: str, binary: bool) -> Record:
    """`zero_std` is the dashboard's flag, which is set for a single reward too, but for none beside one that is NaN or
    infinite; `zero_std_known` says whether there are two to compare. pass@k is of the group's own k, its attempts with
    a reward, and only of `binary` rewards. Samples that are not known to be of one group say nothing of a spread.
    """
    rewards = attempts(rows, floats(rows, key))
    known = name.group is not None
    binary = binary and known
    passes = pass_rates(rewards) if binary else {}
    centre, spread = mean(rewards), std(rewards)
    rewarded, there = len(finite(rewards)), len(rewards) - rewards.count(None)
    row: Record = {
        "group_index": name.group,
        **({} if name.dataset is None else {"dataset": name.dataset}),
        **{key: rows[0][key] for key in ("group_part", "adapter") if key in rows[0]},
        "n": len(rows),
        "attempts": len(rewards),
        "reward_mean": centre,
        "reward_std": spread,
        **reductions(GROUP_COLUMNS, rows),
        "zero_std": known and rewarded == there > 0 and (spread or 0.0) <= SAME_REWARD,
        "zero_std_known": known and rewarded > 1,
        "rewarded": rewarded,
        "pass_at_1": passes.get(1),
        "pass_at_k": passes.get(rewarded),
        "samples": [row["sample_index"] for row in rows],
    }
    return in_order(names_of(GROUP_COLUMNS), row)


def attempts(table: Sequence[Record], rewards: Sequence[float | None]) -> list[float | None]:
    """The reward of each execution, the mean of its samples': siblings, as leaves that forked, are one attempt."""
    found: dict[object, list[float | None]] = {}
    for at, (row, reward) in enumerate(zip(table, rewards, strict=True)):
        execution, index = row["execution"], row["sample_index"]
        if execution is not None:
            name = "execution", execution
        else:
            name = ("position", at) if index is None else ("index", index)
        found.setdefault((group_key(row), *name), []).append(reward)
    return [merged(one) for one in found.values()]


def merged(rewards: Sequence[float | None]) -> float | None:
    """The reward of an execution: that of its only sample as it is."""
    return rewards[0] if len(rewards) == 1 else mean(rewards)


def floats(rows: Sequence[Record], key: str) -> list[float | None]:
    return [as_float(row.get(key)) for row in rows]


def total(rows: Sequence[Record], key: str) -> int:
    return sum(count for row in rows if isinstance(count := row.get(key), int))


# Batch ----------------------------------------------------------------------------------------------------------


def batch(step: Step) -> list[Record]:
    """One row per train file, in rank order."""
    number = {id(shard): (at, cp) for at, group in enumerate(step.alignment.groups) for shard, cp in group.placed()}
    schedules = [schedule_of(group) for group in step.alignment.groups]
    rows: list[Record] = []
    for shard in step.shards:
        dp, cp = number[id(shard)]
        group = step.alignment.groups[dp]
        known = group.problem is None and (group.joined or shard.cp_size is not None)
        problem = group.problem or (ORDER_CONTRADICTED if group.cp_size > 1 and step.alignment.contradicted else None)
        rows.append(
            {
                "file": shard.path.name,
                "rank": shard.rank,
                "cp_rank": cp if known else None,
                "cp_size": group.cp_size if known else None,
                "dp_shard": dp,
                "rows": shard.rows,
                "tokens": int(shard.totals.sum()),
                **packed(schedules[dp]),
                "bytes": shard.size,
                "fields": list(shard.per_token),
                "state": "ok" if problem is None else "unreadable",
                "reason": problem or layout_note(group),
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


def layout_note(group: ShardGroup) -> str | None:
    if group.first.rows and not group.joined:
        return "none of its rows is a sample of the rollout file"
    return "; ".join(group.caveats) or None


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
        "orphans": list(step.alignment.orphans),
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
    if without and step.alignment.orphans:
        said.append(EARLIER_ATTEMPT if step.files.outdated else "the train files have rows of other samples")
    if without:
        said.append(f"{without} of {len(step.samples)} samples have no train row")
        said += why_broken(step.broken)
    lost = {
        f"cp rank {rank} of {group.cp_size} missing"
        for group in step.alignment.groups
        if group.joined
        for rank in group.missing
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
    known = {key: positions for key, positions in members(table).items() if key.group is not None}
    spreads = [std(attempts([table[at] for at in one], [rewards[at] for at in one])) for one in known.values()]
    versions = versions_of(table)
    without_train = train_reason(step)
    reasons = [*step.rollout.notes, *([] if without_train is None else [without_train])]
    row = {
        **step_head(step.files),
        "samples": len(table),
        "train_samples": step.trained,
        "state": "not dumped" if without_train and not step.trained else "partial" if reasons else "ok",
        "reason": "; ".join(reasons) or None,
        "groups": len(spreads) if spreads or not table else None,
        "rewarded": len(finite(rewards)),
        "reward_mean": mean(rewards),
        "reward_std": std(rewards),
        "reward_episode_mean": mean(attempts(table, rewards)),
        **reductions(STEP_COLUMNS, table),
        **worst_token(table),
        **first_not_finite(table),
        "zero_std_frac": mean([float(spread <= SAME_REWARD) for spread in spreads if spread is not None]),
        "staleness_reason": None,
        "weight_version_begun": None if versions is None else versions.begun,
        "weight_version_max": None if versions is None else versions.newest,
        "statuses": dict(Counter(str(row["status"]) for row in table)),
        **({"reward_entries": names} if (names := reward_names(step)) else {}),
        **({"datasets": found} if (found := dataset_rows(table, rewards)) else {}),
    }
    return in_order(names_of(STEP_COLUMNS), row)


def dataset_rows(table: Sequence[Record], rewards: Sequence[float | None]) -> list[Record]:
    """Return the aggregates of each dataset of an eval that has several, in the order of the file."""
    positions: dict[int, list[int]] = {}
    for at, row in enumerate(table):
        if isinstance(number := row.get("dataset"), int):
            positions.setdefault(number, []).append(at)
    return [dataset_row(number, table, rewards, found) for number, found in positions.items() if len(positions) > 1]


def dataset_row(
    number: int, table: Sequence[Record], rewards: Sequence[float | None], positions: Sequence[int]
) -> Record:
    rows, own = [table[at] for at in positions], [rewards[at] for at in positions]
    reduced = reductions(STEP_COLUMNS, rows)
    kept = ("response_length_mean", "truncated_frac", "not_finite")
    return {
        "dataset": number,
        "samples": len(rows),
        "rewarded": len(finite(own)),
        "reward_mean": mean(own),
        "reward_std": std(own),
        **{name: reduced[name] for name in kept},
    }


def worst_token(table: Sequence[Record]) -> Record:
    """Return the mean |Δ| over all tokens, and which token has the largest one and its share of their sum."""
    sums, largest = floats(table, "sum_abs_lp_diff"), floats(table, "max_abs_lp_diff")
    whole, tokens = sum(value for value in sums if value is not None), total(table, "lp_diff_tokens")
    at = max(
        (at for at, value in enumerate(largest) if value is not None), key=lambda at: largest[at] or 0, default=None
    )
    peak = None if at is None else largest[at]
    return {
        "token_mean_abs_lp_diff": whole / tokens if tokens else None,
        "worst_token_share": None if peak is None or not whole else peak / whole,
        **place_of("worst", table, at, "max_abs_lp_diff_token"),
    }


def first_not_finite(table: Sequence[Record]) -> Record:
    """Return the first sample with NaN or infinite values, and its first token with one."""
    at = next((at for at, row in enumerate(table) if row["step_not_finite"]), None)
    return place_of("not_finite", table, at, "not_finite_token")


def place_of(name: str, table: Sequence[Record], at: int | None, token: str) -> Record:
    """Return a sample of the table and a token of it as columns of the steps table."""
    row = {} if at is None else table[at]
    index, occurrence = row.get("sample_index"), row.get("occurrence")
    return {f"{name}_sample": index, f"{name}_occurrence": occurrence, f"{name}_token": row.get(token)}


def reductions(columns: Sequence[ColumnDefinition], table: Sequence[Record]) -> Record:
    """Return those of the columns that are reduced from columns of the samples table."""
    reduced = ((column.name, column.reduction) for column in columns)
    return {name: REDUCTIONS[by.name](table, by.column) for name, by in reduced if by is not None}


def reward_names(step: Step) -> list[str]:
    """The entries of rewards that are dicts, one of which may be chosen."""
    rewards = [*(sample.reward for sample in step.samples), *(step.alignment.raw_rewards or [])]
    return list(dict.fromkeys(str(name) for reward in rewards if isinstance(reward, Mapping) for name in reward))


def step_head(files: StepFiles) -> Record:
    return {"step": files.key.step, "evaluation": files.key.evaluation}


def unreadable_step(files: StepFiles, error: DumpError) -> Record:
    return {**step_head(files), "samples": None, "train_samples": None, "state": error.state, "reason": error.problem}


def mean_of(rows: Sequence[Record], key: str) -> float | None:
    return mean(floats(rows, key))


def largest(rows: Sequence[Record], key: str) -> float | None:
    return max((value for value in floats(rows, key) if value is not None), default=None)


def share(rows: Sequence[Record], key: str) -> float | None:
    """Return the share of the rows whose flag is set, among those that have one."""
    return mean([float(bool(row[key])) for row in rows if row[key] is not None])


REDUCTIONS: dict[ReductionName, Callable[[Sequence[Record], str], float | None]] = {
    "mean": mean_of,
    "max": largest,
    "share": share,
    "sum": total,
}

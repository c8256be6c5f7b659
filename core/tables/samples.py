"""The rows of the samples table. Names and formulas are those of the miles dashboard where it has them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from dumptui.core.arrays import Ints
from dumptui.core.fields.statistics import Masked, count_true
from dumptui.core.fields.token_field import State, TokenField, safe_ratio
from dumptui.core.formats.sample import Sample, datasets, reward_value
from dumptui.core.formats.values import Dumped, as_float, as_text, type_name
from dumptui.core.formats.weight_versions import counters, oldest_version, version_range
from dumptui.core.sample.tool_calls import tool_calls
from dumptui.core.step.grouping import adapter_name, group_parts, prompt_groups
from dumptui.core.step.schedule import schedule_columns
from dumptui.core.step.step import Step
from dumptui.core.types import Record

# The state of a field in each sample, and the reason for it.
Said: TypeAlias = tuple[list[State], list[str | None]]
OnField: TypeAlias = Callable[[float], object]
MAX_VERSIONS_BEHIND = 16  # weight versions; hardly a sample waits longer to be trained on
FIELD_COUNT = 5  # that `statistics` goes through


def samples(
    step: Step, reward_key: str | None = None, *, brief: bool = False, on_field: OnField | None = None
) -> list[Record]:
    """A row a sample in file order; `on_field` is told before each of the per-token fields which share is done.

    A statistic is over the finite values at unmasked positions, None where there is none or a slice is missing;
    `not_finite` counts the others. `brief` leaves out all that the step's own row does not need, half of the work.
    """
    versions = [sample.versions for sample in step.samples]
    current = current_version(step.rollout.step, versions)
    table = [
        sample_facts(step, sample, wrote, current, reward_key, brief)
        for sample, wrote in zip(step.samples, versions, strict=True)
    ]
    if step.files.key.evaluation:
        for row, dataset, group in zip(table, datasets(step.samples), prompt_groups(step.samples), strict=True):
            row["dataset"], row["prompt_group"] = dataset, group
    else:
        name_groups(step, table)
    for row, calls in zip(table, [] if brief else tool_calls(step), strict=False):
        row["tool_calls"] = calls
    for name, column in (divergence(step) if brief else statistics(step, on_field)).items():
        for row, value in zip(table, column, strict=True):
            row[name] = value
    count_rewards(table)
    return table


def sample_facts(
    step: Step, sample: Sample, versions: Sequence[str], current: int, reward_key: str | None, brief: bool
) -> Record:
    """`versions` are those that wrote the sample, `current` that of one that is wholly on-policy."""
    oldest = oldest_version(versions)
    return {
        "sample_index": sample.index,
        "occurrence": sample.occurrence,
        "group_index": sample.group,
        "execution": sample.execution,
        "status": sample.status,
        "remove_sample": sample.removed,
        "response_length": sample.response_length,
        "total_length": sample.total_length,
        "reward": reward_value(sample.reward, reward_key),
        "reward_note": None if brief else reward_note(sample.reward, reward_key),
        "reward_chosen": reward_key is not None and (sample.reward is None or isinstance(sample.reward, Mapping)),
        "weight_version": versions[-1] if versions else None,
        "weight_version_min": oldest,
        "weight_version_max": max(counters(versions), default=None),
        **({} if brief else prefill_facts(sample)),
        "versions": None if brief else version_range(versions) or None,
        "mixed_version": len(set(versions)) > 1 if versions else None,
        "staleness": None if oldest is None or step.files.key.evaluation else current - oldest,
        "staleness_reason": None,
        **({} if brief else generation_facts(sample)),
        **train_facts(step, sample, reward_key),
    }


def name_groups(step: Step, table: Sequence[Record]) -> None:
    """Tell apart groups that share their group_index, and say of which adapter each sample is, where there are any."""
    parts, adapters = group_parts(step), [adapter_name(sample) for sample in step.samples]
    for row, part, adapter in zip(table, parts, adapters, strict=True):
        if any(parts):
            row["group_part"] = part
        if any(name is not None for name in adapters):
            row["adapter"] = adapter


def generation_facts(sample: Sample) -> Record:
    """How the engine wrote a sample."""
    return {
        "turns": len(sample.calls) or None,
        "tool_calls": None,
        "non_generation_time": sample.non_generation_time,
        "spec_accept_rate": share(
            sample.spec_info,
            ("spec_accept_token_num", "spec_num_correct_drafts"),
            ("spec_draft_token_num", "spec_num_proposed_drafts"),
        ),
        "prefix_cache_hit_rate": share(sample.prefix_cache, ("cached_tokens",), ("total_prompt_tokens",)),
    }


def prefill_facts(sample: Sample) -> Record:
    """The oldest version whose KV cache a prompt was read by, and the most that a call's output was ahead of it."""
    lags = []
    for call in sample.calls:
        output, prefill = counters(one.version for one in call.spans), counters(one.version for one in call.prefill)
        if output and prefill:
            lags.append(max(output) - min(prefill))
    prefilled = counters(span.version for call in sample.calls for span in call.prefill)
    return {
        "prefill_weight_version_min": min(prefilled, default=None),
        "prefill_lag": max(lags, default=None),
    }


def reward_note(reward: object, key: str | None) -> str | None:
    """What a reward is that no number can be taken of; None where there is one, or no reward at all."""
    if reward is None or reward_value(reward, key) is not None:
        return None
    if isinstance(reward, Mapping):
        return f"dict{{{','.join(map(as_text, reward))}}}"
    if isinstance(reward, Dumped):
        return repr(reward)
    return f"{type_name(reward)} {reward}" if isinstance(reward, str) else type_name(reward)


def train_facts(step: Step, sample: Sample, reward_key: str | None) -> Record:
    row = step.alignment.rows[sample.position]
    truncated = sample.status == "truncated"
    if row is None:
        return {
            "raw_reward": None,
            "raw_chosen": False,
            "normalized_reward": None,
            "truncated": truncated,
            "dumped_rank": None,
            "trained": False,
        }
    shard = row.group.first
    flag = as_float(shard.value("truncated", row.row))
    raw = None if step.alignment.raw_rewards is None else step.alignment.raw_rewards[sample.position]
    return {
        "raw_reward": reward_value(raw, reward_key),
        "raw_chosen": reward_key is not None and isinstance(raw, Mapping),
        "normalized_reward": as_float(shard.value("rewards", row.row)),
        "truncated": truncated if flag is None else bool(flag),
        "dumped_rank": shard.rank,
        "trained": True,
    }


def count_rewards(table: Sequence[Record]) -> None:
    """Count a reward that is NaN or infinite with the sample's tokens that are."""
    for row in table:
        rewards = (row["reward"], row["raw_reward"])
        if any(isinstance(reward, float) and not math.isfinite(reward) for reward in rewards):
            for name in ("not_finite", "step_not_finite"):
                if isinstance(counted := row.get(name), int):
                    row[name] = counted + 1


def divergence(step: Step) -> dict[str, Sequence[object]]:
    mask = step.masks()
    apart = Masked(step.difference(mask.positions, mask), mask)
    entropy = Masked(step.gather("entropy"), mask)
    odd = (apart.not_finite + entropy.not_finite).tolist()
    return {"mean_entropy": entropy.mean(), **magnitudes(step, apart), "step_not_finite": odd}


def statistics(step: Step, on_field: OnField | None = None) -> dict[str, Sequence[object]]:
    """The per-token columns of the samples table, one value a sample, and what can be said of their fields.

    One field after another, so that the values of one are held at a time: 23 MB each of a step of 512 long samples.
    """
    mask = step.masks()
    said: list[Said] = []
    odd: dict[str, Ints] = {}

    def over(name: str) -> Masked:
        if on_field is not None:
            on_field(len(said) / FIELD_COUNT)
        flat = step.gather(name)
        step.pause()
        said.append((flat.states, flat.reasons))
        masked = Masked(flat, mask)
        odd[name] = masked.not_finite
        return masked

    apart, differences = of_difference(step, mask, said)
    odd["lp_diff"] = apart.not_finite
    return {
        **differences,
        **of_entropy(over("entropy")),
        "ref_entropy_mean": over("ref_entropy").mean(),
        **of_advantages(over("advantages")),
        "return_mean": over("returns").mean(),
        "effective_length": effective_lengths(mask),
        **schedule_columns(step),
        **of_states(step, said),
        "not_finite": np.sum(list(odd.values()), axis=0).tolist(),
        "diff_not_finite": odd["lp_diff"].tolist(),
        "step_not_finite": (odd["lp_diff"] + odd["entropy"]).tolist(),
    }


def of_difference(step: Step, mask: TokenField, said: list[Said]) -> tuple[Masked, dict[str, Sequence[object]]]:
    found = step.difference(mask.positions, mask)
    said.append((found.states, found.reasons))
    apart = Masked(found, mask)
    columns = magnitudes(step, apart)
    step.pause()
    return apart, {**columns, "mean_imp_ratio": Masked(safe_ratio(found), mask).mean()}


def magnitudes(step: Step, apart: Masked) -> dict[str, Sequence[object]]:
    step.pause()
    return {"mean_abs_lp_diff": apart.mean_abs(), "max_abs_lp_diff": apart.max_abs()}


def of_entropy(entropy: Masked) -> dict[str, Sequence[object]]:
    return {"mean_entropy": entropy.mean(), "max_entropy": entropy.max()}


def of_advantages(advantages: Masked) -> dict[str, Sequence[object]]:
    return {"adv_mean": advantages.mean(), "adv_std": advantages.std()}


def of_states(step: Step, said: Sequence[Said]) -> dict[str, Sequence[object]]:
    states = [worst_state(step, at, said) for at in range(len(step.samples))]
    return {
        "alignment_failed": [state == "unreadable" for state, _ in states],
        "train_state": [state for state, _ in states],
        "train_reason": [reason for _, reason in states],
    }


def worst_state(step: Step, at: int, said: Sequence[Said]) -> tuple[State, str | None]:
    """The state of the train columns of a sample: that of the one of which least can be shown, and why."""
    if step.alignment.rows[at] is None:
        return ("not dumped", None) if step.files.key.evaluation else step.alignment.refusal(at)
    for state in ("unreadable", "partial", "ok"):
        for states, reasons in said:
            if states[at] == state:
                return states[at], reasons[at]
    return "not dumped", None


def effective_lengths(mask: TokenField) -> list[int | None]:
    """How many response tokens are trained on; None where the mask doesn't fit."""
    trained = count_true(mask.values > 0, mask.offsets)
    return [int(count) if ok else None for count, ok in zip(trained, mask.ok, strict=True)]


def current_version(step: int, versions: Sequence[Sequence[str]]) -> int:
    """The weight version of a sample that was written wholly on-policy in a step, by those that wrote each sample: all
    that one step tells. Of a run, core/weight_counter.py knows better.

    The counter is raised before the first rollout, so a fresh run's step N is written by version N + 1, a plain
    counter's by version N. One that is far behind began anew with a resumed attempt, or counts an update every few
    steps: then the newest version here is all that is known of it.
    """
    counted = [numbers for wrote in versions if (numbers := counters(wrote))]
    newest = max(map(max, counted), default=0)
    return max([newest if newest + MAX_VERSIONS_BEHIND < step else step, *map(min, counted)])


def share(info: Mapping[str, object], part_names: Sequence[str], whole_names: Sequence[str]) -> float | None:
    """part / whole under whichever spelling is dumped; None of nothing."""
    if not info:
        return None
    part = next((as_float(info[name]) for name in part_names if name in info), None)
    whole = next((as_float(info[name]) for name in whole_names if name in info), None)
    return part / whole if part is not None and whole else None

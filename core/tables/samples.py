"""The rows of the samples table. Names and formulas are those of the miles dashboard where it has them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from dumptui.core.arrays import Ints
from dumptui.core.fields.registry import definition
from dumptui.core.fields.statistics import STATISTICS, Masked, count_true
from dumptui.core.fields.token_field import State, TokenField, derive_for_statistics
from dumptui.core.formats.rewards import default_entry, numeric_entries, reward_value
from dumptui.core.formats.sample import Sample, datasets
from dumptui.core.formats.values import Dumped, as_float, as_text, type_name
from dumptui.core.formats.weight_versions import counters, oldest_version, version_range
from dumptui.core.sample.tool_calls import tool_calls
from dumptui.core.step.distribution import statistic_field
from dumptui.core.step.grouping import adapter_name, group_parts, prompt_groups
from dumptui.core.step.schedule import schedule_columns
from dumptui.core.step.step import Step
from dumptui.core.tables.columns import (
    SAMPLE_COLUMNS,
    ColumnDefinition,
    StatisticName,
    entry_column,
    in_order,
    names_of,
    reduced_columns,
)
from dumptui.core.types import Record

# The state of a field in each sample, and the reason for it.
FieldStates: TypeAlias = tuple[list[State], list[str | None]]
OnField: TypeAlias = Callable[[float], object]
MAX_VERSIONS_BEHIND = 16  # weight versions; hardly a sample waits longer to be trained on
FOR_STEP = frozenset(("sample_index", "occurrence", "group_index", "execution", "status"))
"""The columns that group the samples, count executions and statuses, and name the worst sample."""

MOST_ENTRIES = 32
"""Entries of a reward that have columns."""
SAMPLE_NAMES = names_of(SAMPLE_COLUMNS)
OF_SAMPLE = {column.name: column.of_sample for column in SAMPLE_COLUMNS if column.of_sample is not None}
"""How the columns that need only the sample itself are computed."""

OF_SAMPLE_BRIEF = {name: compute for name, compute in OF_SAMPLE.items() if name in FOR_STEP | reduced_columns()}
"""Those that the step's own row needs."""


def samples(
    step: Step, reward_key: str | None = None, *, brief: bool = False, on_field: OnField | None = None
) -> list[Record]:
    """One row per sample in file order; `on_field` is called before each of the per-token fields which share is done.

    A statistic is over the finite values at unmasked positions, None where there is none or a slice is missing;
    `not_finite` counts the others. `brief` leaves out all that the step's own row does not need, half of the work.
    """
    chosen, key = reward_key is not None, entry_of(step, reward_key)
    versions = [sample.versions for sample in step.samples]
    current = current_version(step.rollout.step, versions)
    table = [
        sample_facts(step, sample, wrote, current, key, chosen, brief)
        for sample, wrote in zip(step.samples, versions, strict=True)
    ]
    if step.files.key.evaluation:
        for row, dataset, group in zip(table, datasets(step.samples), prompt_groups(step.samples), strict=True):
            row["dataset"], row["prompt_group"] = dataset, group
    else:
        name_groups(step, table)
    if not brief:
        add_column(table, "tool_calls", tool_calls(step))
        for name, values in reward_entries(step).items():
            add_column(table, name, values)
    for name, column in statistics(step, on_field, brief=brief).items():
        add_column(table, name, column)
    count_rewards(table)
    return table if brief else [in_order(SAMPLE_NAMES, row) for row in table]


def entry_of(step: Step, chosen: str | None) -> str | None:
    """Return the entry to take as the reward where rewards are dicts: the `chosen` one, or the default."""
    if chosen is not None or not any(isinstance(sample.reward, Mapping) for sample in step.samples):
        return chosen
    return default_entry([sample.reward for sample in step.samples], step.alignment.raw_rewards or ())


def sample_facts(
    step: Step, sample: Sample, versions: Sequence[str], current: int, key: str | None, chosen: bool, brief: bool
) -> Record:
    """`versions` are those that wrote the sample, `current` that of one that is wholly on-policy. `key` is the entry of
    rewards that are dicts, `chosen` whether somebody chose it.
    """
    oldest = oldest_version(versions)
    return {
        **{name: compute(sample) for name, compute in (OF_SAMPLE_BRIEF if brief else OF_SAMPLE).items()},
        "reward": reward_value(sample.reward, key),
        "reward_entry": key if isinstance(sample.reward, Mapping) else None,
        "reward_note": None if brief else reward_note(sample.reward, key),
        "reward_chosen": chosen and (sample.reward is None or isinstance(sample.reward, Mapping)),
        "weight_version": versions[-1] if versions else None,
        "weight_version_min": oldest,
        "weight_version_max": max(counters(versions), default=None),
        "versions": None if brief else version_range(versions) or None,
        "mixed_version": len(set(versions)) > 1 if versions else None,
        "staleness": None if oldest is None or step.files.key.evaluation else current - oldest,
        "staleness_reason": None,
        **train_facts(step, sample, key, chosen),
    }


def name_groups(step: Step, table: Sequence[Record]) -> None:
    """Tell apart groups that share their group_index, and say of which adapter each sample is, where there are any."""
    parts, adapters = group_parts(step), [adapter_name(sample) for sample in step.samples]
    if any(parts):
        add_column(table, "group_part", parts)
    if any(name is not None for name in adapters):
        add_column(table, "adapter", adapters)


def reward_entries(step: Step) -> dict[str, list[float | None]]:
    """Return a column for each entry with a number, where rewards are dicts."""
    rewards = [sample.reward for sample in step.samples]
    names = dict.fromkeys(name for reward in rewards if isinstance(reward, Mapping) for name in numeric_entries(reward))
    return {
        entry_column(name): [reward_value(reward, name) if isinstance(reward, Mapping) else None for reward in rewards]
        for name in list(names)[:MOST_ENTRIES]
    }


def add_column(table: Sequence[Record], name: str, column: Sequence[object]) -> None:
    for row, value in zip(table, column, strict=True):
        row[name] = value


def reward_note(reward: object, key: str | None) -> str | None:
    """What a reward is that no number can be taken of; None where there is one, or no reward at all."""
    if reward is None or reward_value(reward, key) is not None:
        return None
    if isinstance(reward, Mapping):
        return f"dict{{{','.join(map(as_text, reward))}}}"
    if isinstance(reward, Dumped):
        return repr(reward)
    return f"{type_name(reward)} {reward}" if isinstance(reward, str) else type_name(reward)


def train_facts(step: Step, sample: Sample, key: str | None, chosen: bool) -> Record:
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
        "raw_reward": reward_value(raw, key),
        "raw_chosen": chosen and isinstance(raw, Mapping),
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


class FieldStatistics:
    """The statistics of the per-token fields of a step, one value a sample, and what can be said of the fields.

    Fields are read one after another, so that the values of one are held at a time: 23 MB each of a step of 512 long
    samples. What is derived of a single field is reduced while that one is there.
    """

    def __init__(self, step: Step, columns: Sequence[ColumnDefinition]) -> None:
        self.mask = step.masks()
        self.values: dict[str, Sequence[object]] = {}
        self.states: list[FieldStates] = []
        self.not_finite: dict[str, Ints] = {}
        """How many values of each field that is dumped, or the difference, are NaN or infinite, by sample."""
        self.first_not_finite: dict[str, list[int | None]] = {}
        """The place of the first of them in each response."""
        self.of_difference: dict[str, Sequence[object]] = {}
        """What the steps table needs of the difference: its sum and its tokens, and where it is largest."""
        self._step = step
        self._columns: dict[str, dict[str, StatisticName]] = {}
        for column in columns:
            if column.statistic is not None:
                self._columns.setdefault(column.statistic.field, {})[column.name] = column.statistic.name

    def read(self, on_field: OnField | None) -> None:
        names = list(dict.fromkeys(map(source_of, self._columns)))
        for number, name in enumerate(names):
            if on_field is not None:
                on_field(number / len(names))
            self._read(name)

    def _read(self, name: str) -> None:
        if name == "lp_diff":  # the mask is there already
            flat = self._step.difference(self.mask.positions, self.mask)
        else:
            flat = statistic_field(self._step, name, self.mask.positions)
        self._step.pause()
        masked = self._reduce(flat)
        if definition(name).derive is None and name in self._columns:
            self.states.append((flat.states, flat.reasons))
            self.not_finite[name] = masked.not_finite
            self.first_not_finite[name] = masked.first_not_finite()
        if name == "lp_diff":
            self.of_difference = {
                "lp_diff_tokens": masked.count.tolist(),
                "sum_abs_lp_diff": masked.sum_abs(),
                "max_abs_lp_diff_token": self._tokens(masked.first_max_abs()),
            }
        for derived in self._columns:
            if derived != name and source_of(derived) == name:
                self._step.pause()
                self._reduce(derive_for_statistics(definition(derived), [flat]))

    def _reduce(self, flat: TokenField) -> Masked:
        masked = Masked(flat, self.mask)
        for column, statistic in self._columns.get(flat.name, {}).items():
            self.values[column] = STATISTICS[statistic](masked)
        return masked

    def _tokens(self, places: Sequence[int | None]) -> list[int | None]:
        """Return places in responses as positions in the samples, prompt included."""
        prompts = (sample.prompt_length for sample in self._step.samples)
        return [None if at is None else prompt + at for prompt, at in zip(prompts, places, strict=True)]

    def first_not_finite_tokens(self, names: Iterable[str]) -> list[int | None]:
        """Return the first position of each sample at which one of these fields is NaN or infinite."""
        places = zip(*(self.first_not_finite[name] for name in names), strict=True)
        return self._tokens([min((at for at in found if at is not None), default=None) for found in places])

    def count_not_finite(self, names: Iterable[str] | None = None) -> list[int]:
        """Return how many values of these fields, by default of all, are NaN or infinite, by sample."""
        counts = [self.not_finite[name] for name in (self.not_finite if names is None else names)]
        total: list[int] = np.sum(counts, axis=0).tolist()
        return total


def source_of(name: str) -> str:
    """Return the field that has to be read for a field: the one that it is derived of, if that is a single one."""
    field = definition(name)
    return field.inputs[0] if field.derive is not None and len(field.inputs) == 1 else name


def statistics(step: Step, on_field: OnField | None = None, *, brief: bool = False) -> dict[str, Sequence[object]]:
    """Return the columns that are computed from the per-token fields, one value a sample."""
    reduced = [column for column in SAMPLE_COLUMNS if column.name in reduced_columns()]
    found = FieldStatistics(step, reduced if brief else SAMPLE_COLUMNS)
    found.read(on_field)
    in_steps = {source_of(column.statistic.field): None for column in reduced if column.statistic is not None}
    for_steps = {
        **found.of_difference,
        "step_not_finite": found.count_not_finite(in_steps),
        "not_finite_token": found.first_not_finite_tokens(in_steps),
    }
    if brief:
        return {**found.values, **for_steps}
    return {
        **found.values,
        "effective_length": effective_lengths(found.mask),
        **schedule_columns(step),
        **of_states(step, found.states),
        "not_finite": found.count_not_finite(),
        "diff_not_finite": found.count_not_finite(["lp_diff"]),
        **for_steps,
    }


def of_states(step: Step, said: Sequence[FieldStates]) -> dict[str, Sequence[object]]:
    states = [worst_state(step, at, said) for at in range(len(step.samples))]
    return {
        "alignment_failed": [state == "unreadable" for state, _ in states],
        "train_state": [state for state, _ in states],
        "train_reason": [reason for _, reason in states],
    }


def worst_state(step: Step, at: int, said: Sequence[FieldStates]) -> tuple[State, str | None]:
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
    counter's by version N. One that is far behind restarted with a resumed attempt, or counts an update every few
    steps: then the newest version here is all that is known of it.
    """
    counted = [numbers for wrote in versions if (numbers := counters(wrote))]
    newest = max(map(max, counted), default=0)
    return max([newest if newest + MAX_VERSIONS_BEHIND < step else step, *map(min, counted)])

"""All dumped values of a sample, in sections of named values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dumptui.core.errors import DumpError
from dumptui.core.formats.media import named
from dumptui.core.formats.sample import Sample
from dumptui.core.formats.shard import Shard
from dumptui.core.formats.values import Dumped, plain, preview
from dumptui.core.parallel.alignment import Row
from dumptui.core.sample.conversation import open_sidecar, recorded_row
from dumptui.core.sample.generation import cache_facts, call_facts, lifecycle_facts, spec_facts
from dumptui.core.sample.messages import pretty
from dumptui.core.sample.turns import Turn, find_turns
from dumptui.core.step.grouping import mates
from dumptui.core.step.schedule import place_of, schedule_of
from dumptui.core.step.step import Step
from dumptui.core.tables.tokens import notes
from dumptui.core.telemetry.lifecycle import Lifecycle
from dumptui.core.types import Record

MAX_TEXT_CHARACTERS = 200_000
"""Longer values are truncated: a page of 5 MB would take a second to make."""

WHOLE_BATCH = frozenset(
    [
        "raw_reward",
        "num_microbatches",
        "micro_batch_indices",
        "num_rollouts",
        "global_batch_sizes",
        "dynamic_global_batch_size",
        "prompt_group_sizes",
        "step_slots",
        "partition",
    ]
)
"""Columns of a train file about the whole batch: not one entry per row, even if their length is the number of rows."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A named value of a sample, as text."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Section:
    """A group of facts. `brief` sections are short and shown open; `lane` is the lifecycle to draw, if any."""

    title: str
    facts: tuple[Fact, ...]
    brief: bool = True
    lane: Lifecycle | None = None


def sample_facts(step: Step, sample: Sample, life: Lifecycle | None = None) -> list[Section]:
    """Return the sections that are not empty; `life` is the sample's lifecycle, if recorded."""
    masks = step.masks(np.array([sample.position], np.int64))
    mask = masks.one(0)[0] if masks.states[0] == "ok" else None
    turns = find_turns(mask, sample.prompt_length, sample.total_length)
    row = step.alignment.rows[sample.position]
    sections = [
        Section("notes", facts(numbered(notes(step, sample, masks.reasons[0])))),
        Section("sample", facts(identity(step, sample))),
        Section("reward", facts({**rewards(step, sample), "label": sample.label})),
        Section("lengths", facts(lengths(sample, turns))),
        Section("turns", facts(call_facts(sample, turns))),
        Section("lifecycle", life_facts(step, sample, life), lane=life),
        Section("speculative decoding", facts(spec_facts(sample.spec_info))),
        Section("prefix cache", facts(cache_facts(sample.prefix_cache))),
        Section("metadata", facts(sample.metadata), brief=False),
        Section("other keys of the sample", facts(sample.extra), brief=False),
        Section("train row", facts({} if row is None else train_facts(row)), brief=False),
        Section("train file", facts({} if row is None else batch_facts(row)), brief=False),
        Section("trajectory file", facts(trajectory_facts(step, sample)), brief=False),
        Section("rollout file", facts(file_facts(step)), brief=False),
        Section("prompt", facts({"prompt": sample.prompt}), brief=False),
        Section("response", facts({"response": sample.response or None}), brief=False),
    ]
    return [section for section in sections if section.facts]


def facts(values: Mapping[Any, Any]) -> tuple[Fact, ...]:
    """Return one fact per value; a value of None is skipped."""
    names = {key: key if isinstance(key, str) else preview(key) for key in values}
    return tuple(Fact(names[key], written(value)) for key, value in values.items() if value is not None)


def written(value: object) -> str:
    """Return a value as text: a number or text as it is, an array by type and shape, media by kind and size, anything
    else as JSON.
    """
    value = plain(value) if isinstance(value, Dumped) and value.size == 1 else value
    text = named(value) if isinstance(value, str) else preview(value) if isinstance(value, Dumped) else pretty(value)
    return text if len(text) <= MAX_TEXT_CHARACTERS else f"{text[:MAX_TEXT_CHARACTERS]}… ({len(text):,} characters)"


def identity(step: Step, sample: Sample) -> Record:
    members = mates(step, sample.position)
    place = sorted(members, key=lambda mate: (mate.index or 0, mate.occurrence)).index(sample) + 1 if members else 0
    return {
        "step": str(step.files.key) if step.files.key.evaluation else step.files.key.step,
        "index": "none" if sample.index is None else sample.index,
        "occurrence": sample.occurrence if siblings(step, sample) > 1 else None,
        "position": sample.position,
        "group": None if sample.group is None else f"{sample.group}, {place} of {len(members)}",
        "execution": sample.execution,
        "status": sample.status,
        "remove_sample": "true: excluded from training" if sample.removed else None,
    }


def siblings(step: Step, sample: Sample) -> int:
    """Return how many samples of the step have the index of this one, itself included."""
    return sum(sibling.index == sample.index for sibling in step.samples)


def rewards(step: Step, sample: Sample) -> Record:
    row = step.alignment.rows[sample.position]
    raw = None if step.alignment.raw_rewards is None else step.alignment.raw_rewards[sample.position]
    return {
        "reward": "none" if sample.reward is None else sample.reward,
        "raw_reward": raw,
        "normalised reward": None if row is None else row.group.first.value("rewards", row.row),
    }


def lengths(sample: Sample, turns: Iterable[Turn]) -> Record:
    trained = sum(turn.stop - turn.start for turn in turns if turn.trained)
    return {
        "tokens": sample.total_length,
        "prompt tokens": sample.prompt_length,
        "response tokens": sample.response_length,
        "trained tokens": trained,
        "loss mask": "not dumped: all ones" if sample.loss_mask is None else f"{len(sample.loss_mask)} entries",
    }


def life_facts(step: Step, sample: Sample, life: Lifecycle | None) -> tuple[Fact, ...]:
    named_texts = lifecycle_facts(life, siblings(step, sample)) if life is not None else ()
    return tuple(Fact(name, text) for name, text in named_texts)


def trajectory_facts(step: Step, sample: Sample) -> Record:
    """Return the keys of the sample's sidecar row other than its messages."""
    sidecar = open_sidecar(step)
    if sidecar is None:
        return {}
    try:
        if isinstance(sidecar, DumpError):
            raise sidecar
        row, choice = recorded_row(step, sample, sidecar)
    except DumpError as error:
        return {"unreadable": str(error)}
    if row is None:
        return {}
    return {**{key: value for key, value in row.items() if key != "messages"}, "matched": choice}


# Files ----------------------------------------------------------------------------------------------------------


def train_facts(row: Row) -> Record:
    """Return the train files, the row number and the row's values; per-token columns are only named."""
    shard = row.group.first
    files = ", ".join(shard.path.name for shard in row.group.shards)
    values: Record = {"files": files, "row": f"{row.row} of {shard.rows}"}
    columns = {name: entry for peer in reversed(row.group.shards) for name, entry in row_columns(peer, row.row)}
    per_token = [name for name in columns if any(name in peer.per_token for peer in row.group.shards)]
    values |= {name: value for name, value in columns.items() if name not in per_token}
    return values | ({"per token": ", ".join(per_token)} if per_token else {})


def row_columns(shard: Shard, row: int) -> Iterator[tuple[str, Any]]:
    """Yield the columns of a train file with one entry per row, and the entry of this row."""
    for name in shard.columns:
        if name not in WHOLE_BATCH and (value := shard.value(name, row)) is not None:
            yield name, value


def batch_facts(row: Row) -> Record:
    """Return the values of the train files about the whole batch, and the micro-batch that the row is in."""
    shard = row.group.first
    values: Record = schedule_facts(row)
    columns = {name: value for peer in reversed(row.group.shards) for name, value in peer.columns.items()}
    names = [name for name in columns if name in WHOLE_BATCH or not has_rows(columns[name], shard.rows)]
    return values | {
        name: preview(columns[name]) for name in names if name != "raw_reward" and columns[name] is not None
    }


def schedule_facts(row: Row) -> Record:
    """Return the micro-batch and optimizer step of a row, counted from 0 like ranks; empty where unknown."""
    schedule = schedule_of(row.group)
    if isinstance(schedule, str):
        return {}
    batch, update = place_of(schedule, row.row)
    return {
        "micro-batch of the row": f"{batch} of {len(schedule.tokens)}",
        "optimizer step of the row": None if update is None else f"{update} of {len(schedule.steps or ())}",
    }


def has_rows(values: object, rows: int) -> bool:
    return isinstance(values, (list, tuple)) and len(values) == rows


def file_facts(step: Step) -> Record:
    return {"file": step.rollout.path.name, **step.rollout.metadata, **numbered(step.notes, "note ")}


def numbered(texts: Iterable[str], prefix: str = "") -> Record:
    return {f"{prefix}{number}": text for number, text in enumerate(texts, 1)}


def rows(sections: Iterable[Section]) -> list[Record]:
    """Return one row per fact."""
    return [
        {"section": section.title, "name": fact.name, "value": fact.value}
        for section in sections
        for fact in section.facts
    ]

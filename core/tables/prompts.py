"""Prompts over the steps of a run: how often each was solved when it came, and what changed.

Solved is what pass@k counts as a success: a reward above 0, in a step whose rewards are only 0 and 1, or only -1 and 1.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dumptui.core.errors import DumpError
from dumptui.core.fields.statistics import finite, mean
from dumptui.core.files.step_files import StepFiles, StepKey
from dumptui.core.formats.sample import Sample
from dumptui.core.formats.values import as_text
from dumptui.core.ptfile.file import OnRead
from dumptui.core.sample.messages import as_recorded
from dumptui.core.step.grouping import adapter_name
from dumptui.core.step.load import load
from dumptui.core.step.step import Step
from dumptui.core.tables.group_members import known_rewards
from dumptui.core.tables.pass_at_k import is_binary
from dumptui.core.tables.step_summary import is_whole
from dumptui.core.tables.steps import GroupKey, attempts, members, samples
from dumptui.core.types import Record

Change: TypeAlias = Literal[
    "never solved", "forgotten", "newly solved", "sometimes solved", "always solved", "no solve rate"
]
CHANGES: tuple[Change, ...] = (
    "never solved",
    "forgotten",
    "newly solved",
    "sometimes solved",
    "always solved",
    "no solve rate",
)
"""In the order of the rows."""

ENTRY = np.dtype(
    [
        ("prompt", "<u8"),
        ("group", "<i4"),
        ("sample", "<i8"),
        ("n", "<u4"),
        ("known", "<u4"),
        ("solved", "<i4"),
        ("mean", "<f4"),
    ]
)
"""A prompt of a step: 36 bytes, so that 5,000 steps of 512 prompts take 92 MB. `sample` is the index of its first
sample; it and `group` are -1 where there is none, `solved` without binary rewards; `mean` is NaN without a reward.
"""
ID_KEYS = ("id", "uid", "prompt_id", "question_id", "problem_id", "instance_id", "task_id", "extra_info_index")
DATASET_KEYS = ("data_source", "dataset", "dataset_name")
MEDIA_KEYS = ("multimodal_inputs", "multimodal_train_inputs")
TEXT_CHARACTERS = 80
"""Characters of a prompt that are kept to show it."""
MAX_TEXTS = 100_000
"""Prompts whose text is kept; the others are shown by their step and group."""
MAX_ROWS = 2_000
"""Prompts of each kind that are listed."""
MAX_RATES = 12
"""The newest solve rates of a row."""

Entries: TypeAlias = NDArray[Any]


class StepPrompts(NamedTuple):
    """The prompts of a step by hash, and the beginnings of their texts."""

    entries: Entries
    texts: dict[int, str]


# A step ---------------------------------------------------------------------------------------------------------


def summarise_prompts(
    files: StepFiles, reward_key: str | None, on_read: OnRead | None = None
) -> tuple[StepPrompts, bool]:
    """Return the prompts of a step, none if it is unreadable, and whether they stay true as long as its files do."""
    try:
        step = load(files, on_read)
    except DumpError:  # the steps table says so
        return StepPrompts(np.empty(0, ENTRY), {}), False
    return step_prompts(step, samples(step, reward_key, brief=True)), is_whole(step)


def step_prompts(step: Step, table: Sequence[Record]) -> StepPrompts:
    """Return the prompts of a step; `table` is its samples table."""
    rewards = known_rewards(table, step.files.key.evaluation)
    binary = is_binary(attempts(table, rewards))
    entries, texts = [], {}
    for group, positions in runs(table):
        prompt = prompt_hash(step, step.samples[positions[0]])
        tried = attempts([table[at] for at in positions], [rewards[at] for at in positions])
        known = finite(tried)
        solved = sum(reward > 0 for reward in known) if binary else -1
        centre = mean(known)
        number = -1 if group.group is None else group.group
        index = step.samples[positions[0]].index
        sample = -1 if index is None else index
        average = np.nan if centre is None else centre
        entries.append((prompt, number, sample, len(tried), len(known), solved, average))
        texts[prompt] = beginning(step.samples[positions[0]].prompt)
    return StepPrompts(np.array(entries, ENTRY), texts)


def runs(table: Sequence[Record]) -> Iterator[tuple[GroupKey, list[int]]]:
    """Yield each prompt group with its positions, and each sample that is in no group."""
    for group, positions in members(table).items():
        if group.group is None:
            yield from ((group, [at]) for at in positions)
        else:
            yield group, positions


def prompt_hash(step: Step, sample: Sample) -> int:
    """Return what identifies a prompt over the steps: its id in the data set, else its text; with the data set, the
    label and the adapter. Media without an id make a prompt one of its step alone: their contents are not compared.
    """
    metadata = sample.metadata
    names = [name for name in ID_KEYS if metadata.get(name) is not None]
    source: object = [[name, as_text(metadata[name])] for name in names] or as_recorded(sample.prompt)
    dataset = [as_text(metadata[name]) for name in DATASET_KEYS if metadata.get(name) is not None]
    parts = [step.files.key.evaluation, dataset, source, as_recorded(sample.label), adapter_name(sample)]
    if not names and any(sample.extra.get(name) is not None for name in MEDIA_KEYS):
        parts.append([step.files.key.step, sample.position])
    text = json.dumps(parts, ensure_ascii=False, sort_keys=True, default=str)
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def beginning(prompt: object) -> str:
    """Return the beginning of what the user asks, in a line."""
    messages = prompt if isinstance(prompt, (list, tuple)) else []
    asked = [one.get("content") for one in messages if isinstance(one, dict) and one.get("role") == "user"]
    text = prompt if isinstance(prompt, str) else asked[-1] if asked else ""
    return " ".join((text if isinstance(text, str) else "")[: 4 * TEXT_CHARACTERS].split())[:TEXT_CHARACTERS]


# The run --------------------------------------------------------------------------------------------------------


class PromptHistory:
    """The prompts of the steps that were added, in any order."""

    def __init__(self) -> None:
        self._steps: dict[StepKey, Entries] = {}
        self._texts: dict[int, str] = {}

    def add(self, key: StepKey, prompts: StepPrompts) -> None:
        self._steps[key] = prompts.entries
        for prompt, text in prompts.texts.items():
            if len(self._texts) < MAX_TEXTS or prompt in self._texts:
                self._texts[prompt] = text

    def forget(self, key: StepKey) -> None:
        self._steps.pop(key, None)

    def rows(self, limit: int = MAX_ROWS) -> tuple[list[Record], dict[str, int]]:
        """Return the rows of at most `limit` prompts of each kind, never solved first, and how many there are of each.

        Of a kind, those with the most attempts come first.
        """
        keys = sorted(key for key, entries in self._steps.items() if len(entries))
        if not keys:
            return [], {}
        table = np.concatenate([self._steps[key] for key in keys])
        places = np.repeat(np.arange(len(keys)), [len(self._steps[key]) for key in keys])
        order = np.lexsort((places, table["prompt"]))
        table, places = table[order], places[order]
        starts = np.flatnonzero(np.concatenate([[True], table["prompt"][1:] != table["prompt"][:-1]]))
        changes = changes_of(table, places, starts)
        counts = np.bincount(changes, minlength=len(CHANGES)).tolist()
        tried = np.add.reduceat(table["n"].astype(np.int64), starts)
        stops = np.append(starts[1:], len(table))
        order = np.lexsort((starts, -tried, changes))
        firsts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        chosen = order[np.arange(len(order)) - firsts[changes[order]] < limit].tolist()
        rows = [
            self._row(keys, CHANGES[changes[at]], table[starts[at] : stops[at]], places[starts[at] : stops[at]])
            for at in chosen
        ]
        return rows, {change: count for change, count in zip(CHANGES, counts, strict=True) if count}

    def _row(self, keys: Sequence[StepKey], change: Change, entries: Entries, places: NDArray[Any]) -> Record:
        steps = list(dict.fromkeys(places.tolist()))
        rates = [rate_of(entries[places == place]) for place in steps[-MAX_RATES:]]
        known, newest = int(entries["known"].sum()), keys[steps[-1]]
        group = int(entries["group"][-1])
        with_reward = entries[entries["known"] > 0]
        return {
            "change": change,
            "evaluation": newest.evaluation,
            "steps": len(steps),
            "first_step": keys[steps[0]].step,
            "last_step": newest.step,
            "group": None if group < 0 else group,
            "sample_index": None if entries["sample"][-1] < 0 else int(entries["sample"][-1]),
            "attempts": int(entries["n"].sum()),
            "rewarded": known,
            "solved": None if change == "no solve rate" else int(np.maximum(entries["solved"], 0).sum()),
            "reward_mean": float(np.average(with_reward["mean"], weights=with_reward["known"])) if known else None,
            "rates": rates,
            "prompt": self._texts.get(int(entries["prompt"][0]), ""),
            "hash": f"{int(entries['prompt'][0]):016x}",
        }


def rate_of(entries: Entries) -> float | None:
    """Return the share of attempts of a step that solved a prompt; None without binary rewards."""
    known = int(entries["known"].sum())
    return None if not known or (entries["solved"] < 0).any() else round(int(entries["solved"].sum()) / known, 4)


def changes_of(table: Entries, places: NDArray[Any], starts: NDArray[Any]) -> NDArray[Any]:
    """Return the number of the change of each prompt; `table` is sorted by prompt, then by step, from each of `starts`.

    A prompt is newly solved if it was solved at its newest step and at none before, and forgotten if it was solved at
    an earlier step and not at its newest one. Steps without a reward do not count.
    """
    counted = (table["known"] > 0) & (table["solved"] >= 0)
    solved = np.where(counted, table["solved"], 0).astype(np.int64)
    known = np.where(counted, table["known"], 0).astype(np.int64)
    newest = np.maximum.reduceat(np.where(counted, places, -1), starts)
    oldest = np.minimum.reduceat(np.where(counted, places, len(places)), starts)
    sizes = np.diff(np.append(starts, len(table)))
    at_newest = counted & (places == np.repeat(newest, sizes))
    total, last = (np.add.reduceat(values, starts) for values in (solved, np.where(at_newest, solved, 0)))
    attempted = np.add.reduceat(known, starts)
    several = newest > oldest
    kinds = [
        attempted == 0,
        total == 0,
        total == attempted,
        several & (last == 0),
        several & (last == total),
    ]
    names: list[Change] = ["no solve rate", "never solved", "always solved", "forgotten", "newly solved"]
    return np.select(kinds, [CHANGES.index(name) for name in names], CHANGES.index("sometimes solved"))

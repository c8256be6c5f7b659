"""Rows of samples as the panes show them: what the tables of core don't have, as it is for the screen only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from dumptui.core.formats.media import named
from dumptui.core.text import clip, plural, visible
from dumptui.tui.presentation import columns

if TYPE_CHECKING:
    from dumptui.core.formats.sample import Sample
    from dumptui.core.step.step import Step
    from dumptui.core.types import Record

NO_TRAIN = "no train"
MANY_SAMPLES = 16
"""Samples of a group that are listed one by one."""
ENTRY_CELLS = 16
"""Cells of the name of the entry that is the reward."""


def sample_records(step: Step, rows: Sequence[Record]) -> list[Record]:
    """Return the `rows` of the samples table of a step, with what only the screen shows."""
    from dumptui.core.tables.group_members import known_rewards

    evaluation = step.files.key.evaluation
    times = Counter(row["sample_index"] for row in rows)
    rewards = known_rewards(rows, evaluation)
    records = []
    for position, (row, sample) in enumerate(zip(rows, step.samples, strict=True)):
        index = "?" if sample.index is None else sample.index
        own = sample.shown_reward if row["reward"] is None else row["reward"]
        shown = {
            "position": position,
            "label": f"{index}.{sample.occurrence}" if times[sample.index] > 1 else index,
            "shown_reward": own,
            "compared_reward": own if rewards[position] is None else rewards[position],
            "flags": flags(row, evaluation),
        }
        records.append({**row, **shown})
    return records


def flags(row: Record, evaluation: bool) -> str:
    found = []
    if row["remove_sample"]:
        found.append("removed")
    if row["truncated"]:
        found.append("trunc")
    elif row["status"] != "completed":
        found.append(visible(str(row["status"])))
    if not row["trained"] and not evaluation:
        found.append(NO_TRAIN)
    if row["alignment_failed"]:
        found.append("unplaced")
    if row["not_finite"]:
        found.append("NaN")
    return " ".join(found)


def sample_style(row: Record) -> str | None:
    """Mute what was not trained on: where groups of equal rewards are dropped, that is half of a step."""
    if row["remove_sample"] or row["alignment_failed"]:
        return "bad"
    return "dim" if row["flags"] == NO_TRAIN else "warn" if row["flags"] else None


def place(step: Step, position: int) -> str:
    """Return where a sample is, such as "step 3 · group 92, 3 of 4"."""
    from dumptui.core.step.grouping import mates

    group = step.samples[position].group
    if group is None:
        return str(step.files.key)
    members = [sample.position for sample in mates(step, position)]
    return f"{step.files.key} · group {group}, {members.index(position) + 1} of {len(members)}"


def reward_words(sample: Sample, row: Record) -> str:
    """Return the reward of a sample in words, such as "reward 1.00 (score; format 0.00)".

    `row` is its row in the samples table, whose reward is that of the entry in use.
    """
    entry = row["reward_entry"]
    if entry is None:
        return f"reward {columns.reward_in_full(sample.shown_reward)}"
    entries = sample.shown_reward if isinstance(sample.shown_reward, Mapping) else {}
    others = ", ".join(f"{name} {columns.fixed(2)(value)}" for name, value in entries.items() if name != entry)
    return f"reward {columns.fixed(2)(row['reward'])} ({entry}{f'; {others}' if others else ''})"


def count_line(row: Record, groups: Sequence[Record]) -> str:
    """How many samples a step has, and in how many prompt groups where they have any."""
    grouped = sum(group["group_index"] is not None for group in groups)
    return plural(row["samples"], "sample") + (f" in {plural(grouped, 'group')}" if grouped else "")


def entry_text(rows: Sequence[Record]) -> str:
    """Return which entries of dicts the rewards of samples are; "" if the rewards are no dicts."""
    entries = columns.used_entries(rows)
    return f"reward: {clip(visible(', '.join(sorted(entries))), ENTRY_CELLS)}" if entries else ""


def prompt_text(prompt: object) -> str:
    """The prompt's text, of chat messages all that the last one of the user says, media by kind and size."""
    if isinstance(prompt, str):
        return named(prompt)
    from dumptui.core.sample.messages import parts_of  # which bring numpy
    from dumptui.core.sample.reconstruction import as_messages

    asked = [one for one in as_messages(prompt) if one.get("role") == "user"]
    return " ".join(named(part.text) for part in parts_of(asked[-1])) if asked else ""


def same_group(sample: Record, group: Record) -> bool:
    """Whether a row of the samples table is of this row of the groups table."""
    return sample["group_index"] == group["group_index"] and sample.get("group_part", 0) == group.get("group_part", 0)


def group_line(group: Record | None, samples: Sequence[Record], prompt: str) -> Text:
    """The prompt group at a glance: the rewards of its samples, whether they differ, and the prompt."""
    text = Text()
    if group is not None and group["group_index"] is not None:
        rewards = [columns.reward(one["compared_reward"]) for one in samples if same_group(one, group)]
        text.append(f"group {group['group_index']}: ", "bold")
        text.append("  ".join(rewards[:MANY_SAMPLES]) + "  …" * (len(rewards) > MANY_SAMPLES))
        spread = "zero-std: unknown" if group["reward_mean"] is None else "zero-std" if group["zero_std"] else ""
        text.append(f"   {spread}".rstrip(), "bold").append("   ")
    shown = " ".join(prompt[:2000].split())
    return text.append("prompt ", "bold").append(visible(shown))

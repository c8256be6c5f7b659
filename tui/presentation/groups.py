"""Prompt groups as cells and sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.text import Text

from dumptui.core.formats.values import as_text
from dumptui.core.step.step import Step
from dumptui.core.tables.group_members import Group, mean_passes
from dumptui.core.tables.view_columns import GROUP_COLUMNS
from dumptui.core.text import cell_width, plural, visible
from dumptui.core.types import Record
from dumptui.tui.presentation import columns
from dumptui.tui.presentation.sample_rows import entry_text
from dumptui.tui.presentation.signs import PARTIAL_SIGN, sample_cells
from dumptui.tui.widgets.reward_strip import reward_strip

OF_REWARDS = frozenset(column.name for column in GROUP_COLUMNS if column.covers == "rewarded")
"""The columns that cover only part of a group where a sample has no reward."""
TAIL_CHARACTERS = 2000
"""Characters at the end of a response that are looked at for its tail."""
STRIP_CELLS = next(field.width for field in columns.GROUPS if field.key == "strip")


def group_record(group: Group, ends: tuple[float, float] | None) -> Record:
    shown = {
        "label": group.row["group_index"],
        "strip": reward_strip(group.rewards, group.binary, ends, STRIP_CELLS),
        "spread": group.outcome if group.spread == "zero-std" and group.outcome else group.spread,
        "rewarded": group.attempted,
        "reward_mean": group.mean,
        "reward_std": group.std,
        "pass_at_1": group.passes.get(1),
        "pass_at_k": group.passes.get(group.attempted),
    }
    return {**group.row, **shown}


def group_cells(fields: list[columns.Field], record: Record) -> list[str]:
    cells = sample_cells(fields, record)
    if record["rewarded"] == record["attempts"]:
        return cells
    partial = [field.key in OF_REWARDS and cell != "-" for field, cell in zip(fields, cells, strict=True)]
    return [PARTIAL_SIGN * part + cell for part, cell in zip(partial, cells, strict=True)]


def group_label(row: Record) -> str:
    label = columns.whole(row["group_index"])
    if row.get("adapter") is not None:
        return f"{label} of adapter {visible(str(row['adapter']))}"
    return f"{label} of dataset {row['dataset']}" if "dataset" in row else label


def title(step: Step, groups: list[Group], samples: Sequence[Record]) -> Text:
    """Return the groups of a step in a line: how many have equal rewards, pass@k over all of them, and the entry that
    is the reward; `samples` are rows of the samples table.
    """
    text = Text().append(str(step.files.key), "bold")
    text.append(f" · {plural(len(step.samples), 'sample')} in {plural(len(groups), 'group')}")
    spreads = [group.spread for group in groups]
    comparable = len(spreads) - spreads.count("unknown") - spreads.count("single")
    text.append(f" · zero-std {spreads.count('zero-std')} of {comparable}")
    outcomes = [group.outcome for group in groups if group.spread == "zero-std" and group.outcome]
    if outcomes:
        text.append(f" ({', '.join(f'{outcomes.count(word)} {word}' for word in sorted(set(outcomes)))})")
    for word in ("single", "unknown"):
        if word in spreads:
            text.append(f", {spreads.count(word)} {word}")
    if spreads and set(spreads) == {"unknown"} and any(isinstance(sample.reward, Mapping) for sample in step.samples):
        text.append(" · rewards are dicts: R in the Rollout pane chooses an entry", "bold")
    text.append(passes_text(mean_passes(groups), partial=any(map(is_partial, groups))))
    entry = entry_text(samples)
    return text.append(f" · {entry}" if entry else "")


def group_style(group: Group) -> str | None:
    """Return the style of a group that gives no advantage; a solved one is muted."""
    if not group.spread:
        return None
    return "dim" if group.outcome == "all correct" else "warn"


def label_text(label: object) -> str:
    return "-" if label is None else visible(" ".join(as_text(label)[:2000].split()))


def answer_tail(response: str, width: int) -> str:
    """Return the end of a response without its last special tokens, in at most `width` cells."""
    from dumptui.core.sample.messages import end_of_words

    tail = response[-TAIL_CHARACTERS:]
    words = visible(" ".join(tail[: end_of_words(tail)].split()))
    if cell_width(words) <= width and len(tail) == len(response):
        return words
    while words and cell_width(words) > width - 1:
        words = words[max(1, (cell_width(words) - width) // 2) :]
    return f"…{words}"


def facts(group: Group, prompt: str) -> Text:
    text = Text().append(f"group {group_label(group.row)}", "bold")
    if group.rewarded < len(group.members):
        text.append(f" · {group.rewarded} of {plural(len(group.members), 'reward')}", "bold")
    if len(group.attempts) < len(group.members):
        text.append(f" · {plural(len(group.members), 'sample')} of {plural(len(group.attempts), 'execution')}", "bold")
    text.append(passes_text(group.passes, partial=is_partial(group))).append("   prompt ", "bold")
    return text.append(visible(" ".join(prompt[:2000].split())))


def is_partial(group: Group) -> bool:
    """Whether a prompt group has attempts without a reward."""
    return group.row["group_index"] is not None and group.attempted < len(group.attempts)


def passes_text(passes: dict[int, float], *, partial: bool) -> str:
    return "".join(f" · pass@{k} {PARTIAL_SIGN * partial}{value:.2f}" for k, value in passes.items())

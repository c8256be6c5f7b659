"""The questions to a person about steps and samples: at the bottom of the screen, or as a choice."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dumptui.core.errors import DumpError
from dumptui.core.files.step_files import StepKey
from dumptui.core.process.resources import need_polars
from dumptui.core.tables.columns import SAMPLE_COLUMNS, STEP_COLUMNS
from dumptui.core.tables.meanings import of_column
from dumptui.core.text import plural, visible
from dumptui.core.types import Record
from dumptui.tui.presentation import columns
from dumptui.tui.presentation.meanings import in_full
from dumptui.tui.session.preferences import TABLE_COLUMNS
from dumptui.tui.session.sample_order import Arrangement, StepArrangement
from dumptui.tui.terminal.in_thread import in_thread
from dumptui.tui.widgets.dialogs.choices import Choose, ChooseMore, Pick
from dumptui.tui.widgets.dialogs.prompt import Ask

if TYPE_CHECKING:
    from dumptui.core.formats.sample import Sample

DEFINITIONS = {"samples": SAMPLE_COLUMNS, "steps": STEP_COLUMNS}
DEFAULT_ENTRY = "default"
FILTER_HINT = "such as reward == 0 and truncated and max_abs_lp_diff > 1; leave empty to show all"
STEP_FILTER_HINT = "such as mean_abs_lp_diff > 0.03 and not evaluation; leave empty to show all"
PATTERN_HINT = "regular expression, searched in prompt, response and messages; start with (?i) to ignore case"
TOKENS_HINT = "regular expression, also across tokens; start with (?i) to ignore case; leave empty to clear"
_STEP_PATTERN = re.compile(r"\s*(?:(eval|e|step|train|s)\s*)?(\d{1,18})\s*", re.IGNORECASE)


async def import_polars() -> None:
    """Import polars, which takes 0.2 s, without blocking the event loop. Raise DumpError where it can't be loaded."""
    if "polars" not in sys.modules:
        need_polars("polars")
        await in_thread(__import__, "polars")


def ask_filter(rows: Sequence[Record], asked: Arrangement, history: Sequence[str] = ()) -> Ask:
    """Return the question for a filter; `rows` are those of the samples or steps table of core."""
    noun = "step" if isinstance(asked, StepArrangement) else "sample"
    hint = STEP_FILTER_HINT if noun == "step" else FILTER_HINT

    async def check(text: str) -> str:
        await import_polars()
        return f"{len(replace(asked, where=text).select(rows))} of {plural(len(rows), noun)}"

    labels = {name: label for label, name in asked.LABELS.items() if label != name}
    names = {name: labels.get(name, "") for name in most_used(rows[0] if rows else (), labels, asked.FIELDS, history)}
    return Ask(f"show {noun}s where", check, value=asked.where, hint=hint, names=names, history=history)


def most_used(
    names: Iterable[str], labels: Mapping[str, str], fields: Sequence[columns.Field], history: Sequence[str]
) -> list[str]:
    """Return the names of columns by how many earlier filters use them, by name or label; then as on screen."""
    places = {field.key: place for place, field in enumerate(fields) if field.default}

    def is_used(name: str, text: str) -> bool:
        words = {name, labels.get(name, name)}
        return any(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE) for word in words)

    uses = {name: sum(is_used(name, text) for text in history) for name in names}
    return sorted(uses, key=lambda name: (-uses[name], places.get(name, len(places))))


def ask_pattern(title: str, value: str, history: Sequence[str] = (), hint: str = PATTERN_HINT) -> Ask:
    async def check(text: str) -> str:
        from dumptui.core.query.text_search import check_pattern

        await import_polars()
        await in_thread(check_pattern, text)  # too large a pattern takes 0.7 s
        return hint

    return Ask(title, check, value=value, hint=hint, history=history)


def ask_step(keys: Sequence[StepKey], current: StepKey) -> Ask:
    async def check(text: str) -> str:
        key = read_step(text, current.evaluation)
        if key not in keys:
            raise DumpError("step", f"there is no {key}; the run has {step_range(keys, key.evaluation)}")
        return str(key)

    both = [
        step_range(keys, evaluation)
        for evaluation in (False, True)
        if any(key.evaluation is evaluation for key in keys)
    ]
    return Ask(f"go from {current} to", check, hint=" · ".join(both))


def step_range(keys: Sequence[StepKey], evaluation: bool) -> str:
    """Return a range in words, such as "steps 0 to 23" or "evals 0 to 16"."""
    numbers = [key.step for key in keys if key.evaluation == evaluation]
    kind = "eval" if evaluation else "step"
    return f"{kind}s {min(numbers)} to {max(numbers)}" if numbers else f"no {kind}s"


def read_step(text: str, evaluation: bool) -> StepKey:
    """Return the step of a text such as "12" or "eval 8"; `evaluation` applies where only a number is given. Raises
    DumpError.
    """
    match = _STEP_PATTERN.fullmatch(text)
    if match is None:
        raise DumpError("step", "type a step number, such as 12, or an eval, such as eval 8")
    kind = (match[1] or "").lower()
    return StepKey(int(match[2]), kind.startswith("e") if kind else evaluation)


# Choices ---------------------------------------------------------------------------------------------------------


def choose_sort(table: str, shown: columns.Shown, sort: columns.Sort, more: Sequence[columns.Field] = ()) -> ChooseMore:
    """Return the choice of a column of "samples" or "steps" to sort by; `more` are columns of this step alone."""
    title = f"sort the {table} by" + (" (space: add as secondary key)" if sort else "")
    choices = [described(field) for field in (*columns.chosen_fields(TABLE_COLUMNS[table], shown), *more)]
    return ChooseMore(title, choices, sort[0][0] if sort else None, meanings_of(table))


def pick_columns(table: str, shown: columns.Shown) -> Pick:
    """Return the choice of the columns of "samples" or "steps"; the first column is always shown."""
    fields = TABLE_COLUMNS[table]
    picked = [field.key for field in columns.chosen_fields(fields, shown)]
    return Pick(f"columns of the {table}", [described(field) for field in fields[1:]], picked, meanings_of(table))


def meanings_of(table: str) -> dict[str, str]:
    """Return what the columns of "samples" or "steps" mean, by their names."""
    return {column.name: in_full(of_column(column)) for column in DEFINITIONS[table]}


def described(field: columns.Field) -> tuple[str, str]:
    return field.key, f"{field.label:<8}  {field.tip}"


def reward_names(samples: Sequence[Sample]) -> list[str]:
    """Return the entries of rewards that are dicts."""
    rewards = [sample.reward for sample in samples if isinstance(sample.reward, Mapping)]
    return list(dict.fromkeys(str(entry) for reward in rewards for entry in reward))


def choose_reward_key(names: Sequence[str]) -> Choose:
    """Return the choice of the reward entry. The answer is DEFAULT_ENTRY or a position, since names may be any text."""
    default = (DEFAULT_ENTRY, "default: the trainer's entry, else score, reward, acc or the first number")
    return Choose("use as reward", [*((str(place), visible(name)) for place, name in enumerate(names)), default])

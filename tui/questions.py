"""What is asked of a person about steps and samples: on the line at the bottom, or as a choice."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dumptui.core.errors import DumpError
from dumptui.core.record import Record
from dumptui.core.room import need_polars
from dumptui.core.run import StepKey
from dumptui.core.text import visible
from dumptui.tui import columns
from dumptui.tui.arrangement import LABELS, Arrangement
from dumptui.tui.ask import Ask
from dumptui.tui.dialog import Choose, ChooseMore, Pick
from dumptui.tui.memory import FIELDS
from dumptui.tui.panes.samples import count
from dumptui.tui.thread import aside

if TYPE_CHECKING:
    from dumptui.core.sample import Sample

FILTER_HINT = "such as reward == 0 and truncated and max_abs_lp_diff > 1; leave empty to show all"
PATTERN_HINT = "regular expression, searched in prompt, response and messages; start with (?i) to ignore case"
TOKENS_HINT = "regular expression, also across tokens; start with (?i) to ignore case; leave empty to clear"
_STEP = re.compile(r"\s*(?:(eval|e|step|train|s)\s*)?(\d{1,18})\s*", re.IGNORECASE)


async def polars_there() -> None:
    """Import polars, which takes 0.2 s, beside the event loop. Raises DumpError where it can't be had."""
    if "polars" not in sys.modules:
        need_polars("polars")
        await aside(__import__, "polars")


def ask_filter(rows: Sequence[Record], value: str, history: Sequence[str] = ()) -> Ask:
    """`rows` are those of the samples table of core."""

    async def check(text: str) -> str:
        await polars_there()
        return f"{len(Arrangement(where=text).select(rows))} of {count(len(rows), 'sample')}"

    labels = {name: label for label, name in LABELS.items() if label != name}
    names = {name: labels.get(name, "") for name in (rows[0] if rows else ())}
    return Ask("show samples where", check, value=value, hint=FILTER_HINT, names=names, history=history)


def ask_pattern(title: str, value: str, history: Sequence[str] = (), hint: str = PATTERN_HINT) -> Ask:
    async def check(text: str) -> str:
        from dumptui.core.search import check_pattern

        await polars_there()
        await aside(check_pattern, text)  # one that is too large takes 0.7 s
        return hint

    return Ask(title, check, value=value, hint=hint, history=history)


def ask_step(keys: Sequence[StepKey], current: StepKey) -> Ask:
    async def check(text: str) -> str:
        key = read_step(text, current.evaluation)
        if key not in keys:
            raise DumpError("step", f"there is no {key}; the run has {there(keys, key.evaluation)}")
        return str(key)

    both = [
        there(keys, evaluation) for evaluation in (False, True) if any(key.evaluation is evaluation for key in keys)
    ]
    return Ask(f"go from {current} to", check, hint=" · ".join(both))


def there(keys: Sequence[StepKey], evaluation: bool) -> str:
    """Such as "steps 0 to 23", "evals 0 to 16"."""
    numbers = [key.step for key in keys if key.evaluation == evaluation]
    kind = "eval" if evaluation else "step"
    return f"{kind}s {min(numbers)} to {max(numbers)}" if numbers else f"no {kind}s"


def read_step(text: str, evaluation: bool) -> StepKey:
    """A number, of an eval or a train step as `evaluation` says unless the text says it. Raises DumpError."""
    match = _STEP.fullmatch(text)
    if match is None:
        raise DumpError("step", "type a step number, such as 12, or an eval, such as eval 8")
    kind = (match[1] or "").lower()
    return StepKey(int(match[2]), kind.startswith("e") if kind else evaluation)


# Choices ---------------------------------------------------------------------------------------------------------


def choose_sort(shown: columns.Shown, sort: columns.Sort) -> ChooseMore:
    title = "sort the samples by" + (" (space: add as secondary key)" if sort else "")
    choices = [described(field) for field in columns.chosen_fields(columns.SAMPLES, shown)]
    return ChooseMore(title, choices, sort[0][0] if sort else None)


def pick_columns(table: str, shown: columns.Shown) -> Pick:
    """`table` is "samples" or "steps"; its first column is always there."""
    fields = FIELDS[table]
    picked = [field.key for field in columns.chosen_fields(fields, shown)]
    return Pick(f"columns of the {table}", [described(field) for field in fields[1:]], picked)


def described(field: columns.Field) -> tuple[str, str]:
    return field.key, f"{field.label:<8}  {field.tip}"


def reward_names(samples: Sequence[Sample]) -> list[str]:
    """The entries of rewards that are dicts."""
    rewards = [sample.reward for sample in samples if isinstance(sample.reward, Mapping)]
    return list(dict.fromkeys(str(name) for reward in rewards for name in reward))


def choose_reward_key(names: Sequence[str]) -> Choose:
    """The answer is the place of the name, as names may be anything."""
    return Choose("use as reward", [(str(at), visible(name)) for at, name in enumerate(names)])

"""The top line: the place in the run, and how well trainer and engine agree there; and the title of the window."""

from __future__ import annotations

from rich.text import Text

from dumptui.core.files.step_files import StepKey
from dumptui.core.run.run import Run
from dumptui.core.tables.alarms import partial_columns
from dumptui.core.text import visible
from dumptui.core.types import Record
from dumptui.tui.presentation.columns import fixed
from dumptui.tui.presentation.signs import ALARM_SIGN, PARTIAL_SIGN


def headline(run: Run, key: StepKey, row: Record | None) -> Text:
    """Return the top line; `row` is the step's row in the steps table, None while it is unknown."""
    if key not in run.steps:
        return Text().append(f"{key}: its files are gone", "bold")
    same_kind = [other for other in run.steps if other.evaluation == key.evaluation]
    text = Text().append(str(key), "bold").append(f", {same_kind.index(key) + 1} of {len(same_kind)}")
    if key in run.earlier:
        text.append("  of an earlier attempt", "bold")
    if row is None:
        return text
    if row["samples"] is None:
        return text.append(f"  {row['state']}: {visible(str(row['reason']))}", "bold")
    part = PARTIAL_SIGN * ("mean_abs_lp_diff" in partial_columns(row))
    text.append(f"  |Δ| {part}{fixed(4)(row['mean_abs_lp_diff'])}", "bold")
    if row.get("not_finite"):
        text.append(f"  {ALARM_SIGN}{row['not_finite']} NaN or inf", "bold")
    if row["state"] != "ok":
        text.append(f"  train {row['train_samples']}/{row['samples']}", "bold")
    return text


def window_title(key: StepKey, row: Record) -> str:
    """Return the terminal's title: numbers only, no text that comes from a dump. `~` marks a partial one."""
    partial = partial_columns(row) if row.get("samples") is not None else set()
    reward = PARTIAL_SIGN * ("reward_mean" in partial) + fixed(3)(row.get("reward_mean"))
    difference = PARTIAL_SIGN * ("mean_abs_lp_diff" in partial) + fixed(4)(row.get("mean_abs_lp_diff"))
    return f"dumptui {key} reward {reward} |Δ| {difference}"

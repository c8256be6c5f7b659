"""The top line: where in the run, and whether trainer and engine agree there; and what is said of a live run."""

from __future__ import annotations

import time

from rich.text import Text

from dumptui.core.follow import Look
from dumptui.core.run import Run, StepKey
from dumptui.core.tables import Record
from dumptui.core.text import visible
from dumptui.core.values import as_float
from dumptui.tui.columns import fixed


def headline(run: Run, key: StepKey, row: Record | None) -> Text:
    """`row` is the step's row in the steps table, None while it is not known."""
    like = [one for one in run.steps if one.evaluation == key.evaluation]
    text = Text().append(str(key), "bold").append(f", {like.index(key) + 1} of {len(like)}")
    if row is None:
        return text
    if row["samples"] is None:
        return text.append(f"  {row['state']}: {visible(str(row['reason']))}", "bold")
    text.append(f"  |Δ| {fixed(4)(row['mean_abs_lp_diff'])}", "bold")
    if row["state"] != "ok":
        text.append(f"  train {row['train_samples']}/{row['samples']}", "bold")
    return text


def live_line(look: Look, newest: float | None) -> str:
    """The state of a live run. A time of day and not an age, which would have to be written again every second."""
    if look.problem is not None:
        return f"not there: {visible(look.problem.problem)}"
    files = max((entry.mtime for files in look.run.steps.values() for entry in files.entries()), default=0.0)
    return f"live, newest data {time.strftime('%H:%M:%S', time.localtime(max(files, newest or 0.0)))}"


def window_title(key: StepKey, row: Record) -> str:
    """For the terminal's title: numbers only, nothing that a dump could choose."""
    reward, difference = fixed(3)(row.get("reward_mean")), fixed(4)(row.get("mean_abs_lp_diff"))
    return f"dumptui {key} reward {reward} |Δ| {difference}"


# A step beyond one of these is worth a look: |Δ| is what miles' own checks allow between trainer and engine, the others
# are where its dashboard warns.
LIMITS = {"mean_abs_lp_diff": 0.03, "zero_std_frac": 0.5, "truncated_frac": 0.25}


def alarms(row: Record) -> list[str]:
    """What is wrong with a step by its row: names of columns, or its state."""
    over = [name for name, limit in LIMITS.items() if (value := as_float(row.get(name))) is not None and value >= limit]
    return over + ["unreadable"] * (row["state"] == "unreadable")

"""The top line: which run, where in it, and whether trainer and engine agree there."""

from __future__ import annotations

from rich.text import Text

from dumptui.core.run import Run, StepKey
from dumptui.core.tables import Record
from dumptui.core.text import visible
from dumptui.tui.columns import fixed


def headline(run: Run, key: StepKey, row: Record | None) -> Text:
    """`row` is the step's row in the steps table, None while it is not known."""
    like = [one for one in run.steps if one.evaluation == key.evaluation]
    text = Text(no_wrap=True, overflow="ellipsis").append(f" {visible(run.root.resolve().name)}", "bold")
    text.append(f"  {key}, {like.index(key) + 1} of {len(like)}")
    if row is not None and row["state"] != "unreadable":
        text.append(f"  |Δ| {fixed(4)(row['mean_abs_lp_diff'])}", "bold")
        if row["state"] != "ok":
            text.append(f"  train {row['train_samples']}/{row['samples']}", "bold")
    return text

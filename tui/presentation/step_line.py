"""The figures of a step in one quiet line."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from dumptui.core.tables.alarms import partial_columns
from dumptui.core.tables.columns import STEP_COLUMNS, label_of
from dumptui.core.types import Record
from dumptui.tui.presentation.columns import fixed, percent
from dumptui.tui.presentation.signs import PARTIAL_SIGN

GAP_TEXT = " "  # one blank, since seven figures have to fit in 70 cells beside the steps on a screen of 120


def zero_std(groups: Sequence[Record]) -> str:
    """Return how many of the groups with two or more rewards have equal ones; `groups` are rows of the groups table."""
    known = [row for row in groups if row["zero_std_known"]]
    return f"{sum(bool(row['zero_std']) for row in known)}/{len(known)}" if known else "-"


def stat_line(row: Record, groups: Sequence[Record]) -> Text:
    """Return the figures of a step; `row` is its row in the steps table. |Δ| and H are means over samples of their
    means over unmasked tokens. The number of samples is in the title above.
    """
    partial = partial_columns(row)
    figures = {
        "reward_mean": fixed(2)(row["reward_mean"]),
        "truncated_frac": percent(row["truncated_frac"]),
        "zero_std_frac": zero_std(groups),
        "mixed_version_frac": percent(row["mixed_version_frac"]),
        "staleness_mean": fixed(1)(row["staleness_mean"]),
        "mean_abs_lp_diff": fixed(4)(row["mean_abs_lp_diff"]),
        "mean_entropy": fixed(2)(row["mean_entropy"]),
    }
    text = Text()
    for name, value in figures.items():
        text.append(GAP_TEXT if text else "").append(f"{label_of(STEP_COLUMNS, name)} ", "dim")
        text.append(PARTIAL_SIGN * (name in partial) + value)
    return text

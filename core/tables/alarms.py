"""Which steps turned bad, by their rows in the steps table, and why; and which samples hold NaN or infinity."""

from __future__ import annotations

from collections.abc import Sequence

from dumptui.core.fields.ratio_limits import LARGEST_LOG_RATIO
from dumptui.core.types import Record
from dumptui.tui.cell_formats.tables import cell
from dumptui.tui.presentation.columns import DIVERGENCE, STEPS, Field, cells

ALARM_SIGN = "!"
"""Stands before the number of a bad step, and before each of its values that is beyond its limit."""

PARTIAL_SIGN = "~"
"""Stands before a number that covers only a part of a step."""

# |Δ| is what miles' own checks allow between trainer and engine, the others are where its dashboard warns.
ALARM_LIMITS = {"mean_abs_lp_diff": 0.03, "zero_std_frac": 0.5, "truncated_frac": 0.25, "not_finite": 1}


def alarms(row: Record) -> dict[str, str]:
    """What is wrong with a step, in a few words, by the column that says so."""
    found = {}
    for field in STEPS:
        value = row.get(field.key)
        if field.key in ALARM_LIMITS and isinstance(value, (int, float)) and value >= ALARM_LIMITS[field.key]:
            found[field.key] = f"{field.label} {field.write(value)}"
    if row["state"] == "unreadable":
        found["state"] = "unreadable"
    return found


def partial_columns(row: Record) -> set[str]:
    """Which numbers of a step cover only a part of its samples: those that are trained, or that have a reward."""
    found = {"mean_abs_lp_diff", "max_abs_lp_diff", "mean_entropy"} if row["state"] == "partial" else set()
    rewarded, samples = row.get("rewarded"), row.get("samples")
    if isinstance(rewarded, int) and isinstance(samples, int) and rewarded < samples:
        found |= {"reward_mean", "reward_std", "reward_episode_mean"}
    return {name for name in found if row.get(name) is not None}


def with_partial_signs(row: Record) -> Record:
    """A step's row for a table of text: `~` before what covers only a part of it."""
    return row | {name: PARTIAL_SIGN + cell(row[name]) for name in partial_columns(row) & row.keys()}


def sample_cells(fields: Sequence[Field], record: Record) -> list[str]:
    """The cells of a sample or group: with the sign where it has NaN or infinite values, which are in no statistic, or
    a difference that no log-probs have.
    """
    found, largest = cells(fields, record), record.get("max_abs_lp_diff")
    odd = {"label", "not_finite"} if record.get("not_finite") else set()
    if record.get("diff_not_finite") or (isinstance(largest, float) and largest >= LARGEST_LOG_RATIO):
        odd |= {"label", *DIVERGENCE}
    return [
        marked("NaN" if text == "-" else text, field.width) if field.key in odd else text
        for field, text in zip(fields, found, strict=True)
    ]


def marked(text: str, width: int, sign: str = ALARM_SIGN) -> str:
    """A cell with the sign before it, without its blanks, or as it is, where there is no room."""
    found = sign + text
    shorter = found.replace(" ", "")
    return found if len(found) <= width else shorter if len(shorter) <= width else text

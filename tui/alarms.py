"""Which steps turned bad, by their rows in the steps table, and why; and which samples hold NaN or infinity."""

from __future__ import annotations

from collections.abc import Sequence

from dumptui.core.ratio import LARGEST_LOG_RATIO
from dumptui.core.record import Record
from dumptui.tui.columns import DIVERGENCE, STEPS, Field, cells

SIGN = "!"
"""Stands before the number of a bad step, and before each of its values that is beyond its limit."""

# |Δ| is what miles' own checks allow between trainer and engine, the others are where its dashboard warns.
LIMITS = {"mean_abs_lp_diff": 0.03, "zero_std_frac": 0.5, "truncated_frac": 0.25, "not_finite": 1}


def alarms(row: Record) -> dict[str, str]:
    """What is wrong with a step, in a few words, by the column that says so."""
    found = {}
    for field in STEPS:
        value = row.get(field.key)
        if field.key in LIMITS and isinstance(value, (int, float)) and value >= LIMITS[field.key]:
            found[field.key] = f"{field.label} {field.write(value)}"
    if row["state"] == "unreadable":
        found["state"] = "unreadable"
    return found


def sample_cells(fields: Sequence[Field], record: Record) -> list[str]:
    """The cells of a sample or group: with the sign where it has NaN or infinite values, which are in no statistic, or
    a difference that no log-probs have.
    """
    found, largest = cells(fields, record), record.get("max_abs_lp_diff")
    odd = {"label", "not_finite"} if record.get("not_finite") else set()
    if record.get("diff_not_finite") or (isinstance(largest, float) and largest >= LARGEST_LOG_RATIO):
        odd |= {"label", *DIVERGENCE}
    return [
        marked("NaN" if cell == "-" else cell, field.width) if field.key in odd else cell
        for field, cell in zip(fields, found, strict=True)
    ]


def marked(cell: str, width: int) -> str:
    """A cell with the sign before it, without its blanks, or as it is, where there is no room."""
    text = SIGN + cell
    shorter = text.replace(" ", "")
    return text if len(text) <= width else shorter if len(shorter) <= width else cell

"""Which steps turned bad, by their rows in the steps table, and why."""

from __future__ import annotations

from dumptui.core.record import Record
from dumptui.tui.columns import STEPS

SIGN = "!"
"""Stands before the number of a bad step, and before each of its values that is beyond its limit."""

# |Δ| is what miles' own checks allow between trainer and engine, the others are where its dashboard warns.
LIMITS = {"mean_abs_lp_diff": 0.03, "zero_std_frac": 0.5, "truncated_frac": 0.25}


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


def marked(cell: str, width: int) -> str:
    """A cell with the sign before it, without its blanks, or as it is, where there is no room."""
    text = SIGN + cell
    shorter = text.replace(" ", "")
    return text if len(text) <= width else shorter if len(shorter) <= width else cell

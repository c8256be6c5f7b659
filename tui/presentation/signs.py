"""The signs before numbers: `!` where something is wrong, `~` where only a part is covered."""

from __future__ import annotations

from collections.abc import Sequence

from dumptui.core.fields.ratio_limits import LARGEST_LOG_RATIO
from dumptui.core.tables.alarms import alarms, partial_columns
from dumptui.core.types import Record
from dumptui.tui.cell_formats.tables import cell
from dumptui.tui.presentation.columns import DIVERGENCE, STEPS, Field, cells

ALARM_SIGN = "!"
"""Stands before the number of a bad step, and before each of its values that is beyond its limit."""

PARTIAL_SIGN = "~"
"""Stands before a number that covers only a part of a step."""


def alarm_texts(row: Record) -> list[str]:
    """Return what is wrong with a step, a few words for each column that says so."""
    found = alarms(row)
    texts = [
        f"{field.label} {field.write(found[field.key])}" for field in STEPS if field.key in found.keys() - {"state"}
    ]
    return [*texts, *(str(state) for name, state in found.items() if name == "state")]


def with_partial_signs(row: Record) -> Record:
    """Return a step's row for a table of text: `~` before what covers only a part of it."""
    return row | {name: PARTIAL_SIGN + cell(row[name]) for name in partial_columns(row)}


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


def marked(text: str, width: int) -> str:
    """A cell with ALARM_SIGN before it, without its blanks, or as it is, where there is no room."""
    found = ALARM_SIGN + text
    shorter = found.replace(" ", "")
    return found if len(found) <= width else shorter if len(shorter) <= width else text

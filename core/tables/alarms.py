"""Which numbers of a step are beyond their limits, and which cover only a part of it, by its row in the steps table."""

from __future__ import annotations

from dumptui.core.tables.columns import STEP_COLUMNS, ColumnDefinition
from dumptui.core.types import Record


def alarms(row: Record) -> dict[str, object]:
    """Return the values of a step that are wrong, by column; the state is one where the step is unreadable."""
    found = {column.name: row[column.name] for column in STEP_COLUMNS if column.alarms(row.get(column.name))}
    return {**found, "state": row["state"]} if row["state"] == "unreadable" else found


def partial_columns(row: Record) -> set[str]:
    """Return the numbers of a step that cover only a part of its samples: those trained, or those with a reward."""
    return {column.name for column in STEP_COLUMNS if row.get(column.name) is not None and is_partial(column, row)}


def is_partial(column: ColumnDefinition, row: Record) -> bool:
    if column.covers == "trained":
        return row["state"] == "partial"
    rewarded, samples = row.get("rewarded"), row.get("samples")
    return column.covers == "rewarded" and isinstance(rewarded, int) and isinstance(samples, int) and rewarded < samples

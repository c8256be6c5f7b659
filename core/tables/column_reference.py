"""COLUMNS.md, the list of columns and per-token fields, made from the registries: `make columns` writes it."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from dumptui.core.fields.registry import FIELDS, FieldDefinition
from dumptui.core.tables.columns import FLAG, SAMPLE_COLUMNS, STEP_COLUMNS, ColumnDefinition
from dumptui.core.tables.view_columns import (
    DISTRIBUTION_COLUMNS,
    FINDING_COLUMNS,
    GROUP_COLUMNS,
    OVERVIEW_COLUMNS,
    TRAIN_FILE_COLUMNS,
)

HEAD = """\
# Columns

`make columns` writes this file. Names are those of JSON and CSV, and of filters, which take the labels on screen too.
A column without a label is printed but not shown on screen. Statistics use finite values of unmasked response tokens.
"""
TABLE_HEAD = "| name | on screen | what it is |\n|---|---|---|\n"


def reference() -> str:
    """Return the list in Markdown."""
    parts = [
        ("Per-token fields", map(field_line, FIELDS)),
        ("Samples", map(column_line, SAMPLE_COLUMNS)),
        ("Steps", map(column_line, STEP_COLUMNS)),
        ("Groups", map(column_line, GROUP_COLUMNS)),
        ("Batch: train files", map(column_line, TRAIN_FILE_COLUMNS)),
        ("Batch: per-token columns", map(column_line, DISTRIBUTION_COLUMNS)),
        ("Health", map(column_line, FINDING_COLUMNS)),
        ("Overview", map(column_line, OVERVIEW_COLUMNS)),
    ]
    return HEAD + "".join(f"\n## {title}\n\n{TABLE_HEAD}{''.join(lines)}" for title, lines in parts)


def field_line(field: FieldDefinition) -> str:
    source = "" if field.train_column in (None, field.name) else f"`{field.train_column}` in train files"
    return line(field.name, field.label, [field.meaning, code(field.formula), source])


def column_line(column: ColumnDefinition) -> str:
    if not column.recorded:
        return ""
    worse = "" if column.worse is None else f"{'yes' if column.format == FLAG else f'{column.worse}er'} is worse"
    unit = f"unit: {column.unit}" if column.unit else ""
    alarm = "" if column.alarm_limit is None else f"`!` from {column.alarm_limit:g} on"
    return line(column.name, column.label, [column.tip, code(column.formula), unit, worse, alarm])


def line(name: str, label: str, facts: Iterable[str]) -> str:
    cells = [code(name), label, " · ".join(filter(None, facts))]
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


def code(text: str) -> str:
    return f"`{text}`" if text else ""


if __name__ == "__main__":
    sys.stdout.write(reference())

"""What a column, a statistic or a word of the interface means: its formula, unit and range, and what is bad."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from dumptui.core.fields.registry import SCALE_RANGES, FieldDefinition, definition, scale_of, unit_of
from dumptui.core.tables.columns import (
    FLAG,
    ODD_COUNT,
    PERCENT,
    SAMPLE_COLUMNS,
    STEP_COLUMNS,
    ColumnDefinition,
    Statistic,
)

NEVER_NEGATIVE = ("samples", "groups", "tokens", "values", "calls", "attempts", "steps", "bytes", "s", "nats")
COVERAGE_WORDS = {"all": "", "trained": "samples with train data", "rewarded": "samples with a reward"}


class Meaning(NamedTuple):
    """A word on screen. `name` is its name in printed views and filters, if it has another one there."""

    label: str
    text: str
    name: str = ""
    formula: str = ""
    unit: str = ""
    range: str = ""
    bad: str = ""
    covers: str = ""

    @property
    def facts(self) -> list[str]:
        """What is known of it besides the text, a line each."""
        parts = {
            "formula": self.formula,
            "unit": self.unit,
            "range": self.range,
            "bad": self.bad,
            "covers": self.covers,
            "in filters and printed views": self.name,
        }
        return [f"{title}: {part}" for title, part in parts.items() if part]


def of_column(column: ColumnDefinition) -> Meaning:
    name = "" if column.name == column.label or not column.recorded else column.name
    limits, covers = bad_words(column), COVERAGE_WORDS[column.covers]
    unit = "" if column.unit == "share" else column.unit
    return Meaning(
        column.label or column.name, column.tip, name, column.formula, unit, range_of(column), limits, covers
    )


def bad_words(column: ColumnDefinition) -> str:
    """Return which values of a column are worse, and from which on a step is marked."""
    if column.alarm_limit is None:
        if column.worse is None:
            return definition(column.statistic.field).bad if column.statistic is not None else ""
        return "yes" if column.format == FLAG else f"{column.worse}er is worse"
    error = "" if column.error_limit is None else f", an error from {in_unit(column, column.error_limit)}"
    return f"marked with ! from {in_unit(column, column.alarm_limit)}{error}"


def in_unit(column: ColumnDefinition, value: float) -> str:
    return f"{value:.0%}" if column.format == PERCENT else f"{value:g}"


def range_of(column: ColumnDefinition) -> str:
    if column.format == FLAG:
        return "yes, or blank for no"
    if column.format == ODD_COUNT:
        return "whole numbers; blank for 0"
    if column.unit == "share":
        return "0% to 100%" if column.format == PERCENT else "0 to 1"
    if column.reduction is not None:
        return reduced_range(column)
    if column.statistic is not None:
        return statistic_range(column.statistic)
    return "0 or more" if column.unit in NEVER_NEGATIVE else ""


def reduced_range(column: ColumnDefinition) -> str:
    """Return the range of a statistic of a samples column: that of the column itself."""
    assert column.reduction is not None
    source = next((other for other in SAMPLE_COLUMNS if other.name == column.reduction.column), None)
    return "" if source is None else range_of(source)


def statistic_range(statistic: Statistic) -> str:
    if statistic.name in ("mean_abs", "max_abs", "std"):
        return "0 or more"
    return SCALE_RANGES.get(scale_of(statistic.field), "")


def of_field(name: str) -> Meaning:
    """Return the meaning of a per-token statistic; of one without an entry, only its scale is known."""
    field: FieldDefinition = definition(name)
    label = field.label or name
    text = field.meaning or "a per-token column of the train files"
    printed = "" if label == name else name
    return Meaning(label, text, printed, field.formula, unit_of(name), SCALE_RANGES.get(scale_of(name), ""), field.bad)


def of_columns(columns: Iterable[ColumnDefinition]) -> list[Meaning]:
    """Return the meanings of the columns that a table on screen can show."""
    return [of_column(column) for column in columns if column.shown != "never"]


def step_column(name: str) -> Meaning:
    return of_column(next(column for column in STEP_COLUMNS if column.name == name))

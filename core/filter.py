"""Filtering the rows of a table by an expression, which polars evaluates on the columns it names and nothing else.

A blank - None or NaN - fulfils no comparison, and no negation of one either: `x is null` and `x is nan` ask for them.
What is worked out of numbers, such as 0/0, may be NaN as well; polars puts that above all numbers. Texts are compared
by their bytes, and `~` searches them with Rust's regex.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dumptui.core.expression import Blank, Expression, parse
from dumptui.core.filter_words import encodable, wrong
from dumptui.core.record import Record
from dumptui.core.room import need_polars

if TYPE_CHECKING:
    import polars as pl

_LARGEST = 2**63
_ANSWER = " "  # no column is called so


def select(records: Sequence[Record], text: str, labels: Mapping[str, str] | None = None) -> list[int]:
    """The numbers of the records for which the expression holds. Raises DumpError, which says in one sentence why not.

    `labels` are other names of columns that a message may know.
    """
    if not records:
        return []
    expression = parse(text, records[0], labels)
    need_polars("filter")
    import polars as pl

    frame = pl.DataFrame(
        [
            pl.Series(_ANSWER, [None] * len(records), pl.Null),  # its height, also where no column is named
            *(column(name, records, alone) for name, alone in expression.columns.items()),
            *(blank(one, records) for one in expression.blanks),
        ]
    )
    try:
        answer = frame.with_columns(pl.sql_expr(expression.sql).alias(_ANSWER))[_ANSWER]
    except pl.exceptions.PolarsError as error:
        raise wrong(told(error, expression, frame)) from None
    if answer.dtype not in (pl.Boolean, pl.Null):
        raise wrong(f"it gives a {kind(answer)}, not yes or no: compare it with something")
    return answer.fill_null(False).arg_true().to_list() if answer.dtype == pl.Boolean else []


def column(name: str, records: Sequence[Record], alone: bool) -> pl.Series:
    """The type is that of the values; where there are none, the one that fits how the column is used."""
    import polars as pl

    values = [record.get(name) for record in records]
    there = [value for value in values if value is not None]
    if not there:
        return pl.Series(name, values, pl.Boolean if alone else pl.Null)
    if all(isinstance(value, bool) for value in there):
        return pl.Series(name, values, pl.Boolean)
    if all(isinstance(value, int) and -_LARGEST <= value < _LARGEST for value in there):
        return pl.Series(name, values, pl.Int64)
    if all(isinstance(value, (int, float)) for value in there):
        return pl.Series(name, [None if is_nan(value) else value for value in values], pl.Float64, strict=False)
    return pl.Series(name, [None if value is None else encodable(str(value)) for value in values], pl.String)


def blank(one: Blank, records: Sequence[Record]) -> pl.Series:
    import polars as pl

    values = [record.get(one.column) for record in records]
    found = [is_nan(value) if one.what == "nan" else value is None for value in values]
    return pl.Series(one.name, found, pl.Boolean)


def is_nan(value: object) -> bool:
    return isinstance(value, float) and value != value


def told(error: Exception, expression: Expression, frame: pl.DataFrame) -> str:
    """What polars found wrong, without its picture of the query."""
    import polars as pl

    first = str(error).split("\n")[0]
    if "regex" in first:
        return f"the pattern can't be read: {str(error).split('error: ')[-1].split(chr(10))[0]}"
    if isinstance(error, pl.exceptions.SQLInterfaceError):
        return "it can't be read: a function has too few or too many values" if "no function" in first else unreadable()
    kinds = [f"{name} is a {kind(frame[name])}" for name in expression.columns]
    return "its parts don't fit together" + (f": {', '.join(kinds)}" if kinds else "")


def unreadable() -> str:
    return "it can't be read: perhaps a value stands where a comparison should"


def kind(series: pl.Series) -> str:
    import polars as pl

    if series.dtype == pl.Boolean:
        return "yes or no"
    return "text" if series.dtype == pl.String else "blank" if series.dtype == pl.Null else "number"

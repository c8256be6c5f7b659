"""Filters over the rows of a table; polars evaluates a filter and sees only the columns that the filter names.

A blank, None or NaN, matches no comparison, not even a negated one: `x is null` and `x is nan` test for blanks.
Arithmetic such as 0/0 may give NaN too; polars orders that above all numbers. Texts are compared byte by byte, and `~`
searches them with Rust's regex.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dumptui.core.process.resources import need_polars
from dumptui.core.query.filter_lexer import encodable, filter_error
from dumptui.core.query.filter_parser import Blank, Expression, parse
from dumptui.core.types import Record

if TYPE_CHECKING:
    import polars as pl

_MAX_INTEGER = 2**63
MISPLACED_VALUE = "a value seems to be where a comparison is expected"
_ANSWER_COLUMN = " "  # no column has this name


def select(records: Sequence[Record], text: str, labels: Mapping[str, str] | None = None) -> list[int]:
    """Return the positions of the records for which the filter holds. Raises DumpError with one sentence.

    `labels` maps further names, such as those on screen, to columns.
    """
    if not records:
        return []
    expression = parse(text, records[0], labels)
    need_polars("filter")
    import polars as pl

    frame = pl.DataFrame(
        [
            pl.Series(_ANSWER_COLUMN, [None] * len(records), pl.Null),  # sets the height, even if no column is named
            *(column(name, records, is_condition) for name, is_condition in expression.columns.items()),
            *(blank_column(blank, records) for blank in expression.blanks),
        ]
    )
    try:
        answer = frame.with_columns(pl.sql_expr(expression.sql).alias(_ANSWER_COLUMN))[_ANSWER_COLUMN]
    except pl.exceptions.PolarsError as error:
        raise filter_error(explain(error, expression, frame)) from None
    if answer.dtype not in (pl.Boolean, pl.Null):
        raise filter_error(f"the result is {kind(answer)}, not yes or no: compare it with something")
    return answer.fill_null(False).arg_true().to_list() if answer.dtype == pl.Boolean else []


def column(name: str, records: Sequence[Record], is_condition: bool) -> pl.Series:
    """Return a column typed by its values; without any, Boolean where the filter uses it as a condition, else Null."""
    import polars as pl

    values = [record.get(name) for record in records]
    present = [value for value in values if value is not None]
    if not present:
        return pl.Series(name, values, pl.Boolean if is_condition else pl.Null)
    if all(isinstance(value, bool) for value in present):
        return pl.Series(name, values, pl.Boolean)
    if all(isinstance(value, int) and -_MAX_INTEGER <= value < _MAX_INTEGER for value in present):
        return pl.Series(name, values, pl.Int64)
    if all(isinstance(value, (int, float)) for value in present):
        return pl.Series(name, [None if is_nan(value) else value for value in values], pl.Float64, strict=False)
    return pl.Series(name, [None if value is None else encodable(str(value)) for value in values], pl.String)


def blank_column(blank: Blank, records: Sequence[Record]) -> pl.Series:
    import polars as pl

    values = [record.get(blank.column) for record in records]
    is_blank = [is_nan(value) if blank.what == "nan" else value is None for value in values]
    return pl.Series(blank.name, is_blank, pl.Boolean)


def is_nan(value: object) -> bool:
    return isinstance(value, float) and value != value


def explain(error: Exception, expression: Expression, frame: pl.DataFrame) -> str:
    """Return one sentence for an error of polars, without the query plan that it prints."""
    import polars as pl

    first = str(error).split("\n")[0]
    if "regex" in first:
        return f"the pattern can't be parsed: {str(error).split('error: ')[-1].split(chr(10))[0]}"
    if isinstance(error, pl.exceptions.SQLInterfaceError):
        reason = "a function has too few or too many arguments" if "no function" in first else MISPLACED_VALUE
        return f"can't be parsed: {reason}"
    kinds = [f"{name} is {kind(frame[name])}" for name in expression.columns]
    return "the types don't match" + (f": {', '.join(kinds)}" if kinds else "")


def kind(series: pl.Series) -> str:
    import polars as pl

    if series.dtype == pl.Boolean:
        return "yes or no"
    if series.dtype == pl.String:
        return "text"
    return "blank" if series.dtype == pl.Null else "a number"

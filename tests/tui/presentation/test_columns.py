"""How values are written in the tables on screen, and in what order the rows stand."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dumptui.core.text import cell_width
from dumptui.tui.presentation import columns

cells = st.none() | st.just("") | st.text("ab", max_size=3) | st.integers() | st.floats() | st.booleans()


@given(st.lists(cells, max_size=12), st.booleans())
def test_order_is_sorted_with_blanks_and_nan_last(values: list[Any], descending: bool) -> None:
    records = [{"x": value} for value in values]
    order = columns.order(records, (("x", descending),))
    assert sorted(order) == list(range(len(values)))
    found = [values[at] for at in order]
    numbers = [v for v in found if isinstance(v, (bool, int, float)) and not math.isnan(v)]
    texts = [v for v in found if isinstance(v, str) and v]
    assert numbers == sorted(numbers, reverse=descending)
    assert texts == sorted(texts, reverse=descending)
    assert found[: len(numbers)] == numbers
    assert found[len(numbers) : len(numbers) + len(texts)] == texts


@given(st.lists(st.sampled_from([1, 2, "a", None]), max_size=12), st.booleans())
def test_equal_ones_stay_in_file_order(values: list[Any], descending: bool) -> None:
    order = columns.order([{"x": value} for value in values], (("x", descending),))
    for value in set(values):
        places = [at for at in order if values[at] == value]
        assert places == sorted(places)


few = st.sampled_from([1, 2, math.nan, None, "a", "b"])


@given(st.lists(st.tuples(few, few), max_size=12), st.booleans(), st.booleans())
def test_a_second_column_orders_the_rows_that_are_equal_in_the_first(
    pairs: list[tuple[Any, Any]], first: bool, second: bool
) -> None:
    records = [{"x": x, "y": y} for x, y in pairs]
    order = columns.order(records, (("x", first), ("y", second)))
    by_first = columns.order(records, (("x", first),))
    blank = [value is None or value != value for value, _ in pairs]
    same = [None if blank[at] else pairs[at][0] for at in range(len(pairs))]
    assert [same[at] for at in order] == [same[at] for at in by_first]
    for value in {one for one in same if one is not None}:
        rows = [at for at in order if same[at] == value]
        inner = columns.order([records[at] for at in sorted(rows)], (("y", second),))
        assert rows == [sorted(rows)[at] for at in inner]


@pytest.mark.parametrize(
    ("write", "value", "text"),
    [
        (columns.fixed(3), None, "-"),
        (columns.fixed(3), 0.0, "0.000"),
        (columns.fixed(3), 0.0001, "1e-04"),
        (columns.fixed(3), 123456.0, "1e+05"),
        (columns.fixed(3), math.nan, "NaN"),
        (columns.fixed(3, "+"), 0.5, "+0.500"),
        (columns.spread, 1e-9, "0.000"),
        (columns.percent, 0.125, "12%"),
        (columns.percent, None, "-"),
        (columns.yes, False, ""),
        (columns.size, 999, "999 B"),
        (columns.size, 81_000, "81.0 kB"),
        (columns.size, 3e12, "3000.0 GB"),
        (columns.listed, ["a", "b"], "a b"),
        (columns.reward, {"\x1b": 1, "em": 0}, "{␛,em}"),
    ],
)
def test_values_as_they_are_written(write: columns.Write, value: object, text: str) -> None:
    assert write(value) == text


@pytest.mark.parametrize("fields", [columns.STEPS, columns.SAMPLES, columns.BATCH_FILES, columns.BATCH_SAMPLES])
def test_labels_fit_their_columns_and_say_what_they_mean(fields: tuple[columns.Field, ...]) -> None:
    assert len({field.key for field in fields}) == len(fields)
    for field in fields:
        assert cell_width(field.label) <= field.width, field
        assert field.tip, field

"""Tables, CSV and JSON of any rows: aligned, parseable and strict, whatever the values."""

from __future__ import annotations

import csv
import io
import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from dumptui.tui.cell_formats.tables import number, strict, to_csv, to_json, to_table

texts = st.text(max_size=12) | st.sampled_from(
    ["\x1b[2J", "a\tb", "数学", "\u202eabc", "\ud800", "é", "👩‍👧", "[/]", ""]
)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | texts
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3))
tables = st.lists(st.dictionaries(texts, values, max_size=4), min_size=1, max_size=5)


@settings(max_examples=40)
@given(tables)
def test_a_table_is_aligned_and_safe(rows: list[dict[str, Any]]) -> None:
    lines = to_table(rows).split("\n")
    assert len(lines) == len(rows) + 2
    assert all(char.isprintable() for line in lines for char in line)
    names = list(dict.fromkeys(name for row in rows for name in row))
    if names:
        widest = max(map(cell_len, lines))
        assert all(cell_len(line) <= widest for line in lines)


def test_numbers_stand_to_the_right_and_nothing_is_a_dash() -> None:
    rows = [{"name": "数", "n": 7, "x": 0.5}, {"name": "long", "n": 1234, "x": None}]
    assert to_table(rows) == "name     n      x\n数       7  0.500\nlong  1234      -\n"


@settings(max_examples=40)
@given(tables)
def test_json_is_strict_and_keeps_what_is_finite(rows: list[dict[str, Any]]) -> None:
    def refuse(name: str) -> None:
        raise AssertionError(name)

    assert json.loads(to_json({"rows": rows}), parse_constant=refuse) == strict({"rows": rows})


@given(st.floats())
def test_what_is_not_finite_is_named(value: float) -> None:
    names = {math.inf: "Infinity", -math.inf: "-Infinity"}
    assert strict(value) == (value if math.isfinite(value) else names.get(value, "NaN"))


@settings(max_examples=40)
@given(tables)
def test_csv_gives_the_texts_back(rows: list[dict[str, Any]]) -> None:
    names = list(dict.fromkeys(name for row in rows for name in row))
    read = list(csv.reader(io.StringIO(to_csv(rows), newline="")))
    if len(names) < 2:  # a row of nothing is an empty line
        return
    assert len(read) == len(rows) + 1
    for row, cells in zip(rows, read[1:], strict=True):
        for name, cell in zip(names, cells, strict=True):
            if isinstance(row.get(name), str):
                assert cell == row[name].encode("utf-8", "backslashreplace").decode()


def test_csv_for_a_terminal_is_safe() -> None:
    rows = [{"\x1b[2J": "\x1b]0;owned\x07", "n": 1}]
    assert to_csv(rows, safe=True) == "␛[2J,n\n␛]0;owned␇,1\n"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0.000"), (0.5, "0.500"), (1e-5, "1.00e-05"), (-2e7, "-2.00e+07"), (math.nan, "NaN"), (-math.inf, "-inf")],
)
def test_a_number_is_short_and_hides_nothing(value: float, text: str) -> None:
    assert number(value) == text

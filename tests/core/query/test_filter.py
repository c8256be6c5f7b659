"""Filters: which records match, and the sentence for a filter that can't be parsed."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dumptui.core.errors import DumpError
from dumptui.core.query.filter import select

RECORDS: list[dict[str, Any]] = [
    {"reward": 0.0, "truncated": True, "worst": 1.5, "status": "truncated", "group": None, "odd": None},
    {"reward": math.nan, "truncated": False, "worst": None, "status": "completed", "group": 3, "odd": None},
    {"reward": 1.0, "truncated": None, "worst": math.inf, "status": "it's \ud83d", "group": 4, "odd": None},
]


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("reward == 0 and truncated and worst > 1", [0]),
        ("Reward > 0", [2]),
        ("not reward > 0", [0]),
        ("reward != 1", [0]),
        ("reward is nan", [1]),
        ("reward == nan or worst is null", [1]),
        ("reward is not nan", [0, 2]),
        ("group != None & (truncated is false | worst > 2)", [1, 2]),
        ("not truncated", [1]),
        ("truncated == 1", [0]),
        ("worst > 1e300", [2]),
        ("status == 'truncated'", [0]),
        ('status == "completed" || status like "it\'s%"', [1, 2]),
        ("status != 'it''s \ud83d' and !(status ~ '^tr')", [1]),
        ("group in [3, 5]", [1]),
        ("group not in (3)", [2]),
        ("worst between 1 and 2", [0]),
        ("group == max(group)", [2]),
        ("abs(-group) / 2 == 1.5", [1]),
        ("odd > 1 or odd == 'a' or odd", []),
        ("odd is null", [0, 1, 2]),
        ("true", [0, 1, 2]),
        ("1 > 2", []),
    ],
)
def test_records_found(expression: str, found: list[int]) -> None:
    assert select(RECORDS, expression) == found


@pytest.mark.parametrize(
    ("expression", "sentence"),
    [
        ("rewrd > 1", "unknown column rewrd: did you mean reward?"),
        ("max | worst", "unknown column max (quote text: 'max')"),
        ("status == completed", "unknown column completed (quote text: 'completed')"),
        ("reward >", "a value is missing at the end"),
        ("", "a value is missing at the end"),
        ("reward > > 1", "a value is missing before >"),
        ("reward 1", "an operator is missing before 1"),
        ("(reward > 1", "a ) is missing at the end"),
        ("reward > 1)", "a ) has no ( before it"),
        ("0 < reward < 1", "two comparisons in a row: write 0 < x and x < 1"),
        ("status == 'a", "' starts a text that is not closed"),
        ("reward == 1; drop", "; has no meaning in a filter"),
        ("reward is 1", "expected null, nan, true or false after is"),
        ("reward + 1 is nan", "only a single column can be tested for nan"),
        ("(1 == null)", "only a single column can be tested for null"),
        ("null", "only a column can be compared with null: write column is null"),
        ("group in 3", "expected a list after in, such as (1, 2)"),
        ("group in ()", "a value is missing before )"),
        ("reward", "the result is a number, not yes or no: compare it with something"),
        ("status == 1", "the types don't match: status is text"),
        ("status ~ '('", "the pattern can't be parsed: unclosed group"),
        ("abs(reward, 1) > 1", "can't be parsed: a function has too few or too many arguments"),
        ("reward > 1" + " " * 1000, "longer than 1000 characters"),
    ],
)
def test_a_wrong_filter_is_explained_in_one_sentence(expression: str, sentence: str) -> None:
    with pytest.raises(DumpError) as error:
        select(RECORDS, expression)
    assert error.value.problem == sentence


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("w > 1", [0, 2]),
        ("W is null", [1]),
        ("|Δ| > 1 and reward == 0", [0]),
        ("max |Δ| == 3|truncated", [0, 1]),
        ("not (MAX  |δ| == 3)", [2]),
        ("group == max(group)", [2]),
        ("reward == 1", [2]),
        ("status == '|Δ|'", []),
    ],
)
def test_a_column_can_be_named_by_its_label_on_screen(expression: str, found: list[int]) -> None:
    labels = {"w": "worst", "|Δ|": "worst", "max |Δ|": "group", "reward": "odd", "gone": "not_in_the_table"}
    assert select(RECORDS, expression, labels) == found


@pytest.mark.parametrize(
    "expression",
    [
        "reward in (select * from read_csv('/etc/passwd'))",
        "exists (select 1 from self)",
        "read_csv('/etc/passwd') is null",
        "read_parquet ('x') == 1",
        "true union select * from read_csv('/etc/passwd')",
        "reward -- comment",
        "reward /* comment */ > 1",
        '"reward" union select "a',
        "reward::text == 'a'",
        "'a' || status == 1",
        "(" * 400 + "true" + ")" * 400,
        "not " * 240 + "true",
    ],
)
def test_nothing_else_can_be_asked_than_the_records(expression: str) -> None:
    with pytest.raises(DumpError) as error:
        select(RECORDS, expression)
    assert "polars" not in str(error.value).lower()
    assert "\n" not in str(error.value)


# As Python has it -----------------------------------------------------------------------------------------------

Value = Any
Predicate = Callable[[dict[str, Value]], bool | None]
COMPARE = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
numbers = st.integers(-3, 3) | st.sampled_from([0.5, -1.25, math.inf])
rows = st.fixed_dictionaries(
    {
        "a": st.none() | numbers | st.just(math.nan),
        "b": st.none() | st.integers(-3, 3),
        "t": st.none() | st.text("ab' \"", max_size=2),
        "f": st.none() | st.booleans(),
    }
)


def is_blank(value: Value) -> bool:
    return value is None or value != value


@st.composite
def comparisons(draw: st.DrawFn) -> tuple[str, Predicate]:
    sign = draw(st.sampled_from(list(COMPARE)))
    name: str
    value: Value
    if draw(st.booleans()):
        name, value = "t", draw(st.text("ab' \"", max_size=2))
        written = "'" + value.replace("'", "''") + "'"
    else:
        name, value = draw(st.sampled_from("ab")), draw(st.integers(-3, 3) | st.sampled_from([0.5, -1.25]))
        written = repr(value)
    return f"{name} {sign} {written}", lambda row: None if is_blank(row[name]) else COMPARE[sign](row[name], value)


@st.composite
def questions(draw: st.DrawFn) -> tuple[str, Predicate]:
    name = draw(st.sampled_from("abtf"))
    what, test = draw(
        st.sampled_from(
            [
                ("is null", lambda v: v is None),
                ("is not null", lambda v: v is not None),
                ("is nan", lambda v: v != v),
                ("!= nan", lambda v: v == v),
            ]
        )
    )
    return f"{name} {what}", lambda row: test(row[name])


def negated(inner: tuple[str, Predicate]) -> tuple[str, Predicate]:
    text, holds = inner
    return f"not ({text})", lambda row: None if (found := holds(row)) is None else not found


def joined(word: str, left: tuple[str, Predicate], right: tuple[str, Predicate]) -> tuple[str, Predicate]:
    """Of three values, as in SQL: unknown and false is false, unknown or true is true."""

    def holds(row: dict[str, Value]) -> bool | None:
        found = [left[1](row), right[1](row)]
        ending = word == "or"
        return ending if ending in found else None if None in found else not ending

    return f"({left[0]} {word} {right[0]})", holds


flag: tuple[str, Predicate] = ("f", lambda row: row["f"])
expressions = st.recursive(
    comparisons() | questions() | st.just(flag),
    lambda inner: inner.map(negated) | st.builds(joined, st.sampled_from(["and", "or"]), inner, inner),
    max_leaves=6,
)


@given(st.lists(rows, min_size=1, max_size=6), expressions)
def test_a_filter_finds_what_the_same_predicate_in_python_finds(
    records: list[dict[str, Value]], expression: tuple[str, Predicate]
) -> None:
    text, holds = expression
    assert select(records, text) == [at for at, row in enumerate(records) if holds(row)]


WORDS = [
    "reward",
    "truncated",
    "status",
    "group",
    "odd",
    "1",
    "'a'",
    "and",
    "or",
    "not",
    "in",
    "is",
    "null",
    "nan",
    "true",
    "(",
    ")",
    ",",
    "==",
    "<",
    "+",
    "-",
    "/",
    "%",
    "//",
    "like",
    "between",
    "~",
    "abs(",
    "max(",
    "coalesce(",
    "round(",
    "lower(",
    "length(",
    "[",
    "]",
    "select",
    "\x1b",
    "'",
]


@given(st.lists(st.sampled_from(WORDS), max_size=12))
def test_any_words_are_an_answer_or_one_sentence(typed: list[str]) -> None:
    try:
        select(RECORDS, " ".join(typed))
    except DumpError as error:
        assert error.problem
        assert "\n" not in error.problem

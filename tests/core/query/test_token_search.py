"""Patterns over the text of tokens."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dumptui.core.errors import DumpError
from dumptui.core.query.token_search import find
from dumptui.core.vocabulary import CONTINUATION_MARK

TEXTS = ["The", " cat", " sat", ".", "\n", " 🙂", CONTINUATION_MARK, CONTINUATION_MARK, " x"]


@pytest.mark.parametrize(
    ("pattern", "hits"),
    [
        ("cat", [range(1, 2)]),
        ("at s", [range(1, 3)]),
        ("e cat sa", [range(0, 3)]),
        ("[ce]a?t?", [range(0, 1), range(1, 2)]),
        ("🙂", [range(5, 8)]),
        ("🙂 x", [range(5, 9)]),
        (r"\.\s", [range(3, 5)]),
        ("(?i)THE", [range(0, 1)]),
        ("nothing", []),
        ("z*", []),
        ("^The", [range(0, 1)]),
        ("x$", [range(8, 9)]),
    ],
)
def test_hits_are_whole_tokens(pattern: str, hits: list[range]) -> None:
    assert find(TEXTS, pattern) == hits


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [("(", "unclosed group"), ("[a", "unclosed character class"), ("(?=a)", "look-around"), ("a{9999}{9999}", "10 MB")],
)
def test_what_is_no_pattern_is_told_in_a_few_words(pattern: str, reason: str) -> None:
    with pytest.raises(DumpError, match=reason) as caught:
        find(TEXTS, pattern)
    assert "\n" not in str(caught.value)


def test_a_text_of_nothing_has_no_hits() -> None:
    assert find([], "a") == [] == find(["", CONTINUATION_MARK], "a")


def test_no_pattern_hangs() -> None:
    assert find(["a" * 5000] * 20, "(a|a)*b") == []


pieces = st.lists(st.text(st.sampled_from("ab \n\ufdd0\ufdd1é数\ud800"), min_size=0, max_size=4), max_size=12)


@given(pieces, st.sampled_from(["a", "ab", "a+b?", "[^a]", "b.", "é|数", r"\s+", "a*"]))
def test_hits_are_those_of_the_joined_text(texts: list[str], pattern: str) -> None:
    whole = "".join(texts).replace("\ud800", "?").replace("\ufdd0", "\ufffd").replace("\ufdd1", "\ufffd")
    owners = [at for at, text in enumerate(texts) for _ in text]
    spans = [found.span() for found in re.finditer(pattern, whole) if found.group()]
    assert find(texts, pattern) == [range(owners[start], owners[stop - 1] + 1) for start, stop in spans]

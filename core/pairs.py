"""Two samples beside each other, token by token and word by word."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dumptui.core.context_parallel import Ints
from dumptui.core.difference import Difference, difference
from dumptui.core.join import Step
from dumptui.core.text import cell_width, visible
from dumptui.core.tokens import Vocabulary
from dumptui.core.view import SampleView, view_sample

# A line's end is a word of its own, others keep the blanks before them.
WORD = re.compile(r"\n|[^\S\n]*\S+|[^\S\n]+")


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two sequences, ready for the screen: `texts` hold nothing that a terminal obeys.

    `ends` are the cells up to and with each text, `breaks` the texts after which a line ends, as their numbers + 1.
    """

    texts: list[str]
    ends: list[int]
    breaks: list[int]


@dataclass(frozen=True, slots=True)
class Comparison:
    left: Side
    right: Side
    difference: Difference


@dataclass(frozen=True, slots=True)
class Pair:
    """Two samples of a step. `tokens` compares their whole sequences, `words` the texts of their responses."""

    left: SampleView
    right: SampleView
    tokens: Comparison
    words: Comparison


def pair(step: Step, left: int, right: int, vocabulary: Vocabulary | None) -> Pair:
    """The samples at two positions of the rollout file."""
    one, other = view_sample(step, left, vocabulary), view_sample(step, right, vocabulary)
    tokens = compare(one.texts, other.texts, one.sample.tokens, other.sample.tokens)
    return Pair(one, other, tokens, compare_words(response_text(one), response_text(other)))


def response_text(view: SampleView) -> str:
    return view.sample.response or "".join(view.texts[view.sample.prompt_length :])


def compare_words(left: str, right: str) -> Comparison:
    mine, theirs = WORD.findall(left), WORD.findall(right)
    numbers: dict[str, int] = {}
    ids = [np.array([numbers.setdefault(word, len(numbers)) for word in one], np.int64) for one in (mine, theirs)]
    return compare(mine, theirs, *ids)


def compare(left: Sequence[str], right: Sequence[str], left_ids: Ints, right_ids: Ints) -> Comparison:
    return Comparison(side(left), side(right), difference(left_ids, right_ids))


def side(texts: Sequence[str]) -> Side:
    shown = [visible(text) for text in texts]
    ends = np.cumsum([cell_width(text) for text in shown], dtype=np.int64).tolist()
    breaks = [at + 1 for at, text in enumerate(texts) if text.endswith("\n")]
    return Side(shown, ends, breaks)

"""Two sequences of texts, ready to be shown side by side: tokens or words, and what they have in common."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dumptui.core.arrays import Ints
from dumptui.core.diff.sequences import Difference, Pause, difference
from dumptui.core.text import cell_width, visible

# A line's end is a word of its own, others keep the blanks before them.
WORD_PATTERN = re.compile(r"\n|[^\S\n]*\S+|[^\S\n]+")


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


def words_in(text: str) -> list[str]:
    return WORD_PATTERN.findall(text)


def compare_words(mine: Sequence[str], theirs: Sequence[str], pause: Pause = lambda: None) -> Comparison:
    numbers: dict[str, int] = {}
    ids = [np.array([numbers.setdefault(word, len(numbers)) for word in one], np.int64) for one in (mine, theirs)]
    return compare(mine, theirs, *ids, pause=pause)


def compare(
    left: Sequence[str], right: Sequence[str], left_ids: Ints, right_ids: Ints, *, pause: Pause = lambda: None
) -> Comparison:
    pause()
    mine = side(left)
    pause()
    return Comparison(mine, side(right), difference(left_ids, right_ids, pause))


def side(texts: Sequence[str]) -> Side:
    shown = [visible(text) for text in texts]
    ends = np.cumsum([cell_width(text) for text in shown], dtype=np.int64).tolist()
    breaks = [at + 1 for at, text in enumerate(texts) if text.endswith("\n")]
    return Side(shown, ends, breaks)

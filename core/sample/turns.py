"""The positions of turns and messages in the tokens of a sample."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, Literal, TypeAlias

import numpy as np

from dumptui.core.arrays import Array
from dumptui.core.sample.messages import parts_of
from dumptui.core.vocabulary import CONTINUATION_MARK

How: TypeAlias = Literal["mask", "text", "template", "prompt"]

NEEDLE_CHARACTERS = 80
"""Characters of a message's line that are searched for: a template may change what surrounds a line, not the line."""
MIN_TELLING_CHARACTERS = 12
"""Characters: a shorter needle counts only if it occurs once."""


@dataclass(frozen=True, slots=True)
class Turn:
    """Positions [start, stop) in the whole sequence that are all trained on, or all not."""

    start: int
    stop: int
    trained: bool


@dataclass(frozen=True, slots=True)
class Where:
    """Positions [start, stop) of a message, found by `how`.

    By "template", they include its delimiters; by "prompt", the message is somewhere within them.
    """

    start: int
    stop: int
    how: How


def find_turns(mask: Array | None, prompt: int, total: int) -> list[Turn]:
    """Return the response, split where its loss mask changes; one turn without a mask."""
    if total <= prompt:
        return []
    trained = np.ones(total - prompt, bool) if mask is None or len(mask) != total - prompt else mask > 0
    edges = [0, *(np.flatnonzero(np.diff(trained)) + 1).tolist(), len(trained)]
    return [Turn(prompt + start, prompt + stop, bool(trained[start])) for start, stop in pairwise(edges)]


def join_texts(texts: Sequence[str]) -> str:
    """Return the joined text of neighbouring tokens."""
    return "".join(text for text in texts if text != CONTINUATION_MARK)


class Finder:
    """A search for texts among the tokens of a sample."""

    def __init__(self, texts: Sequence[str]) -> None:
        pieces = ["" if text == CONTINUATION_MARK else text for text in texts]
        self._text = "".join(pieces)
        self._ends = list(accumulate(map(len, pieces)))

    def spans(self, lengths: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Yield the tokens [start, stop) of consecutive texts that together are the text of all tokens.

        A token that crosses a border belongs to the later text; each span has at least one token.
        """
        borders = [bisect_right(self._ends, end) for end in accumulate(lengths[:-1])]
        for start, stop in pairwise([0, *borders, len(self._ends)]):
            yield start, max(start + 1, stop)

    def find(self, needle: str, start: int, stop: int) -> int | None:
        """Return the token of [start, stop) in which the needle begins; None if it is missing or ambiguous."""
        first, end = self._offset(start), self._offset(stop)
        offset = self._text.find(needle, first, end) if needle else -1
        if offset < 0 or (len(needle) < MIN_TELLING_CHARACTERS and self._text.find(needle, offset + 1, end) >= 0):
            return None
        return bisect_right(self._ends, offset)

    def _offset(self, token: int) -> int:
        return 0 if token <= 0 or not self._ends else self._ends[min(token, len(self._ends)) - 1]


def needle_of(message: Mapping[str, Any]) -> str:
    """Return the longest of the first lines of a message, the most likely to be unique."""
    lines = [line.strip() for part in parts_of(message)[:2] for line in part.text[:4000].split("\n")]
    return max(lines[:8], key=len, default="")[:NEEDLE_CHARACTERS].rstrip()


def locate(
    messages: Sequence[Mapping[str, Any]],
    prompt_messages: int,
    turns: Sequence[Turn],
    texts: Sequence[str] | None,
    prompt: int,
) -> list[Where | None]:
    """Return the position of each message, None where it is not known.

    The model's messages are the trained turns, if there are as many of both. The others are found by their text, else
    they begin where the turn before them ends.
    """
    total = turns[-1].stop if turns else prompt
    written = [
        number
        for number, message in enumerate(messages)
        if number >= prompt_messages and message.get("role") == "assistant"
    ]
    trained = [turn for turn in turns if turn.trained]
    by_mask = dict(zip(written, trained, strict=True)) if len(written) == len(trained) else {}
    finder = None if texts is None else Finder(texts)
    positions: list[Where | None] = []
    after = 0
    for number, message in enumerate(messages):
        where: Where | None = None
        if number in by_mask:
            where = Where(by_mask[number].start, by_mask[number].stop, "mask")
        else:
            until = next((turn.start for later, turn in by_mask.items() if later > number), total)
            until = min(until, prompt) if number < prompt_messages else until
            start = finder.find(needle_of(message), after, until) if finder else None
            if start is not None:
                where = Where(start, until, "text")
            elif number < prompt_messages and prompt:
                where = Where(0, prompt, "prompt")
            elif number - 1 in by_mask and after < until:
                where = Where(after, until, "mask")
        positions.append(where)
        if where is not None and where.how != "prompt":
            after = where.stop if number in by_mask else where.start + 1
    return clip_ends(positions)


def clip_ends(positions: Sequence[Where | None]) -> list[Where | None]:
    """End each message where the next one begins, at the latest."""
    starts = [where.start for where in positions if where is not None and where.how != "prompt"]
    return [
        where
        if where is None or where.how == "prompt"
        else Where(where.start, min([where.stop, *(start for start in starts if start > where.start)]), where.how)
        for where in positions
    ]

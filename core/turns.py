"""Where the turns of a sample lie in its tokens, and where each message of its conversation begins there."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, Literal, TypeAlias

import numpy as np

from dumptui.core.context_parallel import Array
from dumptui.core.messages import parts_of
from dumptui.core.tokens import CONTINUES

How: TypeAlias = Literal["mask", "text", "template", "prompt"]

NEEDLE = 80
"""Characters of a message that are looked for; a template may change what is around its lines, not within one."""
TELLING = 12
"""A shorter needle counts only where it is found once."""


@dataclass(frozen=True, slots=True)
class Turn:
    """Positions [start, stop) of the whole sequence, all trained on or all not."""

    start: int
    stop: int
    trained: bool


@dataclass(frozen=True, slots=True)
class Where:
    """Positions [start, stop) of a message; by "template" its delimiters are among them, by "prompt" it is known only
    that it is somewhere in there.
    """

    start: int
    stop: int
    how: How


def find_turns(mask: Array | None, prompt: int, total: int) -> list[Turn]:
    """The response cut where its loss mask changes; one turn where there is no mask."""
    if total <= prompt:
        return []
    trained = np.ones(total - prompt, bool) if mask is None or len(mask) != total - prompt else mask > 0
    edges = [0, *(np.flatnonzero(np.diff(trained)) + 1).tolist(), len(trained)]
    return [Turn(prompt + start, prompt + stop, bool(trained[start])) for start, stop in pairwise(edges)]


def joined(texts: Sequence[str]) -> str:
    """The text of neighbouring tokens."""
    return "".join(text for text in texts if text != CONTINUES)


class Finder:
    """Finds texts among the tokens of a sample, each behind the one found before."""

    def __init__(self, texts: Sequence[str]) -> None:
        pieces = ["" if text == CONTINUES else text for text in texts]
        self._text = "".join(pieces)
        self._ends = list(accumulate(map(len, pieces)))

    def spans(self, lengths: Sequence[int]) -> Iterator[tuple[int, int]]:
        """The tokens [start, stop) of each of some texts that, one behind the other, are the text of all tokens.

        A token that reaches over a border belongs to the text behind it; there is a token in each span.
        """
        borders = [bisect_right(self._ends, end) for end in accumulate(lengths[:-1])]
        for start, stop in pairwise([0, *borders, len(self._ends)]):
            yield start, max(start + 1, stop)

    def find(self, needle: str, start: int, stop: int) -> int | None:
        """The token of [start, stop) in which the needle begins."""
        first, end = self._offset(start), self._offset(stop)
        at = self._text.find(needle, first, end) if needle else -1
        if at < 0 or (len(needle) < TELLING and self._text.find(needle, at + 1, end) >= 0):
            return None
        return bisect_right(self._ends, at)

    def _offset(self, token: int) -> int:
        return 0 if token <= 0 or not self._ends else self._ends[min(token, len(self._ends)) - 1]


def needle_of(message: Mapping[str, Any]) -> str:
    """The longest line among the first of a message, so that it tells it from others."""
    lines = [line.strip() for part in parts_of(message)[:2] for line in part.text[:4000].split("\n")]
    return max(lines[:8], key=len, default="")[:NEEDLE].rstrip()


def locate(
    messages: Sequence[Mapping[str, Any]],
    prompt_messages: int,
    turns: Sequence[Turn],
    texts: Sequence[str] | None,
    prompt: int,
) -> list[Where | None]:
    """Where each message begins: the model's by the trained turns, when there are as many; the others by their text,
    else right behind the turn before them.
    """
    total = turns[-1].stop if turns else prompt
    written = [at for at, one in enumerate(messages) if at >= prompt_messages and one.get("role") == "assistant"]
    trained = [turn for turn in turns if turn.trained]
    by_mask = dict(zip(written, trained, strict=True)) if len(written) == len(trained) else {}
    finder = None if texts is None else Finder(texts)
    found: list[Where | None] = []
    after = 0
    for at, message in enumerate(messages):
        where: Where | None = None
        if at in by_mask:
            where = Where(by_mask[at].start, by_mask[at].stop, "mask")
        else:
            until = next((turn.start for other, turn in by_mask.items() if other > at), total)
            until = min(until, prompt) if at < prompt_messages else until
            start = finder.find(needle_of(message), after, until) if finder else None
            if start is not None:
                where = Where(start, until, "text")
            elif at < prompt_messages and prompt:
                where = Where(0, prompt, "prompt")
            elif at - 1 in by_mask and after < until:
                where = Where(after, until, "mask")
        found.append(where)
        if where is not None and where.how != "prompt":
            after = where.stop if at in by_mask else where.start + 1
    return ended(found)


def ended(found: Sequence[Where | None]) -> list[Where | None]:
    """Each message ends where the next one begins, at the latest."""
    starts = [where.start for where in found if where is not None and where.how != "prompt"]
    return [
        where
        if where is None or where.how == "prompt"
        else Where(where.start, min([where.stop, *(start for start in starts if start > where.start)]), where.how)
        for where in found
    ]

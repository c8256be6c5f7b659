"""What a column of blocks is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from textual.strip import Strip

from dumptui.core.wrapping import Lines

RULE = "│ "
"""Before each row of a passage that has a label, so that its end is seen without colour."""


@dataclass(frozen=True, slots=True)
class Passage:
    """Text under a label of its own, if that is not empty; `kind` says how it looks."""

    kind: str
    label: str
    text: Lines


@dataclass(frozen=True, slots=True)
class Block:
    """A title, what is said beside it, and the passages under it. Every text has been through `visible`.

    `lead` stands behind the title while the block is not folded: what the text under it begins with.
    """

    kind: str
    title: str
    aside: str
    passages: Sequence[Passage]
    folded: bool = False
    lead: str = ""

    @property
    def first_words(self) -> str:
        """The first line that says something: of JSON not its bracket."""
        lines = (line for passage in self.passages for line in passage.text.lines)
        return next((line.strip() for line in lines if any(map(str.isalnum, line))), "")


class Hit(NamedTuple):
    """A line of a passage of a block."""

    block: int
    passage: int
    line: int


class Row(NamedTuple):
    """One row of a block: what it is ("head", "label", "text", "more" or "blank"), of which passage, and its text."""

    what: str
    passage: int = 0
    text: str = ""
    strip: Strip | None = None

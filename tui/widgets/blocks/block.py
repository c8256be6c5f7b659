"""The parts of a column of blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from textual.strip import Strip

from dumptui.tui.cell_formats.wrapping import Lines

RULE_TEXT = "│ "
"""Drawn before each row of a labelled passage, so that its end is visible without colour."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A text under an optional label; `kind` names its style."""

    kind: str
    label: str
    text: Lines


@dataclass(frozen=True, slots=True)
class Block:
    """A title, a note to the right of the title, and the passages below. Every text has been through `visible`.

    `lead` is shown after the title while the block is unfolded: the first words of the text below.
    """

    kind: str
    title: str
    aside: str
    passages: Sequence[Passage]
    folded: bool = False
    lead: str = ""

    @property
    def first_words(self) -> str:
        """The first line that has a letter or digit; in JSON, not its bracket."""
        lines = (line for passage in self.passages for line in passage.text.lines)
        return next((line.strip() for line in lines if any(map(str.isalnum, line))), "")


class Hit(NamedTuple):
    """The place of a matching line: block, passage and line, each counted from 0."""

    block: int
    passage: int
    line: int


class Row(NamedTuple):
    """One row of a block: its role ("head", "label", "text", "more" or "blank"), its passage and its text."""

    what: str
    passage: int = 0
    text: str = ""
    strip: Strip | None = None

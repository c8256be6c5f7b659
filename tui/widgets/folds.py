"""What of a column of blocks is folded, and the rows of the rest: counted at once, made where they are looked at."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import NamedTuple

from textual.cache import LRUCache
from textual.strip import Strip

from dumptui.core.wrapping import Lines

SHORT = 12
"""Rows of a passage that are shown before it is unfolded; one or two rows more are no reason to fold."""
SPARE = 2
RULE = "│ "
"""Before each row of a passage that has a label, so that its end is seen without colour."""
FOLDED, CUT, FULL = range(3)


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


class Folds:
    """The blocks as rows of `width` cells; as long as that is 0, each is taken for one row.

    Rows of the last 256 blocks are kept.
    """

    def __init__(self) -> None:
        self.blocks: Sequence[Block] = ()
        self.width = 0
        self.starts = [0]
        """The first row of each block, and their number as an end mark."""
        self._folded: set[int] = set()
        self._full: set[tuple[int, int]] = set()
        self._drawn: dict[tuple[int, int], Sequence[Strip]] = {}
        self._heights: list[int] = []
        self._rows: LRUCache[int, list[Row]] = LRUCache(256)

    def show(self, blocks: Sequence[Block], *, same: bool = False) -> None:
        """Other blocks; or the `same` ones and perhaps more of them, and what was folded stays so."""
        before = len(self.blocks) if same else 0
        self.blocks = blocks
        self._drawn = {}
        if not same:
            self._folded, self._full = set(), set()
        self._folded |= {at for at in range(before, len(blocks)) if blocks[at].folded}
        self.measure()

    def wrap(self, width: int) -> None:
        """To another width; what was drawn fits the old one."""
        self.width = max(1, width)
        self._drawn = {}
        self.measure()

    def measure(self, block: int | None = None) -> None:
        """Count the rows of a block, of all by default."""
        if block is None:
            self._heights = [self._height(at) for at in range(len(self.blocks))]
        else:
            self._heights[block] = self._height(block)
        self.starts = [0, *accumulate(self._heights)]
        self._rows.clear()

    def height(self, block: int) -> int:
        return self._heights[block]

    def at(self, row: int) -> int:
        """The block that a row belongs to."""
        return min(bisect_right(self.starts, row) - 1, len(self.blocks) - 1)

    def _height(self, block: int) -> int:
        if block in self._folded or not self.width:
            return 1
        passages = self.blocks[block].passages
        return 2 + sum(self._passage_height(block, at) + bool(one.label) for at, one in enumerate(passages))

    def _passage_height(self, block: int, passage: int) -> int:
        if (block, passage) in self._full:
            return self._count(block, passage, None)
        count = self._count(block, passage, SHORT + SPARE + 1)
        return count if count <= SHORT + SPARE else SHORT + 1

    def _count(self, block: int, passage: int, most: int | None) -> int:
        drawn = self._drawn.get((block, passage))
        one = self.blocks[block].passages[passage]
        return one.text.count(self.room(one), most) if drawn is None else len(drawn)

    def room(self, passage: Passage) -> int:
        """Cells for the text of a passage."""
        return max(1, self.width - len(RULE)) if passage.label else self.width

    # Rows

    def row(self, row: int) -> tuple[int, Row]:
        """A block, and that row of all which is one of its rows."""
        block = self.at(row)
        rows = self._rows.get(block)
        if rows is None:
            rows = self._rows[block] = list(self._make_rows(block))
        return block, rows[row - self.starts[block]]

    def _make_rows(self, block: int) -> Iterator[Row]:
        yield Row("head")
        if block in self._folded:
            return
        for at, passage in enumerate(self.blocks[block].passages):
            if passage.label:
                yield Row("label", at, passage.label)
            yield from self._passage_rows(block, at)
        yield Row("blank")

    def _passage_rows(self, block: int, at: int) -> Iterator[Row]:
        most = SHORT if self._is_cut(block, at) else None
        drawn = self._drawn.get((block, at))
        passage = self.blocks[block].passages[at]
        rows = list(islice(passage.text.rows(self.room(passage)), most)) if drawn is None else []
        yield from (Row("text", at, row) for row in rows)
        yield from (Row("text", at, "", strip) for strip in (drawn or ())[:most])
        if most is not None:
            more = left_of(passage.text, rows) if drawn is None else many(len(drawn) - most, "line")
            yield Row("more", at, f"… {more}")

    # Folding

    def draw(self, block: int, passages: Mapping[int, Sequence[Strip]]) -> None:
        """Show passages of a block by strips of `width` cells instead of their text, all others of it as text."""
        self._drawn = {key: strips for key, strips in self._drawn.items() if key[0] != block}
        self._drawn |= {(block, passage): strips for passage, strips in passages.items()}
        self.measure(block)

    def is_drawn(self, block: int) -> bool:
        return any(key[0] == block for key in self._drawn)

    def is_folded(self, block: int) -> bool:
        return block in self._folded

    def _is_long(self, block: int, passage: int) -> bool:
        return self._count(block, passage, SHORT + SPARE + 1) > SHORT + SPARE

    def _is_cut(self, block: int, passage: int) -> bool:
        return (block, passage) not in self._full and self._is_long(block, passage)

    def level(self, block: int) -> int:
        if block in self._folded:
            return FOLDED
        return CUT if any(self._is_cut(block, at) for at in self._passages(block)) else FULL

    def set_level(self, block: int, level: int) -> None:
        self._folded.discard(block)
        if level == FOLDED:
            self._folded.add(block)
        keys = {(block, at) for at in self._passages(block)}
        self._full = self._full | keys if level == FULL else self._full - keys
        self.measure(block)

    def step(self, block: int, by: int) -> None:
        """Unfold a block by one level, or fold it; a level that looks like the next one is passed over."""
        level = self.level(block) + by
        if by < 0 and level == CUT and not any(self._is_long(block, at) for at in self._passages(block)):
            level = FOLDED
        self.set_level(block, max(FOLDED, min(level, FULL)))

    def unfold_passage(self, block: int, passage: int) -> None:
        self._full.add((block, passage))
        self.measure(block)

    def unfold_all(self) -> None:
        """Everything; where all is unfolded already, back to how it was opened."""
        if all(self.level(at) == FULL for at in range(len(self.blocks))):
            self._full = set()
            self._folded = {at for at, block in enumerate(self.blocks) if block.folded}
        else:
            self._folded = set()
            self._full = {(block, at) for block in range(len(self.blocks)) for at in self._passages(block)}
        self.measure()

    # Searching

    def hits(self, pattern: re.Pattern[str]) -> list[Hit]:
        """The lines that hold it, folded or not."""
        return [
            Hit(block, passage, line)
            for block, one in enumerate(self.blocks)
            for passage, part in enumerate(one.passages)
            for line, text in enumerate(part.text.lines)
            if pattern.search(text)
        ]

    def row_of(self, hit: Hit) -> int:
        """The row in which the line of a hit begins; what hides it is unfolded."""
        passage = self.blocks[hit.block].passages[hit.passage]
        above = Lines(passage.text.lines[: hit.line], passage.text.widest).count(self.room(passage)) if hit.line else 0
        if hit.block in self._folded or ((hit.block, hit.passage) not in self._full and above >= SHORT):
            self._folded.discard(hit.block)
            self._full.add((hit.block, hit.passage))
            self.measure(hit.block)
        before = sum(
            self._passage_height(hit.block, at) + bool(self.blocks[hit.block].passages[at].label)
            for at in range(hit.passage)
        )
        return self.starts[hit.block] + 1 + before + bool(passage.label) + above

    def _passages(self, block: int) -> range:
        return range(len(self.blocks[block].passages))


def left_of(text: Lines, rows: Sequence[str]) -> str:
    """How much of a text is left behind its first rows."""
    line = shown = 0
    for row in rows:
        shown += len(row)
        if shown == len(text.lines[line]):
            line, shown = line + 1, 0
    characters = len(text.lines[line]) - shown if shown else 0
    lines = len(text.lines) - line - bool(shown)
    return " and ".join(filter(None, [many(characters, "character"), many(lines, "line")]))


def many(count: int, noun: str) -> str:
    return f"{count:,} more {noun}{'s' * (count != 1)}" if count else ""

"""The folding of a column of blocks, and the rows that remain: counted at once, made when they are drawn."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from textual.cache import LRUCache
from textual.strip import Strip

from dumptui.tui.cell_formats.wrapping import Lines
from dumptui.tui.widgets.blocks.block import RULE_TEXT, Block, Hit, Passage, Row

FOLDED_ROWS = 12
"""Rows shown of a folded passage; a passage with up to SPARE rows more is not folded."""
SPARE_ROWS = 2
FOLDED, CUT, FULL = range(3)


class Stretch(NamedTuple):
    """Rows of one role in a block, starting at its row `first`, and their passage."""

    first: int
    what: str
    passage: int = 0


class Folds:
    """The blocks as rows of `width` cells; while the width is 0, each block counts as one row."""

    def __init__(self) -> None:
        self.blocks: Sequence[Block] = ()
        self.width = 0
        self.starts = [0]
        """The first row of each block, with the number of rows as an end mark."""
        self._folded: set[int] = set()
        self._full: set[tuple[int, int]] = set()
        self._drawn: dict[tuple[int, int], Sequence[Strip]] = {}
        self._heights: list[int] = []
        self._counts: dict[tuple[int, int], int] = {}
        self._stretches: LRUCache[int, list[Stretch]] = LRUCache(256)

    def show(self, blocks: Sequence[Block], *, same: bool = False, full: bool = False) -> None:
        """Take other blocks. With `same`, they are the blocks at hand, perhaps with more at the end, and keep their
        folding. Long passages are cut unless `full`.
        """
        before = len(self.blocks) if same else 0
        self.blocks = blocks
        self._drawn, self._counts = {}, {}
        if not same:
            self._folded, self._full = set(), set()
        self._folded |= {index for index in range(before, len(blocks)) if blocks[index].folded}
        if full:
            self._full = self._all_passages()
        self.measure()

    def wrap(self, width: int) -> None:
        """Take another width; drawn passages are dropped, since they fit the old one."""
        self.width = max(1, width)
        self._drawn, self._counts = {}, {}
        self.measure()

    def measure(self, block: int | None = None) -> None:
        """Count the rows of a block, by default of all blocks."""
        if block is None:
            self._heights = [self._height(index) for index in range(len(self.blocks))]
        else:
            self._heights[block] = self._height(block)
        self.starts = [0, *accumulate(self._heights)]
        self._stretches.clear()

    def height(self, block: int) -> int:
        return self._heights[block]

    def block_at(self, row: int) -> int:
        """Return the index of the block that has a row."""
        return min(bisect_right(self.starts, row) - 1, len(self.blocks) - 1)

    def _height(self, block: int) -> int:
        if block in self._folded or not self.width:
            return 1
        passages = self.blocks[block].passages
        labels = sum(bool(passage.label) for passage in passages)
        return 2 + labels + sum(self._passage_height(block, index) for index in range(len(passages)))

    def _passage_height(self, block: int, passage: int) -> int:
        """Return the rows of a passage without its label; where it is cut, the last one says how much is left."""
        full = (block, passage) in self._full
        rows = self._rows(block, passage) if full else self._count(block, passage)
        return rows if full or rows <= FOLDED_ROWS + SPARE_ROWS else FOLDED_ROWS + 1

    def _rows(self, block: int, passage: int) -> int:
        drawn = self._drawn.get((block, passage))
        part = self.blocks[block].passages[passage]
        return part.text.height(self.room(part)) if drawn is None else len(drawn)

    def _count(self, block: int, passage: int) -> int:
        """Return the rows of a passage, counted only until they are too many to be shown."""
        key = (block, passage)
        if key in self._drawn:
            return len(self._drawn[key])
        if key not in self._counts:
            part = self.blocks[block].passages[passage]
            self._counts[key] = part.text.count(self.room(part), FOLDED_ROWS + SPARE_ROWS + 1)
        return self._counts[key]

    def room(self, passage: Passage) -> int:
        """Return the cells for the text of a passage."""
        return max(1, self.width - len(RULE_TEXT)) if passage.label else self.width

    # Rows

    def row(self, row: int) -> tuple[int, Row]:
        """Return the index of the block that has a row, and the row itself."""
        block = self.block_at(row)
        stretches = self._stretches.get(block)
        if stretches is None:
            stretches = self._stretches[block] = list(self._make_stretches(block))
        within = row - self.starts[block]
        stretch = stretches[bisect_right(stretches, within, key=lambda stretch: stretch.first) - 1]
        return block, self._make_row(block, stretch, within - stretch.first)

    def _make_stretches(self, block: int) -> Iterator[Stretch]:
        yield Stretch(0, "head")
        if block in self._folded:
            return
        row = 1
        for index, passage in enumerate(self.blocks[block].passages):
            if passage.label:
                yield Stretch(row, "label", index)
                row += 1
            yield Stretch(row, "text", index)
            row += self._passage_height(block, index)
            if self._is_cut(block, index):
                yield Stretch(row - 1, "more", index)
        yield Stretch(row, "blank")

    def _make_row(self, block: int, stretch: Stretch, row: int) -> Row:
        if stretch.what in ("head", "blank"):
            return Row(stretch.what)
        passage = self.blocks[block].passages[stretch.passage]
        drawn = self._drawn.get((block, stretch.passage))
        if stretch.what == "label":
            return Row("label", stretch.passage, passage.label)
        if stretch.what == "more":
            more = (
                left_of(passage.text, self.room(passage)) if drawn is None else many(len(drawn) - FOLDED_ROWS, "line")
            )
            return Row("more", stretch.passage, f"… {more}")
        if drawn is not None:
            return Row("text", stretch.passage, "", drawn[row])
        if (block, stretch.passage) in self._full:
            return Row("text", stretch.passage, passage.text.wrapped(self.room(passage))[row])
        return Row("text", stretch.passage, passage.text.first_rows(self.room(passage), FOLDED_ROWS + SPARE_ROWS)[row])

    # Folding

    def draw(self, block: int, passages: Mapping[int, Sequence[Strip]]) -> None:
        """Show passages of a block as strips of `width` cells instead of text; its other passages are shown as text."""
        self._drawn = {key: strips for key, strips in self._drawn.items() if key[0] != block}
        self._drawn |= {(block, passage): strips for passage, strips in passages.items()}
        self.measure(block)

    def is_drawn(self, block: int) -> bool:
        return any(key[0] == block for key in self._drawn)

    def is_folded(self, block: int) -> bool:
        return block in self._folded

    def _is_long(self, block: int, passage: int) -> bool:
        return self._count(block, passage) > FOLDED_ROWS + SPARE_ROWS

    def _is_cut(self, block: int, passage: int) -> bool:
        return (block, passage) not in self._full and self._is_long(block, passage)

    def level(self, block: int) -> int:
        if block in self._folded:
            return FOLDED
        return CUT if any(self._is_cut(block, index) for index in self._passages(block)) else FULL

    def set_level(self, block: int, level: int) -> None:
        self._folded.discard(block)
        if level == FOLDED:
            self._folded.add(block)
        keys = {(block, index) for index in self._passages(block)}
        self._full = self._full | keys if level == FULL else self._full - keys
        self.measure(block)

    def step(self, block: int, by: int) -> None:
        """Unfold a block by one level, or fold it; a level that looks like the next one is skipped."""
        level = self.level(block) + by
        if by < 0 and level == CUT and not any(self._is_long(block, index) for index in self._passages(block)):
            level = FOLDED
        self.set_level(block, max(FOLDED, min(level, FULL)))

    def unfold_passage(self, block: int, passage: int) -> None:
        self._full.add((block, passage))
        self.measure(block)

    def unfold_all(self) -> None:
        """Unfold every block; if all are unfolded already, restore the folding they had at first."""
        if all(self.level(index) == FULL for index in range(len(self.blocks))):
            self._full = set()
            self._folded = {index for index, block in enumerate(self.blocks) if block.folded}
        else:
            self._folded = set()
            self._full = self._all_passages()
        self.measure()

    def row_of(self, hit: Hit) -> int:
        """Return the row where the line of a hit begins, after unfolding it and showing it as text."""
        key = (hit.block, hit.passage)
        passage = self.blocks[hit.block].passages[hit.passage]
        above = passage.text.wrapped(self.room(passage)).row_of(hit.line)
        if key in self._drawn:
            self.draw(hit.block, {})
        if hit.block in self._folded or (key not in self._full and above >= FOLDED_ROWS):
            self._folded.discard(hit.block)
            self._full.add(key)
            self.measure(hit.block)
        text = next(stretch for stretch in self._make_stretches(hit.block) if stretch[1:] == ("text", hit.passage))
        return self.starts[hit.block] + text.first + above

    def _all_passages(self) -> set[tuple[int, int]]:
        return {(block, passage) for block in range(len(self.blocks)) for passage in self._passages(block)}

    def _passages(self, block: int) -> range:
        return range(len(self.blocks[block].passages))


def left_of(text: Lines, width: int) -> str:
    """Return in words how much of a text is left after its first rows."""
    line = shown = 0
    for row in text.first_rows(width, FOLDED_ROWS):
        shown += len(row)
        if shown == len(text.lines[line]):
            line, shown = line + 1, 0
    characters = len(text.lines[line]) - shown if shown else 0
    lines = len(text.lines) - line - bool(shown)
    return " and ".join(filter(None, [many(characters, "character"), many(lines, "line")]))


def many(count: int, noun: str) -> str:
    if not count:
        return ""
    return f"{count:,} more {noun}" + ("" if count == 1 else "s")

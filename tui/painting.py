"""Painting by differences: what the terminal shows already is not written again, nor is a line drawn twice.

Over SSH bytes are what a screen costs. Textual writes every region that was refreshed, changed or not, and the whole
screen again after each layout: opening a sample came to 89 KB in three repaints at 120x40. As differences it is one
screen at most, 30 KB, and nothing where nothing changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rich.console import Console
from rich.segment import Segment
from textual._compositor import Compositor, CompositorUpdate
from textual._context import visible_screen_stack
from textual.geometry import Region
from textual.screen import Screen
from textual.strip import Strip


class Rows(NamedTuple):
    """Whole lines of a screen of `height`, by their numbers: those in which something was refreshed."""

    strips: Mapping[int, Strip]
    height: int


class Painter(Compositor):
    """Draws whole lines, each once: Textual's own draws parts of them, from which no difference can be told."""

    def render_update(
        self, full: bool = False, screen_stack: list[Screen[object]] | None = None, simplify: bool = False
    ) -> Any:
        if full:  # a picture of the screen
            return super().render_update(full, screen_stack, simplify)
        visible_screen_stack.set(screen_stack or [])
        screen = self.size.region
        dirty = [region.intersection(screen) for region in self._dirty_regions]
        self._dirty_regions.clear()
        wanted = sorted({y for region in dirty for y in region.line_range})
        if not wanted:
            return None
        crop = Region(0, wanted[0], screen.width, wanted[-1] - wanted[0] + 1)
        chops = self._render_chops(crop, frozenset(wanted).__contains__)
        return Rows({y: Strip.join(chops[y].values()).simplify() for y in wanted}, screen.height)


class Changes(CompositorUpdate):
    """Pieces of lines, each (x, y, strip), to write over what is shown."""

    def __init__(self, pieces: Sequence[tuple[int, int, Strip]]) -> None:
        self.pieces = pieces

    def render_segments(self, console: Console) -> str:
        return "".join(f"\x1b[{y + 1};{x + 1}H{strip.render(console)}" for x, y, strip in self.pieces)


class Shown:
    """The lines last written, or nothing known of them after `forget`."""

    def __init__(self) -> None:
        self._lines: list[Strip | None] = []

    def forget(self) -> None:
        self._lines = []

    def changes(self, rows: Rows) -> Changes | None:
        """What to write for the terminal to show `rows`; None when it does."""
        if len(self._lines) != rows.height:
            self._lines = [None] * rows.height
        pieces = []
        for y, strip in rows.strips.items():
            if (found := difference(self._lines[y], strip)) is not None:
                pieces.append((found[0], y, found[1]))
            self._lines[y] = strip
        return Changes(pieces) if pieces else None


def difference(old: Strip | None, new: Strip) -> tuple[int, Strip] | None:
    """Where `new` first differs from `old`, and the piece of it to write there; None when they are equal."""
    if old is None or old.cell_length != new.cell_length:
        return 0, new
    before, after = list(old), list(new)
    if before == after:
        return None
    start = same(before, after)
    end = same(before[start:][::-1], after[start:][::-1])
    piece = Strip(after[start : len(after) - end])
    return sum(segment.cell_length for segment in after[:start]), piece


def same(one: Sequence[Segment], other: Sequence[Segment]) -> int:
    """How many segments from the start are equal."""
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count

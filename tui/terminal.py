"""What the terminal shows already, so that only what differs is written: over SSH bytes are what a screen costs.

Textual writes every region that was refreshed, changed or not, and the whole screen again after each layout: opening a
sample came to 89 KB in three repaints at 120x40. As differences it is one screen at most, 30 KB, and nothing where
nothing changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.console import Console
from rich.segment import Segment
from textual._compositor import ChopsUpdate, Compositor, CompositorUpdate
from textual.strip import Strip

# Reached through a private name of the pinned Textual: the strips of chosen lines of what is on screen.
Chosen = Callable[[int], bool]


class Changes(CompositorUpdate):
    """Pieces of lines, each (x, y, strip), to write over what is shown."""

    def __init__(self, pieces: Sequence[tuple[int, int, Strip]]) -> None:
        self.pieces = pieces

    def render_segments(self, console: Console) -> str:
        return "".join(f"\x1b[{y + 1};{x + 1}H{strip.render(console)}" for x, y, strip in self.pieces)


class Terminal:
    """The lines last written, or nothing known of them after `forget`."""

    def __init__(self) -> None:
        self._lines: list[Strip | None] = []

    def forget(self) -> None:
        self._lines = []

    def changes(self, compositor: Compositor, update: CompositorUpdate) -> Changes | None:
        """What to write for the terminal to show `compositor`, of which `update` is a refresh; None when it does."""
        size = compositor.size
        if len(self._lines) != size.height:
            self._lines = [None] * size.height
        lines = range(size.height)
        if isinstance(update, ChopsUpdate):
            refreshed = {y for y, _, _ in update.spans}
            lines = [y for y in lines if y in refreshed]  # type: ignore[assignment]
        wanted = frozenset(lines)
        chops = compositor._render_chops(size.region, wanted.__contains__)
        pieces = []
        for y in lines:
            strip = Strip.join(chops[y].values()).simplify()
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

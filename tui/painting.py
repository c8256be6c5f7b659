"""Painting by differences: what the terminal shows already is not written again, nor is a line drawn twice.

Over SSH bytes are what a screen costs. Textual writes every region that was refreshed, changed or not, and the whole
screen again after each layout: opening a sample came to 89 KB in three repaints at 120x40. As differences it is one
screen at most, 30 KB, and nothing where nothing changed.
"""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

from rich.console import Console
from rich.segment import Segment
from textual._compositor import Compositor, CompositorUpdate, ReflowResult
from textual._context import visible_screen_stack
from textual.geometry import Region, Size
from textual.screen import UPDATE_PERIOD, Screen
from textual.strip import Strip
from textual.widget import Widget

ROUNDS = 4
"""Of the event loop: a widget is told, says that it changed, the screen is told that, and one in reserve."""
T = TypeVar("T")
Row: TypeAlias = Sequence[Strip]
"""A line of the screen: what each widget shows in it, from the left to the right. What did not change is the same."""


class Rows(NamedTuple):
    """Whole lines of a screen of `height`, by their numbers: those in which something was refreshed."""

    rows: Mapping[int, Row]
    height: int


class Painter(Compositor):
    """Draws whole lines, each once: Textual's own draws parts of them, from which no difference can be told.

    After a layout it waits for the widgets that were moved: told of their size, they change, and would be drawn twice.
    """

    _waits = False

    def reflow(self, parent: Widget, size: Size) -> ReflowResult:
        found = super().reflow(parent, size)
        if (found.shown or found.resized) and not self._waits and isinstance(parent, Screen):
            self._waits = True
            self._wait(parent, ROUNDS)
        return found

    def _wait(self, screen: Screen[object], rounds: int) -> None:
        if rounds:
            asyncio.get_running_loop().call_soon(self._wait, screen, rounds - 1)
        else:
            self._waits = False
            screen.call_later(self._draw, screen)

    def _draw(self, screen: Screen[object]) -> None:
        if screen.app._batch_count:  # what is drawn in a batch is thrown away
            screen.set_timer(UPDATE_PERIOD, partial(self._draw, screen))
            return
        self.update_widgets(screen._dirty_widgets)
        screen._compositor_refresh()

    def update_widgets(self, widgets: set[Widget]) -> None:
        """Of those on the screen. For others Textual would work out all places anew, and then, at the layout that shows
        them, take them for widgets that have been told of their size already.
        """
        super().update_widgets(widgets & self.visible_widgets.keys())

    def render_update(
        self, full: bool = False, screen_stack: list[Screen[object]] | None = None, simplify: bool = False
    ) -> Any:
        if full:  # a picture of the screen
            return super().render_update(full, screen_stack, simplify)
        if self._waits:
            return None
        visible_screen_stack.set(screen_stack or [])
        screen = self.size.region
        dirty = [region.intersection(screen) for region in self._dirty_regions]
        self._dirty_regions.clear()
        wanted = {y for region in dirty for y in region.line_range}
        return Rows(self._rows(wanted), screen.height) if wanted else None

    def _seen(self) -> Iterator[tuple[Widget, Region, Region]]:
        """What can be seen, each with its region and the one that it is clipped to: also through a dialog that has no
        background of its own, for which Textual draws all that is below, once more and in one piece.
        """
        layers, below = [cast(Compositor, self)], visible_screen_stack.get()
        while below and is_see_through(layers[-1]):
            layers.append(below.pop()._compositor)
        for layer in layers:
            for widget, (region, clip) in layer.visible_widgets.items():
                if widget is not layer.root or layer is layers[-1]:
                    yield widget, region, clip

    def _rows(self, wanted: set[int]) -> dict[int, Row]:
        """These lines, from the front to the back, so that what is covered is not drawn at all."""
        screen = self.size.region
        lines = {y: Spans(screen.width) for y in sorted(wanted)}
        for widget, region, clip in self._seen():
            seen = region.intersection(clip).intersection(screen)
            open_lines = [y for y in seen.line_range if y in lines and lines[y].is_open(seen.x, seen.right)]
            if not open_lines:
                continue
            top, end = open_lines[0], open_lines[-1] + 1
            drawn = widget.render_lines(Region(seen.x - region.x, top - region.y, seen.width, end - top))
            for y in open_lines:
                lines[y].fill(seen.x, drawn[y - top])
        return {y: spans.row for y, spans in lines.items()}


def is_see_through(layer: Compositor) -> bool:
    return layer.root is not None and layer.root.styles.background.is_transparent


class Spans:
    """A line that is filled from the front to the back."""

    def __init__(self, width: int) -> None:
        self._free = [(0, width)]
        self._filled: list[tuple[int, Strip]] = []

    def is_open(self, start: int, end: int) -> bool:
        return any(max(left, start) < min(right, end) for left, right in self._free)

    def fill(self, x: int, strip: Strip) -> None:
        """Put as much of a strip, which begins at `x`, as is not covered."""
        end, still_free = x + strip.cell_length, []
        for left, right in self._free:
            start, stop = max(left, x), min(right, end)
            if start >= stop:
                still_free.append((left, right))
                continue
            whole = (start, stop) == (x, end)
            self._filled.append((start, strip if whole else strip.crop(start - x, stop - x)))
            still_free += [(a, b) for a, b in ((left, start), (stop, right)) if a < b]
        self._free = still_free

    @property
    def row(self) -> Row:
        blank = [(left, Strip.blank(right - left)) for left, right in self._free]
        return [strip for _, strip in sorted(self._filled + blank, key=lambda one: one[0])]


class Changes(CompositorUpdate):
    """Pieces of lines, each (x, y, strip), to write over what is shown."""

    def __init__(self, pieces: Sequence[tuple[int, int, Strip]]) -> None:
        self.pieces = pieces

    def render_segments(self, console: Console) -> str:
        return "".join(f"\x1b[{y + 1};{x + 1}H{strip.render(console)}" for x, y, strip in self.pieces)


class Shown:
    """The lines last written, or nothing known of them after `forget`."""

    def __init__(self) -> None:
        self._lines: list[Row] = []

    def forget(self) -> None:
        self._lines = []

    def changes(self, rows: Rows) -> Changes | None:
        """What to write for the terminal to show `rows`; None when it does."""
        if len(self._lines) != rows.height:
            self._lines = [()] * rows.height
        pieces = []
        for y, row in rows.rows.items():
            if (found := difference(self._lines[y], row)) is not None:
                pieces.append((found[0], y, found[1]))
            self._lines[y] = row
        return Changes(pieces) if pieces else None


def difference(old: Row, new: Row) -> tuple[int, Strip] | None:
    """Where `new` first differs from `old`, and the piece of it to write there; None when they are equal."""
    if width(old) != width(new):
        return 0, Strip(segments(new))
    start, end = equal_ends(old, new, operator.is_)
    before, after = segments(old[start : len(old) - end]), segments(new[start : len(new) - end])
    x = width(new[:start])
    start, end = equal_ends(before, after, operator.eq)
    piece = after[start : len(after) - end]
    if not piece:
        return None
    return x + sum(segment.cell_length for segment in after[:start]), Strip(piece)


def width(row: Row) -> int:
    return sum(strip.cell_length for strip in row)


def segments(row: Row) -> list[Segment]:
    """Neighbours of one style as one."""
    return list(Segment.simplify(chain.from_iterable(row)))


def equal_ends(old: Sequence[T], new: Sequence[T], equal: Callable[[T, T], bool]) -> tuple[int, int]:
    """How many are equal from the start, and how many of the others from the end."""
    most = min(len(old), len(new))
    start = next((at for at in range(most) if not equal(old[at], new[at])), most)
    most -= start
    return start, next((at for at in range(most) if not equal(old[-1 - at], new[-1 - at])), most)

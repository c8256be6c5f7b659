"""Painting by differences: only what differs from the terminal's screen is written, and each line is drawn once.

Over SSH the cost of a screen is its bytes. Textual writes every refreshed region, changed or not, and the whole screen
again after each layout: opening a sample came to 89 KB in three repaints at 120x40. As differences it is one screen at
most, 30 KB, and nothing where nothing changed.
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

MAX_ROUNDS = 4
"""Rounds of the event loop until a resized widget is drawn: resize, update, the screen's event, one in reserve."""
T = TypeVar("T")
Row: TypeAlias = Sequence[Strip]
"""A line of the screen: the strip of each widget from left to right. An unchanged strip is the same object."""


class Rows(NamedTuple):
    """Whole lines of a screen of `height`, by number: the lines with a refreshed region."""

    rows: Mapping[int, Row]
    height: int


class Painter(Compositor):
    """A compositor that draws each line whole and once: Textual's own draws parts, which can't be compared.

    After a layout it waits for the moved widgets: their resize events change them, and they would be drawn twice.
    """

    _waits = False

    def reflow(self, parent: Widget, size: Size) -> ReflowResult:
        result = super().reflow(parent, size)
        if (result.shown or result.resized) and not self._waits and isinstance(parent, Screen):
            self._waits = True
            self._wait(parent, MAX_ROUNDS)
        return result

    def _wait(self, screen: Screen[object], rounds: int) -> None:
        if rounds:
            asyncio.get_running_loop().call_soon(self._wait, screen, rounds - 1)
        else:
            self._waits = False
            screen.call_later(self._draw, screen)

    def _draw(self, screen: Screen[object]) -> None:
        if screen.app._batch_count:  # drawing inside a batch is discarded
            screen.set_timer(UPDATE_PERIOD, partial(self._draw, screen))
            return
        self.update_widgets(screen._dirty_widgets)
        screen._compositor_refresh()

    def update_widgets(self, widgets: set[Widget]) -> None:
        """Update the widgets that are on screen. For others Textual would compute all positions again, and at the
        layout that shows them would treat them as already resized.
        """
        super().update_widgets(widgets & self.visible_widgets.keys())

    def render_update(
        self, full: bool = False, screen_stack: list[Screen[object]] | None = None, simplify: bool = False
    ) -> Any:
        if full:  # a screenshot
            return super().render_update(full, screen_stack, simplify)
        if self._waits:
            return None
        visible_screen_stack.set(screen_stack or [])
        screen = self.size.region
        dirty = [region.intersection(screen) for region in self._dirty_regions]
        self._dirty_regions.clear()
        numbers = {y for region in dirty for y in region.line_range}
        return Rows(self._rows(numbers), screen.height) if numbers else None

    def _seen(self) -> Iterator[tuple[Widget, Region, Region]]:
        """Yield each visible widget with its region and clip, also those below a dialog without a background; Textual
        would draw everything below such a dialog again, in one piece.
        """
        layers, below = [cast(Compositor, self)], visible_screen_stack.get()
        while below and is_see_through(layers[-1]):
            layers.append(below.pop()._compositor)
        for layer in layers:
            for widget, (region, clip) in layer.visible_widgets.items():
                if widget is not layer.root or layer is layers[-1]:
                    yield widget, region, clip

    def _rows(self, numbers: set[int]) -> dict[int, Row]:
        """Return these lines, drawn from front to back, so that covered parts are not drawn at all."""
        screen = self.size.region
        lines = {y: Spans(screen.width) for y in sorted(numbers)}
        for widget, region, clip in self._seen():
            area = region.intersection(clip).intersection(screen)
            open_lines = [y for y in area.line_range if y in lines and lines[y].is_open(area.x, area.right)]
            if not open_lines:
                continue
            top, end = open_lines[0], open_lines[-1] + 1
            drawn = widget.render_lines(Region(area.x - region.x, top - region.y, area.width, end - top))
            for y in open_lines:
                lines[y].fill(area.x, drawn[y - top])
        return {y: spans.row for y, spans in lines.items()}


def is_see_through(layer: Compositor) -> bool:
    return layer.root is not None and layer.root.styles.background.is_transparent


class Spans:
    """A line that is filled from front to back."""

    def __init__(self, width: int) -> None:
        self._free = [(0, width)]
        self._filled: list[tuple[int, Strip]] = []

    def is_open(self, start: int, end: int) -> bool:
        return any(max(left, start) < min(right, end) for left, right in self._free)

    def fill(self, x: int, strip: Strip) -> None:
        """Add the uncovered parts of a strip that begins at `x`."""
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
        return [strip for _, strip in sorted(self._filled + blank, key=lambda piece: piece[0])]


class Changes(CompositorUpdate):
    """Pieces of lines, each (x, y, strip), to write over the screen."""

    def __init__(self, pieces: Sequence[tuple[int, int, Strip]]) -> None:
        self.pieces = pieces

    def render_segments(self, console: Console) -> str:
        return "".join(f"\x1b[{y + 1};{x + 1}H{strip.render(console)}" for x, y, strip in self.pieces)


class Shown:
    """The lines last written; none after `forget`."""

    def __init__(self) -> None:
        self._lines: list[Row] = []

    def forget(self) -> None:
        self._lines = []

    def changes(self, rows: Rows) -> Changes | None:
        """Return what to write so that the terminal shows `rows`; None if it already does."""
        if len(self._lines) != rows.height:
            self._lines = [()] * rows.height
        pieces = []
        for y, row in rows.rows.items():
            if (change := difference(self._lines[y], row)) is not None:
                pieces.append((change[0], y, change[1]))
            self._lines[y] = row
        return Changes(pieces) if pieces else None


def difference(old: Row, new: Row) -> tuple[int, Strip] | None:
    """Return the first cell where `new` differs from `old`, and the piece to write there; None if they are equal."""
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
    """Return the segments of a row, neighbours of one style merged."""
    return list(Segment.simplify(chain.from_iterable(row)))


def equal_ends(old: Sequence[T], new: Sequence[T], equal: Callable[[T, T], bool]) -> tuple[int, int]:
    """Return how many items are equal from the start, and how many of the rest from the end."""
    limit = min(len(old), len(new))
    start = next((index for index in range(limit) if not equal(old[index], new[index])), limit)
    limit -= start
    return start, next((index for index in range(limit) if not equal(old[-1 - index], new[-1 - index])), limit)

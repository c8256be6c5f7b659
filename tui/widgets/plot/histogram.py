"""A histogram as bars of block characters, with both ends of its axis labelled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from rich.text import Text
from textual.widget import Widget

from dumptui.core.text import visible
from dumptui.tui.widgets.plot.axes import format_ends
from dumptui.tui.widgets.plot.frame import Piece, arrange

EIGHTH_BLOCKS = " ▁▂▃▄▅▆▇█"


class Bars(Widget):
    """A histogram whose bins never look empty when they hold a value."""

    ALLOW_SELECT = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {"bars--axis"}
    DEFAULT_CSS = """
    Bars {
        height: 3;
        width: 1fr;
        color: $text-primary;
        background: $surface;
        padding: 0 1;
        & > .bars--axis { color: $text-muted; }
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._counts: tuple[int, ...] = ()
        self._ends = (0.0, 0.0)
        self._label = ""

    def show(self, counts: Sequence[int], ends: tuple[float, float], label: str) -> None:
        """Show `counts` with `label` between the ends of the axis; without counts, show only the label."""
        self._counts, self._ends, self._label = tuple(counts), ends, visible(label)
        self.refresh()

    def render(self) -> Text:
        width, height = self.size
        muted = self.get_component_rich_style("bars--axis")
        if not self._counts:
            return Text(self._label, muted, no_wrap=True, overflow="ellipsis")
        text = Text("\n".join(bars(self._counts, width, height - 1)), no_wrap=True)
        return text.append("\n" if text else "").append(axis(self._ends, self._label, width), muted)


def bars(counts: Sequence[int], width: int, height: int) -> list[str]:
    """Return `height` rows of bar characters from the top; bins are stretched or merged to fill `width`."""
    if height < 1 or width < 1:
        return []
    edges = np.linspace(0, len(counts), width + 1)
    first, last = np.floor(edges[:-1]).astype(int), np.maximum(np.ceil(edges[1:]).astype(int), 1)
    totals = np.array([max(counts[a:b]) for a, b in zip(first, last, strict=True)], float)
    eighths = np.ceil(totals / max(totals.max(), 1) * height * 8).astype(int)
    rows = [np.clip(eighths - 8 * row, 0, 8) for row in range(height - 1, -1, -1)]
    return ["".join(EIGHTH_BLOCKS[part] for part in row) for row in rows]


def axis(ends: tuple[float, float], label: str, width: int) -> str:
    left, right = format_ends(*ends) if ends[0] < ends[1] else (f"{ends[0]:.4g}", "")
    pieces = [Piece(0, left), Piece(width - len(right), right), Piece((width - len(label)) // 2, label)]
    line = ""
    for piece in arrange(width, pieces):
        line += " " * (piece.at - len(line)) + piece.text
    return line

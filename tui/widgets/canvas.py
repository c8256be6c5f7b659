"""Series drawn into braille characters. The only module that knows plotext."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from dumptui.tui.widgets.axes import DOTS_X, DOTS_Y, Floats, Range, View, scale

Ints = npt.NDArray[np.intp]

BRAILLE_BITS = np.array([[0x40, 0x80], [0x04, 0x20], [0x02, 0x10], [0x01, 0x08]], np.uint8)  # from the bottom


class Series(NamedTuple):
    """Points to draw; a `y` that is not finite is a gap. `component` is the colour, "first" or "second"."""

    name: str
    x: npt.NDArray[Any]
    y: npt.NDArray[Any]
    component: str = "first"
    style: Literal["line", "dots"] = "line"
    axis: Literal["left", "right"] = "left"
    """The y axis that it is drawn against."""
    marker: str = ""
    """A character to draw a dot as, one a cell, in place of braille."""


def thin(position: Floats, y: Floats) -> Ints:
    """Which points to draw, in order: the lowest and the highest of each dot column, and one of each gap.

    `position` counts dot columns and ascends. A gap narrower than a column can't be seen and is not kept.
    """
    finite = np.flatnonzero(np.isfinite(y))
    if not finite.size:
        return finite
    value, at = y[finite], position[finite]
    column = np.floor(at + 0.5)
    starts = np.flatnonzero(np.diff(column, prepend=column[0] - 1))
    kept = [finite[_first(value, starts, extreme)] for extreme in (np.minimum, np.maximum)]
    gap = (np.diff(finite) > 1) & (np.diff(at) >= 1)
    return np.unique(np.concatenate([*kept, finite[:-1][gap] + 1]))


def _first(value: Floats, starts: Ints, extreme: np.ufunc) -> Ints:
    """In each group that begins at `starts`, the first index that holds its extreme."""
    groups = np.diff(starts, append=len(value))
    found = value == np.repeat(extreme.reduceat(value, starts), groups)
    index = np.where(found, np.arange(len(value)), len(value))
    return np.asarray(np.minimum.reduceat(index, starts))


def window(x: Floats, y: Floats, ends: Range) -> tuple[Floats, Floats]:
    """The points of a line within `ends`, and where the line enters and leaves."""
    low, high = ends
    start, stop = int(np.searchsorted(x, low, "left")), int(np.searchsorted(x, high, "right"))
    inner = slice(start, stop)
    xs, ys = [x[inner]], [y[inner]]
    if 0 < start < len(x) and x[start] > low:
        xs, ys = [np.array([low]), *xs], [_between(x, y, start, low), *ys]
    if 0 < stop < len(x) and x[stop - 1] < high:
        xs, ys = [*xs, np.array([high])], [*ys, _between(x, y, stop, high)]
    return np.concatenate(xs), np.concatenate(ys)


def _inside(x: Floats, y: Floats, ends: Range) -> tuple[Floats, Floats]:
    seen = (x >= ends[0]) & (x <= ends[1])
    return x[seen], y[seen]


def _between(x: Floats, y: Floats, index: int, at: float) -> Floats:
    share = (at - x[index - 1]) / (x[index] - x[index - 1])
    return np.asarray([y[index - 1] * (1 - share) + y[index] * share])


def stroke(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """The dots of the lines between points given in whole dots, and of the points; a NaN breaks the line."""
    known = np.isfinite(y)
    start = np.flatnonzero(known[:-1] & known[1:])
    dx, dy = x[start + 1] - x[start], y[start + 1] - y[start]
    steps = np.maximum(np.abs(dx), np.abs(dy)).astype(np.intp)
    line = np.repeat(np.arange(len(start)), steps)
    share = (np.arange(len(line)) - np.repeat(np.cumsum(steps) - steps, steps)) / steps[line]
    across = np.concatenate([x[start[line]] + share * dx[line], x[known]])
    up = np.concatenate([y[start[line]] + share * dy[line], y[known]])
    return np.rint(across), np.rint(up)


def dots_of(series: Series, view: View, columns: int, rows: int) -> tuple[Floats, Floats]:
    """The dots that a series lights on a canvas, counted from its lower left."""
    ends = view.left if series.axis == "left" else view.right
    if ends is None:
        return np.empty(0), np.empty(0)
    x, y = np.asarray(series.x, float), np.asarray(series.y, float)
    order = np.argsort(x, kind="stable")
    order = order[np.isfinite(x[order])]
    x, y = x[order], np.where(np.isfinite(y[order]), y[order], np.nan)
    line = series.style == "line"
    x, y = window(x, y, view.x) if line else _inside(x, y, view.x)
    position = scale(x, view.x, DOTS_X * columns)
    up = DOTS_Y * rows
    height = np.clip(np.rint(scale(y, ends, up)), 0, up - 1)
    column = np.floor(position + 0.5)
    if not line:
        return column[np.isfinite(y)], height[np.isfinite(y)]
    kept = thin(position, y)
    return stroke(column[kept], height[kept])


def braille(across: Floats, up: Floats, columns: int, rows: int) -> npt.NDArray[np.uint8]:
    """The dots of each cell as the bits of its braille character, rows from the bottom."""
    lit = np.zeros((rows * DOTS_Y, columns * DOTS_X), np.uint8)
    lit[up.astype(np.intp), across.astype(np.intp)] = 1
    cells = lit.reshape(rows, DOTS_Y, columns, DOTS_X) * BRAILLE_BITS[:, None, :]
    return np.asarray(cells.sum(axis=(1, 3), dtype=np.uint8))


@cache
def figure_class() -> Callable[[], Any] | None:
    """plotext's figure, private but the only one that shares no state with another; None without plotext."""
    try:
        from plotext._figure import _figure_class
    except ImportError:
        return None
    found: Callable[[], Any] = _figure_class
    return found


class Canvas(NamedTuple):
    """Characters by row from the top, and for each the number of its series, -1 where nothing is drawn."""

    chars: list[list[str]]
    owners: list[list[int]]


def nothing(columns: int, rows: int) -> Canvas:
    return Canvas([[" "] * columns for _ in range(rows)], [[-1] * columns for _ in range(rows)])


def rasterise(series: Sequence[Series], view: View, columns: int, rows: int) -> Canvas:
    """The series in braille; of two in one cell the first is seen.

    plotext gets a finished character a cell: its own braille takes 10 µs a dot, 100 ms for noise that fills a
    canvas of 115 x 11, against 10 ms.
    """
    if not columns or (make := figure_class()) is None:
        return nothing(columns, rows)
    figure = make()
    figure._limit_size(False, False)  # or the canvas is clamped to the terminal
    figure._set_size(columns, rows)
    figure.frame(False)
    figure.xfrequency(0)
    figure.yfrequency(0)
    figure.xlim(0, max(1, columns - 1))
    figure.ylim(0, max(1, rows - 1))
    for number, one in reversed(list(enumerate(series))):
        bits = braille(*dots_of(one, view, columns, rows), columns, rows)
        row, column = np.nonzero(bits)
        if row.size:
            marker = [one.marker or chr(0x2800 + each) for each in bits[row, column].tolist()]
            figure.scatter(column.tolist(), row.tolist(), marker=marker, color=number)
    figure.build()
    matrix = figure.monitor.matrix
    owners = [
        [int(colour) if char != " " else -1 for char, colour in zip(chars, colours, strict=True)]
        for chars, colours in zip(matrix.marker, matrix.fullground, strict=True)
    ]
    return Canvas(matrix.marker[::-1], owners[::-1])

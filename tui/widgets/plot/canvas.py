"""Series drawn into braille characters. No other module uses plotext."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from dumptui.tui.widgets.plot.axes import DOTS_X, DOTS_Y, Floats, Range, View, scale

Ints = npt.NDArray[np.intp]

BRAILLE_BITS = np.array([[0x40, 0x80], [0x04, 0x20], [0x02, 0x10], [0x01, 0x08]], np.uint8)  # from the bottom


class Series(NamedTuple):
    """Points to draw; a `y` that is not finite is a gap. `component` names the colour, "first" or "second"."""

    name: str
    x: npt.NDArray[Any]
    y: npt.NDArray[Any]
    component: str = "first"
    style: Literal["line", "dots"] = "line"
    axis: Literal["left", "right"] = "left"
    """The y axis of the series."""
    marker: str = ""
    """A character drawn for each dot, one per cell, instead of braille."""


def thin(position: Floats, y: Floats) -> Ints:
    """Return the indices of the points to draw, in order: the lowest and highest of each dot column, and one per gap.

    `position` is in dot columns and ascends. A gap narrower than a column would be invisible and is dropped.
    """
    finite = np.flatnonzero(np.isfinite(y))
    if not finite.size:
        return finite
    value, places = y[finite], position[finite]
    column = np.floor(places + 0.5)
    starts = np.flatnonzero(np.diff(column, prepend=column[0] - 1))
    extremes = [finite[_first(value, starts, extreme)] for extreme in (np.minimum, np.maximum)]
    gap = (np.diff(finite) > 1) & (np.diff(places) >= 1)
    return np.unique(np.concatenate([*extremes, finite[:-1][gap] + 1]))


def _first(value: Floats, starts: Ints, extreme: np.ufunc) -> Ints:
    """Return the first index that holds the extreme of each group; groups begin at `starts`."""
    groups = np.diff(starts, append=len(value))
    is_extreme = value == np.repeat(extreme.reduceat(value, starts), groups)
    index = np.where(is_extreme, np.arange(len(value)), len(value))
    return np.asarray(np.minimum.reduceat(index, starts))


def window(x: Floats, y: Floats, ends: Range) -> tuple[Floats, Floats]:
    """Return the points of a line within `ends`, with the points where the line enters and leaves."""
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
    inside = (x >= ends[0]) & (x <= ends[1])
    return x[inside], y[inside]


def _between(x: Floats, y: Floats, index: int, at: float) -> Floats:
    share = (at - x[index - 1]) / (x[index] - x[index - 1])
    return np.asarray([y[index - 1] * (1 - share) + y[index] * share])


def stroke(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return the dots of the points and of the lines between them, all in whole dots; a NaN breaks the line."""
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
    """Return the dots that a series lights on a canvas, counted from its lower left."""
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
    drawn = thin(position, y)
    return stroke(column[drawn], height[drawn])


def braille(across: Floats, up: Floats, columns: int, rows: int) -> npt.NDArray[np.uint8]:
    """Return the dots of each cell as the bits of its braille character, rows from the bottom."""
    lit = np.zeros((rows * DOTS_Y, columns * DOTS_X), np.uint8)
    lit[up.astype(np.intp), across.astype(np.intp)] = 1
    cells = lit.reshape(rows, DOTS_Y, columns, DOTS_X) * BRAILLE_BITS[:, None, :]
    return np.asarray(cells.sum(axis=(1, 3), dtype=np.uint8))


@cache
def figure_class() -> Callable[[], Any] | None:
    """Return plotext's private figure class, whose instances share no state; None without plotext."""
    try:
        from plotext._figure import _figure_class
    except ImportError:
        return None
    figure: Callable[[], Any] = _figure_class
    return figure


class Canvas(NamedTuple):
    """Characters by row from the top, and for each the number of its series, -1 for an empty cell."""

    chars: list[list[str]]
    owners: list[list[int]]


def nothing(columns: int, rows: int) -> Canvas:
    return Canvas([[" "] * columns for _ in range(rows)], [[-1] * columns for _ in range(rows)])


def rasterise(series: Sequence[Series], view: View, columns: int, rows: int) -> Canvas:
    """Return the series in braille; where two share a cell, the first one is drawn.

    plotext gets a finished character per cell: its own braille takes 10 µs per dot, 100 ms for noise that fills a
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
    for number, line in reversed(list(enumerate(series))):
        bits = braille(*dots_of(line, view, columns, rows), columns, rows)
        row, column = np.nonzero(bits)
        if row.size:
            marker = [line.marker or chr(0x2800 + bit) for bit in bits[row, column].tolist()]
            figure.scatter(column.tolist(), row.tolist(), marker=marker, color=number)
    figure.build()
    matrix = figure.monitor.matrix
    owners = [
        [int(colour) if char != " " else -1 for char, colour in zip(chars, colours, strict=True)]
        for chars, colours in zip(matrix.marker, matrix.fullground, strict=True)
    ]
    return Canvas(matrix.marker[::-1], owners[::-1])

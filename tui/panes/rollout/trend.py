"""One column of the steps over the run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical

from dumptui.core.tables.columns import STEP_COLUMNS, trend_columns
from dumptui.tui.presentation import columns
from dumptui.tui.widgets.line import Line
from dumptui.tui.widgets.message import FrozenMessage

if TYPE_CHECKING:
    from dumptui.core.files.step_files import StepKey
    from dumptui.core.types import Record
    from dumptui.tui.widgets.plot.plot import Plot, Series
    from dumptui.tui.widgets.plot.zoom_plot import ZoomPlot

TREND_COLUMNS = trend_columns()
EVAL_COLUMN = "reward_mean"
KINDS = {"train": "train steps", "eval": "evals"}
MIN_STEPS_ACROSS = 8.0
PAN_SHARE = 0.4  # of what is in view
ZOOM_FACTOR = 2.0
KEYS_HINT = "left and right walk, + - 0 zoom, H L scroll, enter opens"


class Trend(Vertical, can_focus=True):
    """The plot comes with `fill`: it brings numpy, which the first screen does without.

    Where a cell of the plot covers several steps, the walk and a click go to the one that is seen there, an extreme.
    """

    BINDINGS = [
        Binding("left,h", "walk(-1)", "Step before", show=False, id="trend.left"),
        Binding("right,l", "walk(1)", "Step after", show=False, id="trend.right"),
        Binding("home,g", "walk(-1000000)", "First step", show=False, id="trend.first"),
        Binding("end,G", "walk(1000000)", "Last step", show=False, id="trend.last"),
        Binding("plus,equals_sign", "zoom(1)", "Zoom in", key_display="+", id="trend.zoom-in"),
        Binding("minus", "zoom(-1)", "Zoom out", key_display="-", id="trend.zoom-out"),
        Binding("0", "zoom(0)", "Whole run", show=False, id="trend.whole"),
        Binding("H", "pan(-1)", "Scroll the chart left", show=False, id="trend.pan-left"),
        Binding("L", "pan(1)", "Scroll the chart right", show=False, id="trend.pan-right"),
        Binding("enter", "open", "Open", id="trend.open"),
    ]

    column = TREND_COLUMNS[0]
    _keys: Sequence[StepKey] = ()
    _values: Mapping[StepKey, float] = {}
    _open: StepKey | None = None
    _plot: ZoomPlot | None = None
    _kind = "train"
    _shown = column
    """The column that is plotted, which may be another one where there is nothing of `column`."""
    _part = ""

    class Chosen(FrozenMessage):
        """A click on a step, or a step of the walk."""

        key: StepKey

    class Entered(FrozenMessage):
        """Enter on the step under the cursor."""

    def __init__(self) -> None:
        super().__init__(id="trend-side")

    def compose(self) -> ComposeResult:
        yield Line(id="trend-title")

    async def fill(self) -> None:
        from dumptui.tui.widgets.plot.zoom_plot import ZoomPlot

        self._plot = ZoomPlot(id="trend", closest=MIN_STEPS_ACROSS)
        await self.mount(self._plot)

    def next_column(self) -> None:
        self.column = TREND_COLUMNS[(TREND_COLUMNS.index(self.column) + 1) % len(TREND_COLUMNS)]

    def show(
        self, keys: Sequence[StepKey], rows: Mapping[StepKey, Record], open_: StepKey | None, part: str = ""
    ) -> None:
        """`keys` are the steps of the kind that is `open_`, train steps or evals, the oldest first; `part` says of what
        part of them the `rows` are. Evals have their reward plotted where they have none of the column.

        A walk stays where it came to.
        """
        if self.has_focus and self._open in keys:
            open_ = self._open
        self._keys, self._open = keys, open_
        kind = "eval" if open_ is not None and open_.evaluation else "train"
        self._shown = self.column
        self._values = values_of(keys, rows, self.column)
        if kind == "eval" and not self._values:
            self._shown = EVAL_COLUMN
            self._values = values_of(keys, rows, EVAL_COLUMN)
        self._part = part
        if self._plot is not None and kind != self._kind:
            self._kind, self._plot.window = kind, None
        self._say()
        if self._plot is not None:
            cursor = None if open_ is None else float(open_.step)
            self._plot.show(series_of(self._field.label, keys, self._values), cursor=cursor, empty="no values yet")

    @property
    def _field(self) -> columns.Field:
        return next(field for field in columns.STEPS if field.key == self._shown)

    def _say(self) -> None:
        """Say what is plotted, and while the trend has the keys, the step under the cursor."""
        text = Text(f"{self._field.label}{self._part} over {KINDS[self._kind]}", "bold")
        if self.has_focus and self._open is not None:
            text.append(f" · {self._open}: {self._field.write(self._values.get(self._open))} · ").append(
                KEYS_HINT, "dim"
            )
        self.query_one(Line).say(text)

    def watch_has_focus(self, _has_focus: bool) -> None:
        super().watch_has_focus(_has_focus)
        self._say()

    # Walking ---------------------------------------------------------------------------------------------------

    def action_walk(self, by: int) -> None:
        """Go to the step that the next cell shows, or the first or last one."""
        here = -math.inf if self._open is None else self._open.step
        ahead = [key for key in self._stops() if (key.step - here) * by > 0 and self._is_elsewhere(key.step, here)]
        if ahead:
            target = ahead[min(by, len(ahead)) - 1] if by > 0 else ahead[max(by, -len(ahead))]
            self.stand_on(target)
            self.post_message(self.Chosen(target))

    def stand_on(self, key: StepKey) -> None:
        """Put the cursor on a step, if it is plotted."""
        if key in self._keys:
            self._open = key
            if self._plot is not None:
                self._plot.cursor = float(key.step)
            self._say()

    def _is_elsewhere(self, step: float, here: float) -> bool:
        """Whether a step is drawn in another cell."""
        cell = self._cell(step)
        return cell is None or cell != self._cell(here)

    def _stops(self) -> list[StepKey]:
        """Return the step that each cell shows, in order, and every step beyond the part in view."""
        cells: dict[object, list[StepKey]] = {}
        for key in self._values:
            cell = self._cell(key.step)
            cells.setdefault(("beyond", key) if cell is None else cell, []).append(key)
        return [self._extreme(found) for found in cells.values()]

    def _cell(self, step: float) -> int | None:
        return None if self._plot is None or not math.isfinite(step) else self._plot.cell_of(step)

    def _extreme(self, keys: Sequence[StepKey]) -> StepKey:
        """Return the worst of some steps; of a column that is neither better nor worse, the farthest from the mean."""
        worse = next(column.worse for column in STEP_COLUMNS if column.name == self._shown)
        if worse is not None:
            return (max if worse == "high" else min)(keys, key=self._values.__getitem__)
        middle = sum(self._values.values()) / len(self._values)
        return max(keys, key=lambda key: abs(self._values[key] - middle))

    def action_zoom(self, way: int) -> None:
        if self._plot is None:
            return
        if way == 0:
            self._plot.window = None
        else:
            self._plot.zoom(1 / ZOOM_FACTOR if way > 0 else ZOOM_FACTOR)

    def action_pan(self, way: int) -> None:
        if self._plot is not None:
            self._plot.pan(way * PAN_SHARE)

    def action_open(self) -> None:
        self.post_message(self.Entered())

    def on_plot_clicked(self, event: Plot.Clicked) -> None:
        if self._values:
            self.post_message(self.Chosen(self._step_at(event.x, event.y)))

    def _step_at(self, x: float, y: float | None) -> StepKey:
        """Return the step whose dot is nearest: of those in a cell, the lowest or the highest."""
        cell = self._cell(x)
        inside = [key for key in self._values if self._cell(key.step) == cell]
        if not inside:
            return min(self._values, key=lambda key: abs(key.step - x))
        ends = [min(inside, key=self._values.__getitem__), max(inside, key=self._values.__getitem__)]
        return self._extreme(inside) if y is None else min(ends, key=lambda key: abs(self._values[key] - y))


def values_of(keys: Sequence[StepKey], rows: Mapping[StepKey, Record], column: str) -> dict[StepKey, float]:
    """Return the finite values of a column by step."""
    values = ((key, rows.get(key, {}).get(column)) for key in keys)
    return {key: value for key, value in values if isinstance(value, (int, float)) and math.isfinite(value)}


def series_of(label: str, keys: Sequence[StepKey], values: Mapping[StepKey, float]) -> Series:
    import numpy as np

    from dumptui.tui.widgets.plot.plot import Series

    x = np.array([key.step for key in keys], np.float64)
    return Series(label, x, np.array([values.get(key, np.nan) for key in keys], np.float64))

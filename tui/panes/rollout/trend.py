"""One column of the steps over the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical

from dumptui.core.tables.columns import trend_columns
from dumptui.tui.presentation import columns
from dumptui.tui.widgets.line import Line
from dumptui.tui.widgets.message import FrozenMessage

if TYPE_CHECKING:
    from dumptui.core.run.run import StepKey
    from dumptui.core.types import Record
    from dumptui.tui.widgets.plot.plot import Plot, Series

TREND_COLUMNS = trend_columns()


class Trend(Vertical):
    """The plot comes with `fill`: it brings numpy, which the first screen does without."""

    column = TREND_COLUMNS[0]
    _keys: Sequence[StepKey] = ()
    _plot: Plot | None = None

    class Chosen(FrozenMessage):
        """A click on a step."""

        key: StepKey

    def __init__(self) -> None:
        super().__init__(id="trend-side")

    def compose(self) -> ComposeResult:
        yield Line(id="trend-title")

    async def fill(self) -> None:
        from dumptui.tui.widgets.plot.plot import Plot

        self._plot = Plot(id="trend")
        await self.mount(self._plot)

    def next_column(self) -> None:
        self.column = TREND_COLUMNS[(TREND_COLUMNS.index(self.column) + 1) % len(TREND_COLUMNS)]

    def show(self, keys: Sequence[StepKey], rows: Mapping[StepKey, Record], open_: StepKey | None) -> None:
        """`keys` are the steps of the kind that is `open_`, train steps or evals, the oldest first."""
        self._keys = keys
        field = next(field for field in columns.STEPS if field.key == self.column)
        kind = "eval" if open_ is not None and open_.evaluation else "train"
        self.query_one(Line).say(Text(f"{field.label} over {kind} steps", "bold"))
        if self._plot is not None:
            values = [rows.get(key, {}).get(self.column) for key in keys]
            cursor = None if open_ is None else float(open_.step)
            self._plot.show(series_of(field.label, keys, values), cursor=cursor, empty="no values yet")

    def on_plot_clicked(self, event: Plot.Clicked) -> None:
        if self._keys:
            self.post_message(self.Chosen(min(self._keys, key=lambda key: abs(key.step - event.x))))


def series_of(label: str, keys: Sequence[StepKey], values: Sequence[object]) -> Series:
    import numpy as np

    from dumptui.tui.widgets.plot.plot import Series

    x = np.array([key.step for key in keys], np.float64)
    y = [value if isinstance(value, (int, float)) else np.nan for value in values]
    return Series(label, x, np.array(y, np.float64))

"""The steps of the run in a table, and one of its columns over the steps."""

from __future__ import annotations

from collections.abc import Sequence

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.reactive import var

from dumptui.core.run.run import StepKey
from dumptui.core.tables.alarms import alarms, partial_columns
from dumptui.core.types import Record
from dumptui.tui.panes.rollout.trend import Trend
from dumptui.tui.presentation import columns
from dumptui.tui.presentation.signs import PARTIAL_SIGN, marked
from dumptui.tui.widgets.message import FrozenMessage
from dumptui.tui.widgets.table.table import Table


class StepsSide(Vertical):
    """The newest step on top; `open` is the one whose samples are on show, None while there is none."""

    shown: var[columns.Shown] = var("default", init=False)

    class Moved(FrozenMessage):
        """The cursor went to a step."""

        key: StepKey

    class Entered(FrozenMessage):
        """Enter on a step."""

        key: StepKey

    def __init__(self, keys: Sequence[StepKey]) -> None:
        super().__init__(id="steps-side")
        self.keys = list(reversed(keys))
        self.rows: dict[StepKey, Record] = {}
        self.open: StepKey | None = None
        self._label_width = 0

    def compose(self) -> ComposeResult:
        yield Table(id="steps", empty="no steps")
        yield Trend()

    def on_mount(self) -> None:
        self._redraw = self.set_interval(0.2, self._redraw_now, pause=True)
        self.table = self.query_one("#steps", Table)
        self.trend = self.query_one(Trend)
        self.show()

    async def fill(self) -> None:
        await self.trend.fill()

    def show(self) -> None:
        fields = columns.chosen_fields(columns.STEPS, self.shown)
        label, *others = (field.column for field in fields)
        self._label_width = max(label.width, *(len(str(key)) for key in self.keys if key.evaluation), 0)
        self.table.show(
            [label._replace(width=self._label_width), *others],
            len(self.keys),
            lambda at: self._cells(fields, at),
            style=self._style,
        )
        self.draw_trend()

    def _style(self, at: int) -> str | None:
        return "warn" if self._is_flagged(self.keys[at]) else None

    def _is_flagged(self, key: StepKey) -> bool:
        row = self.rows.get(key)
        return row is not None and (row["state"] != "ok" or bool(alarms(row)))

    def _cells(self, fields: Sequence[columns.Field], at: int) -> list[str]:
        key = self.keys[at]
        row = self.rows.get(key)
        label = str(key if key.evaluation else key.step)
        if row is None:
            return [label, *[""] * (len(fields) - 1)]
        found = columns.cells(fields, {**row, "label": label})
        bad, partial = alarms(row), partial_columns(row)
        for place, field in enumerate(fields):
            if field.key in partial:
                found[place] = marked(found[place], field.width, PARTIAL_SIGN)
            if field.key in bad or (bad and field.key == "label"):
                found[place] = marked(found[place], field.width if place else self._label_width)
        return found

    def summarise(self, key: StepKey, row: Record) -> None:
        """Take a step's row; the table and the trend follow at most five times a second, however fast rows come."""
        self.rows[key] = row
        self._redraw.resume()

    def _redraw_now(self) -> None:
        self._redraw.pause()
        self.show()

    def grow(self, keys: Sequence[StepKey]) -> None:
        """The run has other steps now; the cursor stays on its step, or where that was."""
        here = self.current
        self.keys = list(reversed(keys))
        self.rows = {key: self.rows[key] for key in keys if key in self.rows}
        with self.prevent(Table.Highlighted):
            self.show()
            self.select(here)

    @property
    def current(self) -> StepKey:
        """The step under the cursor."""
        return self.keys[self.table.cursor]

    def select(self, key: StepKey) -> None:
        if key in self.keys:
            self.table.cursor = self.keys.index(key)

    def go(self, by: int) -> None:
        """Go to the train step, or the eval, before or after; beyond the last one nothing happens."""
        like = self.like(self.current)
        at = like.index(self.current) - by
        if 0 <= at < len(like):
            self.select(like[at])

    def go_to_flagged(self, by: int) -> bool:
        """Go to the flagged step below (`by` of 1) or above in the table; False where there is none."""
        here = self.table.cursor
        rows = range(here + 1, len(self.keys)) if by > 0 else range(here - 1, -1, -1)
        found = next((at for at in rows if self._is_flagged(self.keys[at])), None)
        if found is not None:
            self.table.cursor = found
        return found is not None

    def like(self, key: StepKey) -> list[StepKey]:
        """The train steps, or the evals, the newest first as in the table."""
        return [one for one in self.keys if one.evaluation == key.evaluation]

    # Trend -----------------------------------------------------------------------------------------------------

    def draw_trend(self) -> None:
        evaluation = self.open is not None and self.open.evaluation
        like = [key for key in reversed(self.keys) if key.evaluation == evaluation]
        self.trend.show(like, self.rows, self.open)

    def next_trend(self) -> None:
        self.trend.next_column()
        self.draw_trend()

    @on(Trend.Chosen)
    def _trend_chosen(self, event: Trend.Chosen) -> None:
        self.select(event.key)

    # Events ----------------------------------------------------------------------------------------------------

    @on(Table.Highlighted, "#steps")
    def _moved(self, event: Table.Highlighted) -> None:
        self.post_message(self.Moved(self.current))

    @on(Table.Selected, "#steps")
    def _entered(self, event: Table.Selected) -> None:
        self.post_message(self.Entered(self.current))

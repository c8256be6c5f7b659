"""The steps of the run in a table, and one of its columns over the steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.reactive import var

from dumptui.core.errors import DumpError
from dumptui.core.run.run import StepKey
from dumptui.core.tables.alarms import alarms, partial_columns
from dumptui.core.tables.columns import STEP_COLUMNS
from dumptui.core.text import plural, visible
from dumptui.core.types import Record
from dumptui.tui.panes.rollout.trend import Trend
from dumptui.tui.presentation import columns
from dumptui.tui.presentation.signs import PARTIAL_SIGN, marked
from dumptui.tui.session.sample_order import StepArrangement
from dumptui.tui.widgets.line import Line
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
        """All steps of the run, the newest first."""
        self.listed = self.keys
        """Those that the table lists, in its order."""
        self.rows: dict[StepKey, Record] = {}
        self.open: StepKey | None = None
        self.arrangement = StepArrangement()
        self._problem = ""
        self._hidden: StepKey | None = None
        """The step that was gone to although the filter hides it."""
        self._label_width = 0

    def compose(self) -> ComposeResult:
        yield Line(id="steps-title")
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
        self._arrange()
        self.table.empty = "no steps match · esc clears the filter" if self.keys else "no steps"
        self.table.show(
            [label._replace(width=self._label_width), *others],
            len(self.listed),
            lambda at: self._cells(fields, at),
            style=self._style,
            sort=self.arrangement.sort,
        )
        self.draw_trend()

    # Order and filter ------------------------------------------------------------------------------------------

    def records(self) -> list[Record]:
        """Return a row with every column for each step, blank where it is not read yet."""
        blank = dict.fromkeys(column.name for column in STEP_COLUMNS if column.recorded)
        return [{**blank, **key._asdict(), **self.rows.get(key, {})} for key in self.keys]

    def _arrange(self) -> None:
        """List the steps that the filter leaves, in the order of the sort."""
        asked = self.arrangement
        if asked == StepArrangement():
            self.listed, self._problem = self.keys, ""
        else:
            records = self.records()
            try:
                kept, self._problem = asked.select(records), ""
            except DumpError as error:
                kept, self._problem = list(range(len(records))), error.problem
            self.listed = [self.keys[at] for at in asked.order(records, set(kept))]
        self._show_title()

    def _show_title(self) -> None:
        asked, facts = self.arrangement, []
        if asked.where:
            facts.append(f"{len(self.listed)} of {plural(len(self.keys), 'step')} where {visible(asked.where)}")
        if self._problem:
            facts.append(f"can't be used: {visible(self._problem)}")
        if asked.sort:
            facts.append(asked.sort_words())
        self.query_one("#steps-title", Line).say(" · ".join(facts))
        self.set_class(bool(facts), "-arranged")

    def rearrange(self, arrangement: StepArrangement) -> None:
        """Show other steps or another order; the cursor stays on its step, else goes to the first row."""
        here, self.arrangement, self._hidden = self.current, arrangement, None
        self.show()
        if here in self.listed:
            with self.prevent(Table.Highlighted):
                self.table.cursor = self.listed.index(here)
        elif self.listed:
            self.table.cursor = 0
            self.post_message(self.Moved(self.current))

    def sort_by(self, key: str | None, more: bool) -> None:
        if key is not None:
            before = self.arrangement
            self.rearrange(before.then_by(key) if more else before.sorted_by(key))

    def clear(self) -> bool:
        """Remove the filter; return whether there was one."""
        asked = bool(self.arrangement.where)
        if asked:
            self.rearrange(replace(self.arrangement, where=""))
        return asked

    @on(Table.HeaderClicked, "#steps")
    def _header_clicked(self, event: Table.HeaderClicked) -> None:
        self.sort_by(event.key, event.more)

    # Rows ------------------------------------------------------------------------------------------------------

    def _style(self, at: int) -> str | None:
        return "warn" if self._is_flagged(self.listed[at]) else None

    def _is_flagged(self, key: StepKey) -> bool:
        row = self.rows.get(key)
        return row is not None and (row["state"] != "ok" or bool(alarms(row)))

    def _cells(self, fields: Sequence[columns.Field], at: int) -> list[str]:
        key = self.listed[at]
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
        here = self.current
        self.show()
        if self.arrangement != StepArrangement():
            self.keep(here)

    def grow(self, keys: Sequence[StepKey]) -> None:
        """The run has other steps now; the cursor stays on its step, or where that was."""
        here = self.current
        self.keys = list(reversed(keys))
        self.rows = {key: self.rows[key] for key in keys if key in self.rows}
        with self.prevent(Table.Highlighted):
            self.show()
            self.keep(here)

    def keep(self, key: StepKey) -> None:
        """Let the cursor stay on a step, also where the filter hides it."""
        self._hidden = None
        with self.prevent(Table.Highlighted):
            if key in self.listed:
                self.table.cursor = self.listed.index(key)
            elif key in self.keys:
                self._hidden = key

    @property
    def current(self) -> StepKey:
        """The step under the cursor, or that was gone to although the filter hides it."""
        if self._hidden is not None or not self.listed:
            return self._hidden or self.keys[0]
        return self.listed[self.table.cursor]

    def select(self, key: StepKey) -> None:
        """Go to a step."""
        if key not in self.keys:
            return
        before = self.current
        self._hidden = None if key in self.listed else key
        if self._hidden is None:
            self.table.cursor = self.listed.index(key)
        elif before != key:
            self.post_message(self.Moved(key))

    def go(self, by: int) -> None:
        """Go to the train step, or the eval, before or after; beyond the last one nothing happens."""
        like = self.like(self.current)
        at = like.index(self.current) - by
        if 0 <= at < len(like):
            self.select(like[at])
            self.trend.stand_on(like[at])

    def go_to_flagged(self, by: int) -> bool:
        """Go to the flagged step below (`by` of 1) or above in the table; False where there is none."""
        here = self.table.cursor
        rows = range(here + 1, len(self.listed)) if by > 0 else range(here - 1, -1, -1)
        found = next((at for at in rows if self._is_flagged(self.listed[at])), None)
        if found is not None:
            self.table.cursor = found
        return found is not None

    def like(self, key: StepKey) -> list[StepKey]:
        """The train steps, or the evals, the newest first as in the table."""
        return [one for one in self.keys if one.evaluation == key.evaluation]

    # Trend -----------------------------------------------------------------------------------------------------

    def draw_trend(self) -> None:
        here = self.current if self.trend.has_focus else self.open
        evaluation = here is not None and here.evaluation
        like = [key for key in reversed(self.keys) if key.evaluation == evaluation]
        self.trend.show(like, self.rows, here)

    def next_trend(self) -> None:
        self.trend.next_column()
        self.draw_trend()

    @on(Trend.Chosen)
    def _trend_chosen(self, event: Trend.Chosen) -> None:
        self.select(event.key)

    @on(Trend.Entered)
    def _trend_entered(self, event: Trend.Entered) -> None:
        self.post_message(self.Entered(self.current))

    # Events ----------------------------------------------------------------------------------------------------

    @on(Table.Highlighted, "#steps")
    def _moved(self, event: Table.Highlighted) -> None:
        self._hidden = None
        self.post_message(self.Moved(self.current))

    @on(Table.Selected, "#steps")
    def _entered(self, event: Table.Selected) -> None:
        if self.listed:
            self.post_message(self.Entered(self.current))

"""The steps of the run in a table, and one of its columns over the steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.reactive import var

from dumptui.core.errors import DumpError
from dumptui.core.files.step_files import StepKey
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


class StepLine(NamedTuple):
    """A line of the table: a step, or one of several datasets of an eval, by its place among them."""

    key: StepKey
    dataset: int | None = None


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
        self._lines: list[StepLine] = []
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
        """Draw the table again; the cursor stays on its line."""
        here = self._here
        fields = columns.chosen_fields(columns.STEPS, self.shown)
        label, *others = (field.column for field in fields)
        self._arrange()
        self._lines = [line for key in self.listed for line in self._lines_of(key)]
        labels = [len(self._label(line)) for line in self._lines if line.key.evaluation]
        self._label_width = max(label.width, *labels, 0)
        self.table.empty = "no steps match · esc clears the filter" if self.keys else "no steps"
        with self.prevent(Table.Highlighted):
            self.table.show(
                [label._replace(width=self._label_width), *others],
                len(self._lines),
                lambda at: self._cells(fields, self._lines[at]),
                style=self._style,
                sort=self.arrangement.sort,
            )
            self._stand_on(here)
        self.draw_trend()

    def _lines_of(self, key: StepKey) -> list[StepLine]:
        """Return the line of a step and, of an eval, one for each of several datasets."""
        datasets = self.rows.get(key, {}).get("datasets")
        own = datasets if isinstance(datasets, list) else []
        return [StepLine(key), *(StepLine(key, number) for number in range(len(own)))]

    @property
    def _here(self) -> StepLine:
        """The line under the cursor, or of the step that was gone to although the filter hides it."""
        if self._hidden is not None or not self._lines:
            return StepLine(self._hidden or self.keys[0])
        return self._lines[self.table.cursor]

    def _stand_on(self, line: StepLine) -> None:
        """Put the cursor on a line, else on its step; it may be hidden by the filter."""
        self._hidden = None
        for wanted in (line, StepLine(line.key)):
            if wanted in self._lines:
                self.table.cursor = self._lines.index(wanted)
                return
        self._hidden = line.key if line.key in self.keys else None

    def record(self, line: StepLine) -> Record:
        """Return what is known of a line."""
        row = self.rows.get(line.key, line.key._asdict())
        datasets = row.get("datasets")
        if line.dataset is None or not isinstance(datasets, list):
            return row
        return {**line.key._asdict(), "state": "ok", **datasets[line.dataset]}

    @property
    def lines(self) -> list[StepLine]:
        """The lines of the table, in order."""
        return self._lines

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
        self.arrangement = arrangement
        self.show()
        if self._hidden is not None and self._lines:
            self._hidden = None
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
        line = self._lines[at]
        if line.dataset is not None:
            return "dim"
        return "warn" if self._is_flagged(line.key) else None

    def _is_flagged(self, key: StepKey) -> bool:
        row = self.rows.get(key)
        return row is not None and (row["state"] != "ok" or bool(alarms(row)))

    def _label(self, line: StepLine) -> str:
        if line.dataset is not None:
            return f"set {self.record(line)['dataset']}"
        return str(line.key if line.key.evaluation else line.key.step)

    def _cells(self, fields: Sequence[columns.Field], line: StepLine) -> list[str]:
        label = self._label(line)
        if line.key not in self.rows:
            return [label, *[""] * (len(fields) - 1)]
        row = self.record(line)
        found = columns.cells(fields, {**row, "label": label})
        bad, partial = alarms(row) if line.dataset is None else {}, partial_columns(row)
        for place, field in enumerate(fields):
            if field.key in partial:
                found[place] = PARTIAL_SIGN + found[place]  # the table rounds a number for which there is no room
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
        self.keys = list(reversed(keys))
        self.rows = {key: self.rows[key] for key in keys if key in self.rows}
        self.show()

    def keep(self, key: StepKey) -> None:
        """Let the cursor stay on a step, also where the filter hides it, or bring it there without a message."""
        if key != self.current and key in self.keys:
            with self.prevent(Table.Highlighted):
                self._stand_on(StepLine(key))

    @property
    def current(self) -> StepKey:
        """The step under the cursor, or that was gone to although the filter hides it."""
        return self._here.key

    def select(self, key: StepKey) -> None:
        """Go to a step."""
        before = self.current
        if key in self.keys and key != before:
            self._stand_on(StepLine(key))
            if self._hidden is not None:
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
        rows = range(here + 1, len(self._lines)) if by > 0 else range(here - 1, -1, -1)
        found = next((at for at in rows if self._style(at) == "warn"), None)
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
        line = self._here
        dataset = line.dataset if line.key == here else None
        rows = self.rows if dataset is None else {key: self.record(StepLine(key, dataset)) for key in like}
        self.trend.show(like, rows, here, "" if dataset is None else f" of {self._label(line)}")

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
        self.draw_trend()
        self.post_message(self.Moved(self.current))

    @on(Table.Selected, "#steps")
    def _entered(self, event: Table.Selected) -> None:
        if self._lines:
            self.post_message(self.Entered(self.current))

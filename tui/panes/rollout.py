"""The Rollout pane: the steps with a trend, and the samples of the chosen step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.reactive import var

from dumptui.core.run import StepKey
from dumptui.core.tables import Record
from dumptui.core.text import visible
from dumptui.tui import columns
from dumptui.tui.alarms import SIGN, alarms, marked
from dumptui.tui.dialog import Choose
from dumptui.tui.panes.samples import SampleChosen, count_line, group_line, prompt_text, sample_records, sample_style
from dumptui.tui.reader import Loaded
from dumptui.tui.widgets.line import Line
from dumptui.tui.widgets.plot import Plot, Series
from dumptui.tui.widgets.table import Table

TRENDS = (
    "mean_abs_lp_diff",
    "reward_mean",
    "response_length_mean",
    "mean_entropy",
    "truncated_frac",
    "zero_std_frac",
    "max_abs_lp_diff",
)


class RolloutPane(Horizontal):
    """Steps on the left, samples of the chosen step on the right."""

    HELP = """\
# Rollout

The steps of the run with a trend, and the samples of the step under the cursor.

- **enter** goes deeper: from a step to its samples, from a sample to its tokens; **escape** goes back.
- **s** sorts by a column you choose, **S** turns the order round; a click on a column's label does both.
- **a** shows all columns; **left** and **right** reach those that don't fit.
- **m** draws another column of the steps; **w** chooses which entry of rewards that are dicts counts.
- **<** and **>** go to the step before and after.

A statistic is over unmasked response tokens. `-` stands for nothing; `~` before a number says that it covers only a
part, `!` that it is a lot: |Δ| from 0.03, half of the groups with equal rewards, a quarter of the samples truncated.

While a run is followed, **F** goes to the newest step and on with each that comes; among the steps **end** does so too,
and **G** goes to the oldest.
"""
    BINDINGS = [
        Binding("s", "sort", "Sort", id="rollout.sort"),
        Binding("S", "reverse", "Reverse", show=False, id="rollout.reverse"),
        Binding("a", "all_columns", "All columns", id="rollout.columns"),
        Binding("m", "trend", "Trend", id="rollout.trend"),
        Binding("w", "reward_key", "Reward key", show=False, id="rollout.reward-key"),
    ]

    trend: var[str] = var("mean_abs_lp_diff")
    all_columns: var[bool] = var(False)

    @dataclass
    class StepChosen(Message):
        key: StepKey

    @dataclass
    class RewardKeyChosen(Message):
        """Which entry of rewards that are dicts counts as the reward."""

        name: str

    def __init__(self, keys: Sequence[StepKey]) -> None:
        super().__init__(id="rollout")
        self.keys = list(reversed(keys))
        self.rows: dict[StepKey, Record] = {}
        self.samples: list[Record] = []
        self.order: list[int] = []
        self._loaded: Loaded | None = None
        self._sort: tuple[str, bool] | None = None
        self._label_width = 0

    def compose(self) -> ComposeResult:
        with Vertical(id="steps-side"):
            yield Table(id="steps", empty="no steps")
            yield Line(id="trend-title")
            yield Plot(id="trend")
        with Vertical(id="samples-side"):
            yield Line(id="samples-title")
            yield Table(id="samples", empty="reading the step")
            yield Line(id="group")

    def on_mount(self) -> None:
        self._redraw = self.set_interval(0.2, self._redraw_steps, pause=True)
        self.steps = self.query_one("#steps", Table)
        self.table = self.query_one("#samples", Table)
        self.show_steps()

    # Steps -----------------------------------------------------------------------------------------------------

    def show_steps(self) -> None:
        label, *others = (field.column for field in columns.STEPS)
        self._label_width = max(label.width, *(len(str(key)) for key in self.keys if key.evaluation), 0)
        self.steps.show(
            [label._replace(width=self._label_width), *others],
            len(self.keys),
            self._step_cells,
            style=self._step_style,
        )
        self._draw_trend()

    def _step_style(self, at: int) -> str | None:
        row = self.rows.get(self.keys[at])
        return "warn" if row is not None and (row["state"] != "ok" or alarms(row)) else None

    def _step_cells(self, at: int) -> list[str]:
        key = self.keys[at]
        row = self.rows.get(key)
        label = str(key if key.evaluation else key.step)
        if row is None:
            return [label, *[""] * (len(columns.STEPS) - 1)]
        found = columns.cells(columns.STEPS, {**row, "label": label})
        if row["state"] == "partial":  # a statistic of the trained part only
            found[3] = "~" + found[3] if found[3] != "-" else "-"
        bad = alarms(row)
        for place, field in enumerate(columns.STEPS):
            if field.key in bad or (bad and field.key == "label"):
                found[place] = marked(found[place], field.width if place else self._label_width)
        return found

    def summarise(self, key: StepKey, row: Record) -> None:
        """Take a step's row; the table and the trend follow at most five times a second, however fast rows come."""
        self.rows[key] = row
        self._redraw.resume()

    def _redraw_steps(self) -> None:
        self._redraw.pause()
        self.show_steps()

    def select_step(self, key: StepKey) -> None:
        if key in self.keys:
            self.steps.cursor = self.keys.index(key)

    def next_step(self, by: int) -> None:
        """Go to the train step, or the eval, before or after; beyond the last one nothing happens."""
        like = self.like(self.keys[self.steps.cursor])
        at = like.index(self.keys[self.steps.cursor]) - by
        if 0 <= at < len(like):
            self.select_step(like[at])

    def like(self, key: StepKey) -> list[StepKey]:
        """The train steps, or the evals, the newest first as in the table."""
        return [one for one in self.keys if one.evaluation == key.evaluation]

    def _draw_trend(self) -> None:
        evaluation = self._loaded is not None and self._loaded.key.evaluation
        keys = [key for key in reversed(self.keys) if key.evaluation == evaluation]
        values = [self.rows.get(key, {}).get(self.trend) for key in keys]
        drawn = np.array([value if isinstance(value, (int, float)) else np.nan for value in values], np.float64)
        x = np.array([key.step for key in keys], np.float64)
        field = next(field for field in columns.STEPS if field.key == self.trend)
        self.query_one("#trend-title", Line).say(
            Text(f"{field.label} over {'eval' if evaluation else 'train'} steps", "bold")
        )
        cursor = float(self._loaded.key.step) if self._loaded is not None else None
        self.query_one("#trend", Plot).show(Series(field.label, x, drawn), cursor=cursor, empty="no values yet")

    @on(Table.Highlighted, "#steps")
    def _step_moved(self, event: Table.Highlighted) -> None:
        # Not the row it was posted for, which may be another step by now.
        self.post_message(self.StepChosen(self.keys[self.steps.cursor]))

    @on(Table.Selected, "#steps")
    def _into_samples(self, event: Table.Selected) -> None:
        key = self.keys[event.row]
        if self._loaded is None or self._loaded.key != key:
            self.post_message(self.StepChosen(key))
        self.enter_samples()

    @on(Plot.Clicked, "#trend")
    def _trend_clicked(self, event: Plot.Clicked) -> None:
        evaluation = self._loaded is not None and self._loaded.key.evaluation
        keys = [key for key in self.keys if key.evaluation == evaluation]
        if keys:
            self.select_step(min(keys, key=lambda key: abs(key.step - event.x)))

    # The class -samples says at which of the two levels the pane is; the focus follows, and leads when it is moved.

    def on_descendant_focus(self) -> None:
        self.set_class(self.table.has_focus, "-samples")

    def enter_samples(self) -> None:
        self.add_class("-samples")
        self.table.focus()

    def leave_samples(self) -> None:
        self.remove_class("-samples")
        self.steps.focus()

    def enter(self) -> None:
        (self.table if self.has_class("-samples") else self.steps).focus()

    # Samples ---------------------------------------------------------------------------------------------------

    def show_wait(self, key: StepKey, text: str) -> None:
        self.query_one("#samples-title", Line).say(f"{key}: {text}")

    def show_failure(self, key: StepKey, problem: str) -> None:
        self.samples, self.order, self._loaded = [], [], None
        self.table.empty = visible(problem)
        self.table.show([], 0, lambda row: [])
        self.show_wait(key, "can't be shown")
        self.query_one("#group", Line).say("")

    def grow(self, keys: Sequence[StepKey]) -> None:
        """The run has other steps now; the cursor stays on its step, or where that was."""
        here = self.keys[self.steps.cursor]
        self.keys = list(reversed(keys))
        self.rows = {key: self.rows[key] for key in keys if key in self.rows}
        with self.prevent(Table.Highlighted):
            self.show_steps()
            self.select_step(here)

    def show_step(self, loaded: Loaded, *, again: bool = False) -> None:
        self._loaded = loaded
        self.samples = sample_records(loaded)
        self.table.empty = "the step has no samples"
        self._show_samples(keep_cursor=again)
        self._draw_trend()

    def _fields(self) -> list[columns.Field]:
        return [field for field in columns.SAMPLES if field.default or self.all_columns]

    def _show_samples(self, keep_cursor: bool = True) -> None:
        key, descending = self._sort or ("label", False)
        self.order = list(range(len(self.samples)))
        if self._sort is not None:
            self.order = columns.order(self.samples, "sample_index" if key == "label" else key, descending)
        fields = self._fields()
        self.table.show(
            [field.column for field in fields],
            len(self.order),
            lambda at: columns.cells(fields, self.samples[self.order[at]]),
            style=lambda at: sample_style(self.samples[self.order[at]]),
            sort=self._sort,
            keep_cursor=keep_cursor,
        )
        self._show_title()
        self._show_group(self.table.cursor)

    def _show_title(self) -> None:
        assert self._loaded is not None
        row, key = self._loaded.row, self._loaded.key
        like = self.like(key)
        older, newer = any(one < key for one in like), any(one > key for one in like)
        text = Text().append("< " * older).append(str(key), "bold").append(" >" * newer)
        if self._sort is not None:
            label = next(field.label for field in columns.SAMPLES if field.key == self._sort[0])
            text.append(f" · by {label}, {'largest' if self._sort[1] else 'smallest'} first")
        text.append(f" · {count_line(row, self._loaded.groups)}")
        for reason in alarms(row).values():
            text.append(f" · {SIGN}{reason}", "bold")
        if row["reason"]:
            text.append(f" · {visible(str(row['reason']))}", "bold")
        self.query_one("#samples-title", Line).say(text)

    def _show_group(self, at: int) -> None:
        if self._loaded is None or not self.order:
            return
        position = self.order[at]
        index = self.samples[position]["group_index"]
        group = next((one for one in self._loaded.groups if one["group_index"] == index), None)
        prompt = prompt_text(self._loaded.step.samples[position].prompt)
        self.query_one("#group", Line).say(group_line(group, self.samples, prompt))

    @on(Table.Highlighted, "#samples")
    def _sample_moved(self, event: Table.Highlighted) -> None:
        self._show_group(event.row)

    @on(Table.Selected, "#samples")
    def _sample_selected(self, event: Table.Selected) -> None:
        if self.order:
            self.post_message(SampleChosen(self.order[event.row]))

    @property
    def current(self) -> int | None:
        """The position of the sample under the cursor."""
        return self.order[self.table.cursor] if self.order else None

    def select_sample(self, position: int) -> None:
        self.add_class("-samples")
        self.table.cursor = self.order.index(position)

    def next_sample(self, by: int) -> int | None:
        """Move the cursor along the order on screen; None at its end."""
        before = self.table.cursor
        self.table.cursor += by
        return None if self.table.cursor == before else self.current

    # Keys ------------------------------------------------------------------------------------------------------

    @on(Table.HeaderClicked, "#samples")
    def _header_clicked(self, event: Table.HeaderClicked) -> None:
        self._sort_by(event.key)

    def _sort_by(self, key: str | None) -> None:
        """Sort by a column, the largest first, or turn round the order that is by it already."""
        if key is None or self._loaded is None:
            return
        before = self._sort or ("label", False)
        self._sort = (key, not before[1] if before[0] == key else key != "label")
        self._show_samples()
        self.table.cursor = 0

    def action_sort(self) -> None:
        choices = [(field.key, f"{field.label:<8}  {field.tip}") for field in self._fields()]
        self.app.push_screen(Choose("sort the samples by", choices, self._sort and self._sort[0]), self._sort_by)

    def action_reverse(self) -> None:
        self._sort_by("label" if self._sort is None else self._sort[0])

    def action_all_columns(self) -> None:
        self.all_columns = not self.all_columns
        if self._loaded is not None:
            self._show_samples()

    def action_reward_key(self) -> None:
        samples = self._loaded.step.samples if self._loaded is not None else ()
        names = dict.fromkeys(str(name) for one in samples if isinstance(one.reward, Mapping) for name in one.reward)
        if not names:
            self.notify("the rewards of this step are no dicts: there is nothing to choose", markup=False)
            return

        def chosen(name: str | None) -> None:
            if name is not None:
                self.post_message(self.RewardKeyChosen(list(names)[int(name)]))

        choices = [(str(at), visible(name)) for at, name in enumerate(names)]
        self.app.push_screen(Choose("take as the reward", choices), chosen)

    def action_trend(self) -> None:
        self.trend = TRENDS[(TRENDS.index(self.trend) + 1) % len(TRENDS)]
        self._draw_trend()

"""The Rollout pane: the steps with a trend, and the samples of the chosen step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal

from dumptui.core.files.step_files import StepKey
from dumptui.core.health.overview import record_of
from dumptui.core.tables.columns import SAMPLE_COLUMNS, STEP_COLUMNS, alarm_words
from dumptui.core.types import Record
from dumptui.tui.panes.pane import Pane
from dumptui.tui.panes.requests import (
    FindingWanted,
    PlaceWanted,
    RewardKeyChosen,
    SamplesArranged,
    StepChosen,
    StepWanted,
)
from dumptui.tui.panes.rollout.overview import Overview
from dumptui.tui.panes.rollout.samples_table import SamplesSide
from dumptui.tui.panes.rollout.steps_table import StepsSide
from dumptui.tui.presentation import columns
from dumptui.tui.presentation.sheets import Sheet, SheetSource, table_sheet
from dumptui.tui.reading.messages import HealthRows, StepLoaded
from dumptui.tui.reading.run_search import Finder, Searched
from dumptui.tui.screens.questions import (
    DEFAULT_ENTRY,
    ask_filter,
    ask_pattern,
    ask_step,
    choose_reward_key,
    choose_sort,
    pick_columns,
    read_step,
    reward_names,
)
from dumptui.tui.screens.run_search import HitsScreen
from dumptui.tui.session.location import Location
from dumptui.tui.session.preferences import Preferences
from dumptui.tui.session.sample_order import Arrangement
from dumptui.tui.widgets.dialogs.prompt import Ask
from dumptui.tui.widgets.table.table import Table

REVIEW_SECONDS = 0.2  # seconds between two updates of the overview, however fast rows come


class RolloutPane(Horizontal, Pane):
    """Steps on the left, samples of the chosen step on the right."""

    HELP = f"""\
# Rollout

The steps of the run with a trend, and the samples of the step under the cursor.

- **enter** goes deeper: from a step to its samples, from a sample to its tokens; **escape** goes back.
- **/** shows only the samples for which an expression holds: `reward == 0 and truncated and max_abs_lp_diff > 1`. It
  takes the columns of `--print samples`, values, `and or not`, comparisons, `in`, `like`, `between`, and functions
  such as `abs` and `max`. A blank matches no comparison, not even a negated one; test for it with `reward is null` or
  `reward is nan`.
- **f** shows only the samples whose prompt, response or messages match a regular expression (Rust's syntax, without
  look-around and back-references; `(?i)` ignores case). **ctrl+f** counts the matches in every step.
- **/**, **s**, **S**, **a** and **C** are for the table that has the cursor: among the steps, **/** takes the columns
  of `--print steps`, such as `mean_abs_lp_diff > 0.03`.
- **escape** clears the filter and the search first.
- **!** enters the overview at the top: what is wrong with the run, the worst first, as **error** (unreadable, missing
  or contradictory files, NaN or infinity, |Δ| of 0.3 or more), **warning** (|Δ| of 0.03 or more, data that covers only
  a part) or **note**. **enter** goes to the token, the step or the row of Health that shows it. Without errors and
  warnings the overview is one line.
- **]** and **[** go to the next and previous step with an `!` or without complete train data.
- **s** sorts by a column (**space** adds it as a secondary key); **S** reverses the order. A click on a column's label
  sorts by it, a second click reverses, a shift-click adds a secondary key. Blanks are always last.
- **a** shows all columns, **C** the columns you pick; **left** and **right** scroll to columns that don't fit.
- **m** plots another column of the steps; **V** enlarges the trend: **left** and **right** walk along it, **+**, **-**
  and **0** zoom, **H** and **L** scroll, **enter** opens the step. Where a cell covers several steps, the walk and a
  click go to the one that is seen there.
- **R** chooses the entry to use as reward where rewards are dicts; the choice is saved. The other entries are columns
  at the right, such as `reward.format`, which filters take too.
- An eval of several datasets has a row for each, `set 0` and so on in the order of the file; the trend follows the row.
- **v** shows or hides the plot of reward against response length (`x`: truncated samples). Arrows move from point to
  point; **enter** or a second click opens the sample.
- **<** and **>** go to the previous and next step, **#** to a step by number, **T** from a train step to the eval with
  the same number and back. **n** and **p** go to the next and previous sample, in the order of the table.

Statistics use unmasked response tokens. `-` means no value. `~` before a number means that it covers only part of the
step. `!` means above the threshold: {alarm_words()}, which no statistic includes.

While a run is followed, **F** goes to the newest step and then to each new one. In the steps table **end** does the
same, and **G** goes to the oldest step.
"""
    TABLES = {"steps": STEP_COLUMNS, "samples": SAMPLE_COLUMNS}
    BINDINGS = [
        Binding(
            "right_square_bracket",
            "flagged(1)",
            "Next flagged step",
            key_display="]",
            show=False,
            id="rollout.next-flagged",
            tooltip="The next step of the table with an `!`",
        ),
        Binding(
            "left_square_bracket",
            "flagged(-1)",
            "Previous flagged step",
            key_display="[",
            show=False,
            id="rollout.previous-flagged",
        ),
        Binding("slash", "filter", "Filter", key_display="/", id="rollout.filter"),
        Binding("f", "search", "Search", id="rollout.search"),
        Binding("s", "sort", "Sort", id="rollout.sort"),
        Binding("S", "reverse", "Reverse", show=False, id="rollout.reverse"),
        Binding("a", "all_columns", "All columns", id="rollout.columns"),
        Binding("C", "pick_columns", "Columns", show=False, id="rollout.pick-columns"),
        Binding("m", "trend", "Trend", id="rollout.trend"),
        Binding(
            "V",
            "large_trend",
            "Enlarge the trend",
            show=False,
            id="rollout.large-trend",
            tooltip="Enlarge the trend and walk along it, and back",
        ),
        Binding(
            "exclamation_mark",
            "overview",
            "Overview",
            key_display="!",
            show=False,
            id="rollout.overview",
            tooltip="Enter the overview of what is wrong with the run",
        ),
        Binding("v", "picture", "Picture", show=False, id="rollout.picture"),
        Binding("R,w", "reward_key", "Reward key", show=False, id="rollout.reward-key"),
        Binding("ctrl+f", "search_run", "Search the run", show=False, id="rollout.search-run"),
    ]

    def __init__(self, keys: Sequence[StepKey], finder: Finder, memory: Preferences) -> None:
        super().__init__(id="rollout")
        self.finder = finder
        self.memory = memory
        self.overview = Overview()
        self.findings: list[Record] = []
        self._checked = False
        self.steps = StepsSide(keys)
        self.samples = SamplesSide()
        # How they were looked at last.
        self.steps.set_reactive(StepsSide.shown, memory.shown("steps"))
        self.samples.set_reactive(SamplesSide.shown, memory.shown("samples"))
        self.samples.set_reactive(SamplesSide.arrangement, Arrangement(memory.sort))

    def compose(self) -> ComposeResult:
        yield self.overview
        yield self.steps
        yield self.samples

    def on_mount(self) -> None:
        self._review = self.set_interval(REVIEW_SECONDS, self._review_now, pause=True)

    async def fill(self) -> None:
        """Bring the plots, which the first screen does without."""
        await self.steps.fill()
        await self.samples.fill()

    @property
    def rows(self) -> dict[StepKey, Record]:
        return self.steps.rows

    @property
    def table(self) -> Table:
        return self.samples.table

    @property
    def order(self) -> list[int]:
        return self.samples.order

    @property
    def records(self) -> list[Record]:
        """The rows of the step's samples, by their position in the rollout file."""
        return self.samples.samples

    @property
    def arrangement(self) -> Arrangement:
        return self.samples.arrangement

    @property
    def current(self) -> int | None:
        """The position of the sample under the cursor."""
        return self.samples.current

    # The overview ----------------------------------------------------------------------------------------------

    def summarise(self, key: StepKey, row: Record) -> None:
        """Take a step's row."""
        self.steps.summarise(key, row)
        self._review.resume()

    def grow(self, keys: Sequence[StepKey]) -> None:
        """The run has other steps now."""
        self.steps.grow(keys)
        self._review.resume()

    def take_findings(self, answer: HealthRows) -> None:
        """Take more rows of Health."""
        self.findings = [*([] if answer.whole else self.findings), *answer.rows]
        self._checked = answer.done
        self._review.resume()

    def _review_now(self) -> None:
        self._review.pause()
        complete = self._checked and len(self.rows) == len(self.steps.keys)
        self.overview.take(self.rows, self.findings, complete=complete)

    def action_overview(self) -> None:
        self.overview.table.focus()

    @on(Table.Selected, "#overview")
    def _issue_chosen(self, event: Table.Selected) -> None:
        issue = self.overview.current
        if issue is None:
            return
        if issue.sample is not None:
            self.post_message(PlaceWanted(Location(issue.keys[0], "tokens", issue.sample, issue.token)))
        elif issue.finding is not None:
            self.post_message(FindingWanted(issue.finding))
        elif issue.keys:
            self.post_message(StepWanted(issue.keys[0]))

    def action_flagged(self, by: int) -> None:
        if not self.steps.go_to_flagged(by):
            self.notify(f"no {'later' if by > 0 else 'earlier'} row has an `!`", markup=False)

    # Steps -----------------------------------------------------------------------------------------------------

    @on(StepsSide.Moved)
    def _step_moved(self, event: StepsSide.Moved) -> None:
        if event.key == self.steps.current:  # else the cursor went on meanwhile, and is not to be brought back
            self.post_message(StepChosen(event.key))

    @on(StepsSide.Entered)
    def _step_entered(self, event: StepsSide.Entered) -> None:
        if self.samples.loaded is None or self.samples.loaded.key != event.key:
            self.post_message(StepChosen(event.key))
        self.enter_samples()

    def show_step(self, loaded: StepLoaded, arrangement: Arrangement, *, again: bool) -> None:
        like = self.steps.like(loaded.key)
        ends = any(one < loaded.key for one in like), any(one > loaded.key for one in like)
        self.steps.open = loaded.key
        self.samples.show_step(loaded, ends, again=again)
        self.steps.draw_trend()
        self._search_step()

    def fail_step(self, key: StepKey, problem: str) -> None:
        self.steps.open = None
        self.samples.show_failure(key, problem)

    def ask_step(self) -> None:
        self.app.push_screen(ask_step(self.steps.keys, self.steps.current), self._go_to)

    def _go_to(self, answer: str | None) -> None:
        if answer:
            self.steps.select(read_step(answer, self.steps.current.evaluation))

    def twin_step(self) -> None:
        """From a train step to the eval of its number, and back."""
        here = self.steps.current
        other = StepKey(here.step, not here.evaluation)
        if other in self.steps.keys:
            self.steps.select(other)
        else:
            self.notify(f"the run has no {other}", markup=False)

    def action_trend(self) -> None:
        self.steps.next_trend()

    def action_large_trend(self) -> None:
        """Enlarge the trend and go into it, or back."""
        large = not self.has_class("-trend")
        self.set_class(large, "-trend")
        self.remove_class("-samples")
        (self.steps.trend if large else self.steps.table).focus()

    # The class -samples says at which of the two levels the pane is; the focus follows, and leads when it is moved.

    def on_descendant_focus(self) -> None:
        among_steps = (self.steps.table, self.steps.trend, self.overview.table)
        self.set_class(not any(widget.has_focus for widget in among_steps), "-samples")

    def enter_samples(self) -> None:
        self.remove_class("-trend")
        self.add_class("-samples")
        self.table.focus()

    def leave_level(self) -> bool:
        """Remove the filter and the search if there are any, else go from the samples or the overview to the steps."""
        if self.is_among_samples and self.samples.clear():
            self.finder.stop()
        elif not self.steps.table.has_focus or not self.steps.clear():
            self.remove_class("-samples")
            self.remove_class("-trend")
            self.steps.table.focus()
        return True

    def enter(self) -> None:
        (self.table if self.has_class("-samples") else self.steps.table).focus()

    # Samples ---------------------------------------------------------------------------------------------------

    def sheet(self, source: SheetSource) -> Sheet | None:
        if self.overview.table.has_focus:
            issues = [record_of(issue) for issue in self.overview.issues]
            return table_sheet("overview", None, issues, self.overview.table.cursor)
        if not self.has_class("-samples"):
            whole = [line for line in self.steps.lines if line.dataset is None]  # as --print steps prints them
            cursor = next((at for at, line in enumerate(whole) if line.key == self.steps.current), 0)
            known = [self.steps.record(line) for line in whole]
            return table_sheet("steps", None, known, cursor, self.steps.arrangement.where)
        loaded = self.samples.loaded
        if loaded is None:
            return None
        rows = [loaded.samples[at] for at in self.order]
        return table_sheet("samples", loaded.key, rows, self.table.cursor, self.samples.arrangement.where)

    def select_sample(self, position: int | None) -> None:
        if position is not None:
            self.add_class("-samples")
            self.samples.select(position)

    @on(SamplesSide.SortedBy)
    def _sorted_by(self, event: SamplesSide.SortedBy) -> None:
        self.sort_by(event.key, event.more)

    def sort_by(self, key: str | None, more: bool) -> None:
        if key is not None:
            before = self.samples.arrangement
            self._rearrange(before.then_by(key) if more else before.sorted_by(key))

    def _rearrange(self, arrangement: Arrangement) -> None:
        self.samples.rearrange(arrangement, top=True)
        self.memory.keep_sort(arrangement.sort)
        self.post_message(SamplesArranged())

    @property
    def is_among_samples(self) -> bool:
        """Whether the samples have the cursor; else the steps, or the overview of them."""
        return self.has_class("-samples")

    def action_sort(self) -> None:
        if self.is_among_samples:
            return self.ask_sort(self.samples.shown)
        dialog = choose_sort("steps", self.steps.shown, self.steps.arrangement.sort)
        self.app.push_screen(dialog, lambda key: self.steps.sort_by(key, dialog.more))

    def ask_sort(self, shown: columns.Shown) -> None:
        """By one of the columns that are shown, here or in another table of the same samples."""
        entries = columns.entry_fields(self.samples.samples)
        dialog = choose_sort("samples", shown, self.samples.arrangement.sort, entries)
        self.app.push_screen(dialog, lambda key: self.sort_by(key, dialog.more))

    def reverse_samples(self) -> None:
        self._rearrange(self.samples.arrangement.reversed())

    def action_reverse(self) -> None:
        if self.is_among_samples:
            self.reverse_samples()
        else:
            self.steps.rearrange(self.steps.arrangement.reversed())

    def action_filter(self) -> None:
        if not self.is_among_samples:
            dialog = ask_filter(self.steps.records(), self.steps.arrangement, self.memory.history("step-filters"))
            self.app.push_screen(dialog, self._filter_steps)
        elif self.samples.loaded is not None:
            history = self.memory.history("filters")
            dialog = ask_filter(self.samples.loaded.samples, self.samples.arrangement, history)
            self.app.push_screen(dialog, self._filter)

    def _filter(self, where: str | None) -> None:
        if where is not None:
            self.memory.keep("filters", where)
            self._ask_for(replace(self.samples.arrangement, where=where))

    def _filter_steps(self, where: str | None) -> None:
        if where is not None:
            self.memory.keep("step-filters", where)
            self.steps.rearrange(replace(self.steps.arrangement, where=where))

    def _ask_for(self, arrangement: Arrangement) -> None:
        """Show other samples, which is seen at the samples."""
        self.samples.rearrange(arrangement)
        self.enter_samples()

    def action_picture(self) -> None:
        """Show the picture and go into it, or hide it."""
        shown = bool(self.samples.picture.display)
        self.set_class(not shown, "-picture")
        self.set_class(shown, "-no-picture")
        (self.table if shown else self.samples.picture.scatter).focus()

    # Search ----------------------------------------------------------------------------------------------------

    def action_search(self) -> None:
        self.app.push_screen(self._ask_pattern("search the step"), self._search)

    def _ask_pattern(self, title: str) -> Ask:
        return ask_pattern(title, self.samples.arrangement.pattern, self.memory.history("patterns"))

    def _search(self, pattern: str | None) -> None:
        if pattern is not None:
            self.memory.keep("patterns", pattern)
            self._ask_for(replace(self.samples.arrangement, pattern=pattern))
            self._search_step()

    def _search_step(self) -> None:
        loaded, pattern = self.samples.loaded, self.samples.arrangement.pattern
        self.finder.stop()
        if loaded is not None and pattern:
            self.finder.find([loaded.key], pattern, self.post_message)

    @on(Searched)
    def _searched(self, event: Searched) -> None:
        self.samples.take(event)

    def action_search_run(self) -> None:
        def search(pattern: str | None) -> None:
            if pattern:
                self.memory.keep("patterns", pattern)
                hits = HitsScreen(self.finder, self.steps.keys, pattern)
                self.app.push_screen(hits, lambda key: self._open_hits(key, pattern))

        self.app.push_screen(self._ask_pattern("search the run"), search)

    def _open_hits(self, key: StepKey | None, pattern: str) -> None:
        if key is not None:
            self.steps.select(key)
            self._search(pattern)
        else:
            self._search_step()  # which the search of the run ended

    # Columns ---------------------------------------------------------------------------------------------------

    @property
    def _side(self) -> tuple[StepsSide | SamplesSide, str]:
        """The table that has the cursor, and its name."""
        return (self.samples, "samples") if self.is_among_samples else (self.steps, "steps")

    def action_all_columns(self) -> None:
        """All columns of the table that has the cursor, and back to those that were picked."""
        side, table = self._side
        self._show_columns(side, table, self.memory.own_shown(table) if side.shown == "all" else "all")
        every = columns.SAMPLES if side is self.samples else columns.STEPS
        count = len(columns.chosen_fields(every, side.shown))
        said = f"all {count} columns" if count == len(every) else f"{count} of {len(every)} columns"
        self.app.clear_notifications()
        self.notify(f"{said} of the {table}; left and right scroll", markup=False)

    def action_pick_columns(self) -> None:
        """Of the table that has the cursor."""
        side, table = self._side

        def picked(shown: columns.Shown | None) -> None:
            if shown is not None:
                self._show_columns(side, table, shown)

        self.app.push_screen(pick_columns(table, side.shown), picked)

    def _show_columns(self, side: StepsSide | SamplesSide, table: str, shown: columns.Shown) -> None:
        side.shown = shown
        side.show()
        self.memory.keep_shown(table, shown)

    def action_reward_key(self) -> None:
        names = reward_names(self.samples.loaded.step.samples) if self.samples.loaded is not None else []
        if not names:
            self.notify("the rewards of this step are not dicts, so there is no key to choose", markup=False)
            return

        def chosen(at: str | None) -> None:
            if at is not None:
                name = None if at == DEFAULT_ENTRY else names[int(at)]
                self.memory.keep_reward_key(name)
                self.post_message(RewardKeyChosen(name))

        self.app.push_screen(choose_reward_key(names), chosen)

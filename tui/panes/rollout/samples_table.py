"""The samples of one step in a table: those that the filter and the search leave, in the order of the sort."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.reactive import var

from dumptui.core.errors import DumpError
from dumptui.core.files.step_files import StepKey
from dumptui.core.text import plural, visible
from dumptui.core.types import Record
from dumptui.tui.panes.requests import SampleChosen, SampleRowMoved
from dumptui.tui.panes.rollout.reward_scatter import Picture
from dumptui.tui.presentation import columns
from dumptui.tui.presentation.sample_rows import (
    count_line,
    entry_text,
    group_line,
    prompt_text,
    same_group,
    sample_records,
    sample_style,
)
from dumptui.tui.presentation.signs import ALARM_SIGN, alarm_texts, sample_cells
from dumptui.tui.presentation.step_line import stat_line
from dumptui.tui.reading.messages import StepLoaded
from dumptui.tui.reading.run_search import Searched
from dumptui.tui.session.sample_order import Arrangement
from dumptui.tui.widgets.line import Line
from dumptui.tui.widgets.message import FrozenMessage
from dumptui.tui.widgets.table.table import Table

if TYPE_CHECKING:
    from dumptui.core.query.text_search import Hit

BEFORE_HIT = 60  # characters before a hit that are shown: with them, it is on the line at 80 columns


class SamplesSide(Vertical):
    """`order` has the positions of the samples on show; `loaded` is their step, None while there is none."""

    arrangement: var[Arrangement] = var(Arrangement(), init=False)
    shown: var[columns.Shown] = var("default", init=False)

    class SortedBy(FrozenMessage):
        """A click on the label of a column; `more` to sort by it as the secondary key."""

        key: str
        more: bool

    def __init__(self) -> None:
        super().__init__(id="samples-side")
        self.samples: list[Record] = []
        self.order: list[int] = []
        self.loaded: StepLoaded | None = None
        self._searched: Searched | None = None
        self._problem = ""  # why the filter can't be used on this step
        self._hidden: int | None = None  # the sample that was asked for though it is not on show
        self._ends = (False, False)

    def compose(self) -> ComposeResult:
        yield Line(id="samples-title")
        yield Line(id="stats")
        yield Table(id="samples", empty="reading the step")
        yield Picture()
        yield Line(id="group")

    def on_mount(self) -> None:
        self.table = self.query_one("#samples", Table)
        self.picture = self.query_one(Picture)

    async def fill(self) -> None:
        await self.picture.fill()

    # What is shown ---------------------------------------------------------------------------------------------

    def show_wait(self, key: StepKey, text: str) -> None:
        self.query_one("#samples-title", Line).say(f"{key}: {text}")

    def show_failure(self, key: StepKey, problem: str) -> None:
        self.samples, self.order, self.loaded, self._searched = [], [], None, None
        self.table.empty = visible(problem)
        self.table.show([], 0, lambda row: [])
        self.show_wait(key, "can't be shown")
        self.picture.clear()
        self.query_one("#group", Line).say("")
        self.query_one("#stats", Line).say("")

    def show_step(self, loaded: StepLoaded, ends: tuple[bool, bool], *, again: bool = False) -> None:
        """`ends` says whether there is a step before and one after; with `again` the cursor stays where it is."""
        self.loaded, self._ends = loaded, ends
        self.samples = sample_records(loaded.step, loaded.samples)
        self.query_one("#stats", Line).say(stat_line(loaded.row, loaded.groups))
        if not again:
            self._searched = self._hidden = None
        self.show(keep_cursor=again)

    def take(self, searched: Searched) -> None:
        """Hits of the search as they come; those of another step or pattern are late."""
        if self.loaded is not None and (searched.key, searched.pattern) == (self.loaded.key, self.arrangement.pattern):
            self._searched = searched
            self.show()

    def rearrange(self, arrangement: Arrangement, *, top: bool = False) -> None:
        """Show other samples or another order: with `top` from the first, else the sample under the cursor stays so."""
        current = self.current
        if arrangement.pattern != self.arrangement.pattern:
            self._searched = None
        self.arrangement = arrangement
        self._hidden = None
        if self.loaded is None:
            return
        self.show()
        self.table.cursor = self.order.index(current) if not top and current in self.order else 0

    def show(self, keep_cursor: bool = True) -> None:
        """Draw the table again."""
        if self.loaded is None:
            return
        self.order = self.arrangement.order(self.samples, self._kept())
        fields = [*columns.chosen_fields(columns.SAMPLES, self.shown), *columns.entry_fields(self.samples)]
        self.table.empty = self._reason()
        self.table.show(
            [field.column for field in fields],
            len(self.order),
            lambda at: sample_cells(fields, self.samples[self.order[at]]),
            style=lambda at: sample_style(self.samples[self.order[at]]),
            sort=self.arrangement.sort,
            keep_cursor=keep_cursor,
        )
        self.picture.show_samples(self.loaded, self.samples, self.order, self.current)
        self._show_title()
        self._show_detail()

    def _kept(self) -> set[int]:
        assert self.loaded is not None
        self._problem = ""
        try:
            kept = set(self.arrangement.select(self.loaded.samples))
        except DumpError as error:  # such as a column that evals only have
            self._problem = error.problem
            kept = set(range(len(self.samples)))
        return kept & self._hits().keys() if self.arrangement.pattern else kept

    def _hits(self) -> dict[int, Hit]:
        return {} if self._searched is None else self._searched.hits

    def _reason(self) -> str:
        """Why there are no rows, where there are none."""
        if not self.samples:
            return "the step has no samples"
        searched = self._searched
        if self.arrangement.pattern and (searched is None or not (searched.finished or searched.problem)):
            return "searching"
        if searched is not None and searched.problem:
            return f"can't be searched: {searched.problem}"
        return "no samples match · esc clears the filter"

    # Lines -----------------------------------------------------------------------------------------------------

    def _show_title(self) -> None:
        assert self.loaded is not None
        row, key, asked = self.loaded.row, self.loaded.key, self.arrangement
        text = Text().append("< " * self._ends[0]).append(str(key), "bold").append(" >" * self._ends[1])
        if asked.where or asked.pattern:
            text.append(f" · {len(self.order)} of {plural(len(self.samples), 'sample')}")
        else:
            text.append(f" · {count_line(row, self.loaded.groups)}")
        if asked.where:
            text.append(" · where ").append(visible(asked.where), "bold")
            text.append(f" can't be used: {visible(self._problem)}" if self._problem else "", "bold")
        if asked.pattern:
            text.append(f" · /{visible(asked.pattern)}/", "bold").append(f" in {self._found()}")
        if asked.sort:
            text.append(f" · {asked.sort_words()}")
        if entry := entry_text(self.samples):
            text.append(f" · {entry}")
        step = self.loaded.step
        if row["state"] != "ok" and step.files.shards and not step.alignment.orphans:
            text.append(f" · {plural(len(step.files.shards), 'train file')}")
        for reason in alarm_texts(row):
            text.append(f" · {ALARM_SIGN}{reason}", "bold")
        if row["reason"]:
            text.append(f" · {visible(str(row['reason']))}", "bold")
        if row.get("staleness_reason") and row["weight_version_min_mean"] is not None:
            text.append(f" · staleness: {row['staleness_reason']}")
        self.query_one("#samples-title", Line).say(text)

    def _found(self) -> str:
        """How many samples have the pattern, `~` before it until all are searched."""
        searched = self._searched
        if searched is None or searched.problem:
            return "-"
        return f"{'~' * (not searched.finished)}{len(searched.hits)}"

    def _show_detail(self) -> None:
        """Of the sample under the cursor, the place where the pattern is found, else its group."""
        current = self.current
        if self.loaded is None or current is None:
            text = Text()
        elif hit := self._hits().get(current):
            text = hit_line(hit)
        else:
            row = self.samples[current]
            group = next((one for one in self.loaded.groups if same_group(row, one)), None)
            text = group_line(group, self.samples, prompt_text(self.loaded.step.samples[current].prompt))
        self.query_one("#group", Line).say(text)

    # Cursor ----------------------------------------------------------------------------------------------------

    @property
    def current(self) -> int | None:
        """The position of the sample under the cursor."""
        if self._hidden is not None:
            return self._hidden
        return self.order[self.table.cursor] if self.order else None

    def select(self, position: int) -> None:
        """Go to a sample. One that is not on show becomes the current one all the same, until the cursor moves."""
        if position >= len(self.samples):  # of the step that was there when this was asked
            return
        self._hidden = None if position in self.order else position
        if self._hidden is None:
            self.table.cursor = self.order.index(position)

    def go(self, by: int) -> int | None:
        """Move the cursor along the order on screen; the sample there, None at its end."""
        before, self._hidden = self.table.cursor, None
        self.table.cursor += by
        return None if self.table.cursor == before else self.current

    @on(Table.Highlighted, "#samples")
    def _moved(self, event: Table.Highlighted) -> None:
        self._hidden = None
        self._show_detail()
        self.picture.select(self.current)
        self.post_message(SampleRowMoved(event.row))

    @on(Table.Selected, "#samples")
    def _chosen(self, event: Table.Selected) -> None:
        if self.order:
            self.post_message(SampleChosen(self.order[event.row]))

    @on(Table.HeaderClicked, "#samples")
    def _header_clicked(self, event: Table.HeaderClicked) -> None:
        self.post_message(self.SortedBy(event.key, event.more))

    def clear(self) -> bool:
        """Remove the filter and the search; return whether there was any."""
        asked = bool(self.arrangement.where or self.arrangement.pattern)
        if asked:
            self.rearrange(replace(self.arrangement, where="", pattern=""))
        return asked


def hit_line(hit: Hit) -> Text:
    """Such as "found in response: … let n be even, then n …"."""
    before = " ".join(hit.before.split(" "))[-BEFORE_HIT:]
    text = Text().append(f"found in {hit.part}: ", "bold").append("…" + visible(before))
    return text.append(visible(hit.match[:200]), "bold reverse").append(visible(hit.after))

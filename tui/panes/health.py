"""The Health pane: what is missing, partial, unreadable or contradictory in the whole run, as it is found."""

from __future__ import annotations

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical

from dumptui.core.files.step_files import StepKey
from dumptui.core.health.overview import key_of, place_of
from dumptui.core.tables.view_columns import FINDING_COLUMNS
from dumptui.core.text import plural, visible
from dumptui.core.types import Record
from dumptui.tui.panes.pane import Pane
from dumptui.tui.panes.requests import PlaceWanted, ReadWanted, StepWanted
from dumptui.tui.presentation import columns
from dumptui.tui.presentation.sheets import Sheet, SheetSource, table_sheet
from dumptui.tui.reading.messages import HealthRows
from dumptui.tui.reading.reader import Reader
from dumptui.tui.session.location import Location
from dumptui.tui.widgets.line import Line
from dumptui.tui.widgets.message import Answer
from dumptui.tui.widgets.table.table import Table

LEVEL_NOUNS = {"error": "error", "warning": "warning", "info": "note"}
LEVEL_STYLES = {"error": "bad", "warning": "warn", "info": "dim"}


class HealthPane(Vertical, Pane):
    """A table of findings, the worst first once all are there, and the one under the cursor in full."""

    HELP = """\
# Health

What is missing, partial, unreadable or contradictory in the whole run, and what was inferred. The list grows step by
step while the run is read; while a run is followed, steps that change are checked again.

- **error**: something is unreadable, missing or contradictory; **warning**: something covers only a part;
  **info**: worth knowing, such as the parallel layout and unrecognised files.
- **enter** opens the step, or the token where the problem names one; **ctrl+r** refreshes the list; **escape** goes
  back.
"""
    TABLES = {"findings": FINDING_COLUMNS}
    BINDINGS = [Binding("ctrl+r,r", "again", "Refresh", id="health.again")]

    WITHOUT_ACTIONS = frozenset({"conversation", "facts", "sample", "member", "compare"})
    ANSWERS_RENEW = True

    def __init__(self) -> None:
        super().__init__(id="health")
        self.rows: list[Record] = []

    def compose(self) -> ComposeResult:
        yield Line(id="health-title")
        yield Table(id="findings", empty="checking")
        yield Line(id="finding")

    def on_mount(self) -> None:
        self._show(done=False)

    def enter(self) -> None:
        """The check began with the app, behind the rows of the steps; here it is waited for."""
        self.query_one(Table).focus()
        self.post_message(ReadWanted(Reader.hurry_health))

    def action_again(self) -> None:
        self.post_message(ReadWanted(Reader.find_health))

    def select(self, finding: Record) -> None:
        """Put the cursor on a finding, if it is still there."""
        if finding in self.rows:
            self.query_one(Table).cursor = self.rows.index(finding)

    def take(self, answer: Answer) -> None:
        if isinstance(answer, HealthRows):
            self._add(answer.rows, answer.done, answer.whole)

    def _add(self, rows: list[Record], done: bool, whole: bool) -> None:
        """Take more rows, or the whole of them in place of those on show; the cursor stays on its finding or on top."""
        table, before = self.query_one(Table), self.rows
        at, line = table.cursor, table.cursor_line
        here = before[at] if 0 < at < len(before) else None
        self.rows = [*rows] if whole else [*before, *rows]
        table.empty = "checking"
        if done:
            table.empty = "no problems: nothing is missing, unreadable or contradictory"
            self.rows.sort(key=lambda row: list(LEVEL_STYLES).index(str(row["level"])))
        self._show(done)
        if here is not None and here in self.rows:
            table.place_cursor(self.rows.index(here), line)
            self._show_finding(table.cursor)

    def sheet(self, source: SheetSource) -> Sheet:
        return table_sheet("health", None, list(self.rows), self.query_one(Table).cursor)

    def _show(self, done: bool) -> None:
        levels = [str(row["level"]) for row in self.rows]
        counts = ", ".join(plural(levels.count(level), noun) for level, noun in LEVEL_NOUNS.items())
        title = Text().append("health of the run", "bold").append(f" · {counts}" + ("" if done else " · checking …"))
        self.query_one("#health-title", Line).say(title)
        self.query_one(Table).show(
            [field.column for field in columns.HEALTH],
            len(self.rows),
            lambda at: columns.cells(columns.HEALTH, shown(self.rows[at])),
            style=lambda at: LEVEL_STYLES.get(str(self.rows[at]["level"])),
        )
        self._show_finding(self.query_one(Table).cursor)

    @on(Table.Highlighted, "#findings")
    def _moved(self, event: Table.Highlighted) -> None:
        self._show_finding(event.row)

    def _show_finding(self, at: int) -> None:
        text = Text()
        if at < len(self.rows):
            row = shown(self.rows[at])
            text.append(visible(f"{row['label']} {row['file'] or ''} "), "bold").append(visible(str(row["problem"])))
        self.query_one("#finding", Line).say(text)

    @on(Table.Selected, "#findings")
    def _selected(self, event: Table.Selected) -> None:
        row = self.rows[event.row] if self.rows else {}
        key = key_of(row) if row else None
        if key is None:
            return
        sample, token = place_of(row)
        place = None if sample is None else Location(key, "tokens", sample, token)
        self.post_message(StepWanted(key) if place is None else PlaceWanted(place))


def shown(row: Record) -> Record:
    label = "run" if row["step"] is None else str(StepKey(int(str(row["step"])), bool(row["evaluation"])))
    return {**row, "label": label}

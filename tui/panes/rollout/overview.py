"""What is wrong with the run, at the top of the Rollout pane: a row for each issue, the worst first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical

from dumptui.core.files.step_files import StepKey
from dumptui.core.health.overview import Issue, overview
from dumptui.core.text import plural, sample_label, visible
from dumptui.core.types import Record
from dumptui.tui.widgets.line import Line
from dumptui.tui.widgets.table.layout import Column
from dumptui.tui.widgets.table.table import Table

ROWS_BY_HEIGHT = ((32, 5), (20, 3), (0, 0))
"""Rows on a screen of this height or more; none on a lower one, until the overview is entered."""
ENTERED_ROWS = 5
ENTERED_KEYS = "enter goes there, esc leaves"
SEVERITY_CELLS = 8
WIDEST_CELLS = 400
SEVERITY_STYLES = {"error": "bad", "warning": "warn", "note": None}


class Overview(Vertical):
    """A table of one column, whose header says what there is no room for, and the issue under the cursor in full.

    Notes are shown once it is entered. Without errors and warnings it is the header alone, which says so.
    """

    def __init__(self) -> None:
        super().__init__(id="overview-side")
        self.issues: list[Issue] = []
        self.is_complete = False
        """Whether there is no more to come."""
        self._entered = False

    def compose(self) -> ComposeResult:
        yield Table(id="overview", empty="no problems found")
        yield Line(id="issue")

    def on_mount(self) -> None:
        self.table = self.query_one(Table)
        self._draw()

    def take(self, rows: Mapping[StepKey, Record], findings: Sequence[Record], *, complete: bool) -> None:
        """Show the issues of the steps that are known and what Health found; `complete`: there is no more to come."""
        before, self.issues = self.current, overview(rows, findings, complete=complete)
        self.is_complete = complete
        self._draw()
        if self._entered and before is not None:
            self.table.cursor = next((at for at, one in enumerate(self.issues) if is_same(one, before)), 0)
        else:
            self.table.cursor = 0
        self._say()

    @property
    def current(self) -> Issue | None:
        """The issue under the cursor."""
        return self.issues[self.table.cursor] if self.issues else None

    # Drawing ---------------------------------------------------------------------------------------------------

    def _draw(self) -> None:
        rows = self._rows
        self.table.styles.height = 1 + rows
        self.table.show(
            [Column("issue", self._title(rows), WIDEST_CELLS, right=False)],
            len(self.issues),
            self._cells,
            style=lambda at: SEVERITY_STYLES[self.issues[at].severity],
        )

    @property
    def _rows(self) -> int:
        """The number of rows that there is room for."""
        room = next(rows for height, rows in ROWS_BY_HEIGHT if self.app.size.height >= height)
        if self._entered:
            return max(1, min(max(room, ENTERED_ROWS), len(self.issues)))
        return min(room, self._problems)

    @property
    def _problems(self) -> int:
        """The number of errors and warnings, which come first."""
        return sum(issue.severity != "note" for issue in self.issues)

    def _title(self, rows: int) -> str:
        facts = [] if self.is_complete else ["checking …"]
        if not self.issues:
            return "no problems found" if self.is_complete else "checking the run …"
        if rows:
            return " · ".join(
                ["what is wrong", *self._hidden(rows), *facts, ENTERED_KEYS if self._entered else "! enters"]
            )
        if self._problems:
            facts = [plural(self._problems, "problem"), *facts, sentence(self.issues[0])]
        else:
            facts = ["no errors or warnings", *facts, sentence(self.issues[0]), *self._hidden(1)]
        return " · ".join([*facts, "! enters"])

    def _hidden(self, rows: int) -> list[str]:
        """Say what is not among the first `rows` rows."""
        problems, notes = max(0, self._problems - rows), len(self.issues) - max(rows, self._problems)
        found = [f"the worst {rows} of {self._problems}"] if problems else []
        return [*found, *([plural(notes, "more note")] if notes > 0 else [])]

    def _cells(self, at: int) -> list[str]:
        issue = self.issues[at]
        width = max(len(one.where) for one in self.issues)
        return [f"{issue.severity:<{SEVERITY_CELLS}} {issue.where:<{width}}  {issue.reason}"]

    def _say(self) -> None:
        issue, text = self.current, Text()
        if issue is not None:
            text.append(f"{issue.where} ", "bold").append(visible(issue.reason)).append(
                f" · enter: {target(issue)}", "dim"
            )
        self.query_one(Line).say(text)

    # Events ----------------------------------------------------------------------------------------------------

    @on(Table.Highlighted, "#overview")
    def _moved(self, event: Table.Highlighted) -> None:
        self._say()

    def on_descendant_focus(self) -> None:
        self._set_entered(True)

    def on_descendant_blur(self) -> None:
        self._set_entered(False)

    def _set_entered(self, entered: bool) -> None:
        self._entered = entered
        self.set_class(entered, "-entered")
        self._draw()
        self._say()

    def on_resize(self, event: events.Resize) -> None:
        self._draw()


def sentence(issue: Issue) -> str:
    return f"{issue.where}: {issue.reason}"


def target(issue: Issue) -> str:
    """Return where enter goes."""
    if issue.sample is not None:
        token = "" if issue.token is None else f", token {issue.token}"
        return f"sample {sample_label(*issue.sample)}{token}"
    return str(issue.keys[0]) if issue.finding is None else "Health"


def is_same(one: Issue, other: Issue) -> bool:
    """Whether two issues are the same one, though more may be known of it by now."""
    return (one.severity, one.keys[:1], one.sample, one.token, one.finding) == (
        *(other.severity, other.keys[:1], other.sample, other.token, other.finding),
    )

"""The steps of the run that match a pattern, listed while they are searched."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical

from dumptui.core.files.step_files import StepKey
from dumptui.core.text import plural, visible
from dumptui.tui.reading.run_search import Finder, Searched
from dumptui.tui.widgets.dialogs.choices import Dialog
from dumptui.tui.widgets.line import Line
from dumptui.tui.widgets.table.layout import Column
from dumptui.tui.widgets.table.table import Table

HIT_COLUMNS = [
    Column("step", "step", 8),
    Column("found", "found", 6),
    Column("of", "of", 5),
    Column("first", "first hit", 120, right=False),
]


class HitsScreen(Dialog[StepKey | None]):
    """A list of steps with matches; the answer is the step to open, None when it is closed. The caller then stops the
    finder.
    """

    BINDINGS = [Binding("escape,q", "dismiss(None)", "Close", id="hits.leave")]

    def __init__(self, finder: Finder, keys: Sequence[StepKey], pattern: str) -> None:
        super().__init__()
        self.finder = finder
        self.keys = keys
        self.pattern = pattern
        self.results: dict[StepKey, Searched] = {}

    def compose(self) -> ComposeResult:
        with Vertical(id="hits"):
            yield Line(id="hits-title")
            yield Table(id="hits-table", empty="searching")
            hint = Line()
            hint.say("enter open the step with this search · esc close")
            yield hint

    def on_mount(self) -> None:
        self.table = self.query_one(Table)
        self.table.focus()
        self._show()
        self.finder.find(self.keys, self.pattern, self.post_message)

    @on(Searched)
    def _searched(self, event: Searched) -> None:
        self.results[event.key] = event
        self._show()

    @property
    def rows(self) -> list[Searched]:
        """The steps that match or can't be searched, in the order of the search."""
        return [searched for searched in self.results.values() if searched.hits or searched.problem]

    def _show(self) -> None:
        rows = self.rows
        done = sum(searched.finished or searched.problem is not None for searched in self.results.values())
        self.table.empty = "searching" if done < len(self.keys) else "no sample of the run matches"
        self.table.show(HIT_COLUMNS, len(rows), lambda index: cells(rows[index]))
        title = Text(f"{plural(sum(len(searched.hits) for searched in rows), 'sample')} in ")
        title.append(f"{done} of {plural(len(self.keys), 'step')} searched · ")
        title.append(f"/{visible(self.pattern)}/", "bold")
        self.query_one("#hits-title", Line).say(title)

    @on(Table.Selected)
    def _selected(self, event: Table.Selected) -> None:
        self.dismiss(self.rows[event.row].key)


def cells(row: Searched) -> list[str]:
    if row.problem is not None:
        return [str(row.key), "-", "-", row.problem]
    hit = next(iter(row.hits.values()))
    step = str(row.key) if row.key.evaluation else str(row.key.step)
    return [step, str(len(row.hits)), str(row.total), f"{hit.part}: …{hit.before[-30:]}{hit.match}{hit.after}"]

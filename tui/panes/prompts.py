"""The Prompts pane: the prompts of the run, by how often they were solved over the steps."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical

from dumptui.core.files.step_files import StepKey
from dumptui.core.tables.view_columns import PROMPT_COLUMNS
from dumptui.core.text import plural
from dumptui.core.types import Record
from dumptui.tui.panes.pane import Pane
from dumptui.tui.panes.requests import PlaceWanted, ReadWanted
from dumptui.tui.presentation import columns
from dumptui.tui.presentation.sheets import Sheet, SheetSource, table_sheet
from dumptui.tui.reading.messages import PromptRows
from dumptui.tui.reading.reader import Reader
from dumptui.tui.session.location import Location
from dumptui.tui.widgets.dialogs.choices import Choose
from dumptui.tui.widgets.line import Line
from dumptui.tui.widgets.message import Answer
from dumptui.tui.widgets.table.table import Table

ALL = "all"
SHOWN_RATES = 4


class PromptsPane(Vertical, Pane):
    """A line of counts, the prompts below."""

    HELP = """\
# Prompts

Every prompt of the run over all steps, those that were never solved first.

- A prompt is **solved** by a reward above 0, as for pass@k: only in steps whose rewards are all 0 or 1, or all -1 or
  1.
- **never solved** and **always solved** cover all attempts at all steps. **newly solved**: solved at its newest step
  and at none before. **forgotten**: solved at an earlier step, but not at its newest one. **no solve rate**: no reward,
  or rewards with more values.
- The same prompt is recognised by the id of its data set (`id`, `uid`, `prompt_id` and the like in the metadata), else
  by its text, with data set, label and adapter. A prompt with pictures and without an id counts once for each step.
- **solve rate** has the share of solved attempts at its newest steps, the newest last.
- **f** chooses which prompts are listed. **enter** opens the group of a prompt at its newest step.
"""
    TABLES = {"prompt-rows": PROMPT_COLUMNS}
    BINDINGS = [
        Binding(
            "f,slash", "choose", "Filter", key_display="f", id="prompts.filter", tooltip="List one kind of prompts"
        ),
    ]

    def __init__(self) -> None:
        super().__init__(id="prompts")
        self._answer: PromptRows | None = None
        self._kind = ALL
        self.rows: list[Record] = []

    def compose(self) -> ComposeResult:
        yield Line(id="prompts-title")
        yield Table(id="prompt-rows", empty="reading the prompts")

    def on_mount(self) -> None:
        self.table = self.query_one("#prompt-rows", Table)

    def enter(self) -> None:
        """Read again what is new of a run; known steps are in the cache."""
        self.post_message(ReadWanted(Reader.find_prompts))
        self.table.focus()

    def take(self, answer: Answer) -> None:
        if isinstance(answer, PromptRows):
            self._answer = answer
            self._show(keep_cursor=True)

    def _show(self, *, keep_cursor: bool) -> None:
        answer = self._answer
        if answer is None:
            return
        self.rows = [row for row in answer.rows if self._kind in (ALL, row["change"])]
        self.query_one("#prompts-title", Line).say(title(answer, self._kind, len(self.rows)))
        self.table.empty = "no prompts match" if answer.done == answer.total else "reading the prompts"
        self.table.show(
            [field.column for field in columns.PROMPTS],
            len(self.rows),
            lambda at: columns.cells(columns.PROMPTS, shown(self.rows[at])),
            style=lambda at: "warn" if self.rows[at]["change"] in ("never solved", "forgotten") else None,
            keep_cursor=keep_cursor,
        )

    def action_choose(self) -> None:
        if self._answer is None:
            return
        counts = self._answer.counts
        choices = [(ALL, f"all {sum(counts.values())}"), *((kind, f"{count} {kind}") for kind, count in counts.items())]
        self.app.push_screen(Choose("list the prompts that are", choices, self._kind), self._chosen)

    def _chosen(self, kind: str | None) -> None:
        if kind is not None:
            self._kind = kind
            self._show(keep_cursor=False)

    @on(Table.Selected, "#prompt-rows")
    def _prompt_chosen(self, event: Table.Selected) -> None:
        row = self.rows[event.row]
        index = row["sample_index"]
        sample = (index, 0) if isinstance(index, int) else None
        self.post_message(PlaceWanted(Location(newest(row), "groups", sample)))

    def leave_level(self) -> bool:
        filtered = self._kind != ALL
        self._chosen(ALL)
        return filtered

    def sheet(self, source: SheetSource) -> Sheet | None:
        return table_sheet("prompts", None, self.rows, self.table.cursor)


def newest(row: Record) -> StepKey:
    return StepKey(int(str(row["last_step"])), bool(row["evaluation"]))


def shown(row: Record) -> Record:
    return {**row, "last_label": str(newest(row)).removeprefix("step "), "rates": rates_text(row["rates"])}


def rates_text(rates: object) -> str:
    """Return the newest rates that fit, the newest last."""
    assert isinstance(rates, Sequence)
    texts = ["?" if rate is None else f"{rate:.2f}".removeprefix("0") if rate < 1 else "1" for rate in rates]
    return " ".join(texts[-SHOWN_RATES:])


def title(answer: PromptRows, kind: str, listed: int) -> Text:
    """Return how many prompts there are of each kind, and how many steps were read."""
    total = sum(answer.counts.values())
    text = Text().append(plural(total, "prompt"), "bold")
    for name, count in answer.counts.items():
        text.append(f" · {count} {name}", "bold" if name == kind else "")
    if answer.done < answer.total:
        text.append(f" · {answer.done} of {plural(answer.total, 'step')} read")
    if listed < (total if kind == ALL else answer.counts.get(kind, 0)):
        text.append(f" · {listed} are listed, those with the most attempts")
    return text

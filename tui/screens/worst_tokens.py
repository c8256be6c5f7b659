"""The worst tokens of a step or of the run, the worst first."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical

from dumptui.core.tables.worst_tokens import RunSearch
from dumptui.core.text import plural, sample_label, visible
from dumptui.core.types import Record
from dumptui.tui.cell_formats.tables import ratio_number
from dumptui.tui.presentation.columns import fixed, whole
from dumptui.tui.reading.messages import WorstTokens
from dumptui.tui.widgets.dialogs.choices import Dialog
from dumptui.tui.widgets.line import Line
from dumptui.tui.widgets.table.layout import Column
from dumptui.tui.widgets.table.table import Table

if TYPE_CHECKING:
    from dumptui.core.files.step_files import StepKey

BEFORE_CELLS = 18
"""Cells of text before the token, at whose end it stands."""

TOKEN_COLUMNS = [
    Column("step", "step", 5, exact=True),
    Column("sample", "sample", 7, tip="Sample.index", exact=True),
    Column("position", "token", 6, tip="position in the sequence, from 0", exact=True),
    Column("lp_diff", "Δ", 8, tip="trainer - engine log-prob"),
    Column("text", "text, with the token in ‹›", 40, right=False),
    Column("train_log_probs", "trainer", 7, tip="the trainer's log-prob"),
    Column("rollout_log_probs", "engine", 7, tip="the engine's log-prob"),
    Column("imp_ratio", "ratio", 9, tip="importance ratio, exp(Δ)"),
    Column("group_index", "group", 6, exact=True),
    Column("rank", "rank", 4, tip="of the first train file that holds the sample, from 0", exact=True),
    Column("version", "version", 8, tip="weight version that generated the token", right=False),
]


class WorstTokensScreen(Dialog[Record | None]):
    """A list over the panes; the answer is the row of the token to go to, None when it is closed."""

    BINDINGS = [
        Binding("W,tab", "other_scope", "Step / run", id="worst.scope", tooltip="Those of the step, or of the run"),
        Binding("escape,q", "dismiss(None)", "Close", id="worst.leave"),
    ]

    def __init__(
        self, key: StepKey, find: Callable[[bool, Callable[[WorstTokens], object]], None], unscanned: Callable[[], int]
    ) -> None:
        """`find` looks for the tokens of the run, or of the step, and gives them to the function as they are known.
        `unscanned` counts the steps whose rows are not known, of which a search of the run says nothing.
        """
        super().__init__()
        self.key = key
        self.of_run = False
        self.found: RunSearch | None = None
        self._find = find
        self._unscanned = unscanned
        self._unscanned_at_first = 0

    def compose(self) -> ComposeResult:
        with Vertical(id="hits"):
            yield Line(id="hits-title")
            yield Table(id="hits-table", empty="looking")
            hint = Line()
            hint.say("enter go to the token · W the step or the run · esc close")
            yield hint

    def on_mount(self) -> None:
        self.table = self.query_one(Table)
        self.table.focus()
        self._begin()

    def action_other_scope(self) -> None:
        self.of_run = not self.of_run
        self._begin()

    def _begin(self) -> None:
        self.found = None
        self.table.empty = "looking"
        self._show()
        self._unscanned_at_first = self._unscanned()
        scope = self.of_run
        self._find(scope, lambda message: scope is self.of_run and self.is_attached and self.post_message(message))

    @on(WorstTokens)
    def _known(self, message: WorstTokens) -> None:
        message.stop()
        self.found = message.found
        self.table.empty = message.problem or "no unmasked response token has both log-probs"
        self._show()

    @property
    def rows(self) -> list[Record]:
        return [] if self.found is None else self.found.rows

    def _show(self) -> None:
        rows = self.rows
        self.table.show(TOKEN_COLUMNS, len(rows), lambda index: cells(rows[index]))
        self.query_one("#hits-title", Line).say(Text.assemble((self._title(), "bold"), self._progress()))

    def _title(self) -> str:
        return f"worst tokens of {'the run' if self.of_run else self.key}, by |trainer - engine|"

    def _unknown(self) -> int:
        return self._unscanned_at_first if self.of_run else 0

    def _progress(self) -> str:
        if self.found is None:
            return " · looking"
        parts = [plural(len(self.found.rows), "token")]
        if unknown := self._unknown():
            parts.append(f"{plural(unknown, 'step')} not scanned yet, which may hold worse ones: W twice looks again")
        if not self.found.complete:
            parts.append(f"{self.found.read} of {plural(self.found.steps, 'step')} read")
        parts += [visible(problem.short) for problem in self.found.problems[:1]]
        return "".join(f" · {part}" for part in parts)

    @on(Table.Selected)
    def _selected(self, event: Table.Selected) -> None:
        self.dismiss(self.rows[event.row])


def cells(row: Record) -> list[str]:
    index, occurrence = row["sample_index"], row["occurrence"]
    assert (index is None or isinstance(index, int)) and isinstance(occurrence, int)
    log_prob = fixed(3)
    return [
        f"eval {row['step']}" if row["evaluation"] else str(row["step"]),
        sample_label(index, occurrence),
        str(row["position"]),
        fixed(3, "+")(row["lp_diff"]),
        in_its_text(row),
        log_prob(row["train_log_probs"]),
        log_prob(row["rollout_log_probs"]),
        str(ratio_number(row["imp_ratio"])) if isinstance(row["imp_ratio"], float) else "-",
        whole(row["group_index"]),
        whole(row["rank"]),
        whole(row["version"]),
    ]


def in_its_text(row: Record) -> str:
    """Return a token in ‹› in its text, or its id where there is no tokenizer."""
    if row["text"] is None:
        return f"id {row['token_id']}"
    before, token, after = (flat(str(row[name])) for name in ("before", "text", "after"))
    shown = before if len(before) <= BEFORE_CELLS else "…" + before[-BEFORE_CELLS:]
    return f"{shown}‹{token}›{after}"


def flat(text: str) -> str:
    return visible(text.replace("\n", "⏎"))

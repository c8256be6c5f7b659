"""What the app asks of a pane."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.widget import Widget

from dumptui.core.types import Record
from dumptui.tui.presentation.meanings import table_meanings, without_repeats
from dumptui.tui.presentation.sheets import Sheet, SheetSource, table_sheet
from dumptui.tui.widgets.table.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dumptui.core.files.step_files import StepKey
    from dumptui.core.tables.columns import ColumnDefinition
    from dumptui.core.tables.meanings import Meaning
    from dumptui.tui.reading.messages import StepLoaded
    from dumptui.tui.session.sample_order import Arrangement
    from dumptui.tui.widgets.message import Answer


class Pane(Widget):
    """A part of the run behind a tab or a key. A pane overrides what concerns it; its id is its name in PANE_LIST."""

    WITHOUT_ACTIONS: ClassVar[frozenset[str]] = frozenset()
    """Actions of the app that make no sense in this pane and are not offered there."""
    TABLES: ClassVar[Mapping[str, Sequence[ColumnDefinition]]] = {}
    """The columns of its tables, by the id of the table."""
    ANSWERS_RENEW: ClassVar[bool] = False
    """Whether an answer of the reader shows the pane from the start, so that a pane that failed gets another try."""

    def enter(self) -> None:
        """Focus what has the keys: the pane came on screen."""

    def leave_level(self) -> bool:
        """Go up a level within the pane; False at the top level."""
        return False

    def show_step(self, loaded: StepLoaded, arrangement: Arrangement, *, again: bool) -> None:
        """Show a step, or with `again` more of the step on screen, at the same place."""

    def begin_step(self, reason: str) -> None:
        """Clear the pane for a step that is being read."""

    def fail_step(self, key: StepKey, problem: str) -> None:
        """Say why a step can't be shown."""

    def leave_sample(self, reason: str) -> None:
        """Clear a pane that shows one sample: none of the step was asked for yet."""

    def arrange_samples(self, arrangement: Arrangement) -> None:
        """Put the samples of the step in another order."""

    def select_sample(self, position: int | None) -> None:
        """Put the cursor on a sample, if the pane lists samples."""

    def take(self, answer: Answer) -> None:
        """Show an answer of the reader, if it is for this pane."""

    def meanings(self) -> list[Meaning]:
        """Return what the columns on screen mean, those of the table with the focus first."""
        tables = [table for table in self.query(Table) if str(table.id) in self.TABLES and table.columns]
        tables.sort(key=lambda table: not table.has_focus)
        return without_repeats(
            meaning for table in tables for meaning in table_meanings(table.columns, self.TABLES[str(table.id)])
        )

    def sheet(self, source: SheetSource) -> Sheet | None:
        """Return what the pane shows as plain values: here the cells of the table that has the focus."""
        table = self.app.focused
        if not isinstance(table, Table):
            return None
        rows: list[Record] = [dict(table.texts(row)) for row in range(table.row_count)]
        return table_sheet(str(self.id), source.key, rows, table.cursor)

"""The selection and order of the samples of a step, or of the steps, on screen."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from dumptui.core.tables.columns import SAMPLE_COLUMNS, STEP_COLUMNS
from dumptui.core.text import visible
from dumptui.core.types import Record
from dumptui.tui.presentation import columns

# The labels on screen of columns of the samples table, which a filter accepts beside the names of the columns.
LABEL_KEYS = {column.label: column.name for column in SAMPLE_COLUMNS if column.label and column.recorded}
STEP_LABEL_KEYS = {column.label: column.name for column in STEP_COLUMNS if column.label and column.recorded}


@dataclass(frozen=True)
class Arrangement:
    """A sort, a filter `where` as in core/query/filter.py, and a searched `pattern`; each may be empty."""

    FIELDS: ClassVar = columns.SAMPLES
    LABELS: ClassVar = LABEL_KEYS
    LABEL_COLUMN: ClassVar = "sample_index"
    """The column that sorts the labels of the rows."""
    LABELS_DESCEND: ClassVar = False
    """The order without a sort."""

    sort: columns.Sort = ()
    where: str = ""
    pattern: str = ""

    def sorted_by(self, key: str) -> Self:
        """Return it sorted by this column alone: the largest first, or reversed if it already was."""
        sort = self.sort or (("label", self.LABELS_DESCEND),)
        descending = not sort[0][1] if sort[0][0] == key else key != "label"
        return replace(self, sort=((key, descending),))

    def then_by(self, key: str) -> Self:
        """Return it with this column as the last sort key; a column that is a key already is reversed."""
        if not self.sort:
            return self.sorted_by(key)
        if key in dict(self.sort):
            return replace(self, sort=tuple((name, down != (name == key)) for name, down in self.sort))
        return replace(self, sort=(*self.sort, (key, key != "label")))

    def reversed(self) -> Self:
        return replace(
            self, sort=tuple((key, not down) for key, down in self.sort or (("label", self.LABELS_DESCEND),))
        )

    def order(self, records: Sequence[Record], shown: Collection[int]) -> list[int]:
        """Return the positions in `shown` in the order of the sort."""
        sort = tuple((self.LABEL_COLUMN if key == "label" else key, down) for key, down in self.sort)
        return [position for position in columns.order(records, sort) if position in shown]

    def select(self, rows: Sequence[Record]) -> list[int]:
        """Return the rows of the table that match the filter. Raises DumpError."""
        if not self.where:
            return list(range(len(rows)))
        from dumptui.core.query.filter import select  # polars takes 0.2 s to import

        return select(rows, self.where, self.LABELS)

    def sort_words(self) -> str:
        """Return the sort in words, such as "by |Δ|, largest first"; empty in file order."""
        if not self.sort:
            return ""
        known = {field.key: field.label for field in self.FIELDS}
        labelled = [(visible(known.get(key, key)), down) for key, down in self.sort]
        if len(labelled) == 1:
            label, down = labelled[0]
            return f"by {label}, {'largest' if down else 'smallest'} first"
        return "by " + ", then ".join(f"{label} {'▼' if down else '▲'}" for label, down in labelled)


class StepArrangement(Arrangement):
    """The same for the steps: without a sort, the newest is first."""

    FIELDS = columns.STEPS
    LABELS = STEP_LABEL_KEYS
    LABEL_COLUMN = "step"
    LABELS_DESCEND = True

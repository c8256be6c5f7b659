"""What the words on screen mean, as the help and the lists of columns and statistics show it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

from dumptui.core.tables.columns import ColumnDefinition
from dumptui.core.tables.meanings import Meaning, of_column
from dumptui.tui.widgets.table.layout import Column


@runtime_checkable
class Explained(Protocol):
    """A part of the screen that knows what its words mean."""

    def meanings(self) -> Sequence[Meaning]: ...


def table_meanings(shown: Sequence[Column], definitions: Sequence[ColumnDefinition]) -> list[Meaning]:
    """Return the meanings of the columns of a table: in the order on screen, then of those that can be shown."""
    known = {column.name: of_column(column) for column in definitions if column.shown != "never"}
    first = [known.get(column.key) or Meaning(column.label, column.tip) for column in shown]
    others = [meaning for name, meaning in known.items() if name not in {column.key for column in shown}]
    return [meaning for meaning in (*first, *others) if meaning.label and meaning.text]


def without_repeats(meanings: Iterable[Meaning]) -> list[Meaning]:
    """Return the meanings without those that two tables share."""
    return list(dict.fromkeys(meanings))


def in_full(meaning: Meaning) -> str:
    """Return everything that is known of a word, a fact on each line."""
    return "\n".join([meaning.text, *meaning.facts])

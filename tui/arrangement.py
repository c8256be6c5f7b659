"""Which samples of a step are shown, and in what order."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from dumptui.core.record import Record
from dumptui.tui import columns

# The labels on screen of columns of the samples table, which a filter accepts beside the names of the columns.
LABELS = {field.label: field.key for field in columns.SAMPLES if field.key not in ("label", "shown_reward", "flags")}
LABELS["sample"] = "sample_index"


@dataclass(frozen=True)
class Arrangement:
    """`where` is a filter of core/filter.py, `pattern` what is searched; both are empty where nothing is asked."""

    sort: columns.Sort = ()
    where: str = ""
    pattern: str = ""

    def sorted_by(self, key: str) -> Arrangement:
        """By this column alone, the largest first, or the other way round where it already is."""
        before = self.sort or (("label", False),)
        descending = not before[0][1] if before[0][0] == key else key != "label"
        return replace(self, sort=((key, descending),))

    def then_by(self, key: str) -> Arrangement:
        """By this column where the ones before it are equal; one of those is turned round."""
        if not self.sort:
            return self.sorted_by(key)
        if key in dict(self.sort):
            return replace(self, sort=tuple((one, turn != (one == key)) for one, turn in self.sort))
        return replace(self, sort=(*self.sort, (key, key != "label")))

    def reversed(self) -> Arrangement:
        return replace(self, sort=tuple((key, not down) for key, down in self.sort or (("label", False),)))

    def order(self, records: Sequence[Record], kept: Collection[int]) -> list[int]:
        """The positions of `kept` in the order of the sort."""
        sort = tuple(("sample_index" if key == "label" else key, down) for key, down in self.sort)
        return [at for at in columns.order(records, sort) if at in kept]

    def select(self, rows: Sequence[Record]) -> list[int]:
        """The rows of the samples table for which the filter holds. Raises DumpError."""
        if not self.where:
            return list(range(len(rows)))
        from dumptui.core.filter import select  # polars takes 0.2 s to import

        return select(rows, self.where, LABELS)

    def sort_words(self) -> str:
        """Such as "by |Δ|, largest first", or "by reward ▼, then len ▲"; nothing in file order."""
        labels = {field.key: field.label for field in columns.SAMPLES}
        if len(self.sort) == 1:
            key, down = self.sort[0]
            return f"by {labels[key]}, {'largest' if down else 'smallest'} first"
        return "by " * bool(self.sort) + ", then ".join(
            f"{labels[key]} {'▼' if down else '▲'}" for key, down in self.sort
        )

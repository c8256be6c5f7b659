"""How the samples and steps of a run were looked at last: columns, sort, filters and patterns, from its state."""

from __future__ import annotations

from collections.abc import Sequence

from dumptui.core.state import State
from dumptui.tui import columns

MOST = 50  # texts kept of each history
FIELDS = {"samples": columns.SAMPLES, "steps": columns.STEPS}
ALL, DEFAULT = "all", "default"


class Memory:
    """What the state says is taken only as far as it makes sense: it comes from a file."""

    def __init__(self, state: State) -> None:
        self._state = state

    def shown(self, table: str) -> columns.Shown:
        """Those of "samples" or "steps" that are shown."""
        return self._known(table, self._state.get(f"{table}.columns"))

    def own_shown(self, table: str) -> columns.Shown:
        """Those that were picked last, which are gone back to from all."""
        return self._known(table, self._state.get(f"{table}.own-columns"))

    def _known(self, table: str, value: object) -> columns.Shown:
        if value == ALL:
            return ALL
        known = {field.key for field in FIELDS[table]}
        return [key for key in value if isinstance(key, str) and key in known] if isinstance(value, list) else DEFAULT

    def keep_shown(self, table: str, shown: columns.Shown) -> None:
        self._state.put(f"{table}.columns", shown)
        if shown != ALL:
            self._state.put(f"{table}.own-columns", shown)

    @property
    def sort(self) -> columns.Sort:
        value = self._state.get("samples.sort")
        known = {field.key for field in columns.SAMPLES}
        pairs = [one for one in value if isinstance(one, list) and len(one) == 2] if isinstance(value, list) else []
        return tuple((key, down is True) for key, down in pairs if isinstance(key, str) and key in known)

    def keep_sort(self, sort: columns.Sort) -> None:
        self._state.put("samples.sort", [list(one) for one in sort] or None)

    def history(self, name: str) -> list[str]:
        """The "filters" or "patterns" that were asked for, the newest first."""
        value = self._state.get(f"samples.{name}")
        return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []

    def keep(self, name: str, text: str) -> None:
        if text:
            texts: Sequence[str] = [text, *(one for one in self.history(name) if one != text)]
            self._state.put(f"samples.{name}", texts[:MOST])

"""The last view of a run's samples and steps: columns, sort, filters and patterns, from its state file."""

from __future__ import annotations

from collections.abc import Sequence

from dumptui.core.store.state import REWARD_KEY, State
from dumptui.tui.presentation import columns

MAX_HISTORY = 50  # texts in each history
TABLE_COLUMNS = {"samples": columns.SAMPLES, "steps": columns.STEPS}
ALL, DEFAULT = "all", "default"


class Preferences:
    """The saved preferences of a run. Entries that make no sense are ignored, since they come from a file."""

    def __init__(self, state: State) -> None:
        self._state = state

    def shown(self, table: str) -> columns.Shown:
        """Return the shown columns of "samples" or "steps"."""
        return self._known(table, self._state.get(f"{table}.columns"))

    def own_shown(self, table: str) -> columns.Shown:
        """Return the last columns picked by hand, which are shown again after "all"."""
        return self._known(table, self._state.get(f"{table}.own-columns"))

    def _known(self, table: str, value: object) -> columns.Shown:
        if value == ALL:
            return ALL
        known = {field.key for field in TABLE_COLUMNS[table]}
        return [key for key in value if isinstance(key, str) and key in known] if isinstance(value, list) else DEFAULT

    def keep_shown(self, table: str, shown: columns.Shown) -> None:
        self._state.put(f"{table}.columns", shown)
        if shown != ALL:
            self._state.put(f"{table}.own-columns", shown)

    @property
    def sort(self) -> columns.Sort:
        value = self._state.get("samples.sort")
        known = {field.key for field in columns.SAMPLES}
        pairs = (
            [entry for entry in value if isinstance(entry, list) and len(entry) == 2] if isinstance(value, list) else []
        )
        return tuple((key, down is True) for key, down in pairs if isinstance(key, str) and key in known)

    def keep_sort(self, sort: columns.Sort) -> None:
        self._state.put("samples.sort", [list(pair) for pair in sort] or None)

    def keep_reward_key(self, name: str | None) -> None:
        """Save the entry that is used as the reward where rewards are dicts; None means the default."""
        self._state.put(REWARD_KEY, name)

    def history(self, name: str) -> list[str]:
        """Return the "filters" or "patterns" typed so far, the newest first."""
        value = self._state.get(f"samples.{name}")
        return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []

    def keep(self, name: str, text: str) -> None:
        if text:
            texts: Sequence[str] = [text, *(entry for entry in self.history(name) if entry != text)]
            self._state.put(f"samples.{name}", texts[:MAX_HISTORY])

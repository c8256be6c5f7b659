"""The list of worst tokens: opened over the panes, filled by the reader, left for one of its tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dumptui.core.files.step_files import StepKey
from dumptui.core.types import Record
from dumptui.tui.session.location import Location

if TYPE_CHECKING:
    from dumptui.tui.app.places import Places
    from dumptui.tui.app.steps import Steps
    from dumptui.tui.panes.rollout.pane import RolloutPane
    from dumptui.tui.reading.messages import WorstTokens
    from dumptui.tui.reading.reader import Reader
    from dumptui.tui.terminal.terminal_app import TerminalApp


class WorstTokensList:
    def __init__(self, app: TerminalApp, steps: Steps, reader: Reader, rollout: RolloutPane, places: Places) -> None:
        self._app = app
        self._steps = steps
        self._reader = reader
        self._rollout = rollout
        self._places = places

    def open(self) -> None:
        from dumptui.tui.screens.worst_tokens import WorstTokensScreen

        if self._steps.loaded is not None:
            self._app.push_screen(WorstTokensScreen(self._steps.loaded.key, self._find, self._unscanned), self._go)

    def _unscanned(self) -> int:
        return len(self._steps.run.steps.keys() - self._rollout.rows.keys())

    def _find(self, of_run: bool, post: Callable[[WorstTokens], object]) -> None:
        loaded = self._steps.loaded
        if of_run:
            self._reader.find_worst_of_run(dict(self._rollout.rows), post)
        elif loaded is not None:
            self._reader.find_worst_of_step(loaded.step, post)

    def _go(self, row: Record | None) -> None:
        if row is None:
            return
        step, index, occurrence, position = (row[name] for name in ("step", "sample_index", "occurrence", "position"))
        assert isinstance(step, int) and isinstance(occurrence, int) and isinstance(position, int)
        sample = (index if isinstance(index, int) else None, occurrence)
        self._places.go(Location(StepKey(step, bool(row["evaluation"])), "tokens", sample, position))

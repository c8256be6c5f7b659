"""All dumped fields of a sample, over the panes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dumptui.tui.presentation.facts import Facts

if TYPE_CHECKING:
    from dumptui.core.files.step_files import StepKey
    from dumptui.tui.app.steps import Steps
    from dumptui.tui.panes.rollout.pane import RolloutPane
    from dumptui.tui.reading.reader import Reader
    from dumptui.tui.screens.facts import FactsScreen
    from dumptui.tui.terminal.terminal_app import TerminalApp
    from dumptui.tui.widgets.message import Answer


class SampleFacts:
    """Opens the screen of facts and shows other samples in it; `left` is called with the sample shown last, if it is
    another one than at first.
    """

    def __init__(
        self, app: TerminalApp, steps: Steps, reader: Reader, rollout: RolloutPane, left: Callable[[int | None], None]
    ) -> None:
        self._app = app
        self._steps = steps
        self._reader = reader
        self._rollout = rollout
        self._left = left
        self._asked: tuple[StepKey, int] | None = None
        """The sample whose facts are being read."""
        self._screen: FactsScreen | None = None

    @property
    def is_shown(self) -> bool:
        return self._screen is not None

    def open(self) -> None:
        """Read the facts of the sample under the cursor."""
        loaded, position = self._steps.loaded, self._rollout.current
        if loaded is None or position is None:
            return
        self._asked = (loaded.key, position)
        self._steps.ask(f"reading all fields of sample {loaded.step.samples[position].index}", self.open)
        self._reader.open_facts(loaded.step, position)

    def take(self, answer: Answer) -> None:
        if isinstance(answer, Facts):
            self._show(answer)

    def _show(self, facts: Facts) -> None:
        asked, self._asked = self._asked, None
        if asked != (facts.key, facts.sample.position) or not self._steps.wait.waiting:
            return
        self._steps.wait.end()
        if self._screen is not None:
            return self._screen.show(facts)
        from dumptui.tui.screens.facts import FactsScreen

        self._screen = FactsScreen(facts)
        self._app.push_screen(self._screen, lambda _: self._leave(facts.key, facts.sample.position))

    def _leave(self, key: StepKey, position: int) -> None:
        """Go on at the sample whose facts were on screen last; `position` is that of the first."""
        self._screen = None
        if self._asked is not None:
            self._asked = None
            self._reader.abandon()
            self._steps.wait.end()
        loaded, current = self._steps.loaded, self._rollout.current
        is_another = loaded is not None and loaded.key == key and current != position
        self._left(current if is_another else None)

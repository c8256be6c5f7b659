"""Which pane is on screen, and what is done to all panes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from dumptui.tui.panes import FIRST_PANE, PANE_LIST, SAMPLE_PANES
from dumptui.tui.panes.pane import Pane
from dumptui.tui.reading.messages import HealthRows

if TYPE_CHECKING:
    from dumptui.core.files.step_files import StepKey
    from dumptui.core.types import Record
    from dumptui.tui.app.pane_switcher import PaneSwitcher
    from dumptui.tui.panes.rollout.pane import RolloutPane
    from dumptui.tui.reading.messages import StepLoaded
    from dumptui.tui.terminal.terminal_app import TerminalApp
    from dumptui.tui.widgets.message import Answer
    from dumptui.tui.widgets.tab_bar import TabLine

P = TypeVar("P", bound=Pane)


def import_panes() -> None:
    """Import what the first screen does without."""
    for entry in PANE_LIST:
        entry.load()
    import dumptui.tui.app.places
    import dumptui.tui.reading.tasks  # noqa: F401
    from dumptui.tui.widgets.plot.canvas import figure_class

    figure_class()  # imports plotext


HEALTH = "health"


class Panes:
    """The panes by name. Until `fill`, the Rollout pane is the only one."""

    def __init__(self, app: TerminalApp, switcher: PaneSwitcher, tabs: TabLine, rollout: RolloutPane) -> None:
        self._app = app
        self._switcher = switcher
        self._tabs = tabs
        self._rollout = rollout
        self._panes: dict[str, Pane] = {FIRST_PANE: rollout}
        self.below = FIRST_PANE
        """The pane from which a sample was opened."""

    async def fill(self) -> None:
        self._panes |= {entry.name: entry.load()() for entry in PANE_LIST if entry.name != FIRST_PANE}
        await self._switcher.fill(pane for pane in self if pane is not self._rollout)

    def __iter__(self) -> Iterator[Pane]:
        return iter(self._panes.values())

    def __getitem__(self, name: str) -> Pane:
        return self._panes[name]

    def of(self, kind: type[P]) -> P:
        """Return the pane of a class."""
        return next(pane for pane in self if isinstance(pane, kind))

    @property
    def name(self) -> str:
        """The name of the pane on screen."""
        return self._switcher.current or FIRST_PANE

    @property
    def current(self) -> Pane:
        return self[self.name]

    @property
    def shows_sample(self) -> bool:
        return self.name in SAMPLE_PANES

    def show(self, name: str) -> None:
        if not self.shows_sample:
            self.below = self.name
        self._switcher.current = name
        self._tabs.active = name
        self.select_elsewhere(self._rollout.current)
        with self._app.containing(self[name]):
            self[name].enter()

    # All panes ---------------------------------------------------------------------------------------------------

    def _with_own(self, method: str) -> Iterator[Pane]:
        """Yield the panes that override a method of Pane: only they are shown something else by it."""
        return (pane for pane in self if getattr(type(pane), method) is not getattr(Pane, method))

    def select_elsewhere(self, position: int | None) -> None:
        """Put the cursor on a sample in the other panes that list the samples of the step."""
        for pane in self._with_own("select_sample"):
            if pane is not self._rollout:
                with self._app.containing(pane):
                    pane.select_sample(position)

    def show_step(self, loaded: StepLoaded, *, again: bool) -> None:
        for pane in self._with_own("show_step"):
            with self._app.renewing(pane):
                pane.show_step(loaded, self._rollout.arrangement, again=again)

    def begin_step(self, reason: str) -> None:
        for pane in self._with_own("begin_step"):
            with self._app.renewing(pane):
                pane.begin_step(reason)

    def fail_step(self, key: StepKey, problem: str) -> None:
        for pane in self._with_own("fail_step"):
            with self._app.renewing(pane):
                pane.fail_step(key, problem)

    def leave_sample(self, reason: str) -> None:
        for pane in self._with_own("leave_sample"):
            with self._app.renewing(pane):
                pane.leave_sample(reason)

    def arrange_samples(self) -> None:
        """Put the samples in the order that they have in the Rollout pane."""
        for pane in self:
            pane.arrange_samples(self._rollout.arrangement)

    def take(self, answer: Answer) -> None:
        if isinstance(answer, HealthRows):
            self._tabs.count(HEALTH, *tab_count(self._rollout.findings))
        for pane in self._with_own("take"):
            with self._app.renewing(pane) if pane.ANSWERS_RENEW else self._app.containing(pane):
                pane.take(answer)


def tab_count(findings: Sequence[Record]) -> tuple[str, str]:
    """Return the number of errors with `!`, else that of warnings, and the sign that stands for it in a short title."""
    levels = [row["level"] for row in findings]
    errors, warnings = levels.count("error"), levels.count("warning")
    return (f"{errors}!", "!") if errors else (str(warnings or ""), "")

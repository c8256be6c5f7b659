"""The place in the run that is on screen: a step, a sample of it, a token, a pane."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dumptui.core.errors import DumpError
from dumptui.core.text import visible
from dumptui.tui.app.panes import HEALTH
from dumptui.tui.app.samples import TOKENS
from dumptui.tui.panes import FIRST_PANE, TABS
from dumptui.tui.panes.health import HealthPane
from dumptui.tui.panes.requests import FindingWanted, PlaceWanted, Request, StepChosen, StepWanted
from dumptui.tui.panes.rollout.pane import RolloutPane
from dumptui.tui.panes.tokens.pane import TokensPane
from dumptui.tui.session.location import Location

if TYPE_CHECKING:
    from dumptui.tui.app.comparison import Comparison
    from dumptui.tui.app.panes import Panes
    from dumptui.tui.app.samples import Samples
    from dumptui.tui.app.steps import Steps
    from dumptui.tui.reading.messages import StepLoaded
    from dumptui.tui.terminal.terminal_app import TerminalApp


class Places:
    """Shows each step that was read, in all panes, and goes to the sample that was asked for."""

    def __init__(
        self,
        app: TerminalApp,
        steps: Steps,
        panes: Panes,
        samples: Samples,
        comparison: Comparison,
        asked_sample: tuple[int | None, int] | None,
    ) -> None:
        """`asked_sample` is opened in the first step, by its index and occurrence."""
        self._app = app
        self._steps = steps
        self._panes = panes
        self._samples = samples
        self._comparison = comparison
        self._rollout = panes.of(RolloutPane)
        self._tokens = panes.of(TokensPane)
        self._asked_sample = asked_sample

    # The step ----------------------------------------------------------------------------------------------------

    def clear(self, reason: str) -> None:
        self._panes.begin_step(reason)
        self._comparison.leave()
        self._samples.leave(reason)

    def show(self, loaded: StepLoaded, *, again: bool, repeat: Callable[[], None] | None) -> None:
        self._panes.show_step(loaded, again=again)
        position = self._samples.position
        if not again:
            self._samples.leave("enter on a sample opens it" if loaded.samples else "the step has no samples")
            self._open_asked_sample()
        elif position is not None and position >= len(loaded.samples):
            self._samples.leave("the step was rewritten with fewer samples")
        else:
            self._samples.open_again(repeat)

    def show_again(self, repeat: Callable[[], None] | None) -> None:
        self._samples.open_again(repeat)

    def show_failure(self, problem: str) -> None:
        if self._steps.loaded is not None:  # its files are being rewritten: go back to the place once they are there
            self._ask(self.current)
        self._panes.fail_step(self._steps.wanted, problem)
        self._comparison.leave()
        self._samples.leave(problem)

    def serve(self, request: Request) -> None:
        match request:
            case StepChosen():
                self._choose_step(request)
            case PlaceWanted():
                self.go(request.place)
            case FindingWanted():
                self._panes.show(HEALTH)
                self._panes.of(HealthPane).select(request.finding)
            case StepWanted():
                self._rollout.leave_level()
                self._choose_step(request)
                self._panes.show(FIRST_PANE)

    def _choose_step(self, request: StepChosen | StepWanted) -> None:
        if request.key != self._steps.wanted:
            self._asked_sample = None
        self._steps.choose(request.key)

    # Going to a place --------------------------------------------------------------------------------------------

    @property
    def current(self) -> Location:
        """The place on screen. While the cursor is among the steps, it has no sample."""
        pane, loaded = self._panes.name, self._steps.loaded
        is_among_steps = pane == FIRST_PANE and not self._rollout.has_class("-samples")
        position = None if is_among_steps else self._rollout.current
        if loaded is None or position is None:
            return Location(self._steps.wanted, pane)
        sample = loaded.step.samples[position]
        return Location(
            loaded.key, pane, (sample.index, sample.occurrence), self._tokens.token if pane == TOKENS else None
        )

    def go(self, place: Location) -> None:
        """Go to a place, as far as it still exists."""
        if place.key not in self._steps.run.steps:
            return self._app.notify(f"this run has no {place.key}", severity="warning", markup=False)
        if not self._steps.is_at(place.key):
            self._steps.choose(place.key)
        self._ask(place)
        self._panes.show(place.pane if place.pane in TABS else FIRST_PANE)
        if self._steps.loaded is not None:
            self._open_asked_sample()

    def _ask(self, place: Location) -> None:
        self._asked_sample = place.sample
        self._samples.asked_place = place

    def _open_asked_sample(self) -> None:
        assert self._steps.loaded is not None
        asked, self._asked_sample = self._asked_sample, None
        from dumptui.core.tables.tokens import find_sample

        try:
            if asked is not None:
                self._rollout.select_sample(find_sample(self._steps.loaded.step, *asked).position)
                self._panes.current.enter()
        except DumpError as error:
            self._app.notify(visible(error.short), severity="error", markup=False)
        if self._panes.shows_sample:
            self._samples.go_to_pane(self._panes.name)

    def back(self) -> bool:
        """Go a level up; return whether there was one."""
        is_at_top = self._panes.name == FIRST_PANE and not self._rollout.has_class("-samples")
        if not is_at_top:
            self.up()
        return not is_at_top

    def up(self) -> None:
        """Leave what is being read, else go a level up."""
        if self._steps.wait.waiting:
            self._samples.leave_reading()
        elif self._comparison.is_shown:
            self._comparison.leave()
        elif not self._panes.current.leave_level():
            self._panes.show(self._panes.below if self._panes.shows_sample else FIRST_PANE)

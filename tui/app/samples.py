"""Which sample is on screen, and in which pane: its tokens, its conversation, its facts, the next one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dumptui.core.text import visible
from dumptui.tui.app.facts import SampleFacts
from dumptui.tui.panes import SAMPLE_PANES
from dumptui.tui.panes.conversation import ConversationPane
from dumptui.tui.panes.requests import (
    Request,
    ReverseWanted,
    SampleChosen,
    SampleMoved,
    SamplesArranged,
    SortWanted,
    SurveyWanted,
    TokensWanted,
)
from dumptui.tui.panes.rollout.pane import RolloutPane
from dumptui.tui.panes.tokens.pane import TokensPane
from dumptui.tui.presentation.conversation import ConversationView
from dumptui.tui.presentation.sample_rows import place, reward_words
from dumptui.tui.reading.messages import SampleFailed, SampleOpened

if TYPE_CHECKING:
    from dumptui.core.formats.sample import Sample
    from dumptui.core.step.step import Step
    from dumptui.tui.app.comparison import Comparison
    from dumptui.tui.app.last_visit import LastVisit
    from dumptui.tui.app.panes import Panes
    from dumptui.tui.app.steps import Steps
    from dumptui.tui.reading.reader import Reader
    from dumptui.tui.session.location import Location
    from dumptui.tui.terminal.terminal_app import TerminalApp
    from dumptui.tui.widgets.message import Answer

TOKENS, CONVERSATION = "tokens", "conversation"
"""The panes that show one sample."""


class Samples:
    """Opens samples of the step on screen."""

    def __init__(
        self, app: TerminalApp, steps: Steps, reader: Reader, panes: Panes, comparison: Comparison, visit: LastVisit
    ) -> None:
        self._app = app
        self._steps = steps
        self._reader = reader
        self._panes = panes
        self._rollout = panes.of(RolloutPane)
        self._tokens = panes.of(TokensPane)
        self._conversation = panes.of(ConversationPane)
        self._comparison = comparison
        self._visit = visit
        self.facts = SampleFacts(app, steps, reader, self._rollout, self._facts_left)
        self.position: int | None = None
        """The sample that is on screen or waited for."""
        self._opening = TOKENS
        """The pane that the sample is, or will be, shown in."""
        self._stale: frozenset[str] = frozenset()
        """Panes whose sample was read before its step was read again."""
        self._token: int | None = None
        """The token to go to in the pane that is being opened."""
        self.asked_place: Location | None = None
        """A place whose token is gone to once its sample is open."""

    # Opening -----------------------------------------------------------------------------------------------------

    def open(self, position: int, pane: str = TOKENS) -> None:
        """Show a sample in a pane once it is read; while its step is being read, show the pane."""
        loaded = self._steps.loaded
        if loaded is None or position >= len(loaded.samples):
            return self._panes.show(pane)
        self.position, self._opening = position, pane
        what = f"the {pane} of sample {loaded.step.samples[position].index}"
        self._steps.ask(f"reading {what}", lambda: self.open(position, pane))
        if pane == CONVERSATION:
            self._reader.open_talk(loaded.step, position)
        else:
            self._reader.open_sample(loaded.step, position, self._tokens.heat.columns)

    def _opened(self, position: int, pane: str) -> Step | None:
        """Put a sample that was read on screen; return its step, or None if something else is wanted now."""
        if self._steps.loaded is None or (position, pane) != (self.position, self._opening):
            return None
        self._steps.wait.end()
        self._visit.end_offer()
        self._stale -= {pane}
        self._rollout.select_sample(position)
        self._panes.show(pane)
        return self._steps.loaded.step

    def _has_to_read(self, position: int, pane: str) -> bool:
        return pane in self._stale or position != self._position_in(pane)

    def _position_in(self, pane: str) -> int | None:
        return self._conversation.position if pane == CONVERSATION else self._tokens.position

    def leave(self, reason: str) -> None:
        self.position = None
        self._panes.leave_sample(reason)

    def leave_reading(self) -> None:
        self._reader.abandon()
        self._steps.wait.end()
        if self._steps.loaded is None:
            return self._steps.give_up()
        self.position = self._position_in(self._panes.name)
        if self.position is not None and self._panes.shows_sample:
            self._rollout.select_sample(self.position)

    def open_again(self, repeat: Callable[[], None] | None) -> None:
        """The step was read again: read what is waited for, else the sample on screen; others once they are shown."""
        self._stale = SAMPLE_PANES
        if repeat is not None:
            repeat()
        elif self.facts.is_shown:
            self.facts.open()
        elif self._comparison.compare_again() or self.position is None:
            return
        elif self._panes.shows_sample:
            self.open(self.position, self._panes.name)

    # Messages ----------------------------------------------------------------------------------------------------

    def serve(self, request: Request) -> None:
        match request:
            case SampleChosen():
                self._steps.live.moved(False)
                self.open(request.position)
            case SampleMoved():
                self._rollout.select_sample(request.position)
            case TokensWanted():
                self._token = request.token
                self.open(request.position)
            case SurveyWanted() if self._steps.loaded is not None:
                self._reader.survey(self._steps.loaded.step, request.name)
            case SortWanted(key=None):
                self._rollout.ask_sort(request.columns)
            case SortWanted():
                self._rollout.sort_by(request.key, request.more)
            case ReverseWanted():
                self._rollout.reverse_samples()
            case SamplesArranged():
                self._panes.arrange_samples()
                self._panes.select_elsewhere(self._rollout.current)

    def take(self, answer: Answer) -> None:
        match answer:
            case SampleOpened():
                self._show_tokens(answer)
            case ConversationView():
                self._show_conversation(answer)
            case SampleFailed():
                self.leave_reading()
                self._app.notify(visible(answer.problem), severity="error", markup=False)
        self.facts.take(answer)

    def _show_tokens(self, opened: SampleOpened) -> None:
        if self._steps.is_at(opened.key) and (step := self._opened(opened.position, TOKENS)) is not None:
            with self._app.renewing(self._tokens):
                self._tokens.show_sample(opened, self._place(step, opened.position))
            for token in (self._take_token(), self._take_asked_token(opened.view.sample)):
                if token is not None:
                    self._tokens.go_to(token)

    def _show_conversation(self, view: ConversationView) -> None:
        if self._steps.is_at(view.key) and (step := self._opened(view.position, CONVERSATION)) is not None:
            with self._app.renewing(self._conversation):
                self._conversation.show_conversation(view, self._place(step, view.position), self._take_token())

    def _place(self, step: Step, position: int) -> str:
        """Return where a sample is, and its reward."""
        assert self._steps.loaded is not None
        row = self._steps.loaded.samples[position]
        return f"{place(step, position)} · {reward_words(step.samples[position], row)}"

    def _take_token(self) -> int | None:
        token, self._token = self._token, None
        return token

    def _take_asked_token(self, sample: Sample) -> int | None:
        asked, self.asked_place = self.asked_place, None
        return asked.token if asked is not None and asked.sample == (sample.index, sample.occurrence) else None

    # Going along -------------------------------------------------------------------------------------------------

    def go_along(self, by: int) -> None:
        """Go to the next sample in the order of the table, or compare with the next one."""
        if self._comparison.is_shown and not self.facts.is_shown:
            return self._comparison.compare_next(by)
        position = self._rollout.samples.go(by) if self._steps.loaded is not None else None
        if position is not None:
            self.go_to(position)

    def go_along_group(self, by: int) -> None:
        """Go to the next sample of the prompt group, by index."""
        from dumptui.core.step.grouping import mates

        loaded, position = self._steps.loaded, self._rollout.current
        if loaded is None or position is None:
            return
        group = loaded.step.samples[position].group
        members = mates(loaded.step, position)
        members.sort(key=lambda sample: (sample.index is None, sample.index or 0, sample.occurrence))
        row = next((row for row, sample in enumerate(members) if sample.position == position), -1) + by
        if not 0 <= row < len(members):
            text = "the sample is in no group" if group is None else f"no further sample in group {group}"
            return self._app.notify(text)
        self.go_to(members[row].position)

    def go_to(self, position: int) -> None:
        """Show another sample of the step in the pane that is or comes on screen, or its facts if they are."""
        if self.facts.is_shown:
            self._rollout.select_sample(position)
            self.facts.open()
        elif self._panes.shows_sample or self._steps.wait.waiting:
            self.open(position, self._opening if self._steps.wait.waiting else self._panes.name)
        else:
            self._rollout.select_sample(position)
            self._panes.select_elsewhere(position)

    def go_to_pane(self, name: str) -> None:
        """Show the same place in another pane: the sample under the cursor stays the same."""
        if self._steps.loaded is not None and self._steps.wait.waiting:
            self.leave_reading()
        current = self._rollout.current if self._steps.loaded is not None else None
        if name in SAMPLE_PANES and current is not None and self._has_to_read(current, name):
            self.open(current, name)
        else:
            self._panes.show(name)

    def choose_pane(self, name: str) -> None:
        """Show a pane because the user asked for it."""
        if name == TOKENS:
            self._steps.live.moved(False)
        self.go_to_pane(name)

    def open_conversation(self) -> None:
        """From the Tokens pane, go to the message of the token under the cursor."""
        from_tokens = self._panes.name == TOKENS
        position = self._tokens.position if from_tokens else self._rollout.current
        if self._steps.loaded is None or position is None:
            return
        self._token = self._tokens.token if from_tokens else None
        self.open(position, CONVERSATION)

    def _facts_left(self, position: int | None) -> None:
        if position is not None:
            self.go_to(position)
        elif self._panes.name in self._stale and self.position is not None:  # read again while it lay below
            self.open(self.position, self._panes.name)

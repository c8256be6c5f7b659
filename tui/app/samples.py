"""The part of the app that opens a sample: its tokens, its conversation, its facts, and the next of its group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on
from textual.binding import Binding

from dumptui.core.text import visible
from dumptui.tui.app.steps import StepsApp
from dumptui.tui.presentation.sample_rows import place
from dumptui.tui.reading.messages import FieldSurveyed, SampleFailed, SampleOpened, TokenHits

if TYPE_CHECKING:
    from dumptui.core.run.run import StepKey
    from dumptui.tui.panes.conversation import ConversationPane
    from dumptui.tui.panes.tokens.pane import TokensPane
    from dumptui.tui.panes.tokens.view import TokenView
    from dumptui.tui.presentation.conversation import ConversationView
    from dumptui.tui.reading.markdown import Drawn
    from dumptui.tui.screens.facts import Facts, FactsScreen
    from dumptui.tui.session.location import Location

SAMPLE_PANES = ("tokens", "conversation")
"""The panes that show one sample."""


class SampleApp(StepsApp):
    """`show_pane` is the app's own, as is where a sample is shown that is gone to."""

    tokens: TokensPane
    talk: ConversationPane

    BINDINGS = [
        Binding("c", "conversation", "Conversation", id="app.conversation", tooltip="Show the sample's conversation"),
        Binding("i", "facts", "Details", id="app.facts", tooltip="Show all dumped fields of the sample"),
        Binding("N", "member(1)", "Next in group", show=False, id="app.next-member"),
        Binding("P", "member(-1)", "Previous in group", show=False, id="app.previous-member"),
    ]

    placed = False
    """Whether a place was asked for, or a sample opened."""
    _position: int | None = None
    """Of the sample that is shown or waited for."""
    _opening = "tokens"
    """The pane that it is, or will be, shown in."""
    _stale: frozenset[str] = frozenset()
    """Panes whose sample was read before its step was read again."""
    _asked_place: Location | None = None
    """Its token is gone to once its sample is open."""
    _token: int | None = None
    """The token to go to in the pane that is being opened."""
    _facts_of: tuple[StepKey, int] | None = None
    """The sample whose facts are being read."""
    facts_screen: FactsScreen | None = None
    """What shows facts, as long as it does: then another sample means those of that one."""

    @property
    def pane(self) -> str:
        raise NotImplementedError

    def show_pane(self, name: str) -> None:
        raise NotImplementedError

    def go_to_sample(self, position: int) -> None:
        raise NotImplementedError

    # Opening ---------------------------------------------------------------------------------------------------

    def open_sample(self, position: int, pane: str = "tokens") -> None:
        """Show a sample in a pane once it is read; while its step is, the first one will be."""
        if self.loaded is None or position >= len(self.loaded.samples):
            return self.show_pane(pane)
        self._position, self._opening = position, pane
        self.wait.begin(f"reading the {pane} of sample {self.loaded.step.samples[position].index}")
        if pane == "conversation":
            self.reader.open_talk(self.loaded.step, position)
        else:
            self.reader.open_sample(self.loaded.step, position, self.tokens.heat.columns)

    def sample_opened(self, position: int, pane: str) -> bool:
        if (position, pane) != (self._position, self._opening):
            return False
        self.wait.end()
        self.placed = True
        self._stale -= {pane}
        self.rollout.select_sample(position)
        self.show_pane(pane)
        return True

    def _has_to_read(self, position: int, pane: str) -> bool:
        return pane in self._stale or position != self._position_in(pane)

    def _position_in(self, pane: str) -> int | None:
        return self.talk.position if pane == "conversation" else self.tokens.position

    def _leave_reading(self) -> None:
        self.reader.abandon()
        self.wait.end()
        if self.loaded is None:
            self.show_where()
            return self.show_failure("not loaded; enter loads it")
        self._position = self._position_in(self.pane)
        if self._position is not None and self.pane in SAMPLE_PANES:
            self.rollout.select_sample(self._position)

    @on(SampleFailed)
    def _sample_unopened(self, event: SampleFailed) -> None:
        self._leave_reading()
        self.notify(visible(event.problem), severity="error", markup=False)

    # Tokens ------------------------------------------------------------------------------------------------------

    @on(SampleOpened)
    def _sample_opened(self, event: SampleOpened) -> None:
        if self.loaded is None or event.key != self.loaded.key or not self.sample_opened(event.position, "tokens"):
            return
        with self.renewing(self.tokens):
            self.tokens.show_sample(event, place(self.loaded.step, event.position))
        if (token := self.take_token()) is not None:
            self.tokens.go_to(token)
        self._go_to_token(event)

    def _go_to_token(self, event: SampleOpened) -> None:
        asked, self._asked_place = self._asked_place, None
        sample = event.view.sample
        if asked is not None and asked.token is not None and asked.sample == (sample.index, sample.occurrence):
            self.tokens.go_to(asked.token)

    def on_token_view_survey_wanted(self, event: TokenView.SurveyWanted) -> None:
        if self.loaded is not None:
            self.reader.survey(self.loaded.step, event.name)

    @on(FieldSurveyed)
    def _surveyed(self, event: FieldSurveyed) -> None:
        self.tokens.take_survey(event)

    def on_token_view_search_wanted(self, event: TokenView.SearchWanted) -> None:
        self.reader.search(event.view, event.pattern)

    @on(TokenHits)
    def _searched(self, event: TokenHits) -> None:
        self.tokens.take_hits(event)

    # Conversation ----------------------------------------------------------------------------------------------

    def on_talk(self, event: ConversationView) -> None:
        if (
            self.loaded is None
            or event.key != self.loaded.key
            or not self.sample_opened(event.position, "conversation")
        ):
            return
        with self.renewing(self.talk):
            self.talk.show_talk(event, place(self.loaded.step, event.position), self.take_token())

    def take_token(self) -> int | None:
        token, self._token = self._token, None
        return token

    def action_conversation(self) -> None:
        """From the Tokens pane to the message of the token under the cursor; back from there to the tokens."""
        position = self.tokens.position if self.pane == "tokens" else self.rollout.current
        if self.loaded is None or position is None:
            return
        self._token = self.tokens.token if self.pane == "tokens" else None
        self.open_sample(position, "conversation")

    def on_conversation_pane_tokens_wanted(self, event: ConversationPane.TokensWanted) -> None:
        self._token = event.token
        self.open_sample(event.position, "tokens")

    def action_member(self, by: int) -> None:
        """The next or previous sample of the prompt group, by index."""
        from dumptui.core.step.grouping import mates

        position = self.rollout.current
        if self.loaded is None or position is None:
            return
        group = self.loaded.step.samples[position].group
        members = mates(self.loaded.step, position)
        members.sort(key=lambda one: (one.index is None, one.index or 0, one.occurrence))
        at = next((at for at, one in enumerate(members) if one.position == position), -1) + by
        if not 0 <= at < len(members):
            self.notify("the sample is in no group" if group is None else f"no further sample in group {group}")
            return
        self.go_to_sample(members[at].position)

    # Facts -----------------------------------------------------------------------------------------------------

    def action_facts(self) -> None:
        position = self.rollout.current
        if self.loaded is None or position is None:
            return
        step = self.loaded.step
        self._facts_of = (self.loaded.key, position)
        self.wait.begin(f"reading all fields of sample {step.samples[position].index}")
        self.reader.open_facts(step, position)

    def on_facts(self, event: Facts) -> None:
        asked, self._facts_of = self._facts_of, None
        if asked == (event.key, event.sample.position) and self.wait.waiting:
            self.wait.end()
            if self.facts_screen is None:
                self._open_facts(event)
            else:
                self.facts_screen.show(event)

    def _open_facts(self, facts: Facts) -> None:
        from dumptui.tui.screens.facts import FactsScreen

        self.facts_screen = FactsScreen(facts)
        self.push_screen(self.facts_screen, lambda _: self._facts_left(facts.key, facts.sample.position))

    def _facts_left(self, key: StepKey, position: int) -> None:
        """The pane goes to the sample whose facts were looked at last; `position` is that of the first."""
        self.facts_screen = None
        if self._facts_of is not None:
            self._facts_of = None
            self.reader.abandon()
            self.wait.end()
        current = self.rollout.current
        if self.loaded is not None and self.loaded.key == key and current not in (None, position):
            self.go_to_sample(current)
        elif self.pane in self._stale and self._position is not None:  # read again while it lay below
            self.open_sample(self._position, self.pane)

    # Markdown --------------------------------------------------------------------------------------------------

    def on_conversation_pane_markdown_wanted(self, event: ConversationPane.MarkdownWanted) -> None:
        talk = self.talk.talk
        assert talk is not None
        self.reader.draw(talk, event.message, event.width)

    def on_drawn(self, event: Drawn) -> None:
        if event.problem:
            return self.notify(event.problem)
        blocks = self.talk.blocks
        if self.talk.position == event.position and blocks.text_width == event.width:
            blocks.draw(event.message, event.passages)

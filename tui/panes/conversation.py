"""The Conversation pane: the messages of one sample, who wrote them, and which tokens they are."""

from __future__ import annotations

from functools import partial

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical

from dumptui.core.text import sample_label, visible
from dumptui.tui.panes.pane import Pane
from dumptui.tui.panes.requests import ReadWanted, TokensWanted
from dumptui.tui.presentation.conversation import ConversationView
from dumptui.tui.presentation.sheets import Sheet, SheetSource, conversation_sheet
from dumptui.tui.reading.markdown import Drawn
from dumptui.tui.reading.reader import Reader
from dumptui.tui.widgets.blocks.blocks import Blocks
from dumptui.tui.widgets.line import Line
from dumptui.tui.widgets.message import Answer


class ConversationPane(Vertical, Pane):
    """A block a message under one line about the sample."""

    HELP = """\
# Conversation

The messages of one sample. They come from the run's trajectory file, else from the sample's metadata, else from its
prompt and response, split by their chat template or where the loss mask changes. The first line says so if they are not
a recorded conversation; a template's delimiters are shown muted after the title and below the text. A model turn
marked `masked` was not trained on.

- **j k** or the arrows move between messages, **g** and **G** go to the first and last; page keys scroll.
- **space** unfolds a message, then all of its long parts, then folds it; **l h** unfold and fold; **z** unfolds all
  messages, or folds them again. A click on a title folds, a click on `… more lines` unfolds.
- **t** or **enter** opens the tokens of the message; **c** in the Tokens pane goes to the message of a token.
- **%** goes from a tool call to its result, and back.
- **/** searches for a text, also in folded parts; **;** and **,** go to the next and the previous match.
- **v** shows the text of the message as Markdown, and back.
- **n p** open the next and previous sample, **N P** the next and previous of the prompt group. **i** shows all dumped
  fields of the sample.
"""
    BINDINGS = [
        Binding("t,enter", "tokens", "Tokens", id="conversation.tokens"),
        Binding("percent_sign", "partner", "Call, result", key_display="%", id="conversation.partner"),
        Binding("v,M", "markdown", "Markdown", id="conversation.markdown"),
    ]

    WITHOUT_ACTIONS = frozenset({"conversation"})

    def __init__(self) -> None:
        super().__init__(id="conversation")
        self.shown: ConversationView | None = None

    def compose(self) -> ComposeResult:
        yield Line(id="talk-title")
        yield Blocks(id="messages", empty="no sample is open")

    def on_mount(self) -> None:
        self.blocks = self.query_one(Blocks)

    def enter(self) -> None:
        self.blocks.focus()

    @property
    def position(self) -> int | None:
        """The sample on show, by its position in the rollout file."""
        return None if self.shown is None else self.shown.position

    def leave_sample(self, reason: str) -> None:
        self.shown = None
        self.blocks.empty = visible(reason)
        self.blocks.show(())
        self.query_one("#talk-title", Line).say("")

    def show_conversation(self, talk: ConversationView, place: str, token: int | None = None) -> None:
        """`place` says where the sample stands. The message of `token` is shown; one that was open keeps its place."""
        before = self.shown
        same = before is not None and (before.key, before.position) == (talk.key, talk.position)
        self.shown = talk
        self.blocks.empty = "the sample has no messages"
        with self.app.batch_update():
            self.blocks.show(talk.blocks, self.blocks.current if same else 0, same=same)
            self.query_one("#talk-title", Line).say(title(talk, place))
        if token is not None:
            self.go_to_token(token)

    def go_to_token(self, token: int) -> None:
        assert self.shown is not None
        found = self.shown.conversation.at_token(token)
        if found is not None:
            self.blocks.go_to(found.position)
        elif self.shown.conversation.messages:
            self.notify(f"the message of token #{token} is unknown")

    def sheet(self, source: SheetSource) -> Sheet | None:
        if source.step is None or source.position is None:
            return None
        return conversation_sheet(source.step, source.position, source.words)

    # Keys ------------------------------------------------------------------------------------------------------

    def action_tokens(self) -> None:
        if self.shown is None or not self.shown.conversation.messages:
            return
        message = self.shown.conversation.messages[self.blocks.current]
        if message.where is None:
            self.notify("the tokens of this message are unknown: its text was not found in theirs")
        else:
            self.post_message(TokensWanted(self.shown.position, message.where.start))
            if message.where.how == "prompt":
                self.notify("the message is somewhere in the prompt; its exact tokens are unknown")

    def action_partner(self) -> None:
        if self.shown is None or not self.shown.conversation.messages:
            return
        partner = self.shown.conversation.partner(self.blocks.current)
        if partner is None:
            self.notify("this message has no matching tool call or result")
        else:
            self.blocks.go_to(partner)

    def action_markdown(self) -> None:
        if self.shown is None or not self.shown.blocks:
            return
        if self.blocks.is_drawn(self.blocks.current):
            self.blocks.draw(self.blocks.current, {})
        else:
            draw = partial(Reader.draw, talk=self.shown, message=self.blocks.current, width=self.blocks.text_width)
            self.post_message(ReadWanted(draw))

    def take(self, answer: Answer) -> None:
        if not isinstance(answer, Drawn):
            return
        if answer.problem:
            self.notify(answer.problem)
        elif self.position == answer.position and self.blocks.text_width == answer.width:
            self.blocks.draw(answer.message, answer.passages)

    @on(Blocks.Moved)
    def _moved(self, event: Blocks.Moved) -> None:
        event.stop()


def title(talk: ConversationView, place: str) -> Text:
    sample, messages = talk.sample, talk.conversation.messages
    text = Text().append(f"sample {sample_label(sample.index, sample.occurrence)}", "bold")
    calls = sum(part.kind == "call" for message in messages for part in message.parts)
    facts = [
        place,
        talk.conversation.note or "",
        sample.status,
        f"{len(messages)} message{'s' * (len(messages) != 1)}",
        f"{calls} tool call{'s' * (calls != 1)}" if calls else "",
    ]
    return text.append("".join(f" · {visible(fact)}" for fact in facts if fact))

"""The Conversation pane: the messages of one sample, who wrote them, and which tokens they are."""

from __future__ import annotations

from dataclasses import dataclass

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.message import Message

from dumptui.core.text import sample_label, visible
from dumptui.tui.presentation import columns
from dumptui.tui.presentation.conversation import ConversationView
from dumptui.tui.widgets.blocks.blocks import Blocks
from dumptui.tui.widgets.line import Line


class ConversationPane(Vertical):
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
- **M** shows the text of the message as Markdown, and back.
- **n p** open the next and previous sample, **N P** the next and previous of the prompt group. **i** shows all dumped
  fields of the sample.
"""
    BINDINGS = [
        Binding("t,enter", "tokens", "Tokens", id="conversation.tokens"),
        Binding("percent_sign", "partner", "Call, result", key_display="%", id="conversation.partner"),
        Binding("M", "markdown", "Markdown", id="conversation.markdown"),
    ]

    @dataclass
    class TokensWanted(Message):
        """Open the tokens of a sample at one of them."""

        position: int
        token: int

    @dataclass
    class MarkdownWanted(Message):
        """Draw the text of a message of the conversation on show as Markdown, this many cells wide."""

        message: int
        width: int

    def __init__(self) -> None:
        super().__init__(id="conversation")
        self.talk: ConversationView | None = None

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
        return None if self.talk is None else self.talk.position

    def clear(self, reason: str) -> None:
        """Another step is open: no sample of it has been asked for yet."""
        self.talk = None
        self.blocks.empty = visible(reason)
        self.blocks.show(())
        self.query_one("#talk-title", Line).say("")

    def show_talk(self, talk: ConversationView, place: str, token: int | None = None) -> None:
        """`place` says where the sample stands. The message of `token` is shown; one that was open keeps its place."""
        before = self.talk
        same = before is not None and (before.key, before.position) == (talk.key, talk.position)
        self.talk = talk
        self.blocks.empty = "the sample has no messages"
        with self.app.batch_update():
            self.blocks.show(talk.blocks, self.blocks.current if same else 0, same=same)
            self.query_one("#talk-title", Line).say(title(talk, place))
        if token is not None:
            self.go_to_token(token)

    def go_to_token(self, token: int) -> None:
        assert self.talk is not None
        found = self.talk.conversation.at_token(token)
        if found is not None:
            self.blocks.go_to(found.position)
        elif self.talk.conversation.messages:
            self.notify(f"the message of token #{token} is unknown")

    # Keys ------------------------------------------------------------------------------------------------------

    def action_tokens(self) -> None:
        if self.talk is None or not self.talk.conversation.messages:
            return
        message = self.talk.conversation.messages[self.blocks.current]
        if message.where is None:
            self.notify("the tokens of this message are unknown: its text was not found in theirs")
        else:
            self.post_message(self.TokensWanted(self.talk.position, message.where.start))
            if message.where.how == "prompt":
                self.notify("the message is somewhere in the prompt; its exact tokens are unknown")

    def action_partner(self) -> None:
        if self.talk is None or not self.talk.conversation.messages:
            return
        partner = self.talk.conversation.partner(self.blocks.current)
        if partner is None:
            self.notify("this message has no matching tool call or result")
        else:
            self.blocks.go_to(partner)

    def action_markdown(self) -> None:
        if self.talk is None or not self.talk.blocks:
            return
        if self.blocks.is_drawn(self.blocks.current):
            self.blocks.draw(self.blocks.current, {})
        else:
            self.post_message(self.MarkdownWanted(self.blocks.current, self.blocks.text_width))

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
        f"reward {columns.reward_in_full(sample.shown_reward)}",
        sample.status,
        f"{len(messages)} message{'s' * (len(messages) != 1)}",
        f"{calls} tool call{'s' * (calls != 1)}" if calls else "",
    ]
    return text.append("".join(f" · {visible(fact)}" for fact in facts if fact))

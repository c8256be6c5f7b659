"""Markdown as strips, drawn in the reader thread: 8 KB of it take 0.15 s."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence

from textual.strip import Strip

from dumptui.tui.cell_formats.wrapping import Lines
from dumptui.tui.presentation.conversation import ConversationView
from dumptui.tui.widgets.message import Answer

MAX_CHARACTERS = 50_000
"""Characters of the longest text that is drawn; a longer one would take over a second."""


class Drawn(Answer):
    """The drawn passages of a message, with the conversation's sample and the width; or why there are none."""

    position: int
    message: int
    width: int
    passages: Mapping[int, Sequence[Strip]]
    problem: str = ""


def draw(talk: ConversationView, message: int, width: int) -> Drawn:
    """Draw the plain passages of a message as Markdown."""
    passages = talk.blocks[message].passages
    texts = {
        index: passage.text for index, passage in enumerate(passages) if passage.kind == "plain" and not passage.label
    }
    problem = "" if texts else "the message has no text"
    if sum(sum(map(len, text.lines)) for text in texts.values()) > MAX_CHARACTERS:
        problem = "the text is too long to be shown as Markdown"
    drawn = {} if problem else {index: strips(text, width) for index, text in texts.items()}
    return Drawn(talk.position, message, width, drawn, problem)


def strips(text: Lines, width: int) -> list[Strip]:
    """Return a text as Markdown; links are shown as written and never become links of the terminal."""
    from rich.console import Console
    from rich.markdown import Markdown

    console = Console(file=io.StringIO(), width=width, color_system="truecolor", force_terminal=True)
    markdown = Markdown("\n".join(text.lines), hyperlinks=False)
    return [Strip(line).crop(0, width) for line in console.render_lines(markdown, pad=False)]

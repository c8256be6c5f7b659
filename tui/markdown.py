"""Markdown as strips, drawn in the reader thread: 8 KB of it take 0.15 s."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from textual.message import Message
from textual.strip import Strip

from dumptui.core.wrapping import Lines

LONGEST = 50_000
"""Characters; a longer text would take over a second."""


@dataclass
class Drawn(Message):
    """Passages of a block as Markdown, made for the conversation of a sample; none where the text is too long."""

    position: int
    message: int
    width: int
    passages: Mapping[int, Sequence[Strip]]


def draw(text: Lines, width: int) -> list[Strip]:
    """Links are shown as they are written and never become links of the terminal."""
    from rich.console import Console
    from rich.markdown import Markdown

    console = Console(file=io.StringIO(), width=width, color_system="truecolor", force_terminal=True)
    markdown = Markdown("\n".join(text.lines), hyperlinks=False)
    return [Strip(line).crop(0, width) for line in console.render_lines(markdown, pad=False)]

"""A line or two of text of fixed height."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from rich.console import Console
from rich.text import Text
from textual.widget import Widget

from dumptui.core.text import cell_width

GAP_TEXTS = ("  ", " · ")
"""The separators of two facts."""
FACT_PATTERN = re.compile(r"\S+(?: (?!·)\S+)*")
"""A fact: words with one blank between them."""
SHORT_CELLS = 24
"""Cells of the longest fact that is never broken over two lines."""
HELD_BLANK = "\ue000"
"""A blank where no line is broken; `visible` replaces this character in the text of dumps."""
STUB_CELLS = 8
"""Cells, including the `…`, below which the beginning of a fact is too short to be useful."""


class Line(Widget):
    """Text in a widget of fixed size; what doesn't fit ends in `…`. Showing the same text again writes nothing."""

    ALLOW_SELECT = False
    DEFAULT_CSS: ClassVar[str] = "Line { height: 1; padding: 0 1; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._content = Text()

    def say(self, text: Text | str) -> None:
        content = Text(text) if isinstance(text, str) else text
        if content != self._content or content.spans != self._content.spans:
            self._content = content
            self.refresh()

    def get_content_width(self, container: object, viewport: object) -> int:
        return self._content.cell_len

    def render(self) -> Text:
        return fitted(self._content, *self.size, self.app.console)


class TailedLine(Line):
    """A line with a last fact in several lengths: the longest that fits is shown, else none."""

    _tails: tuple[str, ...] = ()

    def say_with(self, text: Text, tails: Sequence[str]) -> None:
        if self._tails != tuple(tails):
            self._tails = tuple(tails)
            self.refresh()
        self.say(text)

    def render(self) -> Text:
        room = self.size.width - self._content.cell_len - len(GAP_TEXTS[0])
        tail = next((tail for tail in self._tails if cell_width(tail) <= room), "")
        text = self._content.copy().append(GAP_TEXTS[0] + tail, "bold") if tail else self._content
        return fitted(text, *self.size, self.app.console)


def fitted(text: Text, width: int, height: int, console: Console) -> Text:
    """Return `text` wrapped into `height` lines of `width` cells; the last line ends in `…` where text is left."""
    if width < 1 or height < 1:
        return Text()
    lines = [without_dots(line) for line in wrapped(text, width, height, console)]
    if len(lines) > height:
        del lines[height:]
        lines[-1].rstrip()
        lines[-1].append(" …")
        lines[-1].truncate(width, overflow="ellipsis")
        drop_stub(lines[-1])
    return Text("\n", no_wrap=True).join(lines)


def wrapped(text: Text, width: int, height: int, console: Console) -> list[Text]:
    """Return `text` broken between facts; only a long fact, such as a prompt, or a single line is broken inside."""
    held = text.copy()
    if height > 1:
        held.plain = FACT_PATTERN.sub(
            lambda fact: fact[0].replace(" ", HELD_BLANK) if len(fact[0]) <= SHORT_CELLS else fact[0], text.plain
        )
    lines = list(held.wrap(console, width))
    for line in lines:
        line.plain = line.plain.replace(HELD_BLANK, " ")
    return lines


def without_dots(line: Text) -> Text:
    """Return a line without the dot between two facts at its start or end."""
    line.rstrip()
    if line.plain.endswith(" ·"):
        line.right_crop(2)
    return line[2:] if line.plain.startswith("· ") else line


def drop_stub(line: Text) -> None:
    """Remove the last fact of a line that ends in `…`, if too little of it is left."""
    start, gap = max((line.plain.rfind(gap), gap) for gap in GAP_TEXTS)
    if start > 0 and len(line) - start - len(gap) < STUB_CELLS:
        line.right_crop(len(line) - start)
        line.append(" …")

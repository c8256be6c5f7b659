"""A line or two of text of fixed height."""

from __future__ import annotations

import re
from typing import ClassVar

from rich.console import Console
from rich.text import Text
from textual.widget import Widget

GAPS = ("  ", " · ")
"""What stands between two facts."""
FACT = re.compile(r"\S+(?: (?!·)\S+)*")
"""Words with one blank between them."""
SHORT = 24
"""The most cells of a fact that no line is broken in."""
HELD = "\ue000"
"""Stands for a blank that no line is broken at; `visible` lets no dump say it."""
STUB = 8
"""Cells, the `…` among them, below which the beginning of a fact says nothing."""


class Line(Widget):
    """Text in a place that never grows with it: what doesn't fit ends in `…`. Saying the same again writes nothing."""

    ALLOW_SELECT = False
    DEFAULT_CSS: ClassVar[str] = "Line { height: 1; padding: 0 1; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._said = Text()

    def say(self, text: Text | str) -> None:
        said = Text(text) if isinstance(text, str) else text
        if said != self._said or said.spans != self._said.spans:
            self._said = said
            self.refresh()

    def get_content_width(self, container: object, viewport: object) -> int:
        return self._said.cell_len

    def render(self) -> Text:
        return fitted(self._said, *self.size, self.app.console)


def fitted(text: Text, width: int, height: int, console: Console) -> Text:
    """`text` wrapped into `height` lines of `width` cells; the last one ends in `…` where more was to be said."""
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
    """Broken between facts; within one only where it is long, as a prompt is, or where there is but one line."""
    held = text.copy()
    if height > 1:
        held.plain = FACT.sub(lambda fact: fact[0].replace(" ", HELD) if len(fact[0]) <= SHORT else fact[0], text.plain)
    lines = list(held.wrap(console, width))
    for line in lines:
        line.plain = line.plain.replace(HELD, " ")
    return lines


def without_dots(line: Text) -> Text:
    """The dot between two facts is not needed where a line ends between them."""
    line.rstrip()
    if line.plain.endswith(" ·"):
        line.right_crop(2)
    return line[2:] if line.plain.startswith("· ") else line


def drop_stub(line: Text) -> None:
    """Take away what little of its last fact a line that ends in `…` has room for."""
    at, gap = max((line.plain.rfind(gap), gap) for gap in GAPS)
    if at > 0 and len(line) - at - len(gap) < STUB:
        line.right_crop(len(line) - at)
        line.append(" …")

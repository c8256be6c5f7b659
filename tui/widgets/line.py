"""A line or two of text of fixed height."""

from __future__ import annotations

from typing import ClassVar

from rich.console import Console
from rich.text import Text
from textual.widget import Widget


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
    lines = list(text.wrap(console, width))
    if len(lines) > height:
        del lines[height:]
        lines[-1].rstrip()
        lines[-1].append(" …")
        lines[-1].truncate(width, overflow="ellipsis")
    return Text("\n", no_wrap=True).join(lines)

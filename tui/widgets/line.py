"""A line or two of text of fixed height."""

from __future__ import annotations

from rich.text import Text
from textual.widgets import Static


class Line(Static):
    """Text whose place never depends on it: saying something new paints these cells only, the same again nothing."""

    ALLOW_SELECT = False

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, markup=False)
        self._said = Text()

    def say(self, text: Text | str) -> None:
        said = Text(text) if isinstance(text, str) else text
        if said != self._said or said.spans != self._said.spans:
            self._said = said
            self.update(said, layout=False)

"""One line of names, one of them active."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rich.text import Text
from textual import events
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget


class TabLine(Widget):
    """The tabs of the screen in one row; Textual's own take two and animate."""

    COMPONENT_CLASSES = {"tabs--active", "tabs--other"}
    DEFAULT_CSS = """
    TabLine {
        height: 1;
        width: auto;
        & > .tabs--active { color: $foreground; text-style: bold reverse; }
        & > .tabs--other { color: $text-muted; }
    }
    """

    active: reactive[str] = reactive("", layout=False)

    @dataclass
    class Chosen(Message):
        name: str

    def __init__(self, names: Mapping[str, str]) -> None:
        super().__init__()
        self._labels = {name: f" {at} {label} " for at, (name, label) in enumerate(names.items(), 1)}
        self.set_reactive(TabLine.active, next(iter(self._labels)))

    def get_content_width(self, container: object, viewport: object) -> int:
        return sum(map(len, self._labels.values()))

    def render(self) -> Text:
        styles = {
            True: self.get_component_rich_style("tabs--active"),
            False: self.get_component_rich_style("tabs--other"),
        }
        return Text.assemble(*((label, styles[name == self.active]) for name, label in self._labels.items()))

    def on_click(self, event: events.Click) -> None:
        at = 0
        for name, label in self._labels.items():
            at += len(label)
            if event.x < at:
                self.post_message(self.Chosen(name))
                return

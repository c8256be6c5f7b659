"""One line of names, one of them active."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rich.text import Text
from textual import events
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget


class TabLine(Widget):
    """Tabs in one row, numbers for the inactive ones where that is narrow; Textual's own take two rows and animate."""

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
        self._names = names
        self.set_reactive(TabLine.active, next(iter(names)))

    def get_content_width(self, container: object, viewport: object) -> int:
        return sum(len(label) for _, label in self._labels(short=False))

    def _labels(self, short: bool) -> Iterator[tuple[str, str]]:
        for at, (name, label) in enumerate(self._names.items(), 1):
            yield name, f" {at} " if short and name != self.active else f" {at} {label} "

    def _shown(self) -> list[tuple[str, str]]:
        return list(self._labels(short=self.size.width < self.get_content_width(None, None)))

    def render(self) -> Text:
        styles = {
            True: self.get_component_rich_style("tabs--active"),
            False: self.get_component_rich_style("tabs--other"),
        }
        return Text.assemble(*((label, styles[name == self.active]) for name, label in self._shown()), no_wrap=True)

    def on_click(self, event: events.Click) -> None:
        end = 0
        for name, label in self._shown():
            end += len(label)
            if event.x < end:
                self.post_message(self.Chosen(name))
                return

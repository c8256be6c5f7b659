"""One line of tabs, one of them active."""

from __future__ import annotations

from collections.abc import Mapping

from rich.text import Text
from textual import events
from textual.geometry import Size
from textual.reactive import reactive
from textual.widget import Widget

from dumptui.core.text import clip
from dumptui.tui.widgets.message import FrozenMessage

TAB_FORMS = ("whole", "numbers", "short")
"""All names; only the active name, between numbers; the same with less space."""
CUT_CELLS = 8
"""Cells of a name in the shortest form."""


class TabLine(Widget):
    """Tabs in one row, shown as numbers if the row is narrow; Textual's own take two rows and animate."""

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

    class Chosen(FrozenMessage):
        name: str

    def __init__(self, names: Mapping[str, str], share: float) -> None:
        """`share` is the fraction of the row that all names may take."""
        super().__init__()
        self._names = names
        self._share = share
        self.set_reactive(TabLine.active, next(iter(names)))

    def get_content_width(self, container: Size, viewport: object) -> int:
        """Return the same width for every active tab, so that switching tabs needs no layout."""
        widths = [self._width(form) for form in TAB_FORMS]
        return next((width for width in widths if width <= container.width * self._share), widths[-1])

    def _width(self, form: str) -> int:
        return max(sum(map(len, self._labels(form, active).values())) for active in self._names)

    def _labels(self, form: str, active: str) -> dict[str, str]:
        labels = {}
        for number, (name, label) in enumerate(self._names.items(), 1):
            if form == "whole":
                labels[name] = f" {number} {label} "
            elif form == "numbers":
                labels[name] = f" {number} {label} " if name == active else f" {number} "
            else:
                labels[name] = f" {number} {clip(label, CUT_CELLS)}" if name == active else f" {number}"
        return labels

    def _shown(self) -> dict[str, str]:
        form = next((form for form in TAB_FORMS if self._width(form) <= self.size.width), TAB_FORMS[-1])
        return self._labels(form, self.active)

    def render(self) -> Text:
        styles = {
            True: self.get_component_rich_style("tabs--active"),
            False: self.get_component_rich_style("tabs--other"),
        }
        return Text.assemble(
            *((label, styles[name == self.active]) for name, label in self._shown().items()), no_wrap=True
        )

    def on_click(self, event: events.Click) -> None:
        end = 0
        for name, label in self._shown().items():
            end += len(label)
            if event.x < end:
                self.post_message(self.Chosen(name))
                return

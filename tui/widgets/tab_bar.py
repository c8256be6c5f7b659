"""One line of tabs, one of them active."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.text import Text
from textual import events
from textual.geometry import Size
from textual.reactive import reactive
from textual.widget import Widget

from dumptui.core.text import clip
from dumptui.tui.widgets.message import FrozenMessage

TAB_FORMS = ("whole", "active", "short", "numbers", "clipped")
"""All titles; the active title and short ones; short titles; the active title between numbers; the same, clipped."""
FORMS_WITHOUT_SHORT = ("whole", "numbers", "clipped")
ROOMY_FORMS = ("whole", "numbers")  # with a blank at both sides of every tab
ACTIVE_SHARE = 0.77  # a long title is worth less than what the row says besides the tabs
CLIPPED_CELLS = 8
"""Cells of a title in the last form."""


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

    def __init__(self, titles: Mapping[str, str], short: Mapping[str, str] | None, share: float) -> None:
        """`titles` and `short` titles, if any, are by name; `share` is the part of the row that the tabs may take."""
        super().__init__()
        self._titles = titles
        self._short = short or {}
        self._forms = TAB_FORMS if short else FORMS_WITHOUT_SHORT
        self._share = share
        self._counts: dict[str, tuple[str, str]] = {}
        self.set_reactive(TabLine.active, next(iter(titles)))

    def count(self, name: str, text: str, short: str) -> None:
        """Show a number behind the title of a tab, or a `short` sign behind its short title."""
        if self._counts.get(name) != (text, short):
            self._counts[name] = text, short
            self.refresh(layout=True)

    def get_content_width(self, container: Size, viewport: object) -> int:
        """Return the same width for every active tab, so that switching tabs needs no layout."""
        widths = {form: self._width(form) for form in self._forms}
        shares = {"active": self._share * ACTIVE_SHARE}
        fitting = (width for form, width in widths.items() if width <= container.width * shares.get(form, self._share))
        return next(fitting, widths[self._forms[-1]])

    def _width(self, form: str) -> int:
        return max(sum(map(len, self._labels(form, active).values())) for active in self._titles)

    def _labels(self, form: str, active: str) -> dict[str, str]:
        labels = {}
        for number, (name, title) in enumerate(self._texts(form, active), 1):
            labels[name] = f" {number} {title}".rstrip()
            if name == active or form in ROOMY_FORMS:
                labels[name] += " "
        return labels

    def _texts(self, form: str, active: str) -> Iterator[tuple[str, str]]:
        for name, title in self._titles.items():
            count, sign = self._counts.get(name, ("", ""))
            if form == "whole":
                yield name, f"{title} {count}".rstrip()
            elif name == active and form in ("active", "numbers"):
                yield name, title
            elif form in ("active", "short"):
                yield name, self._short[name] + sign
            else:
                yield name, clip(title, CLIPPED_CELLS) if name == active else ""

    def _shown(self) -> dict[str, str]:
        form = next((form for form in self._forms if self._width(form) <= self.size.width), self._forms[-1])
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

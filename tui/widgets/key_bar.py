"""The footer: the keys that work here, in one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from rich.text import Text
from textual import events
from textual.binding import Binding
from textual.screen import Screen
from textual.widget import Widget

from dumptui.core.text import cell_width

GAP_CELLS = 2
OFFER_SHARE = 4  # what is offered before the keys takes at most one of so many parts of the line
LAST_KEYS = ["desk.copy", "desk.export", "app.quit", "app.help"]
"""The bindings shown at the end; on a narrow screen they are dropped first, except for the very last."""


class Entry(NamedTuple):
    """A key as the footer shows it: the key to press, its name on a keyboard, and its action."""

    key: str
    face: str
    label: str

    @property
    def width(self) -> int:
        return cell_width(self.face) + 1 + cell_width(self.label)


def fitting(entries: list[Entry], width: int) -> list[Entry]:
    """Return the first entries that fit in `width` cells, and always the last one, which is the help in a pane."""
    shown = list(entries)
    while len(shown) > 1 and sum(entry.width + GAP_CELLS for entry in shown) - GAP_CELLS > width:
        del shown[-2]
    return shown


def late(binding: Binding) -> int:
    return LAST_KEYS.index(binding.id) + 1 if binding.id in LAST_KEYS else 0


class KeyLine(Widget):
    """A footer in one widget: Textual's own makes a dozen new ones whenever the focus moves."""

    ALLOW_SELECT = False
    COMPONENT_CLASSES = {"keys--key"}
    DEFAULT_CSS = """
    KeyLine {
        height: 1;
        padding: 0 1;
        background: $footer-background;
        color: $footer-description-foreground;
        & > .keys--key { color: $footer-key-foreground; text-style: bold; }
    }
    """

    def __init__(self, offer: Callable[[int], Entry | None] = lambda width: None) -> None:
        """`offer` returns an entry of at most so many cells to show before all others, or None."""
        super().__init__()
        self._offer = offer

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._changed)
        self.app.screen_change_signal.subscribe(self, self._covered)

    def _changed(self, screen: Screen[object]) -> None:
        self.refresh()

    def _covered(self, top: Screen[object]) -> None:
        """Draw this line again on the screen that now lies over it."""
        self.refresh()
        if top is not self.screen:
            top.refresh(self.region)

    def entries(self) -> list[Entry]:
        """Return the keys of the screen on top, none where that one has a footer of its own."""
        top = self.app.screen
        if top is not self.screen and top.query(KeyLine):
            return []
        bindings = (active.binding for active in top.active_bindings.values())
        shown: dict[str, Binding] = {}
        for binding in bindings:
            if binding.show and binding.description:
                shown.setdefault(binding.action, binding)  # of a binding's keys, the first
        entries = [
            Entry(binding.key, self.app.get_key_display(binding), binding.description)
            for binding in sorted(shown.values(), key=late)
        ]
        offered = self._offer(self.size.width // OFFER_SHARE) if top is self.screen else None
        return fitting(entries if offered is None else [offered, *entries], self.size.width)

    def render(self) -> Text:
        key = self.get_component_rich_style("keys--key", partial=True)
        pieces = [Text.assemble((entry.face, key), " ", entry.label) for entry in self.entries()]
        return Text(" " * GAP_CELLS, no_wrap=True).join(pieces)

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        end = 0
        for entry in self.entries() if offset is not None else []:
            end += entry.width + GAP_CELLS
            if offset is not None and offset.x < end:
                self.app.simulate_key(entry.key)
                return

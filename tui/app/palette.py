"""The command palette: every step of the run, pane, bookmark and pair of hues, and every action that works here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from textual.await_complete import AwaitComplete
from textual.binding import Binding
from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from dumptui.core.text import visible
from dumptui.tui.panes import TABS
from dumptui.tui.screens.help import words_of

if TYPE_CHECKING:
    from dumptui.tui.app.app import DumpTui

PANE_HELP = "switch to this pane, at the same step and sample"


class Palette(CommandPalette):
    BINDINGS = [Binding("escape", "escape", "Close", id="palette.leave")]

    def dismiss(self, result: None = None) -> AwaitComplete:
        """As with a dialog of our own: a second click beside it comes when it is gone already."""
        return super().dismiss(result) if self.is_active else AwaitComplete()

    def _action_command_list(self, action: str) -> None:
        """Results that have just come have no room yet: Textual has no line of them to move a page from."""
        with suppress(KeyError):
            super()._action_command_list(action)


class Entry(NamedTuple):
    label: str
    go: Callable[[], object]
    help: str | None = None


class Destinations(Provider):
    """A provider of entries such as "Go to step 12", for every step and eval, pane, bookmark and pair of hues."""

    @property
    def dumptui(self) -> DumpTui:
        from dumptui.tui.app.app import DumpTui

        assert isinstance(self.app, DumpTui)
        return self.app

    def _steps(self) -> Iterator[Entry]:
        for key in reversed(self.dumptui.steps.run.steps):
            yield Entry(f"Go to {key}", partial(self.dumptui.rollout.steps.select, key))

    def _panes(self) -> Iterator[Entry]:
        for name, title in TABS.items():
            yield Entry(f"Pane: {title}", partial(self.dumptui.action_pane, name), PANE_HELP)

    def _hues(self) -> Iterator[Entry]:
        from dumptui.tui.widgets.heatmap.hues import HUE_PAIRS, meaning

        for pair in HUE_PAIRS:
            yield Entry(f"Hues: {pair}", partial(self.dumptui.tokens.choose_hues, pair), meaning(pair))

    def _mouse(self) -> Iterator[Entry]:
        taken = self.dumptui.takes_mouse
        label = "Mouse: leave it to the terminal" if taken else "Mouse: click and scroll in dumptui"
        tip = "select text without shift" if taken else "select text with shift and a drag"
        yield Entry(label, partial(self.dumptui.take_mouse, not taken), tip)

    def _bookmarks(self) -> Iterator[Entry]:
        from dumptui.tui.screens.bookmarks import bookmarks

        for mark in bookmarks(self.dumptui.state):
            yield Entry(visible(f"Bookmark: {mark.note or mark.place}"), partial(self.dumptui.places.go, mark.place))

    async def discover(self) -> Hits:
        app = self.dumptui
        newest = partial(app.rollout.steps.select, app.steps.newest)
        yield discovered(Entry(f"Go to the newest step, {app.steps.newest.step}", newest, "the last step on disk"))
        for entry in (*self._panes(), *self._bookmarks()):
            yield discovered(entry)

    async def search(self, query: str) -> Hits:
        for entry in (*self._steps(), *self._panes(), *self._hues(), *self._mouse(), *self._bookmarks()):
            if hit := matched(self, query, entry):
                yield hit


class Actions(Provider):
    """A provider of an entry for every key that works where the palette was opened, with the key."""

    def _actions(self, *, shown: bool) -> Iterator[Entry]:
        """Yield the actions of the footer, or the other actions."""
        done = {"command_palette", "dismiss(None)"}
        for active in self.screen.active_bindings.values():
            binding = active.binding
            matches = binding.show is shown and not binding.system and bool(binding.description)
            if matches and binding.action not in done:
                done.add(binding.action)
                name, tip = words_of(binding)
                label = f"{name}  ({self.app.get_key_display(binding)})"
                yield Entry(label, partial(self.app.run_action, binding.action, active.node), tip or None)

    async def discover(self) -> Hits:
        for entry in self._actions(shown=True):
            yield discovered(entry)

    async def search(self, query: str) -> Hits:
        for entry in (*self._actions(shown=True), *self._actions(shown=False)):
            if hit := matched(self, query, entry):
                yield hit


def discovered(entry: Entry) -> DiscoveryHit:
    return DiscoveryHit(Content(entry.label), entry.go, text=entry.label, help=entry.help)


def matched(provider: Provider, query: str, entry: Entry) -> Hit | None:
    """Return an entry as a hit, or None. Textual's own highlighting would read a note's `[/]` as markup."""
    matcher = provider.matcher(query)
    score, offsets = matcher.fuzzy_search.match(query, entry.label)
    label = Content(entry.label)
    for offset in offsets:
        label = label.stylize(matcher.match_style, offset, offset + 1)
    return Hit(score, label, entry.go, text=entry.label, help=entry.help) if score > 0 else None

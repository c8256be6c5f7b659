"""The command palette: every step of the run, pane, bookmark and pair of hues, and whatever a key does here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from textual.await_complete import AwaitComplete
from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from dumptui.core.text import visible

if TYPE_CHECKING:
    from dumptui.tui.app import DumpTui

PANE_HELP = "the same place seen another way"


class Palette(CommandPalette):
    def dismiss(self, result: None = None) -> AwaitComplete:
        """As with a dialog of our own: a second click beside it comes when it is gone already."""
        return super().dismiss(result) if self.is_active else AwaitComplete()


class Entry(NamedTuple):
    label: str
    go: Callable[[], object]
    help: str | None = None


class Places(Provider):
    """An entry for every step and eval there is, such as "Go to step 12", pane, bookmark and pair of hues."""

    @property
    def dumptui(self) -> DumpTui:
        from dumptui.tui.app import DumpTui

        assert isinstance(self.app, DumpTui)
        return self.app

    def _steps(self) -> Iterator[Entry]:
        for key in reversed(self.dumptui.run_.steps):
            yield Entry(f"Go to {key}", partial(self.dumptui.rollout.select_step, key))

    def _panes(self) -> Iterator[Entry]:
        from dumptui.tui.app import PANES

        for name, label in PANES.items():
            yield Entry(f"Pane: {label}", partial(self.dumptui.action_pane, name), PANE_HELP)

    def _hues(self) -> Iterator[Entry]:
        from dumptui.tui.hues import PAIRS, meaning

        for pair in PAIRS:
            yield Entry(f"Hues: {pair}", partial(self.dumptui.tokens.choose_hues, pair), meaning(pair))

    def _bookmarks(self) -> Iterator[Entry]:
        from dumptui.tui.bookmarks import bookmarks

        for mark in bookmarks(self.dumptui.state):
            yield Entry(visible(f"Bookmark: {mark.note or mark.place}"), partial(self.dumptui.go, mark.place))

    async def discover(self) -> Hits:
        app = self.dumptui
        newest = partial(app.rollout.select_step, app.newest)
        yield discovered(Entry(f"Go to the newest step, {app.newest.step}", newest, "the last on disk"))
        for entry in (*self._panes(), *self._bookmarks()):
            yield discovered(entry)

    async def search(self, query: str) -> Hits:
        for entry in (*self._steps(), *self._panes(), *self._hues(), *self._bookmarks()):
            if hit := found(self, query, entry):
                yield hit


class Actions(Provider):
    """An entry for every key that does something where the palette was opened, with the key."""

    def _actions(self, *, shown: bool) -> Iterator[Entry]:
        """Those of the line of keys, or the others."""
        done = {"command_palette", "dismiss(None)"}
        for active in self.screen.active_bindings.values():
            binding = active.binding
            wanted = binding.show is shown and not binding.system and bool(binding.description)
            if wanted and binding.action not in done:
                done.add(binding.action)
                label = f"{binding.description}  ({self.app.get_key_display(binding)})"
                yield Entry(label, partial(self.app.run_action, binding.action, active.node), active.tooltip or None)

    async def discover(self) -> Hits:
        for entry in self._actions(shown=True):
            yield discovered(entry)

    async def search(self, query: str) -> Hits:
        for entry in (*self._actions(shown=True), *self._actions(shown=False)):
            if hit := found(self, query, entry):
                yield hit


def discovered(entry: Entry) -> DiscoveryHit:
    return DiscoveryHit(Content(entry.label), entry.go, text=entry.label, help=entry.help)


def found(provider: Provider, query: str, entry: Entry) -> Hit | None:
    """Textual's own way to highlight would read a note's `[/]` as markup."""
    matcher = provider.matcher(query)
    score, offsets = matcher.fuzzy_search.match(query, entry.label)
    label = Content(entry.label)
    for at in offsets:
        label = label.stylize(matcher.match_style, at, at + 1)
    return Hit(score, label, entry.go, text=entry.label, help=entry.help) if score > 0 else None

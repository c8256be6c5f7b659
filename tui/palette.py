"""The command palette: every step of the run, and the panes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from textual.command import DiscoveryHit, Hit, Hits, Provider

if TYPE_CHECKING:
    from dumptui.tui.app import DumpTui

PANE_HELP = "the same place seen another way"


class Places(Provider):
    """An entry for every step and eval there is, such as "Go to step 12", and for every pane."""

    @property
    def dumptui(self) -> DumpTui:
        from dumptui.tui.app import DumpTui

        assert isinstance(self.app, DumpTui)
        return self.app

    def _steps(self) -> Iterator[tuple[str, Callable[[], object]]]:
        for key in reversed(self.dumptui.run_.steps):
            yield f"Go to {key}", partial(self.dumptui.rollout.select_step, key)

    def _panes(self) -> Iterator[tuple[str, Callable[[], object]]]:
        from dumptui.tui.app import PANES

        for name, label in PANES.items():
            yield f"Pane: {label}", partial(self.dumptui.action_pane, name)

    async def discover(self) -> Hits:
        app = self.dumptui
        newest = partial(app.rollout.select_step, app.newest)
        yield DiscoveryHit(f"Go to the newest step, {app.newest.step}", newest, help="the last on disk")
        for label, go in self._panes():
            yield DiscoveryHit(label, go, help=PANE_HELP)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for label, go in [*self._steps(), *self._panes()]:
            if (score := matcher.match(label)) > 0:
                yield Hit(score, matcher.highlight(label), go)

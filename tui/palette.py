"""The command palette: every step of the run."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from textual.command import DiscoveryHit, Hit, Hits, Provider

if TYPE_CHECKING:
    from dumptui.tui.app import DumpTui


class Steps(Provider):
    """An entry for every step and eval there is, such as "Go to step 12"."""

    @property
    def dumptui(self) -> DumpTui:
        from dumptui.tui.app import DumpTui

        assert isinstance(self.app, DumpTui)
        return self.app

    async def discover(self) -> Hits:
        app = self.dumptui
        yield DiscoveryHit(
            "Go to the newest step", partial(app.go_to_step, max(app.run_.steps)), help="the last on disk"
        )

    async def search(self, query: str) -> Hits:
        app = self.dumptui
        matcher = self.matcher(query)
        for key in reversed(app.run_.steps):
            label = f"Go to {key}"
            if (score := matcher.match(label)) > 0:
                yield Hit(score, matcher.highlight(label), partial(app.go_to_step, key))

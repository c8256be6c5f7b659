"""What a person does with what is on screen, in whatever pane: go back to where they were."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.binding import Binding
from textual.widgets import ContentSwitcher

from dumptui.tui.place import Place, here
from dumptui.tui.widgets.keys import Entry

if TYPE_CHECKING:
    from dumptui.tui.app import DumpTui

VISIT = "visit"


class Desk(ContentSwitcher):
    """Holds the panes."""

    BINDINGS = [
        Binding(
            "grave_accent",
            "visit",
            "Last visit",
            key_display="`",
            show=False,
            id="desk.visit",
            tooltip="Go to where the last visit ended",
        ),
    ]

    @property
    def dumptui(self) -> DumpTui:
        from dumptui.tui.app import DumpTui

        assert isinstance(self.app, DumpTui)
        return self.app

    # Places ----------------------------------------------------------------------------------------------------

    def on_mount(self) -> None:
        self.visit = Place.from_json(self.dumptui.state.get(VISIT))

    def offer(self) -> Entry | None:
        """The place of the last visit, as long as nothing was opened and no place was asked for."""
        app = self.dumptui
        begun = app.placed or app.tokens.opened is not None or self.current != "rollout"
        if begun or self.visit is None or self.visit.key not in app.run_.steps:
            return None
        binding = next(one for _, one in self._bindings if one.id == "desk.visit")
        return Entry(binding.key, app.get_key_display(binding), f"back to {self.visit}")

    def remember(self) -> None:
        """Keep where this visit ends, for the next one; one that never left the start is none."""
        place = here(self.dumptui)
        if place != Place(self.dumptui.newest):
            self.dumptui.state.put(VISIT, place.to_json())

    def action_visit(self) -> None:
        if self.visit is None:
            self.notify("there was no visit before this one", markup=False)
        else:
            self.dumptui.go(self.visit)

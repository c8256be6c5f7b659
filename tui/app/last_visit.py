"""Where the last session of a run ended: offered in the footer until this session goes anywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dumptui.tui.panes import FIRST_PANE
from dumptui.tui.session.location import Location

if TYPE_CHECKING:
    from dumptui.core.store.state import State
    from dumptui.tui.app.pane_switcher import PaneSwitcher
    from dumptui.tui.app.panes import Panes
    from dumptui.tui.app.steps import Steps
    from dumptui.tui.widgets.key_bar import Entry

VISIT_KEY = "visit"
LAST_PLACE = "Last place"


class LastVisit:
    """The last session's `place`, None if there was none."""

    def __init__(self, state: State, steps: Steps, panes: Panes, switcher: PaneSwitcher, *, offered: bool) -> None:
        self._state = state
        self._steps = steps
        self._panes = panes
        self._switcher = switcher
        self._offered = offered
        self.place = Location.from_json(state.get(VISIT_KEY))

    def offer(self, width: int) -> Entry | None:
        """Return the key that goes to the place, for the footer, if it fits into `width` cells."""
        offered = self._offered and self._panes.name == FIRST_PANE
        if not offered or self.place is None or self.place.key not in self._steps.run.steps:
            return None
        labels = (f"Back to {self.place}", f"Back to {self.place.key}", LAST_PLACE)
        entries = [self._switcher.key_of("desk.visit", label) for label in labels]
        return next((entry for entry in entries if entry and entry.width <= width), None)

    def end_offer(self) -> None:
        self._offered = False

    def keep(self, place: Location) -> None:
        """Keep where this session ends, unless it never left the start."""
        if place != Location(self._steps.newest):
            self._state.put(VISIT_KEY, place.to_json())

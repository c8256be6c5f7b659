"""The part of the screen that holds the panes and shows one of them."""

from __future__ import annotations

from collections.abc import Iterable

from textual.binding import Binding
from textual.widget import Widget
from textual.widgets import ContentSwitcher

from dumptui.tui.panes import FIRST_PANE, PANES_BESIDE_SAMPLES
from dumptui.tui.presentation.sheets import SHEET_KEYS
from dumptui.tui.widgets.key_bar import Entry

ROOM_FOR_TWO_CELLS = 180  # cells: 80 for the samples, 100 for the text of one
MAX_KEY_PROBLEMS = 5  # problems of the file of keys that are shown at once
NOTICE_SECONDS = 15.0


class PaneSwitcher(ContentSwitcher):
    """Shows one pane, or on a wide screen the Rollout pane's samples beside a pane about one of them."""

    BINDING_GROUP_TITLE = "this view"
    BINDINGS = [
        *SHEET_KEYS,
        Binding("B", "app.bookmark", "Bookmark", show=False, id="desk.bookmark", tooltip="Bookmark this place"),
        Binding(
            "apostrophe",
            "app.bookmarks",
            "Bookmarks",
            key_display="'",
            show=False,
            id="desk.bookmarks",
            tooltip="List the bookmarks and go to one",
        ),
        Binding(
            "grave_accent",
            "app.visit",
            "Last session",
            key_display="`",
            show=False,
            id="desk.visit",
            tooltip="Go to where the last session ended",
        ),
    ]

    def watch_current(self, old: str | None, new: str | None) -> None:
        super().watch_current(old, new)
        self._arrange()

    def on_resize(self) -> None:
        self._arrange()

    def _arrange(self) -> None:
        beside = self.app.size.width >= ROOM_FOR_TWO_CELLS and self.current in PANES_BESIDE_SAMPLES
        self.set_class(beside, "-two")
        for rollout in self.query_children(f"#{FIRST_PANE}"):
            rollout.display = beside or self.current == FIRST_PANE

    def key_of(self, name: str, label: str) -> Entry | None:
        """Return the key of a binding by its id, as the footer shows it with another label; None while it has none."""
        active = (entry.binding for entry in self.screen.active_bindings.values())
        binding = next((binding for binding in active if binding.id == name), None)
        return None if binding is None else Entry(binding.key, self.app.get_key_display(binding), label)

    async def fill(self, panes: Iterable[Widget]) -> None:
        """Take in panes that are not on screen yet."""
        for pane in panes:
            await self.add_content(pane)
        self._take_keymap()

    def _take_keymap(self) -> None:
        from dumptui.tui.session.keymap import clashes, keys_file, read_keymap

        keymap, problems = read_keymap(keys_file())
        if keymap:
            self.app.set_keymap({name: ",".join(keys) for name, keys in keymap.items()})
            problems += clashes(self.screen, keymap)
        if problems:
            text = "\n".join(problems[:MAX_KEY_PROBLEMS])
            self.call_after_refresh(self.app.notify, text, severity="warning", markup=False, timeout=NOTICE_SECONDS)

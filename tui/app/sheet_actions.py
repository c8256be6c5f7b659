"""What a person does with what is on screen, in whatever pane: copy, export, come back to it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from textual import work
from textual.binding import Binding
from textual.widget import Widget
from textual.widgets import ContentSwitcher

from dumptui.core.errors import DumpError
from dumptui.core.text import clip, visible
from dumptui.tui.session.location import Location, current_place
from dumptui.tui.terminal.themes import keep_theme
from dumptui.tui.widgets.key_bar import Entry

if TYPE_CHECKING:
    from dumptui.core.formats.sample import Sample
    from dumptui.tui.app.app import DumpTui
    from dumptui.tui.presentation.sheets import Sheet

# What a key of the desk needs is imported by it: together it would keep the first screen waiting for 0.1 s.

VISIT_KEY = "visit"
ROOM_FOR_TWO = 180  # cells: 80 for the samples, 100 for the text of one
SAMPLE_VIEWS = ("tokens", "conversation", "pair")
WITHOUT_SAMPLE = ("steps", "batch", "health", "groups", "pair")
PROBLEMS, READING = 5, 15.0  # of the file of keys, how many are told at once, and for how many seconds
PREVIEW_CELLS = 60  # cells of what would be copied


SHEET_KEYS = [
    Binding("y", "copy", "Copy", id="desk.copy", tooltip="Copy a cell, the row or the sample's text"),
    Binding("e", "export", "Export", id="desk.export", tooltip="Write this view to a file"),
    Binding(
        "colon",
        "command",
        "Command line",
        key_display=":",
        show=False,
        id="desk.command",
        tooltip="Show the command line that prints this view",
    ),
]
"""Also those of a screen over the panes that has a sheet."""


class SheetActions(ContentSwitcher):
    """Holds the panes."""

    BINDING_GROUP_TITLE = "this view"
    BINDINGS = [
        *SHEET_KEYS,
        Binding("B", "bookmark", "Bookmark", show=False, id="desk.bookmark", tooltip="Bookmark this place"),
        Binding(
            "apostrophe",
            "bookmarks",
            "Bookmarks",
            key_display="'",
            show=False,
            id="desk.bookmarks",
            tooltip="List the bookmarks and go to one",
        ),
        Binding(
            "grave_accent",
            "visit",
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
        """Where there is room for two, a sample stands beside the table that it is of."""
        beside = self.app.size.width >= ROOM_FOR_TWO and self.current in SAMPLE_VIEWS
        self.set_class(beside, "-two")
        for rollout in self.query_children("#rollout"):
            rollout.display = beside or self.current == "rollout"

    @property
    def dumptui(self) -> DumpTui:
        from dumptui.tui.app.app import DumpTui

        assert isinstance(self.app, DumpTui)
        return self.app

    def say(self, text: str, *, problem: bool = False) -> None:
        """In place of what was said before, which would cover the panes with it."""
        self.app.clear_notifications()
        self.notify(visible(text), severity="warning" if problem else "information", markup=False)

    def _sheet(self) -> Sheet | None:
        from dumptui.tui.presentation.sheets import sheet_of

        sheet = sheet_of(self.dumptui)
        if sheet is None:
            self.say("nothing is shown here yet", problem=True)
        return sheet

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
            told = "\n".join(problems[:PROBLEMS])
            self.call_after_refresh(self.app.notify, told, severity="warning", markup=False, timeout=READING)

    # Copying ---------------------------------------------------------------------------------------------------

    def action_copy(self) -> None:
        from dumptui.tui.widgets.dialogs.choices import Choose

        if (sheet := self._sheet()) is None:
            return
        texts = self._texts(sheet)

        def chosen(at: str | None) -> None:
            if at is not None:
                self.copy(*texts[int(at)])

        choices = [(str(at), f"{visible(name):<22} {preview(text)}") for at, (name, text) in enumerate(texts)]
        self.app.push_screen(Choose("copy", choices), chosen)

    def _texts(self, sheet: Sheet) -> list[tuple[str, str]]:
        """What can be copied of what is on screen, each with its name."""
        from dumptui.tui.cell_formats.tables import plain, to_json

        found = [] if sheet.row is None else [(sheet.row_name, to_json(sheet.row))]
        found += sheet.texts
        sample = None if sheet.view in WITHOUT_SAMPLE else self._sample()
        if sample is not None:
            found += [("the response", sample.response), ("the prompt", prompt(sample))]
        found.append(("the command line", self._command_line(sheet)))
        return found + [(name, str(plain(value))) for name, value in (sheet.row or {}).items() if value is not None]

    def _sample(self) -> Sample | None:
        app = self.dumptui
        position = None if app.loaded is None else app.rollout.current
        return None if app.loaded is None or position is None else app.loaded.step.samples[position]

    def copy(self, name: str, text: str) -> None:
        """To the clipboard; to a file what is longer than terminals take."""
        from dumptui.tui.terminal.clipboard import PASTE_HINTS, copyable, fits, multiplexer

        text = copyable(text)
        if not fits(text):
            self._save("dumptui-copy", "txt", lambda: text, f"{name} is too long for the clipboard: ")
            return
        self.app.copy_to_clipboard(text)
        hint = PASTE_HINTS.get(multiplexer(os.environ), "")
        self.say(f"copied {name}" + f"; {hint}" * bool(hint))

    # Files -----------------------------------------------------------------------------------------------------

    def action_export(self) -> None:
        from dumptui.tui.presentation.exports import EXPORT_FORMATS, FORMAT_LABELS
        from dumptui.tui.widgets.dialogs.choices import Choose

        if (sheet := self._sheet()) is None:
            return

        def chosen(form: str | None) -> None:
            if form is not None:
                self._save(sheet.name, form, lambda: EXPORT_FORMATS[form](sheet))

        self.app.push_screen(Choose(f"export to {sheet.name} as", list(FORMAT_LABELS.items())), chosen)

    @work
    async def _save(self, stem: str, suffix: str, text: Callable[[], str], why: str = "") -> None:
        """Write a file, in the thread that reads: `text` may have to."""
        from dumptui.tui.presentation.exports import folder_for, in_folder, write_new

        def save() -> Path:
            return write_new(folder_for(self.dumptui.run_), stem, suffix, text())

        try:
            path = await asyncio.wrap_future(self.dumptui.reader.submit(save))
        except (OSError, DumpError) as error:
            self.say(f"not written: {error}", problem=True)
        else:
            self.say(f"{why}written to {in_folder(path)}")

    # The command line ------------------------------------------------------------------------------------------

    def _command_line(self, sheet: Sheet) -> str:
        from dumptui.tui.presentation.command_line import command_line

        return command_line(self.dumptui.run_, sheet, self.dumptui.reader.reward_key)

    def action_command(self) -> None:
        from dumptui.tui.presentation.command_line import CommandLine

        if (sheet := self._sheet()) is None:
            return
        line = self._command_line(sheet)

        def answered(copy: bool | None) -> None:
            if copy:
                self.copy("the command line", line)

        self.app.push_screen(CommandLine(line), answered)

    # Places ----------------------------------------------------------------------------------------------------

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, lambda theme: keep_theme(theme.name))
        self.visit = Location.from_json(self.dumptui.state.get(VISIT_KEY))

    def offer(self) -> Entry | None:
        """The place of the last visit, as long as this one is at none."""
        app = self.dumptui
        begun = app.placed or self.current != "rollout"
        if begun or self.visit is None or self.visit.key not in app.run_.steps:
            return None
        active = (one.binding for one in self.screen.active_bindings.values())
        binding = next((one for one in active if one.id == "desk.visit"), None)
        if binding is None:
            return None
        return Entry(binding.key, app.get_key_display(binding), f"back to {self.visit}")

    def remember(self) -> None:
        """Keep where this visit ends, for the next one; one that never left the start is none."""
        place = current_place(self.dumptui)
        if place != Location(self.dumptui.newest):
            self.dumptui.state.put(VISIT_KEY, place.to_json())

    def action_bookmark(self) -> None:
        from dumptui.tui.screens.bookmarks import Note, note_of, set_bookmark

        state, place = self.dumptui.state, current_place(self.dumptui)

        def noted(note: str | None) -> None:
            if note is not None:
                set_bookmark(state, place, note)
                done = f"bookmarked {place}; ' lists the bookmarks"
                self.say(state.problem or done, problem=state.problem is not None)

        self.app.push_screen(Note(place, note_of(state, place)), noted)

    def action_bookmarks(self) -> None:
        from dumptui.tui.screens.bookmarks import Bookmarks

        def chosen(place: Location | None) -> None:
            if place is not None:
                self.dumptui.go(place)

        self.app.push_screen(Bookmarks(self.dumptui.state, self.visit), chosen)

    def action_visit(self) -> None:
        if self.visit is None:
            self.say("there was no earlier session")
        else:
            self.dumptui.go(self.visit)


def prompt(sample: Sample) -> str:
    """Chat messages as JSON."""
    if isinstance(sample.prompt, str):
        return sample.prompt
    import json

    from dumptui.core.sample.messages import as_recorded
    from dumptui.tui.cell_formats.tables import strict

    return json.dumps(strict(as_recorded(sample.prompt)), ensure_ascii=False)


def preview(text: str) -> str:
    return clip(visible(" ".join(text[: 4 * PREVIEW_CELLS].split())), PREVIEW_CELLS)

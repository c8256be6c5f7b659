"""What a person does with the view on screen, in whatever pane: copy it, export it, come back to it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from dumptui.core.errors import DumpError
from dumptui.core.text import clip, visible
from dumptui.tui.panes.rollout.pane import RolloutPane
from dumptui.tui.presentation.sheets import Sheeted, SheetSource

if TYPE_CHECKING:
    from dumptui.core.formats.sample import Sample
    from dumptui.core.store.state import State
    from dumptui.tui.app.last_visit import LastVisit
    from dumptui.tui.app.panes import Panes
    from dumptui.tui.app.places import Places
    from dumptui.tui.app.steps import Steps
    from dumptui.tui.presentation.sheets import Sheet
    from dumptui.tui.reading.reader import Reader
    from dumptui.tui.session.location import Location
    from dumptui.tui.terminal.terminal_app import TerminalApp

# What one key needs is imported by it: together it would keep the first screen waiting for 0.1 s.

VIEWS_WITHOUT_SAMPLE = ("steps", "batch", "health", "groups", "prompts", "tools", "pair")
PREVIEW_CELLS = 60  # cells of what would be copied


class SheetActions:
    """Copies and exports the sheet of the pane on screen, and keeps places of the run."""

    def __init__(
        self,
        app: TerminalApp,
        steps: Steps,
        reader: Reader,
        panes: Panes,
        places: Places,
        state: State,
        visit: LastVisit,
    ) -> None:
        """`state` keeps bookmarks, `visit` where the session ends."""
        self._app = app
        self._steps = steps
        self._reader = reader
        self._panes = panes
        self._rollout = panes.of(RolloutPane)
        self._places = places
        self._state = state
        self._visit = visit

    def _say(self, text: str, *, problem: bool = False) -> None:
        """Notify in place of the earlier notification, which would cover more of the panes."""
        self._app.clear_notifications()
        self._app.notify(visible(text), severity="warning" if problem else "information", markup=False)

    def sheet(self) -> Sheet | None:
        """Return the sheet of the pane on screen, or of the screen over it; None while nothing is shown."""
        screen = self._app.screen
        return screen.sheet() if isinstance(screen, Sheeted) else self._panes.current.sheet(self._source())

    def _sheet(self) -> Sheet | None:
        """Return the sheet, or say that there is none."""
        sheet = self.sheet()
        if sheet is None:
            self._say("nothing is shown here yet", problem=True)
        return sheet

    def _source(self) -> SheetSource:
        loaded = self._steps.loaded
        position = None if loaded is None else self._rollout.current
        return SheetSource(None if loaded is None else loaded.step, position, self._reader.words)

    # Copying -----------------------------------------------------------------------------------------------------

    def ask_copy(self) -> None:
        """Ask which part of the view to copy."""
        from dumptui.tui.widgets.dialogs.choices import Choose

        if (sheet := self._sheet()) is None:
            return
        texts = self._texts(sheet)

        def chosen(number: str | None) -> None:
            if number is not None:
                self.copy(*texts[int(number)])

        choices = [(str(number), f"{visible(name):<22} {preview(text)}") for number, (name, text) in enumerate(texts)]
        self._app.push_screen(Choose("copy", choices), chosen)

    def _texts(self, sheet: Sheet) -> list[tuple[str, str]]:
        """Return what can be copied of the view, each text with its name."""
        from dumptui.tui.cell_formats.tables import plain, to_json

        texts = [] if sheet.row is None else [(sheet.row_name, to_json(sheet.row))]
        texts += sheet.texts
        sample = None if sheet.view in VIEWS_WITHOUT_SAMPLE else self._sample()
        if sample is not None:
            texts += [("the response", sample.response), ("the prompt", prompt(sample))]
        texts.append(("the command line", self._command_line(sheet)))
        return texts + [(name, str(plain(value))) for name, value in (sheet.row or {}).items() if value is not None]

    def _sample(self) -> Sample | None:
        source = self._source()
        return None if source.step is None or source.position is None else source.step.samples[source.position]

    def copy(self, name: str, text: str) -> None:
        """Copy a text to the clipboard; write one that is longer than terminals take to a file."""
        from dumptui.tui.terminal.clipboard import PASTE_HINTS, copyable, fits, multiplexer

        text = copyable(text)
        if not fits(text):
            return self._save("dumptui-copy", "txt", lambda: text, f"{name} is too long for the clipboard: ")
        self._app.copy_to_clipboard(text)
        hint = PASTE_HINTS.get(multiplexer(os.environ))
        self._say(f"copied {name}" if hint is None else f"copied {name}; {hint}")

    # Files -------------------------------------------------------------------------------------------------------

    def ask_export(self) -> None:
        """Ask for a format, and write the view to a file."""
        from dumptui.tui.presentation.exports import EXPORT_FORMATS, FORMAT_LABELS
        from dumptui.tui.widgets.dialogs.choices import Choose

        if (sheet := self._sheet()) is None:
            return

        def chosen(form: str | None) -> None:
            if form is not None:
                self._save(sheet.name, form, lambda: EXPORT_FORMATS[form](sheet))

        self._app.push_screen(Choose(f"export to {sheet.name} as", list(FORMAT_LABELS.items())), chosen)

    def _save(self, stem: str, suffix: str, text: Callable[[], str], reason: str = "") -> None:
        self._app.run_worker(self._write(stem, suffix, text, reason))

    async def _write(self, stem: str, suffix: str, text: Callable[[], str], reason: str) -> None:
        """Write a file in the thread that reads, as `text` may have to read."""
        from dumptui.tui.presentation.exports import folder_for, in_folder, write_new

        def save() -> Path:
            return write_new(folder_for(self._steps.run), stem, suffix, text())

        try:
            path = await asyncio.wrap_future(self._reader.compute(save))
        except (OSError, DumpError) as error:
            self._say(f"not written: {error}", problem=True)
        else:
            self._say(f"{reason}written to {in_folder(path)}")

    # The command line --------------------------------------------------------------------------------------------

    def _command_line(self, sheet: Sheet) -> str:
        from dumptui.tui.presentation.command_line import command_line

        return command_line(self._steps.run, sheet, self._reader.reward_key)

    def show_command(self) -> None:
        """Show the command line that prints the view."""
        from dumptui.tui.screens.command_line import CommandLine

        if (sheet := self._sheet()) is None:
            return
        line = self._command_line(sheet)

        def answered(copy: bool | None) -> None:
            if copy:
                self.copy("the command line", line)

        self._app.push_screen(CommandLine(line), answered)

    # Places ------------------------------------------------------------------------------------------------------

    def remember(self) -> None:
        """Keep where this session ends."""
        self._visit.keep(self._places.current)

    def ask_bookmark(self) -> None:
        """Ask for a note, and bookmark the place on screen."""
        from dumptui.tui.screens.bookmarks import Note, note_of, set_bookmark

        state, place = self._state, self._places.current

        def noted(note: str | None) -> None:
            if note is not None:
                set_bookmark(state, place, note)
                done = f"bookmarked {place}; ' lists the bookmarks"
                self._say(state.problem or done, problem=state.problem is not None)

        self._app.push_screen(Note(place, note_of(state, place)), noted)

    def list_bookmarks(self) -> None:
        from dumptui.tui.screens.bookmarks import Bookmarks

        def chosen(place: Location | None) -> None:
            if place is not None:
                self._places.go(place)

        self._app.push_screen(Bookmarks(self._state, self._visit.place), chosen)

    def go_to_visit(self) -> None:
        """Go to where the last session ended."""
        if self._visit.place is None:
            self._say("there was no earlier session")
        else:
            self._places.go(self._visit.place)


def prompt(sample: Sample) -> str:
    """Return a prompt as text; chat messages as JSON."""
    if isinstance(sample.prompt, str):
        return sample.prompt
    import json

    from dumptui.core.sample.messages import as_recorded
    from dumptui.tui.cell_formats.tables import strict

    return json.dumps(strict(as_recorded(sample.prompt)), ensure_ascii=False)


def preview(text: str) -> str:
    return clip(visible(" ".join(text[: 4 * PREVIEW_CELLS].split())), PREVIEW_CELLS)

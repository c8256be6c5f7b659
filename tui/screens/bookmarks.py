"""The bookmarks of a run, each with a note, saved outside the run."""

from __future__ import annotations

from dataclasses import dataclass

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from dumptui.core.store.state import State
from dumptui.core.text import visible
from dumptui.tui.session.location import Location
from dumptui.tui.widgets.dialogs.choices import Dialog, Listing
from dumptui.tui.widgets.dialogs.prompt import Entry

STATE_KEY = "bookmarks"


@dataclass(frozen=True, slots=True)
class Bookmark:
    place: Location
    note: str


def bookmarks(state: State) -> list[Bookmark]:
    """Return the readable bookmarks, in the order of the run."""
    entries = state.get(STATE_KEY, [])
    marks = [read_bookmark(entry) for entry in entries] if isinstance(entries, list) else []
    return sorted(filter(None, marks), key=run_order)


def run_order(mark: Bookmark) -> tuple[object, ...]:
    place = mark.place
    return place.key, place.sample is not None, str(place.sample), -1 if place.token is None else place.token


def read_bookmark(value: object) -> Bookmark | None:
    match value:
        case {"place": where, "note": str(note)} if (place := Location.from_json(where)) is not None:
            return Bookmark(place, note)
    return None


def set_bookmark(state: State, place: Location, note: str | None) -> None:
    """Save a place with its note; None deletes its bookmark."""
    marks_elsewhere = [mark for mark in bookmarks(state) if mark.place != place]
    marks = marks_elsewhere if note is None else [*marks_elsewhere, Bookmark(place, note)]
    state.put(STATE_KEY, [{"place": mark.place.to_json(), "note": mark.note} for mark in marks])


def note_of(state: State, place: Location) -> str:
    """Return the note of a place, empty without a bookmark."""
    return next((mark.note for mark in bookmarks(state) if mark.place == place), "")


class Note(Dialog[str | None]):
    """A dialog for the note of a place; the answer is None when it is closed."""

    BINDINGS = [Binding("escape", "dismiss(None)", "Cancel", id="note.leave")]

    def __init__(self, place: Location, note: str) -> None:
        super().__init__()
        self.place, self.note = place, note

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog"):
            yield Static(Text(f"bookmark {visible(str(self.place))}", style="bold"))
            field = Entry(visible(self.note), "note (may be empty) · enter save")
            field.cursor_blink = False  # a blinking cursor would keep writing to the terminal
            field.select_on_focus = False
            yield field

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value)


class Bookmarks(Listing[Location]):
    """The bookmarks of the run, below the place of the last session; the answer is the place to open."""

    BINDINGS = [
        Binding("d,delete", "delete", "Delete", id="bookmarks.delete"),
    ]

    def __init__(self, state: State, visit: Location | None) -> None:
        super().__init__("bookmarks · enter open · d delete · esc close")
        self.state, self.visit = state, visit
        self.places: list[Location] = []

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog"):
            yield Static(Text(self.heading, style="bold"))
            yield OptionList(markup=False)

    def on_mount(self) -> None:
        self.query_one(OptionList).focus()
        self._show(0)

    def _show(self, highlighted: int) -> None:
        marks = bookmarks(self.state)
        visit = [] if self.visit is None else [Bookmark(self.visit, "last position in the previous session")]
        self.places = [mark.place for mark in (*visit, *marks)]
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options(Option(Content(label(mark))) for mark in (*visit, *marks))
        if not self.places:
            options.add_option(Option("no bookmarks yet; B adds one", disabled=True))
        options.highlighted = min(highlighted, len(self.places) - 1) if self.places else None

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self.places[event.option_index])

    def action_delete(self) -> None:
        index = self.query_one(OptionList).highlighted
        if index is not None and not (self.visit is not None and index == 0):
            set_bookmark(self.state, self.places[index], None)
            self._show(index)


def label(mark: Bookmark) -> str:
    return f"{visible(str(mark.place)):<38} {visible(mark.note)}"

"""Small questions over the screen."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option


class Choose(ModalScreen[str | None]):
    """One of several; the answer is its key, None when left."""

    BINDINGS = [
        Binding("escape,q", "dismiss(None)", "Leave", id="choose.leave"),
        Binding("j", "down", show=False, id="choose.down"),
        Binding("k", "up", show=False, id="choose.up"),
    ]

    def __init__(self, title: str, choices: Sequence[tuple[str, str]], current: str | None = None) -> None:
        super().__init__()
        self.heading = title
        self.choices = choices
        self.current = current

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog"):
            yield Static(Text(self.heading, style="bold"), id="dialog-title")
            yield OptionList(*(Option(Content(text), id=key) for key, text in self.choices), markup=False)

    def on_mount(self) -> None:
        keys = [key for key, _ in self.choices]
        if self.current in keys:
            self.query_one(OptionList).highlighted = keys.index(self.current)

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option.id)

    def action_down(self) -> None:
        self.query_one(OptionList).action_cursor_down()

    def action_up(self) -> None:
        self.query_one(OptionList).action_cursor_up()

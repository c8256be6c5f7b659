"""One line to type, over the screen."""

from __future__ import annotations

from collections.abc import Callable

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static


class Ask(ModalScreen[str | None]):
    """The answer is what was typed, None when left. `check` says what is wrong with an answer, "" if nothing is."""

    BINDINGS = [Binding("escape", "dismiss(None)", "Leave", id="ask.leave")]

    def __init__(self, title: str, value: str = "", check: Callable[[str], str] = lambda text: "") -> None:
        super().__init__()
        self.heading = title
        self.value = value
        self.check = check

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog"):
            yield Static(Text(self.heading, style="bold"), id="dialog-title")
            answer = Input(self.value, id="answer")
            answer.cursor_blink = False  # a blink is a write to the terminal, also where nothing changes
            yield answer
            yield Static(id="problem")

    @on(Input.Changed)
    def _typed(self) -> None:
        self.query_one("#problem", Static).update("")

    @on(Input.Submitted)
    def _done(self, event: Input.Submitted) -> None:
        problem = self.check(event.value)
        if problem:
            self.query_one("#problem", Static).update(Text(problem))
        else:
            self.dismiss(event.value)

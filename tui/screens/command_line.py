"""The dialog that shows the command line which prints the view on screen."""

from __future__ import annotations

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.widgets import Static

from dumptui.tui.widgets.dialogs.choices import Dialog


class CommandLine(Dialog[bool]):
    """A dialog that shows a command line in full; the answer is whether to copy it."""

    BINDINGS = [
        Binding("y,enter", "dismiss(True)", "Copy", id="command.copy"),
        Binding("escape,q", "dismiss(False)", "Close", id="command.leave"),
    ]

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog"):
            yield Static(Text("this command prints the view on screen · y copy · esc close", style="bold"))
            yield Static(Text(self.text, overflow="fold"), id="command")

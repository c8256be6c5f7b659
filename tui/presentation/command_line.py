"""The command line that prints the view on screen."""

from __future__ import annotations

import os
import shlex

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.widgets import Static

from dumptui.core.run.run import Run
from dumptui.core.text import sample_label
from dumptui.tui.presentation.sheets import Sheet
from dumptui.tui.widgets.dialogs.choices import Dialog


def command_line(run: Run, sheet: Sheet, reward_key: str | None) -> str:
    words = ["dumptui", str(run.root.resolve()), "--print", sheet.view]
    if sheet.key is not None:
        words += ["--eval" if sheet.key.evaluation else "--step", str(sheet.key.step)]
    if sheet.sample is not None:
        words += ["--sample", sample_label(sheet.sample.index, sheet.sample.occurrence)]
    words += sheet.options
    if reward_key is not None:
        words += ["--reward-key", reward_key]
    return " ".join(map(quoted, words))


def quoted(word: str) -> str:
    """Return a word quoted for a shell; unprintable ones as bytes, `$'\\x1b'`, which bash, zsh and ksh know."""
    if word.isprintable():
        return shlex.quote(word)
    return "$'" + "".join(map(escaped, word)) + "'"


def escaped(char: str) -> str:
    if char in "\\'":
        return "\\" + char
    return char if char.isprintable() else "".join(f"\\x{byte:02x}" for byte in os.fsencode(char))


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

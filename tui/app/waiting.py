"""`--follow` beside a job that has not begun: wait for the first step, and say for what."""

from __future__ import annotations

from pathlib import Path
from threading import Thread

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Middle
from textual.widgets import Static

from dumptui.core.errors import DumpError, NothingYet
from dumptui.core.files.step_files import StepKey
from dumptui.core.run.run import Run
from dumptui.core.text import visible
from dumptui.tui.app.follow import POLL_SECONDS
from dumptui.tui.terminal.terminal_app import TerminalApp


def is_worth_waiting(error: DumpError) -> bool:
    """Whether time may heal it, as it does no wrong path."""
    return isinstance(error, NothingYet) or isinstance(error.__cause__, OSError)


def look(root: Path, key: StepKey | None) -> Run | str:
    """The run once it holds the step that is asked for, or a later one, or any; until then why not."""
    try:
        run = Run.open(root)
    except DumpError as error:
        return str(error)
    if key is None or any(one.evaluation == key.evaluation and one >= key for one in run.steps):
        return run
    return f"{root}: no {key} yet"


def subject(root: Path, key: StepKey | None) -> str:
    return f"waiting for {key or 'the first step'} of {root.resolve().name}"


class WaitingApp(TerminalApp):
    """The screen until there is a step to show: `found` is the run then, None where it was left before."""

    CSS = """
    Screen { layers: _default; }
    Middle { width: 100%; height: 100%; }
    #waiting { width: 100%; content-align: center middle; text-align: center; padding: 0 1; }
    """
    ENABLE_COMMAND_PALETTE = False
    BINDINGS = [Binding("q,escape", "quit", "Quit", id="app.quit")]

    def __init__(self, root: Path, key: StepKey | None) -> None:
        super().__init__()
        self.found: Run | None = None
        self._root = root
        self._key = key
        self._looking = False

    def compose(self) -> ComposeResult:
        with Middle():
            yield Static(id="waiting")

    def on_mount(self) -> None:
        self._look()
        self.set_interval(POLL_SECONDS, self._look)

    def _look(self) -> None:
        """In a thread that nobody waits for at the end: a file system that hangs must not keep the screen."""
        if not self._looking:
            self._looking = True
            Thread(target=lambda: self._report(look(self._root, self._key)), daemon=True).start()

    def _report(self, found: Run | str) -> None:
        self.call_later(self._tell, found)

    def _tell(self, found: Run | str) -> None:
        self._looking = False
        if isinstance(found, Run):
            self.found = found
            return self.exit()
        text = Text(visible(subject(self._root, self._key)), style="bold", justify="center")
        text.append(f"\n{visible(found)}\n", "not bold").append("looked at every 2 s · q quits", "not bold")
        self.query_one("#waiting", Static).update(text)

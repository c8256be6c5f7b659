"""A line that says what is being read, shown once that takes long."""

from __future__ import annotations

import math
import time

from dumptui.tui.widgets.line import Line

UPDATE_SECONDS = 0.2  # seconds between two updates: one per frame could not be read
WAIT_SECONDS = 0.5  # seconds before the line is shown; for a shorter read it would only flicker


class WaitLine(Line):
    """A line over the last one above the footer: a place of its own would move all other lines twice per step."""

    DEFAULT_CSS = """
    WaitLine {
        layer: wait;
        dock: bottom;
        offset-y: -1;
        height: 1;
        display: none;
        background: $warning-muted;
        color: $text;
        text-style: bold;
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.waiting = False
        self._since = 0.0
        self._updated = 0.0

    def on_mount(self) -> None:
        self._timer = self.set_interval(WAIT_SECONDS, self._show, pause=True)

    def begin(self, text: str) -> None:
        """Show another text, or an update of the one on show."""
        self.say(f" {text} · esc cancels")
        self._updated = time.monotonic()
        if not self.waiting:
            self.waiting = True
            self._since = time.monotonic()
            self._timer.reset()
            self._timer.resume()

    @property
    def is_due(self) -> bool:
        """Whether it is time to update the text."""
        return self.waiting and time.monotonic() - self._updated > UPDATE_SECONDS

    def left(self, share: float) -> str:
        """Return in words how long the rest takes when this share is done; empty while that is unknown."""
        passed = time.monotonic() - self._since
        return f", about {math.ceil(passed / share - passed)} s left" if share > 0.1 and passed > WAIT_SECONDS else ""

    def end(self) -> None:
        self.waiting = False
        self._timer.pause()
        self.display = False

    def _show(self) -> None:
        self._timer.pause()
        self.display = self.waiting

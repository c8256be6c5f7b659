"""What is being read, shown once it takes long."""

from __future__ import annotations

import math
import time

from dumptui.tui.widgets.line import Line

EVERY = 0.2  # seconds between two words about it: a write a frame would be news to nobody
LONG = 0.5  # seconds before a reader wonders; what takes less would only flicker


class WaitLine(Line):
    """Lies over the last line above the keys: with a place of its own it would move all others twice a step."""

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
        self._told = 0.0

    def on_mount(self) -> None:
        self._timer = self.set_interval(LONG, self._show, pause=True)

    def begin(self, text: str) -> None:
        """Something else is read, or more of it is."""
        self.say(f" {text} · esc cancels")
        self._told = time.monotonic()
        if not self.waiting:
            self.waiting = True
            self._since = time.monotonic()
            self._timer.reset()
            self._timer.resume()

    @property
    def is_due(self) -> bool:
        """Whether more is to be said of what is read."""
        return self.waiting and time.monotonic() - self._told > EVERY

    def left(self, share: float) -> str:
        """About how long the rest takes when this share of it is done; nothing while that can't be told."""
        passed = time.monotonic() - self._since
        return f", about {math.ceil(passed / share - passed)} s left" if share > 0.1 and passed > LONG else ""

    def end(self) -> None:
        self.waiting = False
        self._timer.pause()
        self.display = False

    def _show(self) -> None:
        self._timer.pause()
        self.display = self.waiting

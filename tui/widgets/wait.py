"""What is being read, shown once it takes long."""

from __future__ import annotations

from dumptui.tui.widgets.line import Line

LONG = 0.5  # seconds before a reader wonders; what takes less would only flicker


class WaitLine(Line):
    DEFAULT_CSS = """
    WaitLine { height: 1; display: none; background: $warning-muted; color: $text; text-style: bold; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.waiting = False

    def on_mount(self) -> None:
        self._timer = self.set_interval(LONG, self._show, pause=True)

    def begin(self, text: str) -> None:
        """Something else is read, or more of it is."""
        self.say(f" {text} · escape leaves it")
        if not self.waiting:
            self.waiting = True
            self._timer.reset()
            self._timer.resume()

    def end(self) -> None:
        self.waiting = False
        self._timer.pause()
        self.display = False

    def _show(self) -> None:
        self._timer.pause()
        self.display = self.waiting

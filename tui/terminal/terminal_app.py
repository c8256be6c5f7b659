"""The app in its terminal: how it writes there, and how it is left."""

from __future__ import annotations

import asyncio
import os
import signal
import termios
from contextlib import suppress
from functools import partial
from typing import Any

from rich.console import RenderableType
from textual.dom import DOMNode
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.filter import Monochrome, NoColor
from textual.screen import Screen
from textual.widget import Widget

from dumptui.tui.terminal.clipboard import clipboard_sequence
from dumptui.tui.terminal.defects import DefectApp
from dumptui.tui.terminal.diff_painting import Painter, Rows, Shown
from dumptui.tui.terminal.driver import TerminalDriver
from dumptui.tui.terminal.themes import ON_BLACK

ENDING_SECONDS = 3.0
"""After a signal, until the process ends whatever the screen still waits for."""
LEAVING = b"\x1b[?1049l\x1b[?25h\x1b[?1000l\x1b[?1003l\x1b[?1006l\x1b[?2004l"  # alternate screen, cursor, mouse, paste
ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
CATCH_UP_SECONDS = 0.1
"""Between two looks at whether the terminal has taken what was written."""


class TerminalApp(DefectApp):
    """Writes differences, and ends tidily on request."""

    def __init__(self) -> None:
        super().__init__()
        self.register_theme(ON_BLACK)
        self.animation_level = "none"  # over SSH an animated page is 220 KB instead of 24
        self._shown = Shown()
        self._catches_up = False

    def get_driver_class(self) -> type[Driver]:
        found = super().get_driver_class()
        return TerminalDriver if found is LinuxDriver else found

    def on_mount(self) -> None:
        self.app_resume_signal.subscribe(self, self._repaint)
        if isinstance(self._driver, TerminalDriver):
            # All by the event loop: Textual's own handlers stop and start the driver between any two bytecodes, and
            # wait for ever when those are inside of the queue of what is to be written.
            loop = asyncio.get_running_loop()
            for number in ENDING_SIGNALS:
                loop.add_signal_handler(number, partial(self._end, self._driver, number))
            loop.add_signal_handler(signal.SIGTSTP, self._driver._sigtstp_application)
            loop.add_signal_handler(signal.SIGCONT, partial(resume, self._driver))

    def _end(self, driver: TerminalDriver, number: signal.Signals) -> None:
        if not os.isatty(driver.fileno):
            driver.leave()
        asyncio.get_running_loop().call_later(ENDING_SECONDS, end_at_once, driver, 128 + number)
        self.exit(return_code=128 + number)

    def action_suspend(self) -> None:
        if is_orphaned():  # a stop would be for good
            self.notify("no shell started dumptui, so none could make it go on", severity="warning", markup=False)
        else:
            os.kill(os.getpid(), signal.SIGTSTP)

    @property
    def takes_mouse(self) -> bool:
        """Whether clicks come here; else the terminal selects text with them."""
        return isinstance(self._driver, LinuxDriver) and self._driver._mouse

    def take_mouse(self, taken: bool) -> None:
        driver = self._driver
        if isinstance(driver, LinuxDriver) and taken != driver._mouse:
            driver._mouse = True  # both calls do nothing without
            driver._enable_mouse_support() if taken else driver._disable_mouse_support()
            driver._mouse = taken

    def end_without_terminal(self) -> None:
        if isinstance(self._driver, TerminalDriver) and not self._exit:
            self._driver.leave()
            self.exit(return_code=128 + signal.SIGHUP)

    def painted(self) -> None:
        """Do what waits until the screen was drawn; here nothing does."""

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        self._paint(screen, renderable)
        if renderable is not None:
            self.painted()

    def _paint(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        if self._lags():
            return
        if isinstance(renderable, Rows) and not self._batch_count:
            renderable = self._shown.changes(renderable)
        super()._display(screen, renderable)

    @property
    def is_exiting(self) -> bool:
        """Whether nothing is mounted any more, as the app ends."""
        return self._exit

    def set_window_title(self, title: str) -> None:
        """Name the terminal's window, which tmux and the like show."""
        if self._driver is not None and not self.is_headless:
            self._driver.write(f"\x1b]2;{title}\x07")

    def _lags(self) -> bool:
        """Whether the terminal has much to take yet: then nothing more is drawn until it has, and then all of it."""
        if not isinstance(self._driver, TerminalDriver) or not self._driver.lags:
            return False
        if not self._catches_up:
            self._catches_up = True
            self.set_timer(CATCH_UP_SECONDS, self._catch_up)
        return True

    def _catch_up(self) -> None:
        self._catches_up = False
        if not self._lags():
            self._repaint(None)

    def _register(self, parent: DOMNode, *widgets: Widget, **where: Any) -> list[Widget]:
        for widget in widgets:
            if isinstance(widget, Screen):
                widget._compositor = Painter()
                for below in self.screen_stack[-1:]:  # set when it is shown, they would style all of it once more
                    widget.add_class(*below.classes, update=False)
        return super()._register(parent, *widgets, **where)

    def _repaint(self, _: object) -> None:
        self._shown.forget()
        self.screen.refresh()

    def on_resize(self) -> None:
        self._shown.forget()  # terminals shift and wrap what they show when they are resized, also there and back

    def copy_to_clipboard(self, text: str) -> None:
        self._clipboard = text
        if self._driver is not None:
            self._driver.write(clipboard_sequence(text, os.environ))

    def watch_theme(self) -> None:
        """For NO_COLOR Textual has a filter that fits the first theme; with an ansi theme it makes black on black."""
        if self.no_color:
            others = [one for one in self._filters if not isinstance(one, (NoColor, Monochrome))]
            self._filters = [*others, NoColor() if self.native_ansi_color else Monochrome()]


def is_orphaned() -> bool:
    """Whether no process of this session, such as a shell, could continue this one after a stop."""
    try:
        return os.getsid(os.getppid()) != os.getsid(0)
    except OSError:  # the parent is gone
        return True


def resume(driver: LinuxDriver) -> None:
    """Go on after a stop. A signal to go on that follows none, as after a hang-up, would start the driver twice."""
    if driver._must_signal_resume:
        driver._sigcont_application()


def end_at_once(driver: TerminalDriver, code: int) -> None:
    """End the process whatever the screen still waits for, and leave the terminal as far as it reads."""
    with suppress(OSError, termios.error):
        os.set_blocking(driver.fileno, False)
        os.write(driver.fileno, LEAVING)
        if driver.attrs_before is not None:
            termios.tcsetattr(driver.fileno, termios.TCSANOW, driver.attrs_before)
    os._exit(code)

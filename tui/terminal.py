"""What the terminal shows already, so that only what differs is written, and how the terminal is left.

Over SSH bytes are what a screen costs. Textual writes every region that was refreshed, changed or not, and the whole
screen again after each layout: opening a sample came to 89 KB in three repaints at 120x40. As differences it is one
screen at most, 30 KB, and nothing where nothing changed.
"""

from __future__ import annotations

import asyncio
import os
import signal
import traceback
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rich.console import Console, RenderableType
from rich.segment import Segment
from rich.text import Text
from textual._compositor import ChopsUpdate, Compositor, CompositorUpdate
from textual.app import App
from textual.binding import Binding
from textual.css.query import NoMatches
from textual.drivers._writer_thread import WriterThread
from textual.drivers.linux_driver import LinuxDriver
from textual.filter import Monochrome, NoColor
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import MountError

from dumptui.core.text import visible
from dumptui.tui.copying import clipboard_sequence

ENDINGS = (signal.SIGTERM, signal.SIGHUP)


class Changes(CompositorUpdate):
    """Pieces of lines, each (x, y, strip), to write over what is shown."""

    def __init__(self, pieces: Sequence[tuple[int, int, Strip]]) -> None:
        self.pieces = pieces

    def render_segments(self, console: Console) -> str:
        return "".join(f"\x1b[{y + 1};{x + 1}H{strip.render(console)}" for x, y, strip in self.pieces)


class Terminal:
    """The lines last written, or nothing known of them after `forget`."""

    def __init__(self) -> None:
        self._lines: list[Strip | None] = []

    def forget(self) -> None:
        self._lines = []

    def changes(self, compositor: Compositor, update: CompositorUpdate) -> Changes | None:
        """What to write for the terminal to show `compositor`, of which `update` is a refresh; None when it does."""
        size = compositor.size
        if len(self._lines) != size.height:
            self._lines = [None] * size.height
        lines = range(size.height)
        if isinstance(update, ChopsUpdate):
            refreshed = {y for y, _, _ in update.spans}
            lines = [y for y in lines if y in refreshed]  # type: ignore[assignment]
        wanted = frozenset(lines)
        chops = compositor._render_chops(size.region, wanted.__contains__)
        pieces = []
        for y in lines:
            strip = Strip.join(chops[y].values()).simplify()
            if (found := difference(self._lines[y], strip)) is not None:
                pieces.append((found[0], y, found[1]))
            self._lines[y] = strip
        return Changes(pieces) if pieces else None


def difference(old: Strip | None, new: Strip) -> tuple[int, Strip] | None:
    """Where `new` first differs from `old`, and the piece of it to write there; None when they are equal."""
    if old is None or old.cell_length != new.cell_length:
        return 0, new
    before, after = list(old), list(new)
    if before == after:
        return None
    start = same(before, after)
    end = same(before[start:][::-1], after[start:][::-1])
    piece = Strip(after[start : len(after) - end])
    return sum(segment.cell_length for segment in after[:start]), piece


def same(one: Sequence[Segment], other: Sequence[Segment]) -> int:
    """How many segments from the start are equal."""
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count


class TerminalApp(App[None]):
    """Writes differences, ends tidily when it is told to end, and tells of a defect in one sentence."""

    BINDINGS = [Binding("ctrl+c", "quit", show=False, system=True)]

    def __init__(self) -> None:
        super().__init__()
        self.animation_level = "none"  # over SSH an animated page is 220 KB instead of 24
        self._terminal = Terminal()
        self._leaving = False

    def on_mount(self) -> None:
        self.app_resume_signal.subscribe(self, self._repaint)
        if isinstance(self._driver, LinuxDriver):
            # All by the event loop: Textual's own handlers stop and start the driver between any two bytecodes, and
            # wait for ever when those are inside of the queue of what is to be written.
            loop = asyncio.get_running_loop()
            for number in ENDINGS:
                loop.add_signal_handler(number, partial(self._end, self._driver, number))
            loop.add_signal_handler(signal.SIGTSTP, self._driver._sigtstp_application)
            loop.add_signal_handler(signal.SIGCONT, partial(resume, self._driver))

    def _end(self, driver: LinuxDriver, number: signal.Signals) -> None:
        if not os.isatty(driver.fileno):
            leave_terminal(driver)
        self.exit(return_code=128 + number)

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        if isinstance(renderable, CompositorUpdate) and not self._batch_count:
            renderable = self._terminal.changes(screen._compositor, renderable)
        super()._display(screen, renderable)

    def _repaint(self, _: object) -> None:
        self._terminal.forget()
        self.screen.refresh()

    def on_resize(self) -> None:
        self._terminal.forget()  # terminals shift and wrap what they show when they are resized, also there and back

    def copy_to_clipboard(self, text: str) -> None:
        self._clipboard = text
        if self._driver is not None:
            self._driver.write(clipboard_sequence(text, os.environ))

    def watch_theme(self) -> None:
        """For NO_COLOR Textual has a filter that fits the first theme; with an ansi theme it makes black on black."""
        if self.no_color:
            others = [one for one in self._filters if not isinstance(one, (NoColor, Monochrome))]
            self._filters = [*others, NoColor() if self.native_ansi_color else Monochrome()]

    async def _shutdown(self) -> None:
        self._leaving = True
        await super()._shutdown()

    def _handle_exception(self, error: Exception) -> None:
        """Widgets are taken away before those that hold them, so what goes on at the end may find one gone."""
        if not ((self._exit or self._leaving) and isinstance(error, (NoMatches, MountError))):
            super()._handle_exception(error)

    def _fatal_error(self) -> None:
        """Not pages of local variables, which are text of the dump."""
        error = self._exception
        at = traceback.extract_tb(error.__traceback__)[-1] if error is not None else None
        where = f" at {Path(at.filename).name}:{at.lineno}" if at is not None else ""
        what = visible(f"{type(error).__name__}: {error}")
        self.panic(Text(f"dumptui: {what}{where}: a defect of dumptui, please report it"))


def resume(driver: LinuxDriver) -> None:
    """Go on after a stop. A signal to go on that follows none, as after a hang-up, would start the driver twice."""
    if driver._must_signal_resume:
        driver._sigcont_application()


def leave_terminal(driver: LinuxDriver) -> None:
    """The terminal was closed: what is still written has to go nowhere, as the queue of a writer that died blocks."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(nowhere, descriptor)
    if driver._writer_thread is not None and not driver._writer_thread.is_alive():
        driver._writer_thread = WriterThread(driver._file)  # type: ignore[arg-type]
        driver._writer_thread.start()

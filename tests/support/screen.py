"""What the tests of the screen share: the screen as text, waiting for it, and dumptui in a real pseudo-terminal."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyte
from textual._context import visible_screen_stack
from textual.app import App
from textual.events import Key
from textual.keys import _character_to_key
from textual.pilot import Pilot
from textual.strip import Strip

from dumptui.tui.panes import TABS

ROOT = Path(__file__).parents[2]
DEADLINE = 30.0
"""Seconds until a test gives up; they are only spent when it fails."""

HOPS = 4
"""Messages in a row that a key may cause: the key to the app, the widget, its message to the pane, that to the app."""

KEYS = {
    "enter": "\r",
    "escape": "\x1b",
    "tab": "\t",
    "down": "\x1b[B",
    "up": "\x1b[A",
    "right": "\x1b[C",
    "ctrl+p": "\x10",
    "ctrl+f": "\x06",
    "ctrl+g": "\x07",
}
KEYS |= {
    "ctrl+c": "\x03",
    "ctrl+z": "\x1a",
    "ctrl+q": "\x11",
    "end": "\x1b[F",
    "home": "\x1b[H",
    "pagedown": "\x1b[6~",
    "pageup": "\x1b[5~",
}

# What Textual writes itself: colours, cursor moves, private modes, the kitty keyboard protocol, device queries.
KNOWN_SEQUENCE = re.compile(
    rb"\x1b\[(?:[0-9;:]*m|[0-9;]*H|\?[0-9;]+[hl]|\?[0-9]+\$p|[<>=?]?[0-9;]*u|[0-9]*c|2J|3J)|\x1b\]22;[a-z-]+\x07"
)


def tab(name: str) -> str:
    """The key that opens a pane."""
    return str(list(TABS).index(name) + 1)


def strips(app: App[Any]) -> list[Strip]:
    """The whole screen, drawn anew."""
    visible_screen_stack.set(app._background_screens)
    return app.screen._compositor.render_strips()


def lines(app: App[Any]) -> list[str]:
    return [strip.text.rstrip() for strip in strips(app)]


def text(app: App[Any]) -> str:
    return "\n".join(lines(app))


async def until(pilot: Pilot[Any], condition: Callable[[], object]) -> None:
    """Wait for the thing itself."""
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, f"waited in vain:\n{text(pilot.app)}"
        await asyncio.sleep(0.01)


async def until_shown(pilot: Pilot[Any], *words: str) -> None:
    await until(pilot, lambda: all(word in text(pilot.app) for word in words))


async def until_wrapped(pilot: Pilot[Any], words: str) -> None:
    """Wait for words in a box, over however many of its lines they are wrapped."""
    await until(pilot, lambda: words in " ".join(text(pilot.app).replace("│", " ").split()))


async def still(pilot: Pilot[Any]) -> str:
    """The screen once nothing moves on it."""
    before = ""
    while before != (now := text(pilot.app)) or pilot.app.screen._layout_required:
        before = now
        await asyncio.sleep(0.05)
        await pilot._wait_for_screen()
    return now


async def press(pilot: Pilot[Any], *keys: str) -> None:
    """Type, and wait until all widgets have handled each key. Pilot.press waits for the process to rest."""
    for key in keys:
        name = key if len(key) > 1 else _character_to_key(key)
        event = Key(name, key if len(key) == 1 else " " if key == "space" else None)
        event.set_sender(pilot.app)
        pilot.app.post_message(event)
        for _ in range(HOPS):
            await pilot._wait_for_screen()


class Terminal:
    """dumptui in a pseudo-terminal that is its own controlling terminal, and what that shows."""

    def __init__(
        self,
        *words: str | Path,
        size: tuple[int, int] = (120, 40),
        env: dict[str, str] | None = None,
        code: str = "",
        controls: bool = True,
    ) -> None:
        """`code` runs before dumptui does; a terminal that does not control it sends no SIGHUP when it goes away."""
        self.master, slave = pty.openpty()
        self._screen = pyte.Screen(*size)
        self._stream = pyte.ByteStream(self._screen)
        self.raw = bytearray()
        self._fed = 0  # bytes of it that `screen` shows: pyte takes 0.1 s for a screenful, so only when asked
        self._set_size(*size)
        clean = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLORTERM")}
        command = f"{code}\nimport sys\nfrom dumptui.tui.cli.main import main\nsys.exit(main())"
        self.process = subprocess.Popen(
            [sys.executable, "-c", command, *map(str, words)],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=ROOT,
            env=clean | {"TERM": "xterm-256color", "COLORTERM": "truecolor"} | (env or {}),
            start_new_session=True,
            preexec_fn=lambda: controls and fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *exc: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.master >= 0:
            self.hang_up()

    def hang_up(self) -> None:
        os.close(self.master)
        self.master = -1

    def _set_size(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, columns: int, rows: int) -> None:
        self.screen.resize(rows, columns)
        self._set_size(columns, rows)

    def read(self, timeout: float) -> bytes:
        """What comes within `timeout` seconds; nothing when none does, or the program has ended."""
        if not select.select([self.master], [], [], timeout)[0]:
            return b""
        try:
            data = os.read(self.master, 1 << 16)
        except OSError:  # EIO: nobody holds the other end any more
            return b""
        self.raw += data
        return data

    def settle(self, quiet: float = 0.25) -> int:
        """Read until nothing comes for `quiet` seconds; the bytes that came."""
        before = len(self.raw)
        end = time.monotonic() + DEADLINE
        while self.read(quiet):
            assert time.monotonic() < end, "it never stops writing"
        return len(self.raw) - before

    def until(self, *words: str) -> None:
        """Wait until the screen shows all of these."""
        self.wait(lambda: all(word in self.text for word in words), " and ".join(words))

    def wait(self, condition: Callable[[], object], what: str) -> None:
        end = time.monotonic() + DEADLINE
        while not condition():
            while self.read(0.02):  # 4 KB at a time
                pass
            assert time.monotonic() < end, f"no {what}:\n{self.text}"

    def press(self, *keys: str) -> None:
        os.write(self.master, "".join(KEYS.get(key, key) for key in keys).encode())

    def skip(self) -> None:
        """Take what was written as seen; the next resize shows the whole screen again."""
        self._fed = len(self.raw)

    @property
    def screen(self) -> pyte.Screen:
        self._stream.feed(bytes(self.raw[self._fed :]))
        self._fed = len(self.raw)
        return self._screen

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.screen.display]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def end(self) -> int:
        """The exit code, once the program has ended and all it wrote is read."""
        self.wait(lambda: self.process.poll() is not None, "end of the program")
        while self.read(0.05):
            pass
        return self.process.returncode

    def wait_idle(self) -> None:
        """Wait until the program has computed nothing for half a second; nothing is read from it meanwhile."""
        end = time.monotonic() + DEADLINE
        used = -1
        while used != (used := self._processor_ticks()):
            assert time.monotonic() < end, "it never rests"
            time.sleep(0.5)

    def _processor_ticks(self) -> int:
        """The user and system time of the program, in hundredths of a second."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    def is_stopped(self) -> bool:
        state = subprocess.run(["ps", "-o", "stat=", "-p", str(self.process.pid)], capture_output=True, text=True)
        return state.stdout.startswith("T")

    def modes(self) -> dict[str, bool]:
        """The private modes, by number, as they were set last."""
        found = re.findall(rb"\x1b\[\?([0-9;]+)([hl])", bytes(self.raw))
        return {number: end == b"h" for numbers, end in found for number in numbers.decode().split(";")}

    def echoes(self) -> bool:
        """Whether the terminal is as a shell wants it: line by line, echoing, Ctrl+C a signal."""
        flags = termios.tcgetattr(self.master)[3]
        wanted = termios.ECHO | termios.ICANON | termios.ISIG
        return bool(flags & wanted == wanted)

    def assert_clean(self) -> None:
        modes = self.modes()
        on = [
            number
            for number in ("1049", "1000", "1002", "1003", "1006", "1015", "1016", "2004", "1004")
            if modes.get(number)
        ]
        assert not on, f"modes left on: {on}"
        assert modes["25"], "the cursor is hidden"
        assert modes.get("7", True), "line wrap is off"
        assert self.raw.count(b"\x1b[<u") == len(re.findall(rb"\x1b\[>\d+u", self.raw)), "the keyboard protocol is on"
        assert self.echoes()


def foreign(raw: bytes) -> list[bytes]:
    """The control bytes that Textual does not write itself: what a dump's text must never bring to a terminal."""
    left = KNOWN_SEQUENCE.sub(b"", raw).replace(b"\r\n", b"")
    return re.findall(
        rb"[\x00-\x1f\x7f][^\x1b]{0,12}|\xc2[\x80-\x9f]|\xe2\x80[\x8e\x8f\xaa-\xae]|\xe2\x81[\xa6-\xa9]", left
    )


def run(*words: str | Path, env: dict[str, str] | None = None, **more: Any) -> subprocess.CompletedProcess[str]:
    """dumptui with pipes for a terminal."""
    command: Sequence[str] = [sys.executable, "-m", "dumptui", *map(str, words)]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, env=os.environ | (env or {}), check=False, **more
    )

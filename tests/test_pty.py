"""dumptui in a real pseudo-terminal: what it writes there, and how it leaves it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyte
import pytest
from rich.console import RenderableType
from textual.screen import Screen

from dumptui.core.run import Run, StepKey
from dumptui.tui.app import DumpTui
from dumptui.tui.terminal import Terminal as Shown
from tests.screen import ROOT, Terminal, foreign, press, strips, until, until_shown
from tests.writer import sample, write_step

FULL_SCREEN = 30_000  # bytes, 120x40 in true colour
EVIL = "[/red]\x1b]0;owned\x07\x1b[2J\x1b[?1049l\x1b]52;c;b3duZWQ=\x07\u202e\x9b31m\x00\r"


def test_a_session(demo: Path) -> None:
    """Bytes a key costs, silence, resizing, stopping and going on, and the end, at once as a start takes a second."""
    with Terminal(demo) as terminal:
        terminal.until("step 3, 4 of 4", "32 samples in 8 groups", "eval 0    20")
        terminal.settle()
        for keys in ("down", "down", "enter", "pagedown", "enter", "]", "n", "pagedown", "right", "2", "tab", "3", "m"):
            terminal.press(keys)
            assert terminal.settle() < FULL_SCREEN, keys
        for key in ("escape", "escape", "1"):
            terminal.press(key)
            terminal.settle()
        terminal.until("1 Rollout", "< step 1 >")
        terminal.settle()
        assert terminal.settle(quiet=1.5) == 0

        for size in ((80, 24), (40, 12), (120, 40)):
            terminal.resize(*size)
            terminal.until("step 1, 2 of 4", "? Keys")
            terminal.settle()
        shown = terminal.text

        os.kill(terminal.process.pid, signal.SIGTSTP)
        terminal.wait(terminal.is_stopped, "return to the shell")
        terminal.settle()
        terminal.assert_clean()
        terminal.screen.reset()
        os.kill(terminal.process.pid, signal.SIGCONT)
        terminal.until("step 1, 2 of 4", "? Keys")
        terminal.settle()
        assert terminal.text == shown

        terminal.press("q")
        assert terminal.end() == 0
        terminal.assert_clean()
        assert foreign(bytes(terminal.raw)) == []


def quit_by_ctrl_c(terminal: Terminal) -> None:
    terminal.press("ctrl+c")


def send(number: signal.Signals) -> Callable[[Terminal], None]:
    return lambda terminal: terminal.process.send_signal(number)


CRASH = """
from dumptui.tui.panes.rollout import RolloutPane
def action_trend(self):
    raise LookupError("\\x1b]0;owned\\x07[/red]")
RolloutPane.action_trend = action_trend
"""


@pytest.mark.parametrize(
    ("end", "code"),
    [
        (quit_by_ctrl_c, 0),
        (send(signal.SIGTERM), 143),
        (send(signal.SIGHUP), 129),
        (lambda terminal: terminal.press("m"), 1),
    ],
    ids=["ctrl+c", "SIGTERM", "SIGHUP", "defect"],
)
def test_the_terminal_is_clean_after_every_end(demo: Path, end: Callable[[Terminal], None], code: int) -> None:
    with Terminal(demo, "--step", "2", size=(80, 24), code=CRASH) as terminal:
        terminal.until("step 2, 3 of 4", "? Keys")
        end(terminal)
        assert terminal.end() == code
        terminal.assert_clean()
        assert foreign(bytes(terminal.raw)) == []
        left = bytes(terminal.raw).rsplit(b"\x1b[?1049l")[-1].decode()
        assert "Traceback" not in left
        if code == 1:
            assert "LookupError: ␛]0;owned␇[/red]" in left
            assert "please report it" in " ".join(left.split())


def test_closing_the_terminal_ends_the_program(demo: Path) -> None:
    with Terminal(demo, size=(80, 24)) as terminal:
        terminal.until("step 3, 4 of 4", "? Keys")
        terminal.hang_up()
        assert terminal.process.wait(timeout=20) != 0


def test_text_of_a_dump_never_reaches_the_terminal_raw(tmp_path: Path) -> None:
    root = tmp_path / "run\x1b]0;owned\x07"
    facts = {"prompt": EVIL, "response": EVIL, "status": EVIL, "reward": {EVIL: 1.0}, "weight_versions": [EVIL]}
    for step in range(2):
        write_step(
            root,
            step,
            [sample(at, group_index=at, **facts) for at in range(3)],
            fields=(),
            truth={EVIL: [[0.5] * 6] * 3, "log_probs": [[-0.5] * 6] * 3},
        )
    (root / "rollout_data" / f"{EVIL.replace('/', '_').replace(chr(0), '')}.pt").write_bytes(b"")
    with Terminal(root, "--sample", "9", size=(100, 30)) as terminal:
        terminal.until("no sample 9", "train")
        for keys in ("enter", "a", "end", "s", "escape", "enter", "m", "escape", "2", "?", "?", "ctrl+p", "escape"):
            terminal.press(keys)
            terminal.settle(0.1)
        terminal.press("ctrl+q")
        assert terminal.end() == 0
        assert foreign(bytes(terminal.raw)) == []


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TEXTUAL_COLOR_SYSTEM": "standard"}], ids=["grey", "16 colours"])
def test_the_sign_of_a_token_is_seen_without_its_hue(demo: Path, env: dict[str, str]) -> None:
    with Terminal(demo, "--step", "2", "--sample", "64", size=(80, 24), env=env) as terminal:
        terminal.until("sample 64", "worst #")
        terminal.settle(0.1)
        body = [char for row in range(5, 13) for char in terminal.screen.buffer[row].values()]
        assert any(char.bold and not char.reverse for char in body)
        assert any(char.underscore for char in body)
        if "NO_COLOR" in env:
            hues = {char.fg for char in body} | {char.bg for char in body}
            assert all(hue == "default" or len(set(zip(hue[::2], hue[1::2], strict=True))) == 1 for hue in hues), hues


# What is written as differences shows the same as what is written in full ------------------------------------------


class Watched(DumpTui):
    """Shows what it would write to a terminal on `glass`."""

    CSS_PATH = ROOT / "tui" / "dumptui.tcss"

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.glass = pyte.Screen(1, 1)
        self.written = Shown()

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        super()._display(screen, renderable)
        if renderable is None or self._batch_count:
            return
        width, height = screen._compositor.size
        if (self.glass.lines, self.glass.columns) != (height, width):
            self.glass = pyte.Screen(width, height)
            self.glass.draw("X" * width * height)  # what a terminal makes of its old content is anyone's guess
            self.written.forget()
        update = self.written.changes(screen._compositor, renderable)  # type: ignore[arg-type]
        if update is not None:
            pyte.Stream(self.glass).feed(update.render_segments(self.console))


def drawn_anew(app: DumpTui) -> pyte.Screen:
    glass = pyte.Screen(*app.size)
    for y, strip in enumerate(strips(app)):
        pyte.Stream(glass).feed(f"\x1b[{y + 1};1H{strip.render(app.console)}")
    return glass


async def test_differences_add_up_to_the_whole_screen(demo: Path) -> None:
    app = Watched(Run.open(demo), StepKey(2))
    keys = [
        "down",
        "enter",
        "pagedown",
        "enter",
        "]",
        "n",
        "m",
        "down",
        "enter",
        "2",
        "tab",
        "end",
        "s",
        "1",
        "s",
        "escape",
    ]
    keys += ["ctrl+p", "escape", "?", "3", "right", "?", "escape", "<", "a", "right", "S"]
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        await until_shown(pilot, "32 samples in 8 groups")
        for at, key in enumerate(keys):
            if at == 15:
                await pilot.resize_terminal(60, 20)
            await press(pilot, key)
            await until(pilot, lambda: not app.wait.waiting)
            await until(pilot, lambda: app.glass.buffer == drawn_anew(app).buffer)

"""dumptui in a real pseudo-terminal: what it writes there, and how it leaves it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyte
import pytest
from pyte.screens import Char
from rich.console import RenderableType
from textual.screen import Screen

from dumptui.core.files.step_files import StepKey
from dumptui.core.run.run import Run
from dumptui.tui.app.app import DumpTui
from dumptui.tui.terminal.diff_painting import Rows, Shown
from tests.support.screen import DEADLINE, ROOT, Terminal, foreign, press, strips, tab, until, until_shown
from tests.support.writer import sample, write_step

FULL_SCREEN = 30_000  # bytes, 120x40 in true colour: no key may cost more
EVIL = "[/red]\x1b]0;owned\x07\x1b[2J\x1b[?1049l\x1b]52;c;b3duZWQ=\x07\u202e\x9b31m\x00\r"


WALK = {
    "down": "step 2, 3 of 4",
    "enter": ">    64",
    "end": ">    95",
    "\r": "sample 95 ·",
    "]": "#",
    "p": "sample 94 ·",
    "2": "2_0.pt rollout_log_probs",
    "3": "Δ against position",
    "m": "statistic for shades and chart",
    "escape": "sample 94 ·",
    "1": "< step 2 >",
    "<": "< step 1 >",
}


def test_a_session(demo: Path) -> None:
    """Bytes a key costs, silence, resizing, stopping and going on, and the end, at once as a start takes a second."""
    with Terminal(demo) as terminal:
        terminal.until("step 3, 4 of 4", "32 samples in 8 groups", "eval 0    20")
        for key, shown in WALK.items():
            before = len(terminal.raw)
            terminal.press(key)
            terminal.until(shown)
            terminal.settle(0.3 if key == "escape" else 0.05)  # a key right after an escape is another key
            assert len(terminal.raw) - before < 1.5 * FULL_SCREEN, key  # the end of the key before may be in it
        terminal.settle()
        assert len(terminal.raw) < 7 * FULL_SCREEN
        assert terminal.settle(quiet=1.0) == 0

        for size in ((40, 12), (120, 40)):
            terminal.resize(*size)
            terminal.until("step 1, 2 of 4", "? Keys")
            terminal.settle(1.0)
        shown = terminal.text

        os.kill(terminal.process.pid, signal.SIGTSTP)
        terminal.wait(terminal.is_stopped, "return to the shell")
        terminal.settle()
        terminal.assert_clean()
        terminal.screen.reset()
        os.kill(terminal.process.pid, signal.SIGCONT)
        terminal.wait(lambda: terminal.text == shown, "screen as before")

        terminal.press("ctrl+c")
        assert terminal.end() == 0
        terminal.assert_clean()
        assert foreign(bytes(terminal.raw)) == []


SHELL = """
import os, signal, sys
child = os.fork()
if child:
    _, status = os.waitpid(child, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    assert input("stopped $ ") == "fg"
    os.kill(child, signal.SIGCONT)
    _, status = os.waitpid(child, 0)
    os._exit(os.waitstatus_to_exitcode(status))
"""
"""A shell that continues its only job."""


def test_ctrl_z_stops_and_the_shell_continues_it(demo: Path) -> None:
    with Terminal(demo, code=SHELL) as terminal:
        terminal.until("< step 3 ·", "what is wrong", "reward against length", "? Keys")
        terminal.settle(1.0)
        shown = terminal.text
        terminal.press("ctrl+z")
        terminal.until("stopped $ ")
        terminal.settle()
        terminal.assert_clean()
        terminal.press("f", "g", "\n")
        terminal.wait(lambda: terminal.text == shown, "screen as before")
        terminal.press("<")
        terminal.until("< step 2 >")
        terminal.press("ctrl+c")
        assert terminal.end() == 0
        terminal.assert_clean()


def test_ctrl_z_without_a_shell_stops_nothing(demo: Path) -> None:
    with Terminal(demo) as terminal:
        terminal.until("step 3, 4 of 4", "? Keys")
        terminal.press("ctrl+z")
        terminal.until("no shell started dumptui")
        terminal.press("q")
        assert terminal.end() == 0


MOUSE_ON = b"\x1b[?1000h"
MOUSE_OFF = b"\x1b[?1000l"


def test_the_mouse_is_left_to_the_terminal(demo: Path) -> None:
    with Terminal(demo, "--no-mouse") as terminal:
        terminal.until("step 3, 4 of 4", "? Keys")
        assert MOUSE_ON not in terminal.raw
        terminal.press("ctrl+p")
        terminal.settle()
        terminal.press(*"mouse")
        terminal.until("Mouse: click and scroll in dumptui")
        terminal.press("\r")
        terminal.wait(lambda: MOUSE_ON in terminal.raw, "the mouse")
        terminal.press("ctrl+p")
        terminal.settle()
        terminal.press(*"mouse")
        terminal.until("Mouse: leave it to the terminal")
        terminal.press("\r")
        terminal.wait(lambda: terminal.raw.rfind(MOUSE_OFF) > terminal.raw.rfind(MOUSE_ON), "no mouse")
        terminal.press("ctrl+c")
        assert terminal.end() == 0


def test_enter_counts_before_the_terminal_is_raw(demo: Path) -> None:
    with Terminal(demo) as terminal:
        terminal.press("\n")  # what a terminal makes of enter until then
        terminal.until("step 3, 4 of 4", "? Keys", ">    96")


def test_q_goes_up_level_by_level_and_quits_at_the_top(demo: Path) -> None:
    with Terminal(demo, size=(80, 24)) as terminal:
        terminal.until("step 3, 4 of 4", "? Keys")
        for key, shown in (("\r", ">    96"), ("\r", "sample 96 ·"), ("?", "Tokens: help")):
            terminal.press(key)
            terminal.until(shown)
        for shown in ("sample 96 ·", ">    96", ">     !3"):
            terminal.press("q")
            terminal.until(shown)
        terminal.settle()
        terminal.press("q")
        assert terminal.end() == 0


def send(number: signal.Signals) -> Callable[[Terminal], None]:
    return lambda terminal: terminal.process.send_signal(number)


CRASH = """
from dumptui.tui.panes.rollout.pane import RolloutPane
def action_trend(self):
    raise LookupError("\\x1b]0;owned\\x07[/red]")
RolloutPane.action_trend = action_trend
"""


ENDS: dict[str, tuple[Callable[[Terminal], None], int]] = {
    "SIGTERM": (send(signal.SIGTERM), 143),
    "SIGHUP": (send(signal.SIGHUP), 129),
    "a defect": (lambda terminal: terminal.press("m", "q"), 0),
}


def test_the_terminal_is_clean_after_every_end(demo: Path) -> None:
    with ExitStack() as stack:  # all at once: half of the time is importing
        opened = [stack.enter_context(Terminal(demo, "--step", "2", size=(80, 24), code=CRASH)) for _ in ENDS]
        closed = stack.enter_context(Terminal(demo, size=(80, 24)))
        for terminal, (name, (end, code)) in zip(opened, ENDS.items(), strict=True):
            terminal.until("step 2, 3 of 4", "? Keys")
            end(terminal)
            assert terminal.end() == code, name
            terminal.assert_clean()
            assert foreign(bytes(terminal.raw)) == [], name
            left = bytes(terminal.raw).rsplit(b"\x1b[?1049l")[-1].decode()
            assert "Traceback" not in left
            if name == "a defect":
                assert "LookupError: ␛]0;owned␇[/red] at <string>:4, dumptui 0" in left
                assert "please report it" in " ".join(left.split())

        closed.until("step 3, 4 of 4", "? Keys")
        closed.hang_up()  # what a closed window or a lost connection leaves behind must not run on
        assert closed.process.wait(timeout=DEADLINE) == 129


def test_a_terminal_that_goes_away_without_a_signal_ends_it(demo: Path) -> None:
    """Case 27: what a closed window leaves behind ran on for good, with a core of its own."""
    with Terminal(demo, size=(80, 24), controls=False) as terminal:
        terminal.until("step 3, 4 of 4", "? Keys")
        terminal.hang_up()
        assert terminal.process.wait(timeout=5) == 129


@pytest.mark.parametrize("ends", [True, False])
def test_a_terminal_that_takes_nothing_keeps_nobody_waiting(demo: Path, ends: bool) -> None:
    """A window that is stopped by ctrl+S, or a connection that stands still."""
    with Terminal(demo, "--step", "2", size=(120, 40)) as terminal:
        terminal.until("step 2, 3 of 4", "? Keys")
        terminal.settle()
        for _ in range(20):
            terminal.press("2", "6", "1", "5")
        assert not terminal.process.poll()
        if ends:
            terminal.process.send_signal(signal.SIGTERM)
            assert terminal.process.wait(timeout=5) == 143
        else:
            terminal.press("<", "6")
            terminal.wait_idle()
            assert terminal.settle() < 5 * FULL_SCREEN
            terminal.until("step 1 ·", "best first")
            shown = terminal.text
            terminal.resize(119, 40)
            terminal.settle()
            terminal.resize(120, 40)
            terminal.wait(lambda: terminal.text == shown, "the same screen drawn anew")


IMPORT_HANGS = """
import time
from dumptui.tui.app import app
from dumptui.tui.terminal import terminal_app
app.import_panes = lambda: time.sleep(1000)
terminal_app.ENDING_SECONDS = 1000
"""


@pytest.mark.parametrize("drained", [True, False])
def test_a_signal_ends_it_while_keys_wait_for_the_panes(demo: Path, tmp_path: Path, drained: bool) -> None:
    """Keys that were typed ahead kept the queue in which the end comes; the last resort is turned off here."""
    left = {"TMPDIR": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    with Terminal(demo, "--step", "2", size=(120, 40), code=IMPORT_HANGS, env=left) as terminal:
        terminal.until("step 2, 3 of 4")
        terminal.settle()
        for _ in range(20):
            terminal.press("2", "6", "1", "5")
        terminal.process.send_signal(signal.SIGTERM)
        if drained:
            assert terminal.end() == 143
            terminal.assert_clean()
        assert terminal.process.wait(timeout=5) == 143
        assert list(tmp_path.glob("dumptui*")) == list(tmp_path.glob("cache/**/.new-*")) == []


HANG = """
import time
from dumptui.tui.reading import step_reader
step_reader.load = lambda *_: time.sleep(1000)
"""


def test_quitting_does_not_wait_for_a_read_that_hangs(demo: Path) -> None:
    """Such as one from a file system that is gone."""
    with Terminal(demo, "--no-cache", size=(80, 24), code=HANG) as terminal:
        terminal.until("reading step 3", "? Keys")
        terminal.press("q")
        assert terminal.process.wait(timeout=5) == 0
        assert terminal.end() == 0
        terminal.assert_clean()


# Case 27: SWE-agent/mini-swe-agent#761, Textualize/toolong#16, Textualize/textual#3506, text that a terminal obeys


def test_text_of_a_dump_never_reaches_the_terminal_raw(tmp_path: Path) -> None:
    root = tmp_path / "run\x1b]0;owned\x07"
    facts: dict[str, Any] = {
        "prompt": EVIL,
        "response": EVIL,
        "status": EVIL,
        "reward": {EVIL: 1.0},
        "weight_versions": [EVIL],
    }
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
        for keys in (
            "enter",
            "a",
            "end",
            "s",
            "escape",
            "enter",
            "m",
            "escape",
            "2",
            "?",
            "?",
            tab("health"),
            "end",
            "ctrl+p",
            "escape",
        ):
            terminal.press(keys)
            terminal.settle(0.08)
        terminal.press("ctrl+q")
        assert terminal.end() == 0
        assert foreign(bytes(terminal.raw)) == []


def test_the_sign_of_a_token_is_seen_without_its_hue(demo: Path) -> None:
    with ExitStack() as stack:
        words = (demo, "--step", "2", "--sample", "64")
        grey = stack.enter_context(Terminal(*words, size=(80, 24), env={"NO_COLOR": "1"}))
        few = stack.enter_context(Terminal(*words, size=(80, 24), env={"TEXTUAL_COLOR_SYSTEM": "standard"}))
        for terminal in (grey, few):
            terminal.until("sample 64", "worst #", "scale of the step")
            terminal.settle(0.1)
            body = [char for row in range(5, 13) for char in terminal.screen.buffer[row].values()]
            assert any(char.bold and not char.reverse for char in body)
            assert any(char.underscore for char in body)
            if terminal is grey:
                hues = {char.fg for char in body} | {char.bg for char in body}
                assert all(hue == "default" or hue[:2] == hue[2:4] == hue[4:] for hue in hues), hues


# What is written as differences shows the same as what is written in full ------------------------------------------


class Watched(DumpTui):
    """Shows what it would write to a terminal on `glass`."""

    CSS_PATH = str(ROOT / "tui" / "dumptui.tcss")

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.glass = pyte.Screen(1, 1)
        self.written = Shown()

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        super()._display(screen, renderable)
        if not isinstance(renderable, Rows) or self._batch_count:
            return
        width, height = screen._compositor.size
        if (self.glass.lines, self.glass.columns) != (height, width):
            self.glass = pyte.Screen(width, height)
            self.glass.draw("X" * width * height)  # what a terminal makes of its old content is anyone's guess
            self.written.forget()
        update = self.written.changes(renderable)
        if update is not None:
            pyte.Stream(self.glass).feed(update.render_segments(self.console))


def drawn_anew(app: DumpTui) -> pyte.Screen:
    glass = pyte.Screen(*app.size)
    for y, strip in enumerate(strips(app)):
        pyte.Stream(glass).feed(f"\x1b[{y + 1};1H{strip.render(app.console)}")
    return glass


def seen(glass: pyte.Screen) -> list[list[Char]]:
    """The colour of a letter where there is none can't be seen."""
    rows = [[glass.buffer[y][x] for x in range(glass.columns)] for y in range(glass.lines)]
    return [[char._replace(fg="default") if blank(char) else char for char in row] for row in rows]


def blank(char: Char) -> bool:
    return char.data == " " and not (char.reverse or char.underscore or char.strikethrough)


async def test_differences_add_up_to_the_whole_screen(demo: Path) -> None:
    app = Watched(Run.open(demo), StepKey(2))
    wide = ["down", "enter", "pagedown", "enter", "]", "n", "m", "down", "enter", "2", "4", "6", "5", "1", "s"]
    narrow = ["escape", "ctrl+p", "escape", "?", "q", "3", "?", "?", "6", "4", "1", "<", "a", "right", "S"]
    async with app.run_test(size=(70, 18), notifications=True) as pilot:
        await until_shown(pilot, "step 2, 3 of 4", "32   0.250")
        for key in [*wide, *narrow]:
            if app.size.width == 70 and key == narrow[0]:
                await pilot.resize_terminal(44, 14)
            await press(pilot, key)
            await until(pilot, lambda: not app.wait.waiting)
            await until(pilot, lambda: seen(app.glass) == seen(drawn_anew(app)))

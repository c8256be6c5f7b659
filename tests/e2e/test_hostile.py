"""Whatever a dump says, in whatever place, is shown as text: nothing of it is obeyed, hidden or taken for markup."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dumptui.core.files.step_files import StepKey
from dumptui.core.run.run import Run
from dumptui.core.text import cell_width, visible
from dumptui.tui.app.app import DumpTui
from tests.support.everywhere import WAY, everywhere
from tests.support.hostile import RUN, write_hostile_run
from tests.support.screen import KNOWN_SEQUENCE, Terminal, strips, text

TITLE = re.compile(rb"\x1b\]2;dumptui [^\x00-\x1f\x7f]*\x07")
COPIED = re.compile(rb"\x1b\]52;c;[A-Za-z0-9+/=]*\x07")
OWN = {"\r", "\n", "\ufe0f"}
"""What Textual writes itself between the sequences: ends of lines, and the selector of an icon."""


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_hostile_run(tmp_path_factory.mktemp("hostile"))


def obeyed(raw: bytes) -> set[str]:
    """What was written besides known sequences and characters that a terminal shows: the dump's, if there is any."""
    rest = COPIED.sub(b"", TITLE.sub(b"", KNOWN_SEQUENCE.sub(b"", raw)))
    return {char for char in rest.decode() if visible(" " + char) != " " + char} - OWN


@pytest.mark.parametrize("size", [(120, 40), (80, 24)], ids=lambda size: "x".join(map(str, size)))
async def test_it_is_shown_as_text_in_every_pane_and_dialog(hostile: Path, size: tuple[int, int]) -> None:
    """In its place as well: no line is longer or shorter than the screen."""
    app = DumpTui(Run.open(hostile), StepKey(1))
    shown = ""
    async with app.run_test(size=size, notifications=True) as pilot:
        async for name in everywhere(app, pilot):
            shown += text(app) + "\n"
            for strip in strips(app):
                assert cell_width(strip.text) == strip.cell_length == size[0], f"{name}: {strip.text!r}"
    assert visible(shown.replace("\n", "")) == shown.replace("\n", "")
    assert visible(RUN)[:6] in shown and "[bold red]red" in shown and "[@click=app.quit]quit" in shown
    assert "␛]52;c;" in shown and "‹202e›" in shown and "‹200b›" in shown


def test_nothing_of_it_reaches_the_terminal(hostile: Path, tmp_path: Path) -> None:
    env = {"XDG_STATE_HOME": str(tmp_path), "TMUX": "", "STY": ""}
    with Terminal(hostile, "--step", "1", "--follow", "--bell", env=env) as terminal:
        terminal.until("? Keys", "step 1, 2 of")
        for stop in WAY.values():
            for key in stop.keys:
                terminal.press(key)
                terminal.settle(0.4 if key == "escape" else 0.1)  # a key right after an escape is another key
            terminal.until(stop.shown)
        terminal.press("escape")
        terminal.settle()
        assert obeyed(bytes(terminal.raw)) == set()
        terminal.press("ctrl+q")
        assert terminal.end() == 0
        terminal.assert_clean()
    with Terminal(hostile, env=env) as terminal:  # the place of the last visit, and a file that can't be read
        terminal.until("? Keys")
        terminal.settle()
        assert obeyed(bytes(terminal.raw)) == set()

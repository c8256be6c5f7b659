"""Keys that come at once go where they would have gone one by one, and Ctrl+C quits from everywhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.events import Key
from textual.keys import _character_to_key

from dumptui.core.files.step_files import StepKey
from tests.support.screen import Terminal, until_shown
from tests.support.session import opened

BURSTS = {
    "a filter, and a move in what it leaves": ("", "/reward == 1\rG", "9 of 32 samples · where reward == 1 & >    92"),
    "a filter that is refused and amended": (
        "",
        "/rewar == 1\r\x1b[D\x1b[D\x1b[D\x1b[D\x1b[Dd\r",
        "of 32 samples · where reward == 1",
    ),
    "a search": ("", "fferry\r", "/ferry/ in"),
    "a step, corrected": ("", "#03\x7f\r", "step 0, 1 of 4"),
    "a column to sort by": ("", "sj\r", "by group, largest first"),
    "a bookmark, and the list of all": ("", "Bodd one\r'", "odd one"),
    "the palette": ("", "\x10go to step 0\r", "step 0, 1 of 4"),
    "a token": ("3", "\x0712\r", "#12 "),
    "a search in the tokens": ("3", "/ferry\r", "/ferry/"),
    "a search in the conversation": ("4", "/ferry\rt", "Δ against position"),
}


@pytest.mark.parametrize("name", BURSTS)
def test_keys_of_one_write_arrive_in_order(demo: Path, name: str) -> None:
    pane, burst, shown = BURSTS[name]
    with Terminal(demo, "--step", "2", "--sample", "64", "--pane", "rollout") as terminal:
        terminal.until("32 samples in 8 groups")
        if pane:
            terminal.press(pane)
            terminal.until("sample 64 ·")
        terminal.settle(0.1)
        terminal.press(burst)
        terminal.until(*shown.split(" & "))


async def test_keys_that_were_typed_long_before_they_are_handled_arrive_in_order(demo: Path) -> None:
    """As when the machine is busy for seconds, or the program still starts."""
    async with opened(demo, key=StepKey(2)) as (app, pilot):
        app.rollout.table.focus()
        for char in "/reward == 1\rG":
            key = Key({"/": "slash", "\r": "enter"}.get(char) or _character_to_key(char), char)
            key.time -= 10.0
            key.set_sender(app)
            app.post_message(key)
        await until_shown(pilot, "9 of 32 samples · where reward == 1", ">    92")


OPENED = {
    "/": "show steps where",
    "#": "go from step 2",
    "s": "sort",
    "a": "columns",
    "i": "all dumped fields",
    ":": "this command prints the view on screen",
    "B": "bookmark",
    "'": "bookmarks",
    "\x06anything\r": "steps searched",
    "\x10": "Search for commands",
    "?": "Keys",
}


@pytest.mark.parametrize("key", OPENED)
def test_ctrl_c_quits_over_whatever_is_open(demo: Path, key: str) -> None:
    with Terminal(demo, "--step", "2") as terminal:
        terminal.until("32 samples in 8 groups")
        terminal.settle(0.1)
        terminal.press(key)
        terminal.until(OPENED[key])
        terminal.press("ctrl+c")
        assert terminal.end() == 0
        terminal.assert_clean()

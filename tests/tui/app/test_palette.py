"""Everything there is to do, by its name."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.command import CommandList
from textual.pilot import Pilot

from dumptui.core.files.step_files import StepKey
from dumptui.core.store.state import State
from dumptui.tui.screens.bookmarks import set_bookmark
from dumptui.tui.session.location import Location
from tests.support.kept_session import opened_with_state
from tests.support.screen import press, text, until, until_shown


async def find(pilot: Pilot[None], query: str, *shown: str) -> None:
    await press(pilot, "ctrl+p", *(key.replace(" ", "space") for key in query))
    await until_shown(pilot, *shown)


@pytest.mark.parametrize(
    ("query", "label", "then"),
    [
        ("go to step 1", "Go to step 1", "step 1, 2 of 4"),
        ("eval 0", "Go to eval 0", "eval 0, 1 of 1"),
        ("reverse", "Reverse  (S)", "by step"),
        ("half a page down", "Half a page down", "step 0 >"),
        ("command line", "Command line  (:)", "this command prints the view on screen"),
        ("why so low", "Bookmark: why so low [/]␛", "2_0.pt"),
        ("pane: tok", "Pane: Tokens", "Δ against position"),
    ],
)
async def test_an_entry_does_what_it_says(demo: Path, query: str, label: str, then: str) -> None:
    set_bookmark(State.of(demo), Location(StepKey(2), "batch"), "why so low [/]\x1b")
    async with opened_with_state(demo) as (_, pilot):
        await find(pilot, query, label)
        await press(pilot, "enter")
        await until_shown(pilot, then)


async def test_every_key_that_does_something_here_has_an_entry(demo: Path) -> None:
    async with opened_with_state(demo, sample=(96, 0), key=StepKey(3), size=(120, 60)) as (app, pilot):
        await until_shown(pilot, "Δ against position")
        labels = {one.binding.description for one in app.screen.active_bindings.values() if not one.binding.system}
        assert {"Worst token", "Copy", "Export", "Next token", "Previous step", "Last session"} <= labels
        await press(pilot, "ctrl+p")
        await until_shown(pilot, "Worst token  (])", "Copy  (y)", "Theme")
        assert text(app).count("Quit  (q)") == 1 and "Quit the application" not in text(app)
        await press(pilot, "escape")
        await until(pilot, lambda: len(app.screen_stack) == 1)


async def test_a_second_click_beside_it_is_late(demo: Path) -> None:
    async with opened_with_state(demo) as (app, pilot):
        for _ in range(2):
            await press(pilot, "ctrl+p")
            await until(pilot, lambda: len(app.screen_stack) == 2)
        await pilot.double_click(offset=(1, 28))
        await until(pilot, lambda: len(app.screen_stack) == 1)
        await press(pilot, "1")
        await until_shown(pilot, "step 3, 4 of 4")


async def test_a_page_key_waits_for_room(demo: Path) -> None:
    """In a window of few lines the results have none, and Textual has no line to move a page from."""
    async with opened_with_state(demo, size=(40, 12)) as (app, pilot):
        await pilot.resize_terminal(40, 3)
        await press(pilot, "ctrl+p", *"pane")
        found = app.screen.query_one(CommandList)
        await until(pilot, lambda: found.option_count > 1 and found.display and not found.scrollable_content_region)
        await press(pilot, "down", "pagedown", "pageup")
        assert app._exception is None and len(app._notifications) == 0
        await pilot.resize_terminal(40, 12)
        await until_shown(pilot, "Pane: ")
        await press(pilot, "pagedown", "enter")
        await until(pilot, lambda: len(app.screen_stack) == 1)

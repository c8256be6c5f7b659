"""The Prompts pane: prompts over the steps of the run, and the way to the group of one."""

from __future__ import annotations

from pathlib import Path

import pytest

from dumptui.core.files.step_files import StepKey
from dumptui.tui.panes.groups import GroupsPane
from tests.support.screen import press, text, until, until_shown
from tests.support.session import go, opened


@pytest.mark.parametrize("size", [(120, 40), (80, 24)])
async def test_two_keys_lead_to_a_group_that_is_never_solved(shared: Path, size: tuple[int, int]) -> None:
    async with opened(shared / "runs/multiturn", size=size) as (app, pilot):
        await press(pilot, "U")
        await until_shown(pilot, "7 never solved", "8 sometimes solved", "prompt")
        await press(pilot, "enter")
        await until(pilot, lambda: app.pane == "groups" and app.steps.is_at(StepKey(2)))
        await until_shown(pilot, "3 all wrong")
        await until(pilot, lambda: app.panes.of(GroupsPane).table.has_focus)
        await go(pilot, "enter")
        await until_shown(pilot, "end of the response")
        assert app.panes.of(GroupsPane).members.has_focus


async def test_one_kind_of_prompts_is_listed_and_escape_lists_all(shared: Path) -> None:
    async with opened(shared / "runs/multiturn") as (app, pilot):
        await press(pilot, "U")
        await until_shown(pilot, "never solved", "sometimes solved  ")
        await press(pilot, "f", "down", "down", "enter")
        await until(pilot, lambda: "never solved      " not in text(app))
        assert "sometimes solved  " in text(app)
        await go(pilot, "escape")
        await until_shown(pilot, "never solved      ")

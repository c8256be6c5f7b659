"""The Tools pane: calls by tool, and the lifecycles of the samples of a step."""

from __future__ import annotations

from pathlib import Path

import pytest

from dumptui.core.files.step_files import StepKey
from tests.support.screen import press, text, until, until_shown
from tests.support.session import opened


@pytest.mark.parametrize("size", [(120, 40), (80, 24), (40, 12)])
async def test_a_key_tells_failed_tools_from_the_model(shared: Path, size: tuple[int, int]) -> None:
    async with opened(shared / "runs/multiturn", size=size, key=StepKey(2)) as (app, pilot):
        await press(pilot, "E")
        await until_shown(pilot, "step 2 · 21 tool calls", "lookup")
        assert app.pane == "tools"
        if size[0] >= 80:
            assert "if failed   if ok" in text(app)
            assert "lookup               21      12       11   0.000      0.000   0.000" in text(app)
            assert "14 samples · last to end first" in text(app) and "█ gen" in text(app)


async def test_enter_lists_the_samples_of_a_row_and_opens_one_escape_goes_back(shared: Path) -> None:
    async with opened(shared / "runs/multiturn", key=StepKey(1)) as (app, pilot):
        await press(pilot, "E")
        await until_shown(pilot, "12 samples · last to end first")
        await press(pilot, "down", "down", "enter")
        await until_shown(pilot, "5 samples without tool calls")
        await press(pilot, "enter")
        await until(pilot, lambda: app.pane == "tokens")
        await press(pilot, "escape")
        await until(pilot, lambda: app.pane == "tools")
        await press(pilot, "escape")
        await until_shown(pilot, "12 samples · last to end first")
        await press(pilot, "escape")
        await until(pilot, lambda: app.pane == "rollout")


async def test_an_eval_has_tools_and_no_lifecycles(shared: Path) -> None:
    async with opened(shared / "runs/multiturn", key=StepKey(0, True)) as (app, pilot):
        await press(pilot, "E")
        await until_shown(pilot, "no lifecycle is recorded", "lookup")
        assert "lifecycle  " not in text(app)

"""The list of worst tokens on screen."""

from __future__ import annotations

from pathlib import Path

import pytest

from dumptui.core.files.step_files import StepKey
from tests.support.screen import press, text, until, until_shown
from tests.support.session import opened


async def test_from_the_first_screen_to_the_worst_token_of_the_run_and_its_message(demo: Path) -> None:
    async with opened(demo, scanned=True, key=StepKey(1)) as (app, pilot):
        await press(pilot, "W")
        await until_shown(pilot, "worst tokens of step 1", "20 tokens")
        await press(pilot, "W")
        await until_shown(pilot, "worst tokens of the run", "20 tokens")
        screen = app.screen
        rows = screen.rows  # type: ignore[attr-defined]
        sizes = [abs(row["lp_diff"]) for row in rows]
        assert sizes == sorted(sizes, reverse=True) and rows[0]["step"] == 2
        await press(pilot, "enter")
        await until_shown(pilot, f"sample {rows[0]['sample_index']} ·", f"#{rows[0]['position']} ")
        assert app.steps.loaded is not None and app.steps.loaded.key == StepKey(rows[0]["step"])
        await press(pilot, "c")
        await until(pilot, lambda: app.pane == "conversation")


@pytest.mark.parametrize("size", [(120, 40), (80, 24), (40, 12)])
async def test_the_list_is_left_where_one_was(demo: Path, size: tuple[int, int]) -> None:
    async with opened(demo, size=size, key=StepKey(1)) as (app, pilot):
        await press(pilot, "W")
        await until_shown(pilot, "worst tokens of step 1")
        await until(pilot, lambda: app.screen.rows)  # type: ignore[attr-defined]
        await press(pilot, "tab", "tab", "escape")
        await until(pilot, lambda: "worst tokens" not in text(app))
        assert app.pane == "rollout"


async def test_an_eval_has_no_such_tokens(demo: Path) -> None:
    async with opened(demo, key=StepKey(0, True)) as (_, pilot):
        await press(pilot, "W")
        await until_shown(pilot, "worst tokens of eval 0", "no unmasked response token has both log-probs")


async def test_steps_that_are_not_scanned_yet_are_stated(demo: Path) -> None:
    """A list that leaves out steps must not pass for one of the run."""
    async with opened(demo, key=StepKey(1)) as (app, pilot):
        await until(pilot, lambda: StepKey(1) in app.rollout.rows)
        for key in app.rollout.rows.keys() - {StepKey(1)}:
            del app.rollout.rows[key]
        await press(pilot, "W", "W")
        await until_shown(pilot, "worst tokens of the run", "4 steps not scanned yet")

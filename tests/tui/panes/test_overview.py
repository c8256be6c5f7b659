"""The overview in the Rollout pane: what is wrong with the run, and the way there."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from dumptui.core.types import Record
from tests.support.screen import lines, press, text, until, until_shown
from tests.support.session import NARROW, go, opened
from tests.support.writer import sample, write_step

TALL = (120, 40)


def write(root: Path, step: int, *differences: float) -> None:
    """A step of one sample for each difference, which its third token of four has; all other tokens have 0.001."""
    engine = [np.full(4, -1.0) for _ in differences]
    trainer = [np.array([-1.001, -1.001, -1.0 - one, -1.001]) for one in differences]
    samples = [
        sample(10 * step + at, response_len=4, rollout_log_probs=values.tolist(), reward=float(at), group_index=step)
        for at, values in enumerate(engine)
    ]
    write_step(root, step, samples, truth={"rollout_log_probs": engine, "log_probs": trainer})


def lose(root: Path) -> None:
    """Empty the train file of step 2, and let it be as old as it was."""
    path = root / "train_data" / "2_0.pt"
    written = path.stat().st_mtime
    path.write_bytes(b"")
    os.utime(path, (written, written))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for step in range(4):
        write(tmp_path, step, 0.001, 1.0 if step == 1 else 0.001)
    return tmp_path


async def test_two_keys_lead_to_the_token_that_carries_the_divergence(root: Path) -> None:
    async with opened(root, size=TALL, scanned=True) as (app, pilot):
        await until_shown(pilot, "warning  step 1", "one token carries 99% of the divergence")
        await go(pilot, "!", "enter")
        await until(pilot, lambda: app.pane == "tokens" and app.tokens.token == 6)
        await until_shown(pilot, "sample 11 · step 1")


async def test_a_run_without_problems_takes_one_line_until_it_is_entered(tmp_path: Path) -> None:
    for step in range(3):
        write(tmp_path, step, 0.001 * (1 + step))
    async with opened(tmp_path, size=TALL, scanned=True) as (app, pilot):
        await until_shown(pilot, "no errors or warnings · step 2: largest |Δ|")
        assert lines(app)[2].split()[0] == "step"
        await press(pilot, "!")
        await until(pilot, lambda: lines(app)[2].startswith(">note"))
        await press(pilot, "escape")
        await until(pilot, lambda: lines(app)[2].split()[0] == "step")
        assert app.focused is app.rollout.steps.table


async def test_an_unreadable_file_is_said_at_once_and_enter_shows_it_in_health(root: Path) -> None:
    lose(root)
    async with opened(root, size=NARROW, scanned=True) as (app, pilot):
        await until_shown(pilot, "error    step 2  train_data/2_0.pt: is empty", "5 Hlth!")
        await go(pilot, "!", "enter")
        await until(pilot, lambda: any(line.startswith(">step 2") and "is empty" in line for line in lines(app)))
        assert app.pane == "health"


async def test_the_cursor_stays_on_its_issue_while_more_is_found(root: Path) -> None:
    async with opened(root, size=TALL, scanned=True) as (app, pilot):
        await until_shown(pilot, "warning  step 1")
        await press(pilot, "!")
        issue = app.rollout.overview.current
        error: Record = {"step": 3, "evaluation": False, "file": None, "level": "error", "problem": "is lost"}
        app.rollout.overview.take(app.rollout.rows, [error], complete=False)
        assert app.rollout.overview.table.cursor == 1
        assert issue is not None and app.rollout.overview.current == issue


async def test_the_header_has_the_counts_of_health(root: Path) -> None:
    lose(root)
    async with opened(root, size=(160, 40), scanned=True) as (_, pilot):
        await until_shown(pilot, "1 error, 1 warning", "5 Health 1!")


async def test_brackets_walk_the_flagged_steps(root: Path) -> None:
    write(root, 3, 0.5, 0.5)
    async with opened(root, scanned=True) as (app, pilot):
        assert app.rollout.steps.current.step == 3
        await go(pilot, "]")
        assert app.rollout.steps.current.step == 1
        await go(pilot, "]")
        await until_shown(pilot, "no later row has an `!`")
        await go(pilot, "[")
        assert app.rollout.steps.current.step == 3


async def test_a_low_screen_shows_the_overview_only_while_it_is_entered(root: Path) -> None:
    async with opened(root, size=(40, 12), scanned=True) as (app, pilot):
        assert "warning" not in text(app)
        await press(pilot, "!")
        await until_shown(pilot, "warning  step 1", "one token carries")
        await press(pilot, "escape")
        await until(pilot, lambda: "warning" not in text(app))

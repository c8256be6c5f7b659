"""The steps as a table: sort, filter, columns, and the trend that is walked and clicked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from dumptui.core.files.step_files import StepKey
from dumptui.tui.app.app import DumpTui
from dumptui.tui.widgets.plot.zoom_plot import ZoomPlot
from tests.support.screen import press, run, until, until_shown
from tests.support.session import choose, click, column, go, opened
from tests.support.writer import sample, write_step

STEPS = 6
PEAK = 217


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for step in range(STEPS):
        length = 10 - step
        samples = [sample(2 * step + at, response_len=length, reward=float(at), group_index=step) for at in range(2)]
        write_step(tmp_path, step, samples)
    return tmp_path


def steps_of(app: DumpTui) -> list[int]:
    return [key.step for key in app.rollout.steps.listed]


async def test_s_sorts_the_steps_while_they_have_the_cursor(root: Path) -> None:
    async with opened(root, scanned=True) as (app, pilot):
        await go(pilot, "s")
        await choose(pilot, "len")
        assert steps_of(app) == [0, 1, 2, 3, 4, 5]
        assert app.rollout.steps.current == StepKey(5)
        await until_shown(pilot, "by len, largest first", "▼len")
        await go(pilot, "S")
        assert steps_of(app) == [5, 4, 3, 2, 1, 0]
        assert app.rollout.arrangement.sort == ()


async def test_a_click_on_a_label_sorts_the_steps_and_a_second_one_reverses(root: Path) -> None:
    async with opened(root, scanned=True) as (app, pilot):
        table = app.rollout.steps.table
        x = table.render_line(0).text.index("len") + 1
        await click(pilot, table, x, 0)
        assert column(table, "len") == ["10", "9", "8", "7", "6", "5"]
        await click(pilot, table, x, 0)
        assert column(table, "len") == ["5", "6", "7", "8", "9", "10"]


async def test_a_filter_of_the_steps_takes_labels_and_escape_clears_it(root: Path) -> None:
    async with opened(root, scanned=True) as (app, pilot):
        await go(pilot, "/", *"len>7", "enter")
        await until_shown(pilot, "3 of 6 steps where len>7")
        assert steps_of(app) == [2, 1, 0]
        assert app.rollout.steps.current == StepKey(2)
        await go(pilot, "escape")
        assert steps_of(app) == [5, 4, 3, 2, 1, 0]
        assert app.rollout.steps.current == StepKey(2)


async def test_a_step_that_the_filter_hides_can_be_gone_to(root: Path) -> None:
    async with opened(root, scanned=True) as (app, pilot):
        await go(pilot, "/", *"len>7", "enter")
        await until(pilot, lambda: app.loaded is not None and app.loaded.key == StepKey(2))
        await go(pilot, ">")
        await until_shown(pilot, "step 3, 4 of 6")
        assert steps_of(app) == [2, 1, 0]


async def test_a_filter_that_can_not_be_used_says_why(root: Path) -> None:
    async with opened(root, scanned=True) as (app, pilot):
        await go(pilot, "/", *"frob>7")
        await until_shown(pilot, "unknown column frob")
        assert len(steps_of(app)) == STEPS


async def test_all_columns_are_those_of_the_table_with_the_cursor(root: Path) -> None:
    async with opened(root, size=(200, 30), scanned=True) as (app, pilot):
        await go(pilot, "a")
        assert app.rollout.steps.shown == "all" and app.rollout.samples.shown == "default"
        await go(pilot, "enter", "a")
        assert app.rollout.samples.shown == "all"


# The trend --------------------------------------------------------------------------------------------------------


@pytest.fixture
def long(tmp_path: Path) -> Path:
    """400 steps, whose rows the tests give themselves: one has a peak between two others of its cell."""
    for step in range(400):
        (tmp_path / "rollout_data").mkdir(exist_ok=True)
        (tmp_path / "rollout_data" / f"{step}.pt").write_bytes(b"")
    write_step(tmp_path, 399, [sample(0)])
    return tmp_path


async def with_rows(app: DumpTui, pilot: Pilot[Any]) -> ZoomPlot:
    app.rollout.summarise = lambda key, row: None  # type: ignore[method-assign]
    for key in app.steps.run.steps:
        row = dict.fromkeys(("reason", "samples", "train_samples"), None)
        value = 0.05 if key.step == PEAK else 0.001
        app.rollout.steps.rows[key] = {**row, "state": "ok", "mean_abs_lp_diff": value}
    app.rollout.steps.show()
    plot = app.rollout.steps.trend.query_one(ZoomPlot)
    await until(pilot, lambda: plot._current_frame() is not None)
    return plot


async def test_a_click_on_a_peak_goes_to_its_step(long: Path) -> None:
    async with opened(long, size=(120, 40), key=StepKey(399)) as (app, pilot):
        plot = await with_rows(app, pilot)
        top = next(y for y in range(plot.size.height) if any(c not in " │┤" for c in plot.render_line(y).text[8:-2]))
        x = next(at for at, c in enumerate(plot.render_line(top).text[8:-2], 8) if c not in " │┤")
        await click(pilot, plot, x, top)
        assert app.rollout.steps.current == StepKey(PEAK)


async def test_the_walk_stops_at_the_peak_and_not_at_its_neighbours(long: Path) -> None:
    async with opened(long, size=(120, 40), key=StepKey(399)) as (app, pilot):
        await with_rows(app, pilot)
        await press(pilot, "V")
        await until_shown(pilot, "left and right walk")
        await press(pilot, "home")
        seen = set()
        for _ in range(130):
            await until(pilot, lambda: app.steps.wanted == app.rollout.steps.current)
            seen.add(app.rollout.steps.current.step)
            await press(pilot, "right")
        assert PEAK in seen and len(seen) < 130
        assert app.rollout.steps.current.step > 395


async def test_the_large_trend_zooms_and_escape_leaves_it(long: Path) -> None:
    async with opened(long, size=(120, 40), key=StepKey(399)) as (app, pilot):
        plot = await with_rows(app, pilot)
        small = plot.size.height
        await press(pilot, "V")
        await until(pilot, lambda: plot.size.height > 2 * small)
        await press(pilot, "+")
        assert plot.window is not None and plot.window[1] - plot.window[0] < 250
        await press(pilot, "0")
        assert plot.window is None
        await press(pilot, "escape")
        await until(pilot, lambda: plot.size.height == small)
        assert app.focused is app.rollout.steps.table


# On the command line ----------------------------------------------------------------------------------------------


def test_printed_steps_are_filtered(root: Path) -> None:
    done = run(root, "--print", "steps", "--where", "len > 7 and step != 1", "--csv", "--no-cache")
    assert [line.split(",")[0] for line in done.stdout.splitlines()] == ["step", "0", "2"]


def test_an_unknown_column_is_answered_with_those_there_are(root: Path) -> None:
    done = run(root, "--print", "steps", "--where", "frob > 7", "--no-cache")
    assert done.returncode == 2 and done.stdout == ""
    assert "unknown column frob" in done.stderr and "mean_abs_lp_diff (|Δ|, nats)" in done.stderr


# Evals ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def evals(tmp_path: Path) -> Path:
    """Two evals of two datasets, whose indices restart: the second one got worse."""
    write_step(tmp_path, 0, [sample(0), sample(1)])
    for step, rewards in ((0, (0.5, 0.9)), (2, (0.6, 0.3))):
        samples = [sample(at, reward=reward, group_index=None) for reward in rewards for at in range(3)]
        write_step(tmp_path, step, samples, evaluation=True, train=False)
    return tmp_path


async def test_each_dataset_of_an_eval_has_a_row_a_reward_and_a_trend(evals: Path) -> None:
    async with opened(evals, size=(120, 40), key=StepKey(2, True), scanned=True) as (app, pilot):
        table = app.rollout.steps.table
        rows = [[cell.strip("!") for cell in table.texts(at).values()][:3] for at in range(3)]
        assert rows == [["eval 2", "6", "0.450"], ["set 0", "3", "0.600"], ["set 1", "3", "0.300"]]
        await until_shown(pilot, "reward over evals")
        await go(pilot, "down", "down")
        await until_shown(pilot, "reward of set 1 over evals")
        trend = app.rollout.steps.trend
        assert list(trend._values.values()) == [pytest.approx(0.9), pytest.approx(0.3)]
        assert app.rollout.steps.current == StepKey(2, True)


async def test_the_overview_names_the_dataset_that_got_worse(evals: Path) -> None:
    async with opened(evals, size=(120, 40), scanned=True) as (_, pilot):
        await press(pilot, "!")
        await until_shown(pilot, "dataset 1: reward 0.300 of 3 samples, was 0.900 at eval 0")


async def test_an_eval_of_one_dataset_has_one_row(tmp_path: Path) -> None:
    for step in (0, 2):
        samples = [sample(at, reward=1.0, group_index=None) for at in range(3)]
        write_step(tmp_path, step, samples, evaluation=True, train=False)
    async with opened(tmp_path, scanned=True) as (app, _):
        assert app.rollout.steps.table.row_count == 2


def test_printed_evals_have_their_datasets(evals: Path) -> None:
    rows = json.loads(run(evals, "--print", "steps", "--json", "--no-cache").stdout)["rows"]
    newest = next(row for row in rows if row["evaluation"] and row["step"] == 2)
    found = [(one["dataset"], one["samples"], round(one["reward_mean"], 3)) for one in newest["datasets"]]
    assert found == [(0, 3, 0.6), (1, 3, 0.3)]
    assert "datasets" not in rows[0]

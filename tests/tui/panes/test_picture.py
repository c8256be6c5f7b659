"""Reward against length as a picture, and the figures of a step in one line."""

from __future__ import annotations

import math
from pathlib import Path

from textual.app import App, ComposeResult

from dumptui.core.files.step_files import StepKey
from dumptui.tui.presentation.step_line import stat_line
from dumptui.tui.widgets.plot.scatter import Kind, Point, Scatter
from tests.support.reading import groups, read, step_row
from tests.support.screen import lines, press, text, until, until_shown
from tests.support.session import click, go, opened, under_cursor
from tests.support.writer import sample, write_step

KINDS = [Kind("truncated", "x", "second"), Kind("others", "•", "first")]
POINTS = [Point(7, 10, 0.0, 1), Point(3, 10, 1.0, 1), Point(5, 50, 0.5, 0), Point(4, 90, 0.0, 1)]


class Alone(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[object] = []

    def compose(self) -> ComposeResult:
        yield Scatter()

    def on_scatter_moved(self) -> None:
        self.seen.append(self.query_one(Scatter).key)

    def on_scatter_selected(self) -> None:
        self.seen.append(f"open {self.query_one(Scatter).key}")


async def test_points_are_walked_opened_and_clicked() -> None:
    app = Alone()
    async with app.run_test(size=(40, 10)) as pilot:
        scatter = app.query_one(Scatter)
        scatter.show_points(POINTS, KINDS, x_label="length", empty="none")
        await until_shown(pilot, "x", "•", "length")
        await press(pilot, "right", "right", "right", "right", "up", "up", "up", "enter", "home", "end", "down")
        assert app.seen == [3, 5, 4, 5, 3, "open 3", 7, 4]
        scatter.focus()
        await pilot.click(Scatter, offset=(20, 4))
        await until(pilot, lambda: app.seen[-1] == 5)
        await pilot.pause(0.6)  # not a double click
        await pilot.click(Scatter, offset=(21, 5))
        await until(pilot, lambda: app.seen[-1] == "open 5")
        scatter.select(99)
        assert scatter.key == 5
        scatter.show_points([*POINTS, Point(6, 0, 0, 1)], KINDS, x_label="length", empty="none")
        assert scatter.key == 5
        scatter.show_points([], KINDS, x_label="length", empty="none at all")
        await press(pilot, "right", "up", "enter")
        await pilot.click(Scatter, offset=(5, 5))
        await until_shown(pilot, "none at all")
        assert app.seen[-1] == "open 5"


async def test_points_that_the_drawing_does_not_show_yet_have_no_cell_in_it() -> None:
    """A plot is drawn a paint after it is shown other points: until then the old drawing stands."""
    app = Alone()
    async with app.run_test(size=(40, 10)) as pilot:
        scatter = app.query_one(Scatter)
        near = [Point(at, 10 + at, at / 10, 1) for at in range(9)]
        far = [Point(at, 1e6 * at, 1e300 * (at - 3), 1) for at in range(9)]
        for points in (near, far, near):
            scatter.show_points(points, KINDS, x_label="length", empty="none")
            for move in (scatter.action_along, scatter.action_climb):
                move(1)
                assert len(lines(app)) == 10  # drawn before the plot is
            await pilot.click(Scatter, offset=(39, 0))
            await until(pilot, lambda: scatter._current_frame() is not None)
            assert 0 <= scatter.point < len(points)


async def test_the_picture_and_the_table_share_their_cursor(demo: Path) -> None:
    async with opened(demo, key=StepKey(2), size=(120, 40)) as (app, pilot):
        await until_shown(pilot, "reward against length", "sample 64  reward 0.00  len 135  |Δ| 0.0376")
        await go(pilot, "enter", "down", "down", "down")
        await until_shown(pilot, "sample 67  reward 0.00  len 189")
        await go(pilot, "v")
        await until(pilot, lambda: "reward against length" not in text(app))
        await go(pilot, "v", "right")
        await until(pilot, lambda: under_cursor(app.rollout.table)[3] != "189")
        index, length = under_cursor(app.rollout.table)[0], under_cursor(app.rollout.table)[3]
        await until_shown(pilot, f"sample {index}  reward 0.00  len {length}")
        await go(pilot, "enter")
        await until_shown(pilot, f"sample {index} · step 2")
        await go(pilot, "escape")
        assert app.rollout.samples.picture.scatter.key == app.rollout.current


async def test_truncated_samples_have_their_own_sign_and_rewards_that_are_none_are_counted(tmp_path: Path) -> None:
    rewards = [0.0, 1.0, None, math.nan]
    made = [sample(at, reward=one, response_len=5 + at) for at, one in enumerate(rewards)]
    made[0]["status"] = "truncated"
    write_step(tmp_path, 0, made, train=False)
    async with opened(tmp_path, size=(70, 16)) as (app, pilot):
        await go(pilot, "v")
        await until_shown(pilot, "2 without reward", "len 5")
        drawn = "\n".join(line for line in lines(app) if "┤" in line)
        assert "x" in drawn and "•" in drawn
        await click(pilot, app.rollout.samples.picture.scatter, app.rollout.samples.picture.scatter.size.width - 1, 0)
        await until_shown(pilot, "sample 1  reward 1.00  len 6")
        await go(pilot, "escape")
        assert app.rollout.steps.table.has_focus


def test_the_figures_of_a_step(tmp_path: Path) -> None:
    made = [sample(at, reward=float(at < 3), group_index=at // 2) for at in range(6)]
    made[5]["status"] = "truncated"
    write_step(tmp_path, 0, made)
    step = read(tmp_path)
    shown = stat_line(step_row(step), groups(step)).plain
    assert shown.startswith("reward 0.50 trunc 17% 0-std 2/3 mixed 0% stale 0.0 |Δ| 0.0")
    write_step(tmp_path, 1, [sample(0, reward=None, weight_versions=[])], train=False)
    step = read(tmp_path, 1)
    shown = stat_line(step_row(step), groups(step)).plain
    assert shown == "reward - trunc 0% 0-std - mixed - stale - |Δ| - H -"

"""An entry chosen from rewards that are dicts counts in every number; one that no reward has is refused.

Public reports: THUDM/slime#2157, THUDM/slime#1299, radixark/miles#3280 (cases.md, case 9).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Input

from dumptui.core.files.step_files import StepKey
from dumptui.core.run.run import Run
from dumptui.core.store.cache import Cache
from dumptui.core.store.state import State, kept_reward_key
from dumptui.core.store.summaries import Summaries
from dumptui.core.tables.group_members import mean_passes, ranked
from dumptui.tui.reading.reader_thread import ReaderThread
from dumptui.tui.reading.step_reader import StepReader
from dumptui.tui.reading.summary_scan import Scan
from tests.support.reading import groups, read, samples, step_row
from tests.support.screen import run, until_shown
from tests.support.session import go, opened
from tests.support.writer import Layout, sample, write_step

RUN_KEY = [1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0]  # what the run took
OTHER = [0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]


def dump(root: Path, *, train: bool = True, step: int = 0) -> Path:
    made = [sample(at, group_index=at // 4, reward={"score": RUN_KEY[at], "format": OTHER[at]}) for at in range(8)]
    write_step(root, step, made, Layout(dp=2), train=train, columns={"raw_reward": RUN_KEY}, mirror=False)
    return root


@pytest.mark.parametrize("train", [True, False])
def test_every_number_is_of_the_chosen_entry(tmp_path: Path, train: bool) -> None:
    step = read(dump(tmp_path, train=train))
    table, rows, row = samples(step, "format"), groups(step, "format"), step_row(step, "format")
    assert [one["reward"] for one in table] == OTHER
    assert (row["reward_mean"], row["reward_episode_mean"], row["zero_std_frac"]) == (0.125, 0.125, 0.5)
    assert [one["reward_mean"] for one in rows] == [0.0, 0.25] and [one["zero_std"] for one in rows] == [True, False]
    assert [one["pass_at_k"] for one in rows] == [0.0, 1.0]
    found = ranked(table, rows, False)
    assert [group.mean for group in found] == [0.0, 0.25] and found[1].best == 4
    assert mean_passes(found)[1] == 0.125


def test_without_a_choice_the_runs_own_entry_counts(tmp_path: Path) -> None:
    assert step_row(read(dump(tmp_path)))["reward_mean"] == 0.5


def test_no_entry_is_made_up_where_the_sample_has_none(tmp_path: Path) -> None:
    """Rewards read from train files alone are of the entry that the run took: another one is not known."""
    dump(tmp_path)
    made = [sample(at, group_index=0, reward=None) for at in range(4)]
    write_step(tmp_path, 1, made, columns={"raw_reward": RUN_KEY[:4]}, mirror=False)
    assert step_row(read(tmp_path, 1), "format")["reward_mean"] is None
    assert step_row(read(tmp_path, 1))["reward_mean"] == 0.75


@pytest.mark.parametrize("view", ["steps", "samples", "groups"])
@pytest.mark.parametrize("cached", [False, True])
def test_an_entry_that_no_reward_has_is_refused(
    tmp_path: Path, view: str, cached: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root, words = dump(tmp_path / "run"), ["--print", view, "--reward-key", "scroe"]
    for _ in range(1 + cached):
        done = run(root, *words)
    assert done.returncode == 2
    assert done.stderr == "dumptui: --reward-key: no reward has the entry scroe: there are score, format\n"
    assert run(root, "--print", view, "--reward-key", "format").returncode == 0


def test_rewards_that_are_no_dicts_have_no_entries(tmp_path: Path) -> None:
    write_step(tmp_path, 0, [sample(at) for at in range(4)])
    done = run(tmp_path, "--print", "steps", "--reward-key", "score")
    assert done.returncode == 2 and "the rewards are not dicts" in done.stderr


def test_a_metric_that_was_never_logged_is_refused(shared: Path, tmp_path: Path) -> None:
    done = run(shared / "runs" / "plain", "--print", "metrics", "--key", "rollout/reward_mean")
    assert (
        done.returncode == 2
        and "no metric rollout/reward_mean" in done.stderr
        and "rollout/rewards_mean" in done.stderr
    )
    write_step(tmp_path, 0, [sample(0)])
    done = run(tmp_path, "--print", "metrics", "--key", "x")
    assert done.returncode == 2 and "none is logged" in done.stderr


async def test_on_screen_the_choice_is_in_every_pane(tmp_path: Path) -> None:
    async with opened(dump(tmp_path), size=(120, 40)) as (_, pilot):
        await until_shown(pilot, "reward 0.50", "x truncated  reward: score")
        await go(pilot, "w", "down", "enter")
        await until_shown(pilot, "reward 0.12", "group 0: 0.00  0.00  0.00  0.00", "x truncated  reward: format")
        await go(pilot, "6")
        await until_shown(pilot, "zero-std 1 of 2", "pass@1 0.12", "pass@4 0.50 · reward: format")


async def test_the_other_entries_are_columns_that_filter_and_sort(tmp_path: Path) -> None:
    async with opened(dump(tmp_path), size=(120, 40)) as (_, pilot):
        await go(pilot, "enter", *["right"] * 30)
        await until_shown(pilot, "format")
        await go(pilot, "slash")
        pilot.app.screen.query_one(Input).value = "reward.format == 1 and reward == 0"
        await go(pilot, "enter")
        await until_shown(pilot, "1 of 8 samples", "where reward.format == 1 and reward == 0")
        await go(pilot, "enter")
        await until_shown(pilot, "sample 4 · step 0 · group 1, 1 of 4 · reward 0.00 (score; format 1.00)")
        await go(pilot, "4")
        await until_shown(pilot, "reward 0.00 (score; format 1.00)")
    done = run(tmp_path, "--print", "samples", "--where", "reward.format == 1", "--csv")
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 2 and "reward.format" in done.stdout


async def test_the_choice_is_kept_for_the_run_and_can_be_taken_back(tmp_path: Path) -> None:
    root, folder = dump(tmp_path / "run"), tmp_path / "state"
    async with opened(root, size=(120, 40), state=State(root, folder)) as (_, pilot):
        await go(pilot, "R", "down", "enter")
        await until_shown(pilot, "reward 0.12")
    assert kept_reward_key(State(root, folder)) == "format"
    async with opened(root, size=(120, 40), state=State(root, folder)) as (_, pilot):
        await go(pilot, "R", "end", "enter")
        await until_shown(pilot, "reward 0.50")
    assert kept_reward_key(State(root, folder)) is None


async def test_on_screen_an_unknown_entry_is_told(tmp_path: Path) -> None:
    found = Run.open(dump(tmp_path))
    async with opened(tmp_path, summaries=Summaries(found, Cache(tmp_path, None), "scroe")) as (_, pilot):
        await until_shown(pilot, "scroe", "format")


def test_a_row_of_the_entry_before_is_neither_shown_nor_kept(tmp_path: Path) -> None:
    """A worker's answer may come after another entry was chosen."""
    root = dump(tmp_path / "run")
    summaries = Summaries(Run.open(root), Cache(root, tmp_path / "cache"), "format")
    posted: list[object] = []

    thread = ReaderThread("reader")
    scan = Scan(thread, StepReader(summaries, None, thread.check), posted.append, None)
    scan._give(StepKey(0), step_row(read(root), "score"), True, "score")
    assert posted == [] and summaries.known(StepKey(0)) is None
    scan._give(StepKey(0), step_row(read(root), "format"), True, "format")
    assert len(posted) == 1 and summaries.known(StepKey(0)) is not None

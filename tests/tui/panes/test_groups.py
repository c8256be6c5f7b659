"""Prompt groups: their members by reward, what their spread teaches, pass@k, and the pane that shows them."""

from __future__ import annotations

import math
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dumptui.core.files.step_files import StepKey
from dumptui.core.tables.group_members import Group, mean_passes, ranked
from dumptui.core.tables.pass_at_k import is_binary, pass_at, pass_rates
from dumptui.tui.panes.groups import GroupsPane
from dumptui.tui.widgets.reward_strip import BAR_CHARACTERS, reward_strip
from tests.support.reading import groups, read, samples
from tests.support.screen import press, tab, text, until, until_shown, until_wrapped
from tests.support.session import choose, go, opened, under_cursor
from tests.support.writer import sample, write_step

NAN = math.nan
TAB = tab("groups")


# pass@k -----------------------------------------------------------------------------------------------------------


@given(st.lists(st.booleans(), min_size=1, max_size=9), st.data())
def test_pass_at_k_is_the_share_of_draws_that_hold_a_success(outcomes: list[bool], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(outcomes)))
    draws = list(combinations(outcomes, k))
    assert math.isclose(pass_at(k, len(outcomes), sum(outcomes)), sum(map(any, draws)) / len(draws))


def test_pass_rates_of_a_large_group() -> None:
    rates = pass_rates([1.0] + [0.0] * 1999)
    assert list(rates) == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2000]
    assert math.isclose(rates[1], 1 / 2000) and math.isclose(rates[1024], 1024 / 2000) and rates[2000] == 1.0
    assert pass_rates([1.0, None, -1.0]) == {1: 0.5, 2: 1.0}
    assert pass_rates([None]) == {}


@pytest.mark.parametrize(
    ("rewards", "binary"),
    [
        ([0.0, 1.0], True),
        ([-1.0, 1.0, None], True),
        ([1.0, 1.0], True),
        ([0.0, 0.5, 1.0], False),
        ([-1.0, 0.0], False),
        ([1.0, NAN], False),
        ([None], False),
        ([], False),
    ],
)
def test_which_rewards_tell_only_right_from_wrong(rewards: list[float | None], binary: bool) -> None:
    assert is_binary(rewards) == binary


# Groups -----------------------------------------------------------------------------------------------------------


def of_rewards(tmp_path: Path, *rewards: object, size: int = 4, **how: object) -> list[Group]:
    """The groups of an eval or train step whose samples have these rewards, `size` a group."""
    made = [sample(at, reward=reward, group_index=at // size) for at, reward in enumerate(rewards)]
    write_step(tmp_path, 0, made, mirror=False, **how)  # type: ignore[arg-type]
    step = read(tmp_path)
    return ranked(samples(step), groups(step), False)


def test_members_stand_best_first_and_those_without_a_reward_last(tmp_path: Path) -> None:
    (group,) = of_rewards(tmp_path, 0.5, None, NAN, 2.0, -1.0, 0.5, size=6, train=False)
    assert group.members == (3, 0, 5, 4, 2, 1)
    assert (group.best, group.median, group.worst) == (3, 0, 4)
    assert group.rewarded == 4 and group.passes == {}


def test_the_median_of_two_in_the_middle_is_the_better(tmp_path: Path) -> None:
    (group,) = of_rewards(tmp_path, 1.0, 4.0, 3.0, 2.0, train=False)
    assert group.median == 2


def test_what_the_spread_says(tmp_path: Path) -> None:
    rewards = [1.0, 1.0, 1.0 + 1e-14, None, 0.0, None, None, None, None, None, None, None, 1.0, 0.0, 0.0, 0.0]
    found = of_rewards(tmp_path, *rewards, train=False)
    assert [group.spread for group in found] == ["zero-std", "single", "unknown", ""]
    assert [group.best for group in found] == [2, 4, None, 12]
    (alone,) = of_rewards(tmp_path / "one", 1.0, train=False)
    assert alone.spread == "single" and alone.row["n"] == 1


def test_pass_at_k_over_groups_is_of_those_with_rewards(tmp_path: Path) -> None:
    found = of_rewards(tmp_path, 1.0, 1.0, 0.0, 0.0, None, None, None, None, 1.0, 0.0, None, None, train=False)
    assert [group.passes for group in found] == [{1: 0.5, 2: 1 - 1 / 6, 4: 1.0}, {}, {1: 0.5, 2: 1.0}]
    assert mean_passes(found) == {1: 0.5, 2: (1 - 1 / 6 + 1.0) / 2}
    assert mean_passes([]) == {}


def test_printed_groups_have_pass_rates_of_binary_rewards_only(tmp_path: Path) -> None:
    for name, rewards, shown in (
        ("binary", [1.0, 0.0, 0.0, 0.0], (0.25, 1.0)),
        ("shaped", [0.3, 0.0, 1.0, 1.0], (None, None)),
    ):
        write_step(tmp_path / name, 0, [sample(at, reward=one) for at, one in enumerate(rewards)])
        (row,) = groups(read(tmp_path / name))
        assert (row["pass_at_1"], row["pass_at_k"]) == shown


def test_an_untrained_sample_counts_with_its_own_reward(tmp_path: Path) -> None:
    rewards = [1.0, 0.0, 0.0, 0.0]
    (group,) = of_rewards(tmp_path / "same", *rewards, partition=[[1, 2]])
    assert group.rewards == (1.0, 0.0, 0.0, 0.0) and group.best == 0
    (group,) = of_rewards(
        tmp_path / "other", *rewards, partition=[[1, 2]], columns={"raw_reward": [9.0, 8.0, 7.0, 6.0]}
    )
    assert group.rewards == (8.0, 7.0, None, None)


def test_groups_of_an_eval_are_runs_of_equal_prompts(tmp_path: Path) -> None:
    made = [sample(at, group_index=None, prompt=f"question {at // 2}", reward=float(at % 2)) for at in range(6)]
    write_step(tmp_path, 0, made, evaluation=True)
    step = read(tmp_path, evaluation=True)
    found = ranked(samples(step), groups(step), True)
    assert [group.members for group in found] == [(1, 0), (3, 2), (5, 4)]
    assert [group.passes for group in found] == [{1: 0.5, 2: 1.0}] * 3


# Strips -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rewards", "shown"),
    [
        ([1.0, 1.0, 0.0, None], "++-?"),
        ([1.0] * 12 + [-1.0] * 3 + [None], "12+ 3- 1?"),
        ([0.5, -0.25, None], "0.5 -0.25 ?"),
        ([1.0, 0.0], "+-"),
        ([NAN, 1e300, -math.inf], "NaN 1.00e+300 -inf"),
        ([], ""),
    ],
)
def test_a_strip_shows_every_member(rewards: list[float | None], shown: str) -> None:
    binary = is_binary(rewards)
    assert reward_strip(rewards, binary, (0.0, 1.0), 8 if binary and len(rewards) > 8 else 20) == shown


def test_many_values_become_bars_from_best_to_worst() -> None:
    shown = reward_strip([at / 99 for at in range(99, -1, -1)] + [None], False, (0.0, 1.0), 8)
    assert len(shown) == 8 and shown[-1] == "?" and shown[0] == BAR_CHARACTERS[-1]
    assert list(shown[:-1]) == sorted(shown[:-1], reverse=True)
    assert reward_strip([2.5] * 9, False, (2.5, 2.5), 8) == BAR_CHARACTERS[-1] * 8
    assert reward_strip([NAN] * 9, False, None, 8) == "?" * 8


# The pane ---------------------------------------------------------------------------------------------------------


async def test_from_groups_to_members_to_tokens_and_back(demo: Path) -> None:
    async with opened(demo, key=StepKey(2), size=(120, 30)) as (app, pilot):
        await go(pilot, TAB)
        await until_shown(pilot, "32 samples in 8 groups", "zero-std 1 of 8", "pass@1 0.28")
        await until(pilot, lambda: under_cursor(app.panes.of(GroupsPane).table)[:4] == ["16", "----", "all", "wrong"])
        await go(pilot, "down")
        assert under_cursor(app.panes.of(GroupsPane).table)[:2] == ["17", "+---"]
        await until_shown(pilot, "group 17 · 4 samples, best first", "group 17 · pass@1 0.25")
        await press(pilot, ":")
        await until_wrapped(pilot, "--print groups --step 2")
        await go(pilot, "escape", "enter", "down")
        await press(pilot, ":")
        await until_wrapped(pilot, "--print samples --step 2")
        await go(pilot, "escape", "enter")
        await until_shown(pilot, "sample 69 · step 2")
        await go(pilot, "escape")
        assert app.pane == "groups" and app.panes.of(GroupsPane).members.has_focus
        await go(pilot, "escape")
        assert app.panes.of(GroupsPane).table.has_focus
        await go(pilot, "1")
        assert under_cursor(app.rollout.table)[0] == "69"
        await go(pilot, "end", TAB)
        assert under_cursor(app.panes.of(GroupsPane).table)[0] == "23"


async def test_pass_at_k_over_a_part_of_the_attempts_is_marked(tmp_path: Path) -> None:
    made = [sample(at, group_index=at // 4, reward=None if at == 3 else float(at % 2)) for at in range(8)]
    write_step(tmp_path, 0, made, train=False, mirror=False)
    async with opened(tmp_path, size=(120, 30)) as (_, pilot):
        await go(pilot, TAB)
        await until_shown(pilot, "zero-std 0 of 2 · pass@1 ~0.42", "group 0 · 3 of 4 rewards · pass@1 ~0.33")
        await go(pilot, "down")
        await until_shown(pilot, "group 1 · pass@1 0.50")


@pytest.mark.parametrize(("key", "index"), [("b", 72), ("m", 75), ("w", 74)])
async def test_best_median_and_worst_are_a_key_away(demo: Path, key: str, index: int) -> None:
    async with opened(demo, key=StepKey(2)) as (app, pilot):
        await go(pilot, TAB, "down", "down")
        assert under_cursor(app.panes.of(GroupsPane).table)[:2] == ["18", "++--"]
        await go(pilot, key)
        await until_shown(pilot, f"sample {index} · step 2")


async def test_groups_are_sorted_by_any_column(demo: Path) -> None:
    async with opened(demo, key=StepKey(2)) as (app, pilot):
        await go(pilot, TAB, "s")
        await choose(pilot, "reward")
        first = under_cursor(app.panes.of(GroupsPane).table)
        await go(pilot, "S")
        assert first[0] != "16"
        await until(pilot, lambda: under_cursor(app.panes.of(GroupsPane).table)[:4] == ["16", "----", "all", "wrong"])


async def test_samples_stand_with_label_length_and_the_end_of_the_response(tmp_path: Path) -> None:
    answers = ["x " * 900 + "so the answer is 41<|im_end|>", "42", "42", "42"]
    batch = [
        sample(at, response=answer, label="42", reward=float(at > 0), group_index=at // 2)
        for at, answer in enumerate(answers)
    ]
    write_step(tmp_path, 0, batch, train=False, mirror=False)
    async with opened(tmp_path, size=(120, 40)) as (app, pilot):
        await go(pilot, TAB)
        await until_shown(pilot, "1 all correct")
        await go(pilot, "enter")
        await until_shown(pilot, "x so the answer is 41", "end of the response")
        first, last = (app.panes.of(GroupsPane).members.texts(row) for row in (0, 1))
        assert (first["expected"], first["tail"]) == ("42", "42")
        assert last["tail"].startswith("…") and last["tail"].endswith("so the answer is 41")


async def test_narrow_one_level_at_a_time(demo: Path) -> None:
    async with opened(demo, key=StepKey(2), size=(40, 12)) as (app, pilot):
        await go(pilot, TAB, "down")
        await until(pilot, lambda: "all wrong" in text(app) and "best first" not in text(app))
        await go(pilot, "enter")
        await until_shown(pilot, "group 17 · 4 samples, best first")
        assert "all wrong" not in text(app)
        await go(pilot, "escape", "escape")
        assert app.pane == "rollout"


async def test_a_group_without_rewards_has_no_best(tmp_path: Path) -> None:
    write_step(tmp_path, 0, [sample(at, reward=None, prompt="[/x]\x1b[2J") for at in range(4)], train=False)
    async with opened(tmp_path) as (app, pilot):
        await go(pilot, TAB)
        await until_shown(pilot, "zero-std 0 of 0, 1", "[/x]␛[2J")
        assert under_cursor(app.panes.of(GroupsPane).table)[:3] == ["0", "?", "?"]
        await press(pilot, "b")
        await until_shown(pilot, "no sample of the group has a reward")


async def test_evals_and_unreadable_steps(shared: Path) -> None:
    async with opened(shared / "runs" / "multiturn", key=StepKey(2, True), size=(120, 30)) as (app, pilot):
        await go(pilot, TAB)
        await until(
            pilot,
            lambda: (
                "set" in app.panes.of(GroupsPane).table.render_line(0).text
                or app.panes.of(GroupsPane).table.row_count > 1
            ),
        )
        await until_shown(pilot, "4 single, 6", "unknown")
        await go(pilot, "d")
        await until_shown(pilot, "next in the table")
        await press(pilot, "escape")
        await go(pilot, "enter", "enter")
        await until_shown(pilot, "· eval 2")
    async with opened(shared / "runs" / "broken") as (app, pilot):
        for _ in range(len(app.steps.run.steps)):
            await go(pilot, TAB, "enter", "b", "escape", "less_than_sign")
        assert app.is_running


async def test_a_reward_that_is_a_dict_is_told_by_the_number_it_was_trained_with(tmp_path: Path) -> None:
    made = [sample(at, group_index=0, reward={"score": at, "format": 1}) for at in range(3)]
    write_step(tmp_path, 0, made, columns={"raw_reward": [0.25, 0.75, 0.5]})
    async with opened(tmp_path, size=(120, 40)) as (app, pilot):
        await until_shown(pilot, "group 0: 0.25  0.75  0.50")
        await go(pilot, TAB, "enter")
        members = app.panes.of(GroupsPane).members
        assert [members.texts(at)["compared_reward"] for at in range(3)] == ["0.75", "0.50", "0.25"]
        await go(pilot, "d")
        await until_shown(pilot, "reward   0.75", "best")
        await press(pilot, "enter")
        await until_shown(pilot, "sample 0 vs 1 (best) · reward 0.25 vs 0.75")

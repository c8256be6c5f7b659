"""Finding and ordering rows on screen: filter, search, sort, columns, and going to a step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from dumptui.core.files.step_files import StepKey
from dumptui.core.store.state import State
from dumptui.tui.panes.batch import BatchPane
from dumptui.tui.screens.run_search import HitsScreen
from dumptui.tui.widgets.line import Line
from dumptui.tui.widgets.table.table import Table
from tests.support.screen import Terminal, foreign, press, until, until_shown
from tests.support.session import NARROW, TINY, choose, column, go, opened, under_cursor
from tests.support.writer import sample, write_step

WIDE = (120, 24)


async def type_in(pilot: Pilot[None], key: str, typed: str, *after: str) -> None:
    """Open a line with a key, type into it, and press what comes after once it has been looked at."""
    await press(pilot, key)
    await until(pilot, lambda: len(pilot.app.screen_stack) == 2)
    pilot.app.screen.query_one(Input).value = typed
    await pilot._wait_for_screen()
    await press(pilot, *after)


async def closed(pilot: Pilot[None]) -> None:
    await until(pilot, lambda: len(pilot.app.screen_stack) == 1)


def says(pilot: Pilot[None]) -> str:
    return pilot.app.screen.query_one("#ask-says", Line)._content.plain


def write_run(root: Path) -> None:
    """Three steps of 8 samples and an eval; rewards of 0, 1, none and NaN in turn, lengths in pairs."""
    for step in range(3):
        write_step(root, step, [made(step, at) for at in range(8)])
    write_step(root, 1, [sample(at, reward=1.0, response=f"of eval {at}") for at in range(4)], evaluation=True)


def made(step: int, at: int) -> dict[str, Any]:
    reward = [0.0, 1.0, None, float("nan")][at % 4]
    response = f"the answer of {at} in step {step}" + " [/] \x1b[2J \u202e" * (at == 5)
    return sample(8 * step + at, reward=reward, response_len=4 + at // 2, response=response)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_run(tmp_path / "run")
    return tmp_path / "run"


# Filter -----------------------------------------------------------------------------------------------------------


async def test_a_filter_takes_the_labels_that_the_table_shows(root: Path) -> None:
    async with opened(root, key=StepKey(1), size=WIDE) as (app, pilot):
        await press(pilot, "enter")
        await type_in(pilot, "slash", "len > 6 and |Δ| is not null")
        await until(pilot, lambda: says(pilot).endswith("of 8 samples"))
        await type_in_more(pilot, "len > 6")
        await until(pilot, lambda: says(pilot) == "2 of 8 samples")
        await press(pilot, "enter")
        await closed(pilot)
        assert column(app.rollout.table, "len") == ["7", "7"]


@pytest.mark.parametrize("size", [(120, 40), NARROW])
async def test_a_filter_leaves_the_samples_for_which_it_holds(root: Path, size: tuple[int, int]) -> None:
    async with opened(root, key=StepKey(1), size=size) as (app, pilot):
        await press(pilot, "enter")
        await type_in(pilot, "slash", "reward == 1 or reward is null", "enter")
        await closed(pilot)
        await until_shown(pilot, "4 of 8 samples", "where reward == 1 or reward is null")
        await until(pilot, lambda: "sample" in app.rollout.table.render_line(0).text)
        assert column(app.rollout.table, "sample") == ["!9", "!10", "!13", "!14"]
        assert app.rollout.table.has_focus
        await go(pilot, "enter", "n", "n", "n", "p")
        await until_shown(pilot, "sample 13 ·")
        await go(pilot, "greater_than_sign", "1")
        await until_shown(pilot, "< step 2 · 4 of 8 samples")
        await go(pilot, "escape")
        await until_shown(pilot, "< step 2 · 8 samples")
        assert app.rollout.table.has_focus
        await go(pilot, "escape")
        assert app.rollout.steps.table.has_focus


async def test_typing_a_filter(root: Path) -> None:
    async with opened(root, key=StepKey(1), size=WIDE) as (app, pilot):
        await press(pilot, "enter")
        await type_in(pilot, "slash", "reward == 0")
        await until(pilot, lambda: says(pilot) == "2 of 8 samples")
        await type_in_more(pilot, "rewrd == 0")
        await until(pilot, lambda: "unknown column rewrd: did you mean reward" in says(pilot))
        await press(pilot, "enter")
        assert len(app.screen_stack) == 2
        await type_in_more(pilot, "max_ab")
        await until(pilot, lambda: says(pilot).startswith("max_abs_lp_diff (max |Δ|)"))
        await press(pilot, "tab")
        assert app.screen.query_one(Input).value == "max_abs_lp_diff"
        await type_in_more(pilot, "len")
        await until(pilot, lambda: says(pilot).startswith("response_length (len)"))
        await press(pilot, "tab")
        assert app.screen.query_one(Input).value == "response_length"
        await press(pilot, "escape")
        await closed(pilot)
        await until_shown(pilot, "< step 1 > · 8 samples")


async def type_in_more(pilot: Pilot[None], typed: str) -> None:
    pilot.app.screen.query_one(Input).value = typed
    await pilot._wait_for_screen()


async def test_nothing_typed_shows_all_and_the_sample_under_the_cursor_stays(root: Path) -> None:
    async with opened(root, key=StepKey(1), size=WIDE) as (app, pilot):
        await press(pilot, "enter")
        await type_in(pilot, "slash", "reward == 1", "enter")
        await closed(pilot)
        await go(pilot, "down")
        assert under_cursor(app.rollout.table)[0] == "!13"
        await type_in(pilot, "slash", "", "enter")
        await closed(pilot)
        assert under_cursor(app.rollout.table)[0] == "!13"
        await until_shown(pilot, "< step 1 > · 8 samples")


async def test_a_filter_that_finds_nothing_or_that_a_step_can_not_answer(root: Path) -> None:
    async with opened(root, key=StepKey(1, True), size=WIDE) as (app, pilot):
        await press(pilot, "enter")
        await type_in(pilot, "slash", "reward > 5", "enter")
        await until_shown(pilot, "0 of 4 samples", "no samples match")
        await go(pilot, "n", "enter", "3", "1", "2", "1")
        await type_in(pilot, "slash", "dataset == 0", "enter")
        await until_shown(pilot, "4 of 4 samples")
        await go(pilot, "t")
        await until_shown(pilot, "step 1 > · 8 of 8 samples", "dataset == 0 can't be used")
        assert app.rollout.table.row_count == 8


async def test_a_sample_that_is_filtered_out_can_be_on_show_elsewhere(root: Path) -> None:
    async with opened(root, key=StepKey(1), size=WIDE) as (app, pilot):
        await press(pilot, "enter")
        await type_in(pilot, "slash", "reward == 1", "enter")
        await closed(pilot)
        await go(pilot, "2")
        app.panes.of(BatchPane).query_one("#batch-samples", Table).focus()
        await go(pilot, "home", "enter")
        await until_shown(pilot, "sample 8 ·")
        await go(pilot, "n")
        await until_shown(pilot, "sample 13 ·")
        await go(pilot, "1")
        assert under_cursor(app.rollout.table)[0] == "!13"


# Search -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(120, 40), NARROW])
async def test_a_search_leaves_the_samples_that_say_it(root: Path, size: tuple[int, int]) -> None:
    async with opened(root, key=StepKey(1), size=size) as (_, pilot):
        await type_in(pilot, "f", "answer of [25]", "enter")
        await until_shown(
            pilot, "2 of 8 samples · /answer of [25]/ in 2", "found in response: …the answer of 2 in step 1"
        )
        await go(pilot, "down")
        await until_shown(pilot, "[/] ␛[2J ‹202e›")
        await go(pilot, "greater_than_sign")
        await until_shown(pilot, "< step 2 · 2 of 8 samples")
        await type_in(pilot, "slash", "reward == 1", "enter")
        await until_shown(pilot, "1 of 8 samples", "in 2")
        await go(pilot, "escape")
        await until_shown(pilot, "< step 2 · 8 samples")


async def test_a_pattern_that_can_not_be_read(root: Path) -> None:
    async with opened(root, key=StepKey(1), size=WIDE) as (app, pilot):
        await type_in(pilot, "f", "answer (of", "enter")
        await until(pilot, lambda: says(pilot) == "the pattern can't be parsed: unclosed group")
        assert len(app.screen_stack) == 2


async def test_a_pattern_that_takes_long_keeps_nothing_waiting(tmp_path: Path) -> None:
    for step in range(2):
        write_step(tmp_path, step, [sample(at, response="lorem ipsum é " * 4000) for at in range(4)], mirror=False)
    async with opened(tmp_path, key=StepKey(1), size=WIDE) as (_, pilot):
        await type_in(pilot, "f", "(?:.?){400}{6}y", "enter")
        await until_shown(pilot, "/(?:.?){400}{6}y/ in -", "searching")
        await go(pilot, "less_than_sign")
        await until_shown(pilot, "step 0 >", "searching")
        await go(pilot, "escape")
        await until_shown(pilot, "step 0 > · 4 samples")


async def test_the_whole_run_is_searched_step_by_step(root: Path) -> None:
    async with opened(root, key=StepKey(2), size=WIDE) as (app, pilot):
        await type_in(pilot, "ctrl+f", "(in step [01]|of eval)", "enter")
        await until(pilot, lambda: isinstance(app.screen, HitsScreen))
        await until_shown(pilot, "20 samples in 4 of 4 steps searched", "eval 1", "response: …")
        table = app.screen.query_one(Table)
        assert column(table, "found") == ["4", "8", "8"]
        await press(pilot, "end", "enter")
        await closed(pilot)
        await until_shown(pilot, "step 0 > · 8 of 8 samples · /(in step [01]|of eval)/ in 8")
        assert app.rollout.table.has_focus
        await type_in(pilot, "ctrl+f", "of 1 in", "enter")
        await until_shown(pilot, "3 samples in 4 of 4 steps searched")
        await press(pilot, "end", "enter")
        await closed(pilot)
        await until_shown(pilot, "step 0 > · 1 of 8 samples · /of 1 in/ in 1")


async def test_a_run_that_says_it_nowhere_or_can_not_be_read(root: Path) -> None:
    (root / "rollout_data" / "1.pt").write_bytes(b"")
    async with opened(root, key=StepKey(2), size=NARROW) as (_, pilot):
        await type_in(pilot, "ctrl+f", "nowhere", "enter")
        await until_shown(pilot, "0 samples in 4 of 4 steps searched", "step 1")
        await press(pilot, "escape")
        await closed(pilot)
        await until_shown(pilot, "step 2, 3 of 3", "over train steps")


async def test_what_is_typed_before_the_line_is_there_is_not_lost(root: Path) -> None:
    async with opened(root, key=StepKey(1), size=WIDE) as (app, pilot):
        app.rollout.action_search()
        await press(pilot, *"of 2", "enter")
        await until_shown(pilot, "/of 2/ in 1")


def test_hostile_text_reaches_no_terminal(shared: Path) -> None:
    with Terminal(shared / "runs" / "odd", "--step", "0") as terminal:
        terminal.until("8 samples")
        ask(terminal, "f", "red|markup|trid|tab|nul")
        terminal.until("of 8 samples", "found in")
        for _ in range(4):
            terminal.press("down")
            terminal.settle()
        ask(terminal, "\x06", "x1b|nul|\\[")
        terminal.until("steps searched", "prompt: …", "first hit")
        terminal.settle()
        terminal.press("escape")
        ask(terminal, "/", "status == '\x1b[200~\x1b]0;owned\x07[/]\x1b[201~'")
        terminal.until("of 8 samples", "no samples match")
        assert foreign(bytes(terminal.raw)) == []


def ask(terminal: Terminal, key: str, typed: str) -> None:
    terminal.settle()
    terminal.press(key)
    terminal.until("enter apply · esc cancel")
    terminal.press("\x15")
    terminal.settle()
    terminal.press(typed, "\r")


# Sort and columns -------------------------------------------------------------------------------------------------


async def test_a_second_column_orders_what_is_equal_in_the_first(root: Path) -> None:
    async with opened(root, key=StepKey(1), size=WIDE) as (app, pilot):
        table = app.rollout.table
        await go(pilot, "enter", "s")
        await choose(pilot, "reward")
        await go(pilot, "s")
        await choose(pilot, "len", "space")
        await until_shown(pilot, "by reward ▼, then len ▼")
        assert column(table, "sample") == ["!13", "!9", "!12", "!8", "!14", "!15", "!10", "!11"]
        assert table.render_line(0).text.count("▼") == 2
        await go(pilot, "S")
        assert column(table, "sample") == ["!8", "!12", "!9", "!13", "!10", "!11", "!14", "!15"]
        await pilot.click("#samples", offset=(table.render_line(0).text.index("len"), 0), shift=True)
        assert column(table, "sample")[:4] == ["!12", "!8", "!13", "!9"]
        await pilot.click("#samples", offset=(table.render_line(0).text.index("len"), 0))
        await until_shown(pilot, "8 samples in 2 groups · by len, largest first")


@pytest.mark.parametrize("size", [WIDE, TINY])
async def test_columns_are_picked_for_samples_and_steps(root: Path, size: tuple[int, int]) -> None:
    async with opened(root, key=StepKey(1), size=size) as (app, pilot):
        await go(pilot, "enter")
        await columns_picked(pilot, app.rollout.table, "group")
        await go(pilot, "escape")
        await columns_picked(pilot, app.rollout.steps.table, " n ")


async def columns_picked(pilot: Pilot[None], table: Table, first: str) -> None:
    def header() -> str:
        return table.render_line(0).text

    await until(pilot, lambda: first in header())
    await go(pilot, "C", "space", "enter")
    await closed(pilot)
    await until(pilot, lambda: first not in header() and "reward" in header())
    await go(pilot, "C", "d")
    await closed(pilot)
    await until(pilot, lambda: first in header())


# Steps ------------------------------------------------------------------------------------------------------------


async def test_going_to_a_step_by_its_number(root: Path) -> None:
    async with opened(root, key=StepKey(2), size=WIDE) as (_, pilot):
        await type_in(pilot, "number_sign", "0", "enter")
        await until_shown(pilot, "step 0, 1 of 3", "step 0 >")
        await type_in(pilot, "number_sign", "eval 1", "enter")
        await until_shown(pilot, "eval 1, 1 of 1")
        await go(pilot, "t")
        await until_shown(pilot, "step 1, 2 of 3")
        await go(pilot, "3", "t")
        await until_shown(pilot, "eval 1, 1 of 1", "sample 0 ·")
        await type_in(pilot, "number_sign", "7", "enter")
        await until(pilot, lambda: says(pilot) == "there is no eval 7; the run has evals 1 to 1")
        await type_in_more(pilot, "x")
        await until(pilot, lambda: "type a step number" in says(pilot))
        await press(pilot, "escape")
        await closed(pilot)


async def test_a_step_without_a_twin(root: Path) -> None:
    async with opened(root, key=StepKey(2), size=WIDE) as (_, pilot):
        await go(pilot, "t")
        await until_shown(pilot, "the run has no eval 2")


# Memory -----------------------------------------------------------------------------------------------------------


async def test_columns_sort_and_what_was_asked_are_there_again(root: Path, tmp_path: Path) -> None:
    async with opened(root, key=StepKey(1), size=WIDE, state=State(root, tmp_path / "state")) as (app, pilot):
        await go(pilot, "enter", "C", "space", "enter", "s")
        await choose(pilot, "len")
        await go(pilot, "S", "a")
        for typed in ("reward == 1", "reward is nan"):
            await type_in(pilot, "slash", typed, "enter")
            await closed(pilot)
    async with opened(root, key=StepKey(1), size=WIDE, state=State(root, tmp_path / "state")) as (app, pilot):
        await until_shown(pilot, "8 samples in 2 groups · by len, smallest first")
        await go(pilot, "enter", "a")
        header = app.rollout.table.render_line(0).text
        assert "group" not in header
        assert "▲len" in header
        await press(pilot, "slash")
        await until(pilot, lambda: len(app.screen_stack) == 2)
        for key, value in (
            ("up", "reward is nan"),
            ("up", "reward == 1"),
            ("up", "reward == 1"),
            ("down", "reward is nan"),
        ):
            await press(pilot, key)
            assert app.screen.query_one(Input).value == value


async def test_choices_that_make_no_sense_are_left_out(root: Path, tmp_path: Path) -> None:
    state = State(root, tmp_path / "state")
    state.put("samples.sort", [["shown_reward", 1], ["nonsense", True], "x", [[], 1]])
    state.put("samples.columns", ["shown_reward", 5, "nonsense"])
    state.put("steps.columns", {"a": 1})
    state.put("samples.filters", ["\x1b]0;owned\x07", 3])
    async with opened(root, key=StepKey(1), size=WIDE, state=state) as (app, pilot):
        await until_shown(pilot, "8 samples in 2 groups · by reward, smallest first")
        assert app.rollout.table.render_line(0).text.split() == ["sample", "▲reward"]
        await press(pilot, "enter")
        await press(pilot, "slash", "up")
        await until(pilot, lambda: app.screen.query_one(Input).value == "]0;owned")

"""The help: what the pane on screen is for, and each key that works there."""

from __future__ import annotations

from pathlib import Path

import pytest

from dumptui.core.files.step_files import StepKey
from dumptui.tui.app.app import DumpTui
from dumptui.tui.panes import TABS
from dumptui.tui.screens.help import Explanation
from tests.support.screen import lines, press, still, strips, tab, text, until, until_shown
from tests.support.session import opened

WORDS = ("|Δ|", "ratio", "H", "~", "!", "stale", "scale of the step", "ref", "adv", "norm", "execution", "episode")
"""What a reader of the screen asks for first."""


@pytest.mark.parametrize("size", [(120, 40), (80, 24), (40, 12)])
async def test_the_help_of_each_pane_names_it_and_its_keys(demo: Path, size: tuple[int, int]) -> None:
    async with opened(demo, key=StepKey(1), size=size) as (app, pilot):
        for name, label in TABS.items():
            await press(pilot, tab(name))
            await until(pilot, lambda name=name: app.pane == name)  # type: ignore[misc]
            await press(pilot, "question_mark")
            await until_shown(pilot, f"{label}: help", "First keys")
            assert f"keys: {label}" in titles(app)
            await press(pilot, "end")
            await until_shown(pilot, "About")
            await press(pilot, "slash", *"bookmarks", "enter")
            await until_shown(pilot, "'  Bookmarks")
            await press(pilot, "escape", "escape")
            await until(pilot, lambda: len(app.screen_stack) == 1)


def titles(app: DumpTui) -> list[str]:
    """Return the titles of the blocks of the help."""
    return [block.title.strip() for block in app.screen.query_one(Explanation).blocks]


async def test_the_help_begins_with_ten_keys_and_knows_the_words_on_screen(demo: Path) -> None:
    async with opened(demo, key=StepKey(1), size=(120, 40)) as (app, pilot):
        await press(pilot, "question_mark")
        await until_shown(pilot, "Rollout: help")
        first, *_ = app.screen.query_one(Explanation).blocks
        assert sum(len(line.split("  ")) > 1 for line in first.passages[0].text.lines) == 5  # two columns
        assert set(WORDS) <= set(titles(app))
        await press(pilot, "slash", *"reward_episode_mean", "enter")
        await until_shown(pilot, "mean over executions of their samples' mean reward", "covers: samples with a reward")
        await press(pilot, "escape", "3")
        await until_shown(pilot, "Δ = trainer - engine")
        await press(pilot, "question_mark")
        await until_shown(pilot, "Tokens: help", "▸ Δ ", "difference of the two log-probs")
        assert set(WORDS) <= set(titles(app))
        assert titles(app).index("Δ") < titles(app).index("ratio") < titles(app).index("~")


async def test_a_list_shows_what_the_entry_under_its_cursor_means(demo: Path) -> None:
    async with opened(demo, key=StepKey(1), size=(80, 24)) as (app, pilot):
        await press(pilot, "s")
        await until_shown(pilot, "sort the steps by")
        assert "unit: nats" not in text(app)
        await press(pilot, "question_mark", "down", "down", "down")
        await until_shown(pilot, "unit: nats", "marked with ! from 0.03, an error from 0.3", "mean_abs_lp_diff")
        await press(pilot, "question_mark")
        await until(pilot, lambda: "unit: nats" not in text(app))
        await press(pilot, "escape", "3")
        await until_shown(pilot, "Δ = trainer - engine")
        await press(pilot, "m", "question_mark", "down")
        await until_shown(pilot, "formula: exp(trainer - engine)", "bad: far from 1", "imp_ratio")


async def test_the_help_fits_the_width_it_has_and_takes_another_one(demo: Path) -> None:
    async with opened(demo, key=StepKey(1), size=(120, 60)) as (app, pilot):
        await press(pilot, "question_mark")
        for width in (120, 80, 40):
            await pilot.resize_terminal(width, 60)
            await press(pilot, "home", "end")
            await still(pilot)
            shown = [line.split("│")[1].strip(" ▌▇▂▅▃▁▄▆█") for line in lines(app) if line.count("│") == 2]
            words = " ".join(" ".join(shown).split())
            assert "with a trend, and the samples of the step under the cursor. - enter" in words
            assert "from a sample to its tokens; escape goes back. - / shows only the samples" in words


async def test_keys_in_the_text_are_bold(demo: Path) -> None:
    async with opened(demo, key=StepKey(1), size=(120, 40)) as (app, pilot):
        await press(pilot, "question_mark", "end")
        await until_shown(pilot, "Rollout: help", "goes deeper")
        await until(pilot, lambda: {"enter", "escape"} <= bold_words(app, "goes deeper"))


def bold_words(app: DumpTui, words: str) -> set[str]:
    """Return the bold texts of the line with these words, beside the help too."""
    line = next(strip for strip in strips(app) if words in strip.text)
    return {segment.text for segment in line if segment.style and segment.style.bold}


async def test_the_help_is_left_before_the_app_is(demo: Path) -> None:
    async with opened(demo, key=StepKey(1), sample=(0, 0), pane="tokens", size=(120, 40)) as (app, pilot):
        await until_shown(pilot, "Δ = trainer - engine")
        for key in ("q", "escape", "question_mark"):
            await press(pilot, "question_mark")
            await until_shown(pilot, "Tokens: help", "Worst token")
            await press(pilot, key)
            await until(pilot, lambda: "Tokens: help" not in text(app))
        await press(pilot, "i")
        await until_shown(pilot, "all dumped fields")
        await press(pilot, "question_mark")
        await until_shown(pilot, "Details: help")
        await press(pilot, "q")
        await until_shown(pilot, "all dumped fields")
        await press(pilot, "q", "q", "q", "q")  # out of the details, to the samples, to the steps, and out
        await until(pilot, lambda: app._exit)

"""The screen, used as a person does: what the keys do, and what stands where afterwards."""

from __future__ import annotations

import os
import re
import shutil
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from textual.events import Key

from dumptui.core.files.step_files import StepKey
from dumptui.core.step import load as load_module
from dumptui.core.store.summaries import Summaries
from dumptui.tui.panes.batch import BatchPane
from dumptui.tui.panes.tokens.pane import TokensPane
from dumptui.tui.reading import step_cache, step_reader, tasks
from dumptui.tui.session.sample_order import Arrangement, StepArrangement
from dumptui.tui.widgets.heatmap.heatmap import Heatmap
from dumptui.tui.widgets.key_bar import KeyLine
from dumptui.tui.widgets.line import Line
from dumptui.tui.widgets.plot.plot import Plot
from dumptui.tui.widgets.tab_bar import TabLine
from dumptui.tui.widgets.table.table import Table
from tests.support.screen import lines, press, tab, text, until, until_shown
from tests.support.session import NARROW, TINY, WIDE, Session, choose, click, column, go, opened, under_cursor
from tests.support.writer import sample, write_step

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def long_session(demo: Path) -> AsyncIterator[Session]:
    async with opened(demo, key=StepKey(2), scanned=True) as session:
        yield session


@pytest_asyncio.fixture(loop_scope="module")
async def session(long_session: Session) -> Session:
    """One app for many tests, as a start takes longer than most of them: at step 2, as if it was just started there."""
    app, pilot = long_session
    while len(app.screen_stack) > 1:
        await app.pop_screen()
    await pilot.resize_terminal(*WIDE)
    app.rollout.steps.trend.column = "mean_abs_lp_diff"
    app.rollout.steps.shown = app.rollout.samples.shown = "default"
    app.rollout.samples.rearrange(Arrangement())
    app.rollout.steps.rearrange(StepArrangement())
    app.tokens.set_reactive(TokensPane.statistic, "lp_diff")
    app.rollout.leave_level()
    app.steps.open(StepKey(2))
    await until(pilot, lambda: not app.wait.waiting)
    app.action_pane("rollout")
    app.rollout.steps.table.focus()
    await until_shown(pilot, "< step 2 >", "1 Roll")
    return app, pilot


# Where it starts --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "shown", "pane"),
    [
        ({"key": StepKey(0, True)}, "eval 0, 1 of 1", "rollout"),
        ({"key": StepKey(2), "pane": "batch"}, "step 2 · trained on 32 of 32 samples", "batch"),
        ({"key": StepKey(2), "sample": (70, 0)}, "sample 70 · step 2", "tokens"),
        ({"key": StepKey(1), "sample": (9, 0), "pane": "rollout"}, "no sample 9 in step 1", "rollout"),
    ],
)
async def test_step_sample_and_pane_asked_for(demo: Path, where: dict[str, Any], shown: str, pane: str) -> None:
    async with opened(demo, **where) as (app, pilot):
        await until_shown(pilot, "demo-grpo-8gpu", shown)
        assert app.pane == pane


async def test_a_repeated_index_is_told_apart(shared: Path) -> None:
    async with opened(shared / "runs" / "multiturn", key=StepKey(2, True), sample=(1, 1)) as (app, pilot):
        await until_shown(pilot, "sample 1.1 · eval 2")
        await go(pilot, "escape", "s")
        assert under_cursor(app.rollout.table)[0] == "1.1"
        await choose(pilot, "sample")
        assert column(app.rollout.table, "sample")[:4] == ["5", "4", "3.0", "3.1"]
        await go(pilot, "less_than_sign", "less_than_sign")
        await until_shown(pilot, "eval 0, 1 of 2")
        await go(pilot, "2")
        await until_shown(pilot, "evals have no train batch")


def damaged(root: Path) -> None:
    """Newest to oldest: cut short, an empty file, no samples, good."""
    for step in range(4):
        write_step(root, step, [sample(step * 4 + at) for at in range(4)] if step != 1 else [], mirror=False)
    for step, size in ((3, 300), (2, 0)):
        cut(root / "rollout_data" / f"{step}.pt", size)
        cut(root / "train_data" / f"{step}_0.pt", size)


def cut(path: Path, size: int) -> None:
    written = path.stat().st_mtime
    path.write_bytes(path.read_bytes()[:size])
    os.utime(path, (written, written))  # a young one might be being written


async def test_a_newest_step_with_nothing_to_show_is_passed_over(tmp_path: Path) -> None:
    damaged(tmp_path)
    async with opened(tmp_path) as (app, pilot):
        await until_shown(pilot, "step 0, 1 of 4")
        await until_shown(pilot, "4 samples in 1 group")
        assert under_cursor(app.rollout.steps.table)[:2] == ["0", "4"]
        await go(pilot, "up")
        await until_shown(pilot, "the step has no samples")
        for pane in "231":
            await go(pilot, pane, "n", "right_square_bracket", "enter")
        await until_shown(pilot, "step 1, 2 of 4")


async def test_a_damaged_step_says_why_in_every_pane(tmp_path: Path) -> None:
    damaged(tmp_path)
    cut(tmp_path / "rollout_data" / "0.pt", 0)
    cut(tmp_path / "train_data" / "0_0.pt", 0)
    async with opened(tmp_path) as (_, pilot):
        await until_shown(pilot, "step 3, 4 of 4")
        for pane in "231":
            await go(pilot, pane)
            await until_shown(pilot, "3.pt: is truncated")


# Down and up ------------------------------------------------------------------------------------------------------


async def test_enter_goes_down_to_the_tokens_and_escape_back_up(demo: Path) -> None:
    async with opened(demo, size=TINY) as (app, pilot):
        await go(pilot, "down", "enter", "down", "enter")
        await until_shown(pilot, "sample 65")
        await go(pilot, "escape")
        assert under_cursor(app.rollout.table)[0] == "65"
        assert app.rollout.table.has_focus
        await go(pilot, "escape")
        await until(pilot, lambda: under_cursor(app.rollout.steps.table)[:1] == ["2"])
        assert app.rollout.steps.table.has_focus
        await go(pilot, "escape", "3")
        for label, pane in (("2", "batch"), ("1", "rollout"), ("3", "tokens")):
            await click(pilot, TabLine, app.query_one(TabLine).render().plain.index(label), 0)
            await until(pilot, lambda pane=pane: app.pane == pane)  # type: ignore[misc]
        await until_shown(pilot, "sample 65", "3 Tokens")


async def test_batch_keeps_the_sample_and_leads_to_its_tokens(session: Session) -> None:
    app, pilot = session
    await go(pilot, "enter", "down", "down", "2")
    table = app.panes.of(BatchPane).query_one("#batch-samples", Table)
    await until(pilot, lambda: under_cursor(table)[0] == "66")
    await go(pilot, "down")
    await until_shown(pilot, "2_1.pt rollout_log_probs")
    await go(pilot, "tab", "tab", "down", "enter")
    await until_shown(pilot, "sample 67 · step 2")
    await go(pilot, "escape")
    assert app.pane == "batch"
    await go(pilot, "n", "1")
    assert under_cursor(app.rollout.table)[0] == "68"


async def test_a_wide_terminal_shows_a_sample_beside_its_table(session: Session) -> None:
    app, pilot = session
    await go(pilot, "enter", "enter")
    await pilot.resize_terminal(190, 40)
    await until_shown(pilot, "< step 2 >", "sample 64 · step 2")
    await go(pilot, "n")
    await until_shown(pilot, "sample 65 · step 2")
    assert under_cursor(app.rollout.table)[0] == "65"
    app.rollout.table.focus()
    await go(pilot, "down", "enter")
    await until_shown(pilot, "sample 66 · step 2")
    await pilot.resize_terminal(*WIDE)
    await until(pilot, lambda: "< step 2 >" not in text(app))
    assert "sample 66 · step 2" in text(app)
    await go(pilot, "escape")
    await until_shown(pilot, "< step 2 >")


async def test_neighbouring_steps_stay_in_the_pane(session: Session) -> None:
    _, pilot = session
    await go(pilot, "less_than_sign")
    await until_shown(pilot, "step 1, 2 of 4", "< step 1 >")
    await go(pilot, "3", "less_than_sign")
    await until_shown(pilot, "step 0, 1 of 4", "sample 0 · step 0")
    await go(pilot, "greater_than_sign", "greater_than_sign", "greater_than_sign", "greater_than_sign")
    await until_shown(pilot, "step 3, 4 of 4", "sample 96 · step 3")


async def test_health_tells_what_is_missing_and_leads_to_the_step(session: Session) -> None:
    app, pilot = session
    await go(pilot, tab("health"))
    await until_shown(pilot, "health of the run · 1 error", "no train file of ranks 2-3")
    await go(pilot, "down", "up", "enter")
    await until_shown(pilot, "step 3, 4 of 4", "train 16/32", "< step 3 ·")
    assert app.pane == "rollout"
    await go(pilot, tab("health"), "escape")
    assert app.pane == "rollout"


# Order and columns ------------------------------------------------------------------------------------------------


async def test_sorting_and_walking_in_that_order(session: Session) -> None:
    app, pilot = session
    table = app.rollout.table
    await pilot.resize_terminal(*NARROW)
    await go(pilot, "enter", "s")
    await choose(pilot, "max |Δ|")
    await until_shown(pilot, "by max |Δ|, largest first")
    await until_shown(pilot, "▼max |Δ|")
    shown = [float(cell) for cell in column(table, "max |Δ|")]
    assert shown == sorted(shown, reverse=True)
    order = column(table, "sample")
    await go(pilot, "enter")
    for key, index in (("n", 1), ("n", 2), ("n", 3), ("p", 2)):
        await go(pilot, key)
        await until_shown(pilot, f"sample {order[index]} ·")
    await go(pilot, "escape")
    assert under_cursor(table)[0] == order[2]
    await go(pilot, "S")
    await until_shown(pilot, "by max |Δ|, smallest first")
    assert float(under_cursor(table)[-3]) < shown[-1]
    await click(pilot, "#samples", table.render_line(0).text.index("len"), 0)
    await until_shown(pilot, "by len, largest first")


async def test_n_goes_on_from_where_the_cursor_is_and_stops_at_the_end(session: Session) -> None:
    app, pilot = session
    await go(pilot, "enter", "end", "enter", "n", "n", "1", "home", "n")
    assert under_cursor(app.rollout.table)[0] == "65"
    await go(pilot, "3")
    await until_shown(pilot, "sample 65")
    await go(pilot, "1", "end", "3", "n", "n", "p")
    await until_shown(pilot, "sample 94")


async def test_blanks_and_nan_are_last_in_both_directions(shared: Path) -> None:
    async with opened(shared / "runs" / "odd", key=StepKey(1)) as (app, pilot):
        await go(pilot, "enter", "s")
        await choose(pilot, "|Δ|")
        for _ in range(2):
            numbers = [cell not in ("-", "NaN") for cell in column(app.rollout.table, "|Δ|")]
            assert numbers == sorted(numbers, reverse=True)
            assert not all(numbers)
            await go(pilot, "S")


async def test_all_columns_and_other_trends(session: Session) -> None:
    app, pilot = session
    table, plot = app.rollout.table, app.query_one("#trend", Plot)
    assert "rank" not in table.render_line(0).text
    await go(pilot, "enter", "a")
    for _ in range(40):
        app.rollout.table.action_shift(1)
    assert table.render_line(0).text.rstrip().endswith("rank   mb  opt")
    await go(pilot, "a")
    assert "rank" not in table.render_line(0).text
    await until_shown(pilot, "|Δ| over train steps")
    await go(pilot, "m")
    await until_shown(pilot, "reward over train steps")
    await click(pilot, plot, 9, 2)
    await until_shown(pilot, "step 0, 1 of 4")


# Tokens -----------------------------------------------------------------------------------------------------------

EVERY = ["Δ", "ratio", "trainer", "engine", "ref", "H", "adv", "rank", "of", "return"]


async def test_statistics_of_the_tokens(session: Session) -> None:
    app, pilot = session
    await go(pilot, "3")
    await until_shown(pilot, "Δ = trainer - engine", "Δ against position", "worst #")
    at = next(at for at, line in enumerate(lines(app)) if line.startswith(" #"))
    assert re.findall(r" ([^\W\d]+) +[-+]?\d", " ".join(lines(app)[at : at + 2]))[1:] == EVERY
    first, second = re.findall(r"worst #(\d+) [-+.\d]+, #(\d+)", text(app))[0]
    heat, chart = app.query_one(Heatmap), app.query_one("#chart", Plot)
    for key, worst in (("]", first), ("]", second), ("[", first)):
        await go(pilot, key)
        assert heat.cursor == int(worst)
        await until_shown(pilot, f" #{worst} ")
        await until(pilot, lambda worst=worst: f"^{worst}" in text(app) or f"{worst}^" in text(app))  # type: ignore[misc]
    await go(pilot, "m")
    await until_shown(pilot, "statistic for shades and chart")
    await choose(pilot, "H ")
    await until_shown(pilot, "H · scale of the", "worst #", "H against position")
    await go(pilot, "n")
    await until_shown(pilot, "H against position")
    await click(pilot, chart, chart.size.width - 1, 3)
    await until(pilot, lambda: heat.cursor == len(heat.flow) - 1)
    await until_shown(pilot, f" #{heat.cursor} ")
    await go(pilot, "home")
    assert re.search(r'#0 "<\|im_start\|>"  id \d+  special  prompt', text(app))
    await click(pilot, heat, 3, 1)
    await until(pilot, lambda: heat.cursor > 0)
    assert chart.cursor == heat.cursor


async def test_a_chart_shows_prompt_and_masked(shared: Path) -> None:
    async with opened(shared / "runs" / "multiturn", key=StepKey(3), pane="tokens") as (app, pilot):
        await until_shown(pilot, "▒ prompt")
        await go(pilot, *"n" * 4)
        chart = [app.query_one("#chart", Plot).render_line(y).text for y in range(3)]
        assert all("▒" in line for line in chart)
        assert any("░" in line for line in chart)


# Help, palette, quitting ------------------------------------------------------------------------------------------


async def test_palette_and_dialogs_open_and_close(session: Session) -> None:
    app, pilot = session
    await pilot.resize_terminal(*TINY)
    for typed, shown in (("step 1", "step 1, 2 of 4"), ("eval 0", "eval 0, 1 of 1")):
        await press(pilot, "ctrl+p", *(key.replace(" ", "space") for key in typed))
        await until_shown(pilot, f"Go to {typed}")
        await press(pilot, "enter")
        await until(pilot, lambda shown=shown: shown in lines(app)[0])  # type: ignore[misc]
    await press(pilot, "ctrl+p", *"pane: b")
    await until_shown(pilot, "Pane: Batch")
    await press(pilot, "enter")
    await until(pilot, lambda: app.pane == "batch")
    await press(pilot, "ctrl+p", "q", "escape", "1", "s", "q")
    assert not app._exit
    assert len(app.screen_stack) == 1
    await click(pilot, KeyLine, app.query_one(KeyLine).render().plain.index("s Sort") + 1, 0)
    await until_shown(pilot, "sort the steps by")


async def test_a_dialog_that_is_answered_twice_is_answered_once(session: Session) -> None:
    app, pilot = session
    await go(pilot, "s")
    await until_shown(pilot, "sort the steps by")
    for name in ("enter", "enter", "escape"):  # as fast as they can be typed
        event = Key(name, None)
        event.set_sender(app)
        app.post_message(event)
    await until(pilot, lambda: len(app.screen_stack) == 1)
    await press(pilot, "down")
    assert app._exception is None and not app._exit


# Size -------------------------------------------------------------------------------------------------------------


async def test_resizing_keeps_the_place(session: Session) -> None:
    app, pilot = session
    await go(pilot, "enter", *["down"] * 6, "enter", "right_square_bracket")
    heat, table = app.query_one(Heatmap), app.rollout.table
    for size in (NARROW, TINY, (1, 1), TINY):
        await pilot.resize_terminal(*size)
        if size >= TINY:
            await until_shown(pilot, "sample 70", f" #{heat.cursor} ")
            await until(pilot, lambda: 0 <= heat.flow.line_of(heat.cursor) - heat.scroll_offset.y < heat.size.height)
        await go(pilot, "down", "up")
    await go(pilot, "escape")
    for size in (NARROW, (5, 2), WIDE):
        await pilot.resize_terminal(*size)
        await go(pilot, "down", "up")
        if size >= TINY:
            await until(pilot, lambda: under_cursor(table)[0] == "70")


async def test_nothing_is_cut_without_a_sign(shared: Path) -> None:
    """The last word of each line of text is there in full, or ends in `…`."""
    async with opened(shared / "runs" / "broken", size=TINY, key=StepKey(7)) as (app, pilot):
        for pane in "123":
            await go(pilot, "enter", pane)
            for line in app.query(Line):
                said, shown = line._content.plain.split(), line.render().plain.split()
                assert shown == said or not line.region or shown[-1].endswith("…"), (line.id, shown)


# Reading ----------------------------------------------------------------------------------------------------------


def forget_what_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_cache.Recent, "get", lambda *_: None)
    monkeypatch.setattr(Summaries, "known", lambda *_: None)


class Gate:
    """Holds the reader inside a step, as a slow disk does, until it is opened; chunks are still reported."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, held: StepKey) -> None:
        self.open = threading.Event()
        self.begun = threading.Event()
        self.held = held
        forget_what_was_read(monkeypatch)
        monkeypatch.setattr(step_reader, "load", self._load)

    def _load(self, files: Any, on_read: Callable[[int, int], None]) -> Any:
        done = 0
        while files.key == self.held and not self.open.is_set():
            self.begun.set()
            on_read(done, 400_000_000)
            done += 1_000_000
            self.open.wait(0.02)
        return load_module.load(files, on_read)


async def test_a_slow_read_shows_progress_and_keys_work_meanwhile(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, pilot = session
    await press(pilot, "up", "down")
    assert not app.wait.display  # too short to tell of
    gate = Gate(monkeypatch, StepKey(1))
    await press(pilot, "down")
    await until_shown(pilot, "reading step 1: ", "of 400.0 MB", "esc cancels")
    await press(pilot, "s", "escape", "m")
    await until_shown(pilot, "reward over train steps", "reading step 1")
    await press(pilot, "up")
    await until_shown(pilot, "step 2, 3 of 4", "32 samples in 8 groups")  # given up for the step after it
    await press(pilot, "down")
    await until_shown(pilot, "esc cancels")
    await press(pilot, "escape")
    await until_shown(pilot, "not loaded")
    await until(pilot, lambda: "esc cancels" not in text(app))
    gate.open.set()
    await go(pilot, "enter")
    await until_shown(pilot, "< step 1 >", "32 samples in 8 groups")


async def test_what_is_typed_ahead_of_a_slow_read_is_done_after_it(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, pilot = session
    gate = Gate(monkeypatch, StepKey(1))
    await press(pilot, "down", "enter", "enter")
    assert "sample 64" not in text(app)
    gate.open.set()
    await until_shown(pilot, "sample 32 · step 1")


async def test_neither_a_step_nor_quitting_waits_for_the_scan(demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(demo, scanned=True) as (app, pilot):
        gate = Gate(monkeypatch, StepKey(2))
        app.reader.scan([StepKey(2)])
        await until(pilot, gate.begun.is_set)
        app.rollout.steps.select(StepKey(0))
        await until_shown(pilot, "step 0, 1 of 4", "32 samples in 8 groups")
        await press(pilot, "q")
    assert app.return_code == 0
    assert not gate.open.is_set()


async def test_a_defect_costs_the_step_or_the_sample(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise LookupError("[bold]out of memory")

    app, pilot = session
    forget_what_was_read(monkeypatch)
    with monkeypatch.context() as patch:
        patch.setattr(step_reader, "load", fail)
        await go(pilot, "down")
        await until_shown(pilot, "step 1: can't be shown: LookupError: [bold]out of")
    await go(pilot, "down")
    await until_shown(pilot, "eval 0, 1 of 1", "20 samples in 10 groups")
    monkeypatch.setattr(tasks, "view_sample", fail)
    await go(pilot, "3")
    await until_shown(pilot, "the sample can't be shown", "[bold]")
    assert app.pane == "rollout"


async def test_a_run_that_vanishes_leaves_the_screen_up(demo: Path, tmp_path: Path) -> None:
    root = tmp_path / "copy"
    shutil.copytree(demo, root)
    async with opened(root) as (app, pilot):
        shutil.rmtree(root)
        await go(pilot, "enter", "enter", "n", "2", "1", "escape", "less_than_sign")
        await until_shown(pilot, "2.pt: can't be opened: No such file")
        await go(pilot, "enter", "enter", "3", "n", "2")
        assert app.is_running


# Case 26: Textualize/textual#6155, Codeplain-ai/codeplain#316, text of dumps that reads as markup -----------------

EVIL = "[/red][bold]\x1b]0;owned\x07\x1b[2J\u202e\x9b31m\x00"


async def test_text_of_a_dump_is_never_markup_and_never_raw(tmp_path: Path) -> None:
    root = tmp_path / "[link]\x1b[2J"
    facts: dict[str, Any] = {
        "prompt": EVIL,
        "response": EVIL,
        "status": EVIL,
        "reward": {EVIL: 1.0},
        "weight_versions": [EVIL],
    }
    samples = [sample(at, group_index=at, **facts) for at in range(3)]
    write_step(root, 0, samples, fields=(), truth={EVIL: [[0.5] * 6] * 3, "log_probs": [[-0.5] * 6] * 3})
    async with opened(root, size=NARROW) as (app, pilot):
        seen = ""
        for key in [
            "enter",
            "s",
            "escape",
            "a",
            "enter",
            "m",
            "escape",
            "n",
            "2",
            "tab",
            "?",
            "escape",
            "ctrl+p",
            "escape",
        ]:
            await go(pilot, key)
            seen += text(app)
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", seen)
        assert "[/red]" in seen


async def test_the_entry_of_dict_rewards_is_chosen_on_screen(tmp_path: Path) -> None:
    rewards = [{"score": 1.0, "acc": 0.0}, {"score": 0.5, "acc": 1.0}]
    write_step(
        tmp_path, 0, [sample(at, reward=reward) for at, reward in enumerate(rewards)], columns={"raw_reward": None}
    )
    async with opened(tmp_path) as (_, pilot):
        await until_shown(pilot, "reward: score", "0.750", "0.50")
        await press(pilot, "R", "down", "enter")
        await until_shown(pilot, "reward: acc", "0.500", "0.00")
        await press(pilot, "w", "enter")
        await until_shown(pilot, "reward: score", "0.750", "0.50")

"""A run that grows while it is on screen, or is printed step by step."""

from __future__ import annotations

import asyncio
import calendar
import errno
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from dumptui.core.files.retry import YOUNG_SECONDS
from dumptui.core.files.step_files import StepKey
from dumptui.core.live import Follow
from dumptui.core.run.run import Run
from dumptui.core.telemetry.telemetry import Telemetry
from dumptui.tui.app.app import DumpTui
from dumptui.tui.app.follow import data_line
from dumptui.tui.panes.health import HealthPane
from dumptui.tui.widgets.line import Line
from dumptui.tui.widgets.table.table import Table
from tests.support.file_faults import Refusals
from tests.support.screen import DEADLINE, ROOT, Terminal, press, still, text, until, until_shown
from tests.support.session import busy
from tests.support.writer import Layout, sample, write_step

LAYOUT = Layout(dp=2)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "run"


def put(root: Path, step: int, samples: list[dict[str, Any]], **how: Any) -> None:
    """Write a step aside and rename its files into place: a look in between finds each of them whole and of its age."""
    with tempfile.TemporaryDirectory(dir=root.parent) as folder:
        write_step(Path(folder), step, samples, LAYOUT, **how)
        land(Path(folder), root)


def land(aside: Path, root: Path) -> None:
    for name in ("rollout_data", "train_data", "dashboard_columns"):
        (root / name).mkdir(parents=True, exist_ok=True)
        for path in sorted((aside / name).glob("*")):
            path.replace(root / name / path.name)


def write(root: Path, step: int, **how: Any) -> None:
    put(root, step, [sample(4 * step + at, group_index=step) for at in range(4)], **how)


def write_bad(root: Path, step: int, **how: Any) -> None:
    samples = [sample(4 * step + at, group_index=step, status="truncated") for at in range(4)]
    worse = [[value - 0.5 for value in one["rollout_log_probs"]] for one in samples]
    put(root, step, samples, truth={"log_probs": worse}, **how)


def forget(root: Path, step: int) -> None:
    for path in [*root.rglob(f"{step}.pt"), *root.rglob(f"{step}_*.pt"), *root.rglob(f"rollout_{step}.parquet")]:
        path.unlink()


@asynccontextmanager
async def live(root: Path, key: StepKey | None = None) -> AsyncIterator[tuple[DumpTui, Pilot[None]]]:
    run = Run.open(root)
    app = DumpTui(run, key, follow=True)
    async with app.run_test(size=(120, 30)) as pilot:
        await until(pilot, lambda: app.loaded is not None and len(app.rollout.rows) == len(run.steps))
        yield app, pilot


async def test_a_time_that_no_clock_can_say_leaves_the_run_followed(root: Path) -> None:
    write(root, 0)
    (root / "dashboard").mkdir()
    record = json.dumps({"ts": 10**400, "length": 1})
    (root / "dashboard" / "data_buffer.jsonl").write_text(f"{record}\n")
    (root / "dashboard" / "meta.json").write_text(json.dumps({"start_ts": 10**400}))
    async with live(root) as (app, pilot):
        write(root, 1, train=False)
        app.reader.look()
        await until_shown(pilot, "step 1, 2 of 2", "live, data")


async def test_a_look_that_fails_is_said_and_the_next_one_goes_on(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root, 0)
    async with live(root) as (app, pilot):
        await until_shown(pilot, "live, data")

        def fail(*_: object) -> None:
            raise MemoryError

        with monkeypatch.context() as patch:
            patch.setattr(Follow, "look", fail)
            app.reader.look()
            await until_shown(pilot, "not followed: not enough memory")
        write(root, 1)
        app.reader.look()
        await until_shown(pilot, "step 1, 2 of 2", "live, data")
        with monkeypatch.context() as patch:
            patch.setattr(Telemetry, "poll", fail)
            write(root, 2)
            app.reader.look()
            await until_shown(pilot, "step 2, 3 of 3", "dashboard: can't be followed: not enough memory")


async def test_the_selection_follows_the_newest_step_until_it_is_moved(root: Path) -> None:
    write(root, 0)
    async with live(root) as (app, pilot):
        write(root, 1, train=False)
        app.reader.look()
        await until_shown(pilot, "step 1, 2 of 2", "train 0/4", "live, data")
        await press(pilot, "down")
        await until_shown(pilot, "step 0, 1 of 2", "+1 step ")
        write(root, 2)
        app.reader.look()
        await until_shown(pilot, "step 0, 1 of 3", "+2 steps")
        await press(pilot, "F")
        await until_shown(pilot, "step 2, 3 of 3")
        write(root, 3)
        app.reader.look()
        await until_shown(pilot, "step 3, 4 of 4")


async def test_end_among_the_steps_follows_again_and_elsewhere_goes_to_the_end(root: Path) -> None:
    write(root, 0)
    write(root, 1)
    async with live(root) as (app, pilot):
        await press(pilot, "G")
        await until_shown(pilot, "step 0, 1 of 2", "+1 step ")
        await press(pilot, "end")
        await until_shown(pilot, "step 1, 2 of 2")
        write(root, 2)
        app.reader.look()
        await until_shown(pilot, "step 2, 3 of 3")
        await press(pilot, "enter", "end")
        assert app.rollout.table.cursor == 3


async def test_who_looks_at_a_sample_is_left_there(root: Path) -> None:
    write(root, 0)
    async with live(root) as (app, pilot):
        for keys, there in ((["enter", "down"], "sample"), (["up", "enter"], "Δ against position")):
            await press(pilot, *keys)
            await until(pilot, lambda: not app.wait.waiting)
            step = len(app.steps.run.steps)
            write(root, step)
            app.reader.look()
            await until_shown(pilot, f"+{step} step", there)
            assert "step 0, 1 of" in text(app)
        await press(pilot, "F")
        await until_shown(pilot, "step 2, 3 of 3")


async def test_a_step_whose_files_go_is_told_and_left_for_the_newest(root: Path) -> None:
    for step in range(3):
        write(root, step)
    async with live(root) as (app, pilot):
        forget(root, 2)
        app.reader.look()
        await until_shown(pilot, "step 1, 2 of 2", "4 samples")
        await press(pilot, "down")
        await until_shown(pilot, "step 0, 1 of 2", "+1 step ")
        forget(root, 0)
        app.reader.look()
        await until_shown(pilot, "step 0: its files are gone", "+1 step ")
        for key in ("enter", "enter", "2", "3", "4", "1", ">", "<", "escape", "escape"):
            await press(pilot, key)
        await press(pilot, "F")
        await until_shown(pilot, "step 1, 1 of 1", "4 samples")
    assert app._exception is None


async def test_a_step_that_is_written_anew_is_reloaded_where_it_is_open(root: Path) -> None:
    write(root, 0)
    async with live(root) as (app, pilot):
        await press(pilot, "enter", "down", "down", "down", "enter")
        await until_shown(pilot, "sample 3 ·", "Δ against position")
        again = [sample(at, group_index=0, seed=50 + at) for at in range(2)]
        put(root, 0, again, train=False, age=10)
        app.reader.look()
        await until_shown(pilot, "the step was rewritten with fewer samples", "train 0/2")
        await press(pilot, "1")
        await until_shown(pilot, "2 samples in 1 group", "train files are older than")
        put(root, 0, again, age=0)
        app.reader.look()
        await until(pilot, lambda: app.loaded is not None and app.loaded.step.trained == 2)
        await press(pilot, "3")
        await until_shown(pilot, "Δ against position")


def age(root: Path, step: int, seconds: float) -> None:
    then = time.time() - seconds
    for path in [*root.rglob(f"{step}.pt"), *root.rglob(f"{step}_*.pt")]:
        os.utime(path, (then, then))


async def test_a_run_begun_again_in_its_folder_is_followed_from_its_new_first_step(root: Path) -> None:
    for step in range(4):
        write(root, step, age=7200 - 60 * step)
    async with live(root) as (app, pilot):
        await until_shown(pilot, "step 3, 4 of 4", "live, data")
        for step in range(2):
            put(root, step, [sample(at, seed=90 + at) for at in range(4)], age=0)
            age(root, step, 100 - 30 * step)
            app.reader.look()
            await until_shown(pilot, f"step {step}, {step + 1} of 4", "4 samples")
            assert "newer" not in text(app) and "+" not in text(app).split("\n")[0]
        await press(pilot, "k", "k")
        await until_shown(pilot, "step 3, 4 of 4  of an earlier attempt", "+2 steps")
        await press(pilot, "F")
        await until_shown(pilot, "step 1, 2 of 4")
    app = DumpTui(Run.open(root))
    async with app.run_test(size=(120, 30)) as pilot:  # one lands there too
        await until_shown(pilot, "step 1, 2 of 4", "4 samples")


async def test_a_step_that_comes_while_another_is_read_is_gone_to_after_it(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, 0)
    async with live(root) as (app, pilot):
        write(root, 1)
        app.wait.begin("reading a sample")
        app.reader.look()
        await until(pilot, lambda: app.rollout.rows.get(StepKey(1), {}).get("state") == "ok")
        assert "step 0, 1 of 2" in text(app)
        app.reader.open_step(StepKey(0))
        await until_shown(pilot, "step 1, 2 of 2")


async def test_a_step_that_turned_bad_is_marked_without_colour(root: Path) -> None:
    write(root, 0)
    write_bad(root, 1)
    write(root, 2)
    async with live(root, StepKey(1)) as (app, pilot):
        app.rollout.steps.show()
        await until_shown(pilot, "!1     4", "!0.5", "!100%", "· !|Δ| 0.5")
        assert [line for line in text(app).split("\n") if "!2  " in line or "!0  " in line] == []


async def test_what_arrives_while_the_screen_is_taken_down_is_no_defect(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, 0)
    async with live(root) as (app, _):
        loaded = app.loaded
        assert loaded is not None
        monkeypatch.setattr(Line, "on_unmount", lambda line: app.post_message(loaded), raising=False)
    assert app._exception is None


ASKED = {
    "tokens": (("enter", "enter"), "sample 0 · step 0"),
    "conversation": (("enter", "c"), "sample 0 · step 0 · group 0, 1 of 4"),
    "details": (("enter", "i"), "▾ sample"),
    "two samples": (("enter", "d", "enter"), "first differ at token 0"),
    "tools": (("E",), "no tool call is recorded"),
    "groups": (("6",), "group 0"),
}


@pytest.mark.parametrize("name", ASKED)
async def test_what_is_asked_of_a_step_that_is_read_again_comes_still(root: Path, name: str) -> None:
    """As when another file of it landed: the newer reading abandons what was asked before."""
    keys, shown = ASKED[name]
    write(root, 0)
    async with live(root) as (app, pilot):
        with busy(app.reader):
            await press(pilot, *keys)
            app.reader.open_step(StepKey(0))
        await until_shown(pilot, shown)
        await until(pilot, lambda: not app.wait.waiting)


@pytest.mark.parametrize("name", ASKED)
async def test_what_is_asked_while_a_step_is_to_be_read_again_costs_no_reading(root: Path, name: str) -> None:
    """A newer question abandons the reading, which nobody would ask for again."""
    write(root, 0)
    late, aside = root / "train_data" / "0_1.pt", root.parent / "0_1.pt"
    late.rename(aside)
    async with live(root) as (app, pilot):
        await until(pilot, lambda: app.loaded is not None and app.loaded.row["state"] == "partial")
        aside.rename(late)
        app.reader.look()
        keys, shown = ASKED[name]
        with busy(app.reader):
            await until(pilot, lambda: len(app.steps.run.steps[StepKey(0)].shards) == 2)
            await press(pilot, *keys)
        await until_shown(pilot, shown)
        await until(pilot, lambda: app.loaded is not None and app.loaded.row["state"] == "ok")


async def test_what_was_given_up_does_not_come_when_the_step_is_read_again(root: Path) -> None:
    write(root, 0)
    async with live(root) as (app, pilot):
        with busy(app.reader):
            await press(pilot, "enter", "i", "escape")
            app.reader.open_step(StepKey(0))
        await asyncio.wrap_future(app.reader.compute(lambda: None))  # after all that was asked before
        assert "▾ sample" not in await still(pilot)


async def test_the_step_on_screen_fills_in_place(root: Path) -> None:
    write(root, 0, drop={1})
    async with live(root) as (app, pilot):
        await until_shown(pilot, "train 2/4")
        await press(pilot, "enter", "down", "down", "s", "enter")
        await press(pilot, "down")
        order, cursor = app.rollout.order, app.rollout.table.cursor
        write(root, 0, age=60)
        app.reader.look()
        await until(
            pilot, lambda: "train 2/4" not in text(app) and app.loaded is not None and app.loaded.step.trained == 4
        )
        assert (app.rollout.order, app.rollout.table.cursor) == (order, cursor)


async def test_a_step_asked_for_stays_and_a_lost_folder_is_said(root: Path, tmp_path: Path) -> None:
    write(root, 0)
    write(root, 1)
    async with live(root, StepKey(0)) as (app, pilot):
        write(root, 2)
        app.reader.look()
        await until_shown(pilot, "step 0, 1 of 3", "+2 steps")
        root.rename(tmp_path / "away")
        app.reader.look()
        await until_shown(pilot, "run: no such folder", "4 samples")
        (tmp_path / "away").rename(root)
        app.reader.look()
        await until_shown(pilot, "+2 steps", "live, data")
        write(root, 3)
        app.reader.look()
        await until_shown(pilot, "+3 steps", "live, data")


async def test_a_half_written_step_is_waited_for(root: Path, tmp_path: Path) -> None:
    write(root, 0)
    write(tmp_path / "aside", 1, mirror=False, train=False)
    whole = (tmp_path / "aside" / "rollout_data" / "1.pt").read_bytes()
    async with live(root) as (app, pilot):
        path = root / "rollout_data" / "1.pt"
        path.write_bytes(whole[:-200])
        app.reader.look()
        await until(pilot, lambda: app.rollout.rows.get(StepKey(1), {}).get("state") == "being written")
        assert "step 0, 1 of 2" in text(app)
        path.write_bytes(whole)
        app.reader.look()
        await until_shown(pilot, "step 1, 2 of 2", "4 samples")


def pieces(content: bytes) -> list[bytes]:
    """What a reader finds of a file that is written slowly, the whole of it last."""
    return [content[:length] for length in (0, 100, len(content) // 2, len(content) - 30, len(content))]


@pytest.mark.parametrize("before", [0, 1], ids=["the only step", "a step that is asked for"])
async def test_a_selected_step_that_was_half_written_is_shown_once_it_is_whole(root: Path, before: int) -> None:
    for step in range(before + 1):
        write(root, step, mirror=False, train=False)
    path = root / "rollout_data" / f"{before}.pt"
    *halves, whole = pieces(path.read_bytes())
    path.write_bytes(halves[0])
    app = DumpTui(Run.open(root), StepKey(before) if before else None, follow=True)
    async with app.run_test(size=(120, 30)) as pilot:
        await until_shown(pilot, f"step {before}: can't be shown", "still being written")
        for half in halves[1:]:
            path.write_bytes(half)
            app.reader.look()
            await until_shown(pilot, "can't be shown", "still being written")
        path.write_bytes(whole)
        app.reader.look()
        await until_shown(pilot, f"step {before}, {before + 1} of {before + 1}", "4 samples in 1 group")
        assert "can't be shown" not in text(app) and app.rollout.table.row_count == 4
        write(root, before)
        app.reader.look()
        await until(pilot, lambda: app.loaded is not None and app.loaded.step.trained == 4)


@pytest.mark.parametrize(("keys", "there"), [("", "4 samples in 1 group"), ("enter", "Δ against position")])
async def test_a_step_that_is_written_anew_while_its_sample_is_open_comes_back_at_the_sample(
    root: Path, keys: str, there: str
) -> None:
    write(root, 0, mirror=False, age=3600)
    write(root, 1, mirror=False, age=3600)
    async with live(root, StepKey(0)) as (app, pilot):
        await press(pilot, "enter", "down", "down", *filter(None, [keys]))
        await until_shown(pilot, "sample 2 ·" if keys else "> ", there)
        if keys:
            await press(pilot, "right", "right")
        token = app.tokens.token
        again = [sample(at, group_index=0, seed=50 + at) for at in range(4)]
        put(root, 0, again, mirror=False, age=0)
        path = root / "rollout_data" / "0.pt"
        *halves, whole = pieces(path.read_bytes())
        for half in halves:
            path.write_bytes(half)
            app.reader.look()
            await until(pilot, lambda: app.steps.failed)
            assert "still being written" in await still(pilot)
        path.write_bytes(whole)
        app.reader.look()
        await until_shown(pilot, "sample 2 ·" if keys else "> ", there)
        assert app.rollout.current == 2 and app.loaded is not None
        assert app.loaded.step.samples[2].tokens.tolist() == again[2]["tokens"]
        assert not keys or app.tokens.token == token


async def test_a_step_that_was_left_unread_stays_so(root: Path) -> None:
    write(root, 0, train=False)
    async with live(root) as (app, pilot):
        app.steps.announce(StepKey(0))
        await press(pilot, "escape")
        await until_shown(pilot, "not loaded")
        write(root, 0)
        app.reader.look()
        await until(pilot, lambda: app.rollout.rows[StepKey(0)]["train_samples"] == 4)
        assert "not loaded" in await still(pilot)


@contextmanager
def printing(root: Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "dumptui", str(root), "--follow", "--print", "steps", *words]
    # Unbuffered, so that select tells of every line.
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT, bufsize=0)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
def test_followed_steps_are_printed_as_they_complete(root: Path, number: signal.Signals, code: int) -> None:
    write(root, 0)
    with printing(root, "--json") as process:
        assert process.stdout is not None and process.stderr is not None
        assert next_line(process.stdout)["step"] == 0
        write(root, 1, drop={0})
        write(root, 2)
        assert [next_line(process.stdout)["train_samples"] for _ in range(2)] == [2, 4]
        process.send_signal(number)
        assert process.wait(DEADLINE) == code
        assert process.stderr.read() == b""


def test_a_step_comes_again_marked_when_it_was_written_anew_or_more_of_it_is_there(root: Path) -> None:
    for step in range(3):
        write(root, step, age=3600 - 60 * step)
    with printing(root, "--json") as process:

        def told() -> tuple[int, int | None, str | None]:
            row = next_line(process.stdout)
            return row["step"], row["train_samples"], row["again"]

        def assert_told_at_last(step: int, trained: int, why: str) -> None:
            """A look between two files of a step gives a row before the last one; the first says why it came again."""
            rows = [told()]
            while rows[-1][1] != trained:
                rows.append(told())
            assert {row[0] for row in rows} == {step}
            assert [row[2] for row in rows] == [why, *["updated"] * (len(rows) - 1)]

        assert [told() for _ in range(3)] == [(0, 4, None), (1, 4, None), (2, 4, None)]
        again = [sample(at, seed=70 + at) for at in range(4)]
        put(root, 0, again, age=0)  # the run is begun again
        assert_told_at_last(0, 4, "rewritten")
        aside = root.parent / "aside"
        shard = write_step(aside, 3, [sample(at) for at in range(4)], LAYOUT, age=0).files[1]
        whole = shard.read_bytes()
        shard.write_bytes(whole[:-50])
        land(aside, root)
        write(root, 4, age=0)
        assert [told() for _ in range(2)] == [(3, 2, None), (4, 4, None)]
        (root / "train_data" / "3_1.pt").write_bytes(whole)
        assert_told_at_last(3, 4, "updated")
        path = root / "rollout_data" / "5.pt"
        path.write_bytes(b"")
        write(root, 6, age=0)
        assert [told() for _ in range(2)] == [(5, None, None), (6, 4, None)]
        write(root, 5, age=0)
        assert_told_at_last(5, 4, "rewritten")


def test_a_step_that_is_printed_is_not_printed_again_for_what_changes_nothing_of_it(root: Path) -> None:
    write(root, 0)
    with printing(root, "--csv") as process:
        assert process.stdout is not None
        assert process.stdout.readline().decode().rstrip().endswith(",reason,again")
        assert process.stdout.readline().decode().startswith("0,")
        for path in (root / "train_data" / "0_0.pt", root / "dashboard_columns" / "rollout_0.parquet"):
            os.utime(path)
        rollout = root / "rollout_data" / "0.pt"
        os.utime(rollout, (rollout.stat().st_mtime + 5,) * 2)  # as when a file server completes a write
        write(root, 1, mirror=False)
        assert process.stdout.readline().decode().startswith("1,")


@pytest.mark.parametrize(("form", "heading"), [("--csv", "step,evaluation,samples,"), (None, "step    evaluation")])
def test_printing_ends_at_once_when_the_reader_of_the_lines_is_gone(root: Path, form: str | None, heading: str) -> None:
    write(root, 0)
    with printing(root, *filter(None, [form])) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline().decode().split("reward")[0].strip().startswith(heading)
        assert process.stdout.readline().decode().split("," if form else None)[0] == "0"
        process.stdout.close()
        assert process.wait(DEADLINE) == 128 + signal.SIGPIPE
        assert process.stderr.read() == b""


def next_line(stream: Any) -> dict[str, Any]:
    assert select.select([stream], [], [], DEADLINE)[0], "no line came"
    line: dict[str, Any] = json.loads(stream.readline())
    return line


# Case 33: QwenLM/qwen-code#8519, Textualize/textual#5000, what is drawn again and again flickers


def test_a_followed_run_at_rest_writes_nothing_and_is_named_in_the_title(root: Path, tmp_path: Path) -> None:
    write(root, 0)
    with Terminal(root, "--follow", env={"XDG_CACHE_HOME": str(tmp_path / "cache")}) as terminal:
        terminal.until("step 0, 1 of 1", "4 samples", "live, data")
        terminal.settle(1.0)
        assert b"\x1b]2;dumptui step 0 reward" in terminal.raw
        begun = time.monotonic()
        assert terminal.read(5.0) == b"" and time.monotonic() - begun > 4.9  # two looks and more
        write(root, 1)
        terminal.until("step 1, 2 of 2")
        os.kill(terminal.process.pid, signal.SIGTERM)
        terminal.end()
        terminal.assert_clean()


def test_a_bell_rings_once_for_each_step_that_turns_bad(root: Path, tmp_path: Path) -> None:
    write_bad(root, 0)
    with Terminal(root, "--follow", "--bell", env={"XDG_CACHE_HOME": str(tmp_path / "cache")}) as terminal:
        terminal.until("step 0, 1 of 1", "4 samples", "!0")
        write_bad(root, 1, drop={0})
        terminal.until("step 1, 2 of 2", "train 2/4", "1 train file ·")
        write_bad(root, 1)
        terminal.wait(lambda: "|Δ| 0.5" in terminal.text and "train 2/4" not in terminal.text, "whole step")
        write(root, 2)
        terminal.until("step 2, 3 of 3", "4 samples")
        terminal.settle()
        assert bells(terminal) == 1
        terminal.hang_up()
        assert terminal.process.wait(DEADLINE) == 128 + signal.SIGHUP


def bells(terminal: Terminal) -> int:
    titles = re.compile(rb"\x1b\][0-9]+;[^\x07]*\x07")
    return titles.sub(b"", bytes(terminal.raw)).count(b"\x07")


@pytest.mark.parametrize(
    ("age", "said"),
    [
        (5, ", data 12:00:00 UTC"),
        (599, ", data 12:00:00 UTC"),
        (601, ", data 12:00:00 UTC, over 10 min ago"),
        (1199, ", data 12:00:00 UTC, over 10 min ago"),
        (3 * 3600, ", data 12:00:00 UTC, over 2 h ago"),
        (13 * 3600, ", data 2026-01-01 12:00 UTC, over 10 h ago"),
        (90 * 86_400, ", data 2026-01-01 12:00 UTC, over 56 days ago"),
        (-100, ", data 12:00:00 UTC"),
    ],
)
def test_the_age_of_the_newest_data_is_told_where_it_is_late_and_seldom_changes(
    age: float, said: str, elsewhere: None
) -> None:
    noon = calendar.timegm((2026, 1, 1, 12, 0, 0))
    assert data_line(noon, noon + age) == said


async def test_health_follows_the_run_and_keeps_its_cursor(root: Path) -> None:
    for step in range(3):
        write(root, step, age=3600 - 60 * step)
    (root / "rollout_data" / "notes.txt").write_text("")
    async with live(root) as (app, pilot):
        await press(pilot, "5")
        await until_shown(pilot, "0 errors, 0 warnings, 2 notes")
        await press(pilot, "down")
        here = app.panes.of(HealthPane).rows[1]
        again = [sample(at, seed=70 + at) for at in range(4)]
        put(root, 2, again, train=False, age=100)  # an attempt that resumed
        app.reader.look()
        await until_shown(pilot, "1 error, ", "train files are older than the rollout file")
        assert app.panes.of(HealthPane).rows[app.panes.of(HealthPane).query_one("#findings", Table).cursor] == here
        put(root, 2, again, age=50)
        app.reader.look()
        await until_shown(pilot, "0 errors, 0 warnings, 2 notes")
        assert app.panes.of(HealthPane).rows[app.panes.of(HealthPane).query_one("#findings", Table).cursor] == here
        forget(root, 2)
        (root / "rollout_data" / "notes.txt").unlink()
        app.reader.look()
        await until_shown(pilot, "0 errors, 0 warnings, 1 note")


async def test_health_says_of_a_file_that_stays_broken_what_a_new_start_says(
    root: Path,
) -> None:
    for step in range(2):
        write(root, step, mirror=False, age=0)
    path = root / "rollout_data" / "1.pt"
    whole = path.read_bytes()
    path.write_bytes(whole[:-50])
    async with live(root) as (app, pilot):
        await press(pilot, "5")
        await until_shown(pilot, "0 errors, 0 warnings, 2 notes", "still being written")
        age(root, 0, YOUNG_SECONDS + 30)
        age(root, 1, YOUNG_SECONDS)
        app.reader.look()
        await until_shown(pilot, "1 error, 0 warnings, 1 note", "is truncated")
        path.write_bytes(whole)
        age(root, 1, 0)
        app.reader.look()
        await until_shown(pilot, "0 errors, 0 warnings, 1 note")
        (root / "dashboard").mkdir()
        (root / "dashboard" / "metrics.jsonl").write_text("{}\nno record\n")
        app.reader.look()
        await until_shown(pilot, "0 errors, 1 warning, 1 note", "malformed line")


TOKENIZER = {"type": "WordLevel", "vocab": {f"word{number}": number for number in range(1000)}, "unk_token": "word0"}


async def test_a_tokenizer_that_is_written_late_is_used_in_every_pane(root: Path) -> None:
    write(root, 0)
    path = root / "tokenizer" / "tokenizer.json"
    async with live(root) as (app, pilot):
        await press(pilot, "enter", "enter")
        await until_shown(pilot, "sample 0 ·", "Δ against position")
        assert "word" not in text(app)
        path.parent.mkdir()
        whole = json.dumps({"version": "1.0", "model": TOKENIZER, "added_tokens": []})
        path.write_text(whole[:1000])
        app.reader.look()
        assert "word" not in await still(pilot)
        path.write_text(whole)
        app.reader.look()
        await until_shown(pilot, "word")
        token = int(re.findall(r"word(\d+)", text(app))[0])
        path.write_text(whole.replace(f'"word{token}"', '"another"'))
        app.reader.look()
        await until_shown(pilot, "another")
        await press(pilot, "escape", "d", "enter")
        await until_shown(pilot, "another")
        path.write_text(whole)
        app.reader.look()
        await until_shown(pilot, f"word{token}")


async def test_what_the_file_system_refused_is_read_once_it_is_not(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for step in range(2):
        write(root, step, mirror=False)
    path, real, refused = root / "rollout_data" / "1.pt", os.open, [True]

    def refuse(name: Any, *how: Any) -> int:
        if refused and os.fspath(name) == str(path):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return real(name, *how)

    monkeypatch.setattr(os, "open", refuse)
    app = DumpTui(Run.open(root), StepKey(1), follow=True)
    async with app.run_test(size=(120, 30)) as pilot:
        await until_shown(pilot, "step 1: can't be shown", "Permission denied")
        await press(pilot, "5")
        await until_shown(pilot, "1 error", "Permission denied")
        app.reader.look()
        assert "1 error" in await still(pilot)
        refused.clear()
        path.chmod(0o600)
        app.reader.look()
        await until_shown(pilot, "0 errors", "step 1, 2 of 2")
        await press(pilot, "1")
        await until_shown(pilot, "4 samples in 1 group")


async def test_a_folder_that_can_not_be_listed_is_an_error_until_it_can(root: Path, tmp_path: Path) -> None:
    write(root, 0)
    async with live(root) as (app, pilot):
        await press(pilot, "5")
        await until_shown(pilot, "0 errors, 0 warnings, 1 note")
        (root / "train_data").rename(tmp_path / "away")
        (root / "train_data").write_text("")
        app.reader.look()
        await until_shown(pilot, "1 error, 0 warnings, 1 note", "train_data: can't be listed: Not a directory")
        (root / "train_data").unlink()
        (tmp_path / "away").rename(root / "train_data")
        app.reader.look()
        await until_shown(pilot, "0 errors, 0 warnings, 1 note", "live, data")


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Where the clock on the wall shows another time than UTC, which all times of a run are in."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_a_file_of_a_time_that_no_clock_can_say_has_the_last_one() -> None:
    assert data_line(1e18, 1e9) == ", data 23:59:59 UTC"


async def test_what_was_open_is_there_again_once_what_kept_it_away_is_over(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that may not be read, and the folder of the run that is not there, while a sample is read."""
    refusals = Refusals(monkeypatch)
    for step in range(2):
        write(root, step, mirror=False)
    path = root / "rollout_data" / "0.pt"
    async with live(root, StepKey(0)) as (app, pilot):
        await press(pilot, "enter", "down", "down", "enter")
        await until_shown(pilot, "sample 2 ·", "Δ against position")
        await press(pilot, "right", "right", "right")
        before, token = await still(pilot), app.tokens.token
        assert token > 0

        refusals.refuse(path)
        app.reader.look()
        await until_shown(pilot, "0.pt: can't be opened: Permission denied")
        refusals.heal(path)
        app.reader.look()
        await until(pilot, lambda: text(app) == before)

        root.rename(tmp_path / "away")
        app.reader.look()
        await until_shown(pilot, "run: no such folder", "sample 2 ·", "Δ against position")
        (tmp_path / "away").rename(root)
        app.reader.look()
        await until(pilot, lambda: text(app) == before)

        forget(root, 0)
        app.reader.look()
        await until_shown(pilot, "step 0: its files are gone", "sample 2 ·", "Δ against position")
        assert app.tokens.token == token


def is_found(pane: HealthPane, path: Path) -> bool:
    return any(path.name in str(row["file"]) for row in pane.rows)


async def test_health_says_once_what_is_refused_and_no_longer_when_it_is_allowed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cursor and what is scrolled stay where they are."""
    refusals = Refusals(monkeypatch)
    for step in range(40):
        write(root, step, mirror=False, drop={1})
    async with live(root) as (app, pilot):
        await press(pilot, "5")
        await until_shown(pilot, "40 errors, 0 warnings")
        table = app.panes.of(HealthPane).query_one("#findings", Table)
        await press(pilot, *["down"] * 30)
        pane = app.panes.of(HealthPane)
        here = pane.rows[table.cursor]
        line = table.cursor_line
        for path in (root / "train_data" / "5_0.pt", root / "trajectory"):
            path.parent.mkdir(exist_ok=True)
            if path.name == "trajectory":
                path.mkdir()
            refusals.refuse(path)
            app.reader.look()
            await until(pilot, partial(is_found, pane, path))
            assert pane.rows[table.cursor] == here
            refusals.heal(path)
            app.reader.look()
            await until_shown(pilot, "40 errors, 0 warnings")
            assert pane.rows[table.cursor] == here
            assert table.cursor_line == line

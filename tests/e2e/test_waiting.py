"""A monitor is started beside the job: `--follow` waits for a run that has not begun, and says for what."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.screen import DEADLINE, ROOT, Terminal, run
from tests.support.writer import sample, write_step


def missing(root: Path) -> str:
    return "no such folder"


def empty(root: Path) -> str:
    root.mkdir()
    return "holds no dump"


def begun(root: Path) -> str:
    """The folder as the job leaves it before its first step."""
    (root / "dashboard").mkdir(parents=True)
    (root / "dashboard" / "meta.json").write_text("{}")
    (root / "rollout_data").mkdir()
    return "holds no dump"


STARTS = (missing, empty, begun)


@pytest.mark.parametrize("start", STARTS)
def test_the_screen_waits_for_the_first_step_and_shows_it(tmp_path: Path, start: Callable[[Path], str]) -> None:
    root = tmp_path / "run"
    why = start(root)
    with Terminal(root, "--follow", env={"XDG_CACHE_HOME": str(tmp_path / "cache")}) as terminal:
        terminal.until("waiting for the first step of run", why)
        write_step(root, 0, [sample(at) for at in range(4)])
        terminal.until("step 0, 1 of 1", "4 samples", "live, data")
        terminal.press("q")
        assert terminal.end() == 0
        terminal.assert_clean()


@pytest.mark.parametrize(("key", "code"), [("q", 0), ("ctrl+c", 0), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_the_wait_can_be_left(tmp_path: Path, key: str | signal.Signals, code: int) -> None:
    with Terminal(tmp_path / "run", "--follow", size=(40, 10)) as terminal:
        terminal.until("waiting for the first step of run", "q quits")
        if isinstance(key, signal.Signals):
            os.kill(terminal.process.pid, key)
        else:
            terminal.press(key)
        assert terminal.end() == code
        terminal.assert_clean()


def test_a_step_that_is_asked_for_is_waited_for_in_a_run_that_has_not_begun(tmp_path: Path) -> None:
    root = tmp_path / "run"
    with Terminal(root, "--follow", "--step", "1", env={"XDG_CACHE_HOME": str(tmp_path / "cache")}) as terminal:
        terminal.until("waiting for step 1 of run", "no such folder")
        write_step(root, 0, [sample(at) for at in range(4)])
        terminal.until("no step 1 yet")
        write_step(root, 1, [sample(at) for at in range(4)])
        terminal.until("step 1, 2 of 2", "4 samples")


@pytest.mark.parametrize("start", STARTS)
def test_printed_steps_are_waited_for(tmp_path: Path, start: Callable[[Path], str]) -> None:
    root = tmp_path / "run"
    why = start(root)
    command = [sys.executable, "-m", "dumptui", str(root), "--follow", "--print", "steps", "--json"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)
    assert process.stdout is not None and process.stderr is not None
    try:
        said = process.stderr.readline().decode()
        assert said.startswith("dumptui: waiting for the first step of run: ") and why in said
        write_step(root, 0, [sample(at) for at in range(4)])
        assert select.select([process.stdout], [], [], DEADLINE)[0], "no line came"
        assert json.loads(process.stdout.readline())["samples"] == 4
    finally:
        process.kill()
        process.communicate()


def test_the_wait_ends_when_the_reader_of_the_lines_is_gone(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "dumptui", str(tmp_path), "--follow", "--print", "steps"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        assert b"waiting" in process.stderr.readline()
        process.stdout.close()
        assert process.wait(DEADLINE) == 128 + signal.SIGPIPE


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["{runs}", "--follow"], "it contains 2 runs: open one of first, second"),
        (["{runs}"], "it contains 2 runs: open one of first, second"),
        (["{runs}/.."], "it contains 2 runs: open one of runs/first, runs/second"),
        (["{first}/rollout_data/1.pt"], "to open step 1: dumptui {first} --step 1"),
        (["{first}/rollout_data/1.pt", "--follow"], "to open step 1: dumptui {first} --step 1"),
        (["{first}/rollout_data/eval_1.pt"], "to open eval 1: dumptui {first} --eval 1"),
        (["{first}/train_data/0_0.pt"], "to open step 0: dumptui {first} --step 0"),
        (["{first}/dashboard_columns/rollout_1.parquet"], "to open step 1: dumptui {first} --step 1"),
        (["{first}/dashboard/phases"], "to open its run: dumptui {first}"),
        (["{first}/dashboard/phases/20260101_00.jsonl"], "to open its run: dumptui {first}"),
        (["{runs}/only"], "it contains a run: dumptui {runs}/only/deeper/run"),
        (["{runs}/file"], "not a folder"),
        (["{runs}/file", "--follow"], "not a folder"),
        (["{runs}/nothing"], "no such folder"),
        (["{first}", "--step", "99"], "no step 99: the run has train steps 0 to 1"),
        (["{first}", "--eval", "0"], "no eval 0: the run has eval steps 1 to 1"),
        (["{first}", "--step", "99", "--print", "health"], "no step 99"),
        (["{first}", "--step", "99", "--print", "metrics"], "no step 99"),
        (["{first}", "--step", "99", "--follow"], "no step 99"),
        (["{first}", "--step", "1", "--sample", "99"], "no sample 99 in step 1"),
        (["{first}", "--sample", "99", "--print", "samples"], "no sample 99 in step 1"),
    ],
)
def test_what_was_meant_is_suggested_and_what_is_not_there_is_an_error_through_a_pipe(
    tmp_path: Path, words: list[str], said: str
) -> None:
    runs = tmp_path / "runs"
    first = runs / "first"
    for root in (first, runs / "second", runs / "only" / "deeper" / "run"):
        for step in range(2):
            write_step(root, step, [sample(at) for at in range(2)])
    write_step(first, 1, [sample(at) for at in range(2)], evaluation=True)
    (first / "dashboard" / "phases").mkdir(parents=True)
    (first / "dashboard" / "phases" / "20260101_00.jsonl").write_text("")
    (runs / "file").write_text("")
    if "only" not in said and "only" not in words[0]:
        (runs / "only").rename(tmp_path / "only")
    done = run(*(word.format(runs=runs, first=first) for word in words), timeout=DEADLINE)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1 and said.format(runs=runs, first=first) in done.stderr

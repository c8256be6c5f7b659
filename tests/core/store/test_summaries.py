"""Rows that are kept between starts are those that would be worked out again, and are dropped when a file changes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from dumptui.core.files.step_files import StepKey
from dumptui.core.process.workers import BrokenProcessPool, Workers
from dumptui.core.run.run import Run
from dumptui.core.step import load as load_module
from dumptui.core.store import summaries as module
from dumptui.core.store.cache import Cache
from dumptui.core.store.summaries import Summaries
from dumptui.core.tables import step_summary
from dumptui.core.types import Record
from tests.support.writer import Layout, sample, write_step


def make_run(root: Path, steps: int) -> Path:
    for step in range(steps):
        write_step(root, step, [sample(4 * step + n) for n in range(4)], Layout(dp=2))
    return root


def summaries(root: Path, cache: Path | None, reward_key: str | None = None) -> Summaries:
    return Summaries(Run.open(root), Cache(root, cache), reward_key)


def rows_of(root: Path, cache: Path | None) -> dict[StepKey, Record]:
    found = summaries(root, cache)
    return dict(found.rows(found.run.steps))


def test_kept_rows_are_the_same_and_nothing_is_read_for_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make_run(tmp_path / "run", 3)
    worked_out = rows_of(root, None)
    assert rows_of(root, tmp_path / "cache") == worked_out
    samples = summaries(root, tmp_path / "cache").samples(StepKey(1))

    def never(*_: object) -> None:
        raise AssertionError("a file was read")

    monkeypatch.setattr(load_module, "load", never)
    monkeypatch.setattr(step_summary, "load", never)
    assert rows_of(root, tmp_path / "cache") == worked_out
    assert summaries(root, tmp_path / "cache").samples(StepKey(1)) == samples


def test_another_reward_key_and_a_changed_file_are_worked_out_again(tmp_path: Path) -> None:
    root = make_run(tmp_path / "run", 2)
    rows_of(root, tmp_path / "cache")
    assert summaries(root, tmp_path / "cache", "score").known(StepKey(0)) is None
    write_step(root, 1, [sample(4 + n, reward=0.25) for n in range(4)], Layout(dp=2), age=100)
    after = summaries(root, tmp_path / "cache")
    assert after.known(StepKey(0)) is not None and after.known(StepKey(1)) is None
    assert rows_of(root, tmp_path / "cache")[StepKey(1)]["reward_mean"] == 0.25


def test_a_step_with_a_damaged_file_is_not_kept(tmp_path: Path) -> None:
    root = make_run(tmp_path / "run", 2)
    shard = root / "train_data" / "0_0.pt"
    shard.write_bytes(shard.read_bytes()[:-100])
    rows_of(root, tmp_path / "cache")
    assert summaries(root, tmp_path / "cache").known(StepKey(0)) is None


def test_workers_give_the_same_rows_in_the_same_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make_run(tmp_path / "run", 5)
    monkeypatch.setattr(module, "WORTH_WORKERS", 2)
    workers = Workers()
    try:
        found = summaries(root, None)
        assert list(found.rows(reversed(found.run.steps), workers)) == list(reversed(rows_of(root, None).items()))
    finally:
        workers.close()


def kill_first(number: int) -> int:
    if number == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_a_killed_worker_is_told_and_the_rows_come_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers = Workers()
    with pytest.raises(BrokenProcessPool):
        list(workers.map(kill_first, range(9)))
    root = make_run(tmp_path / "run", 3)
    monkeypatch.setattr(module, "WORTH_WORKERS", 2)
    found = summaries(root, None)
    assert dict(found.rows(found.run.steps, workers)) == rows_of(root, None)
    workers.close()


def test_workers_end_when_their_parent_is_killed() -> None:
    script = textwrap.dedent("""
        import os, time
        from dumptui.core.process.workers import Workers
        workers = Workers()
        print(*(process.pid for process in workers._pool._processes.values()), flush=True)
        time.sleep(60)
    """)
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    children = [int(pid) for pid in parent.stdout.readline().split()]
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 20
    while any(is_running(pid) for pid in children):
        assert time.monotonic() < deadline, "a worker outlived its parent"


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False

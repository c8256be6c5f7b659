"""A run that grows is seen as it grows, nothing is counted twice, nothing that a live run does to files is an error."""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import os
import shutil
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from dumptui.core.errors import BeingWritten, DumpError
from dumptui.core.files.step_files import StepKey
from dumptui.core.live import PATIENCE_SECONDS, Follow
from dumptui.core.telemetry.jsonl_tail import Tail
from tests.support.writer import Layout, sample, write_step

SAMPLES = [sample(index) for index in range(4)]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_step_is_seen_shard_by_shard(tmp_path: Path) -> None:
    write_step(tmp_path, 0, SAMPLES, Layout(dp=2), train=False)
    follow = Follow(tmp_path)
    assert follow.look().changed == (StepKey(0),)
    assert not follow.look().anything
    trained = []
    for drop in ({1}, set()):
        write_step(tmp_path, 0, SAMPLES, Layout(dp=2), drop=drop, age=1000)
        assert follow.look().changed == (StepKey(0),)
        trained.append(follow.load(StepKey(0)).trained)
    assert trained == [2, 4]
    write_step(tmp_path, 1, [sample(9)], age=0)
    assert follow.look().changed == (StepKey(1),)


def test_a_folder_that_vanishes_comes_back_by_itself(tmp_path: Path) -> None:
    root = tmp_path / "run"
    write_step(root, 0, SAMPLES)
    follow = Follow(root)
    follow.look()
    root.rename(tmp_path / "away")
    look = follow.look()
    assert look.problem is not None and "no such folder" in str(look.problem)
    assert list(look.run.steps) == [StepKey(0)]
    (tmp_path / "away").rename(root)
    assert follow.look().problem is None
    shutil.rmtree(root)
    write_step(root, 5, SAMPLES)
    look = follow.look()
    assert (look.changed, look.gone) == ((StepKey(5),), (StepKey(0),))
    with pytest.raises(DumpError, match="step 0 no longer exists"):
        follow.load(StepKey(0))


def test_a_half_written_file_is_tried_again_until_it_is_whole(tmp_path: Path) -> None:
    write_step(tmp_path, 0, SAMPLES, mirror=False)
    path = tmp_path / "rollout_data" / "0.pt"
    whole = path.read_bytes()
    follow, times = Follow(tmp_path, Clock()), 0
    for length in range(1, len(whole), len(whole) // 7):
        path.write_bytes(whole[:length])
        assert StepKey(0) in follow.look().changed
        with pytest.raises(BeingWritten):
            follow.load(StepKey(0))
        assert follow.look().waiting == (StepKey(0),)
        times += 1
    path.write_bytes(whole)
    assert follow.look().changed == (StepKey(0),) and times > 5
    assert len(follow.load(StepKey(0)).samples) == 4
    assert not follow.look().waiting


@pytest.mark.parametrize("age", [-200, 0, 86_400], ids=["from the future", "young", "old"])
def test_a_file_that_stays_broken_is_given_up_by_our_own_clock(tmp_path: Path, age: float) -> None:
    clock = Clock()
    write_step(tmp_path, 1, SAMPLES, mirror=False)
    follow = Follow(tmp_path, clock)
    follow.look()
    write_step(tmp_path, 0, SAMPLES, mirror=False)
    path = tmp_path / "rollout_data" / "0.pt"
    path.write_bytes(path.read_bytes()[:-50])
    os.utime(path, (path.stat().st_atime, path.stat().st_mtime - age))
    follow.look()
    with pytest.raises(BeingWritten):
        follow.load(StepKey(0))
    clock.now += PATIENCE_SECONDS - 1
    with pytest.raises(BeingWritten):
        follow.load(StepKey(0))
    clock.now += 2
    with pytest.raises(DumpError) as raised:
        follow.load(StepKey(0))
    assert not isinstance(raised.value, BeingWritten)
    assert not follow.look().waiting


def test_a_train_file_that_stays_broken_costs_itself_and_is_given_up_too(tmp_path: Path) -> None:
    clock = Clock()
    write_step(tmp_path, 1, SAMPLES)
    follow = Follow(tmp_path, clock)
    follow.look()
    write_step(tmp_path, 0, SAMPLES, Layout(dp=2))
    path = tmp_path / "train_data" / "0_1.pt"
    path.write_bytes(path.read_bytes()[:-50])
    os.utime(path, (1000, 1000))
    follow.look()
    for passed, state in ((0.0, "being written"), (PATIENCE_SECONDS + 1, "unreadable")):
        clock.now += passed
        step = follow.load(StepKey(0))
        assert (step.trained, [error.state for error in step.broken]) == (2, [state])
        assert follow.look().waiting == ((StepKey(0),) if state == "being written" else ())


def test_a_step_that_a_resumed_run_writes_anew_is_other_than_before(tmp_path: Path) -> None:
    write_step(tmp_path, 0, SAMPLES, Layout(dp=2), age=1000)
    follow = Follow(tmp_path)
    follow.look()
    assert follow.load(StepKey(0)).trained == 4
    again = [sample(index, seed=100 + index) for index in range(4)]
    write_step(tmp_path, 0, again, Layout(dp=2), train=False, age=500)
    assert follow.look().changed == (StepKey(0),)
    step = follow.load(StepKey(0))
    assert step.trained == 0 and len(step.alignment.orphans) == 4 and step.files.outdated
    for drop, trained in (({1}, 2), (set(), 4)):
        write_step(tmp_path, 0, again, Layout(dp=2), drop=drop, age=400)
        assert follow.look().changed == (StepKey(0),)
        assert follow.load(StepKey(0)).trained == trained


def test_what_was_broken_and_old_before_we_came_is_not_waited_for(tmp_path: Path) -> None:
    write_step(tmp_path, 0, SAMPLES, mirror=False)
    path = tmp_path / "rollout_data" / "0.pt"
    path.write_bytes(path.read_bytes()[:-50])
    os.utime(path, (1000, 1000))
    follow = Follow(tmp_path)
    follow.look()
    with pytest.raises(DumpError, match="truncated"):
        follow.load(StepKey(0))


def test_a_second_asker_waits_until_the_first_has_appended_what_it_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bug of a dashboard that showed 147 segments on a lane that had 49 (radixark/miles#2581)."""
    write_step(tmp_path, 0, SAMPLES)
    metrics = tmp_path / "dashboard" / "metrics.jsonl"
    metrics.parent.mkdir()
    metrics.write_text("".join(metric_line(at) for at in range(3)))
    follow = Follow(tmp_path)
    inside, go_on = threading.Event(), threading.Event()
    real_read, readers = Tail.read, []

    def slow_read(self: Tail) -> object:
        readers.append(threading.get_ident())
        chunk = real_read(self)
        inside.set()  # the offset is read, nothing appended yet
        assert go_on.wait(20)
        return chunk

    monkeypatch.setattr(Tail, "read", slow_read)

    def ask() -> list[object]:
        follow.look()
        return follow.with_telemetry(lambda telemetry: list(telemetry.metrics.rows("loss")))

    first = threading.Thread(target=ask)
    first.start()
    assert inside.wait(20)
    second = threading.Thread(target=ask)
    second.start()
    second.join(0.2)
    assert second.is_alive() and set(readers) == {first.ident}
    go_on.set()
    first.join()
    second.join()
    assert len(ask()) == 3


def test_a_load_that_is_cancelled_holds_the_lock_until_its_thread_is_out(tmp_path: Path) -> None:
    write_step(tmp_path, 0, SAMPLES)
    follow = Follow(tmp_path)
    follow.look()
    inside, go_on, events = threading.Event(), threading.Event(), []

    def cancelled(done: int, total: int) -> None:
        inside.set()
        assert go_on.wait(20)
        events.append("out")
        raise KeyboardInterrupt

    def load() -> None:
        with contextlib.suppress(KeyboardInterrupt):
            follow.load(StepKey(0), cancelled)

    def look() -> None:
        follow.look()
        events.append("looked")

    threads = [threading.Thread(target=load), threading.Thread(target=look)]
    threads[0].start()
    assert inside.wait(20)
    threads[1].start()
    threads[1].join(0.2)
    assert events == []
    go_on.set()
    for thread in threads:
        thread.join()
    assert events == ["out", "looked"]
    assert follow.load(StepKey(0)).trained == 4


def test_a_stale_handle_or_a_lost_permission_is_told_and_got_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_step(tmp_path, 0, SAMPLES)
    follow = Follow(tmp_path, Clock())
    follow.look()
    real = os.listdir
    for number, folder in itertools.product(
        (errno.ESTALE, errno.EACCES, errno.EIO), (tmp_path, tmp_path / "train_data")
    ):

        def fail(path: Path, number: int = number, folder: Path = folder) -> list[str]:
            if path == folder:
                raise OSError(number, os.strerror(number))
            return real(path)

        monkeypatch.setattr(os, "listdir", fail)
        look = follow.look()
        assert look.problem is not None and os.strerror(number) in look.problem.problem
        assert look.problem.path == str(folder) and not look.changed and not look.gone
        assert follow.load(StepKey(0)).trained == 4
        monkeypatch.setattr(os, "listdir", real)
        look = follow.look()
        assert (look.problem, look.changed, look.gone) == (None, (), ())


def metric_line(at: int) -> str:
    record = {"ts": float(at), "step_key": "train/step", "step": at, "metrics": {"loss": at / 7, "train/step": at}}
    return json.dumps(record, separators=(",", ":")) + "\n"


def test_eight_readers_of_a_growing_stream_end_with_every_record_once(tmp_path: Path) -> None:
    write_step(tmp_path, 0, SAMPLES)
    (tmp_path / "dashboard").mkdir()
    script = textwrap.dedent("""
        import json, sys
        with open(sys.argv[1], "w", buffering=1) as file:
            for at in range(3000):
                record = {"ts": float(at), "step_key": "train/step", "step": at, "metrics": {"loss": at / 7}}
                line = json.dumps(record, separators=(",", ":")) + "\\n"
                cut = at * 31 % len(line)
                file.write(line[:cut]); file.flush(); file.write(line[cut:]); file.flush()
    """)
    writer = subprocess.Popen([sys.executable, "-c", script, str(tmp_path / "dashboard" / "metrics.jsonl")])
    follow = Follow(tmp_path)

    def read() -> None:
        while writer.poll() is None:
            follow.look()

    readers = [threading.Thread(target=read) for _ in range(8)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    follow.look()
    rows = follow.with_telemetry(lambda telemetry: list(telemetry.metrics.rows("loss")))
    assert [row["step"] for row in rows] == list(range(3000))

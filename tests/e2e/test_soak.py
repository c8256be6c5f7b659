"""A run of 200 steps is followed while it is written, and disturbed: in the end all of it is there, once."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dumptui.core.live import Follow
from dumptui.core.telemetry.telemetry import STREAM_FIELDS, Telemetry
from tests.support.screen import DEADLINE, ROOT, Terminal, run

STEPS = 200
BEFORE = 30  # steps that are there when it is opened: enough for worker processes to be started
SEED = 20
ROW = re.compile(r"^[> ] *!?(eval ?)?(\d+) +(\d+) +(\d\.\d{3}) +(\S+)")
SIZES = ((120, 40), (80, 24), (40, 12), (150, 50))
KEYS = [*"<>npFma1234", "down", "up", "pagedown", "end", "home", "enter", "escape"]


@contextmanager
def growing(root: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.support.growing", str(root), str(STEPS), str(SEED)]
    writer = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        yield writer
    finally:
        writer.kill()
        writer.communicate()


def test_a_followed_run_of_200_steps(tmp_path: Path) -> None:
    root = tmp_path / "run"
    with growing(root) as writer:
        wait_for(root / "rollout_data" / f"{BEFORE}.pt")
        printed = Lines(root)
        with Terminal(root, "--follow", env={"XDG_CACHE_HOME": str(tmp_path / "cache")}) as terminal:
            terminal.until("live, data")
            follow, memory = Follow(root), []
            disturb = Disturbance(terminal)
            while writer.poll() is None:
                disturb.once()
                memory.append((resident(terminal.process.pid), libraries(terminal.process.pid)))
                follow.look()
                follow.with_telemetry(records)
            assert writer.stdout is not None
            written = json.loads(writer.stdout.readline())
            assert_shown(terminal, expected(written["steps"]))
            terminal.press("q")
            assert terminal.end() == 0
            terminal.assert_clean()
            assert b"Traceback" not in terminal.raw and b"defect" not in terminal.raw
            assert processes(session=terminal.process.pid) == []
        assert_flat(memory)
        assert_all_there(root, written)
        follow.look()
        assert follow.with_telemetry(records) == records(Telemetry(root))
        printed.until(written["steps"])


def wait_for(path: Path) -> None:
    end = time.monotonic() + DEADLINE
    while not path.exists():
        assert time.monotonic() < end, f"no {path.name}"
        time.sleep(0.05)


class Disturbance:
    """What a user does to a program in a pane, at random but the same every time."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._rng = random.Random(SEED)
        self._turn = 0

    def once(self) -> None:
        self._turn += 1
        if self._turn % 15 == 0:
            self._terminal.skip()
            self._terminal.resize(*self._rng.choice(SIZES))
        if self._turn % 40 == 0:
            self._stop_and_go_on()
        self._terminal.press(self._rng.choice(KEYS))
        self._terminal.read(0.1)

    def _stop_and_go_on(self) -> None:
        os.kill(self._terminal.process.pid, signal.SIGTSTP)
        self._terminal.skip()
        self._terminal.wait(self._terminal.is_stopped, "stop")
        self._terminal.skip()
        os.kill(self._terminal.process.pid, signal.SIGCONT)


class Lines:
    """`--follow --print steps` beside the screen."""

    def __init__(self, root: Path) -> None:
        command = [sys.executable, "-m", "dumptui", str(root), "--follow", "--print", "steps", "--json"]
        self._process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)

    def until(self, steps: dict[str, Any]) -> None:
        """The last row of each step is what was written of it, and all but the first are marked; then it is ended."""
        assert self._process.stdout is not None
        last: dict[str, dict[str, Any]] = {}
        while {step: {key: last[step][key] for key in row} for step, row in steps.items() if step in last} != steps:
            row = json.loads(self._process.stdout.readline())
            assert (row["again"] is None) == (name(row) not in last)
            last[name(row)] = row
        self._process.terminate()
        assert self._process.stdout.read() == "" and self._process.wait(DEADLINE) == -signal.SIGTERM


def name(row: dict[str, Any]) -> str:
    return f"eval {row['step']}" if row["evaluation"] else str(row["step"])


def records(telemetry: Telemetry) -> dict[str, int]:
    """How many of each stream there are, all parsed."""
    counts = {stream: len(telemetry.table(stream)["ts"]) for stream in STREAM_FIELDS if stream != "phases"}
    return counts | {"metrics": len(telemetry.metrics.calls()), "lanes": len(telemetry.lanes())}


def expected(steps: dict[str, Any]) -> dict[str, tuple[str, str, bool]]:
    return {
        step: (str(row["samples"]), f"{row['reward_mean']:.3f}", row["train_samples"] == row["samples"])
        for step, row in steps.items()
    }


def assert_shown(terminal: Terminal, steps: dict[str, tuple[str, str, bool]]) -> None:
    """The steps table has these rows, once all that was written is read."""
    for key in ("escape", "escape", "1", "escape", "F"):
        terminal.press(key)
        terminal.settle(0.3)
    terminal.skip()
    terminal.resize(100, 30)
    terminal.until(f"step {STEPS - 1}, {STEPS} of {STEPS}", "over train steps")
    end = time.monotonic() + DEADLINE
    while (shown := shown_steps(terminal)) != steps:
        differing = {name: (shown.get(name), row) for name, row in steps.items() if shown.get(name) != row}
        assert time.monotonic() < end, (differing, terminal.text)


def shown_steps(terminal: Terminal) -> dict[str, tuple[str, str, bool]]:
    """The rows of the steps table, page after page: samples, reward, and whether all of them are trained."""
    found: dict[str, tuple[str, str, bool]] = {}
    terminal.press("home")
    while "0" not in found:
        terminal.settle(0.15)
        for match in filter(None, map(ROW.match, terminal.lines)):
            found[f"eval {match[2]}" if match[1] else match[2]] = match[3], match[4], match[5][0] in "0!"
        terminal.press("pagedown")
    return found


def assert_all_there(root: Path, written: dict[str, Any]) -> None:
    steps = {name(row): row for row in printed_rows(root, "steps")}
    assert {step: {key: steps[step][key] for key in row} for step, row in written["steps"].items()} == written["steps"]
    assert {row["state"] for row in steps.values()} == {"ok"}
    assert len(printed_rows(root, "metrics", "--key", "train/loss")) == written["records"]["metrics"]
    lanes = [row for row in printed_rows(root, "lanes") if row["name"] == "train" and not row["open"]]
    assert len(lanes) == written["records"]["closed phases"]
    telemetry = Telemetry(root)
    for stream in ("gpu_util", "engine_series"):
        assert len(telemetry.table(stream)["ts"]) == written["records"][stream] > STEPS


def printed_rows(root: Path, *words: str) -> list[dict[str, Any]]:
    done = run(root, "--print", *words, "--json", "--no-cache")
    assert (done.returncode, done.stderr) == (0, "")
    rows: list[dict[str, Any]] = json.loads(done.stdout)["rows"]
    return rows


def resident(pid: int) -> int:
    """Bytes of memory that a process holds."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def processes(session: int) -> list[str]:
    return subprocess.run(["ps", "-o", "pid=", "-s", str(session)], capture_output=True, text=True).stdout.split()


def libraries(pid: int) -> int:
    """How many files a process has mapped."""
    lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    return len({line.split(maxsplit=5)[5] for line in lines if line.endswith(".so") or ".so." in line})


def assert_flat(memory: list[tuple[int, int]]) -> None:
    """Over the last half of the time, from the last library on: polars comes when it is first needed, with 40 MB."""
    half = memory[len(memory) // 2 :]
    alike = [held for held, loaded in half if loaded == half[-1][1]]
    some = 1 + len(alike) // 5
    begin, end = statistics.median(alike[:some]), statistics.median(alike[-some:])
    assert end < 1.15 * begin, f"{begin / 1e6:.0f} MB, then {end / 1e6:.0f} MB"

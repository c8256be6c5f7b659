"""However the screen ends while its workers run, nothing of it is left: no process, temporary file or semaphore."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.screen import DEADLINE, Terminal
from tests.support.writer import Layout, sample, write_step

STEPS = 30  # enough for workers
SLOW_WORKERS = """
import time
from dumptui.core.tables import step_summary
load = step_summary.load
def slow(files):
    step = load(files)
    time.sleep(1)
    return step
step_summary.load = slow
"""
SHARED_MEMORY = Path("/dev/shm")


@pytest.fixture(scope="module")
def long_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Many steps, with a mirror to be read in place of each rollout file: in a process of its own."""
    root = tmp_path_factory.mktemp("long") / "run"
    for step in range(STEPS):
        samples = [sample(2 * step + at, group_index=step) for at in range(2)]
        write_step(root, step, samples, Layout(), mirror=True)
        (root / "rollout_data" / f"{step}.pt").write_bytes(b"damaged")
    return root


def killed(terminal: Terminal) -> None:
    terminal.process.kill()


ENDS: dict[str, tuple[Callable[[Terminal], None], int]] = {
    "q": (lambda terminal: terminal.press("q"), 0),
    "SIGTERM": (lambda terminal: terminal.process.send_signal(signal.SIGTERM), 128 + signal.SIGTERM),
    "SIGHUP": (Terminal.hang_up, 128 + signal.SIGHUP),
    "SIGKILL": (killed, -signal.SIGKILL),
}


@pytest.mark.parametrize("name", ENDS)
def test_nothing_is_left_of_a_screen_that_ends_while_workers_run(long_run: Path, tmp_path: Path, name: str) -> None:
    before = semaphores()
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    left = {"TMPDIR": str(temporary), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    end, code = ENDS[name]
    with Terminal(long_run, "--follow", code=SLOW_WORKERS, env=left) as terminal:
        terminal.until(f"step {STEPS - 1}, {STEPS} of {STEPS}", "? Keys")
        terminal.wait(lambda: len(processes(tmp_path)) > 2, "workers and their readers")
        end(terminal)
        assert terminal.process.wait(DEADLINE) == code
        wait_until(lambda: processes(tmp_path) == [])
        wait_until(lambda: semaphores() <= before)
        assert list(temporary.iterdir()) == []
        assert name == "SIGKILL" or list(tmp_path.rglob(".new-*")) == []


def test_a_generated_run_is_removed_when_its_screen_is_killed(tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    with Terminal("--demo", env={"TMPDIR": str(temporary)}) as terminal:
        terminal.until("? Keys", "samples in")
        assert list(temporary.iterdir()) != []
        terminal.process.kill()
        terminal.process.wait(DEADLINE)
        wait_until(lambda: list(temporary.iterdir()) == [])
        wait_until(lambda: processes(tmp_path) == [])


def processes(marker: Path) -> list[int]:
    """The processes with this path in their environment, whatever session they are in."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment = (folder / "environ").read_bytes()
        except OSError:  # it ended meanwhile, or is another user's
            continue
        if os.fsencode(marker) in environment and int(folder.name) != os.getpid():
            found.append(int(folder.name))
    return found


def semaphores() -> set[str]:
    return {path.name for path in SHARED_MEMORY.glob("sem.*")} if SHARED_MEMORY.is_dir() else set()


def wait_until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)

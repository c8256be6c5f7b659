"""Where processes, threads, semaphores or memory are few: what can be done is done, and no file is blamed for the rest.

Reported of viewers on login nodes and beside Ray, whose object store fills /dev/shm.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.crafted import Raw, program, write_pt
from tests.support.screen import ROOT, Terminal
from tests.support.writer import Layout, sample, write_step

STEPS = 26  # worth workers
MIB = 1 << 20


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root: Path = tmp_path_factory.mktemp("room") / "run"
    for step in range(STEPS):
        write_step(root, step, [sample(index) for index in range(4)], Layout())
    return root


def printed(*words: str | Path, before: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    command = [*before, sys.executable, "-m", "dumptui", *map(str, words), "--no-cache"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)


def with_space(mebibytes: int) -> tuple[str, ...]:
    return ("bash", "-c", f'ulimit -v {mebibytes << 10}; exec "$@"', "bash")


def limit_space(mebibytes: int) -> str:
    """The same as code that runs in the program itself."""
    size = mebibytes * MIB
    return f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({size}, {size}))"


def with_tasks(count: int) -> tuple[str, ...]:
    """A limit on processes and threads, which does not hold for root."""
    limit = ("bash", "-c", f'ulimit -u {count}; exec "$@"', "bash")
    if os.geteuid() != 0:
        pytest.skip("how many tasks this user has is not known")
    if shutil.which("setpriv") is None:
        pytest.skip("no setpriv here")
    read_all = ("--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search")
    return ("setpriv", "--reuid=65533", "--regid=65533", "--clear-groups", *read_all, *limit)


def with_mount(command: str) -> tuple[str, ...]:
    if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode:
        pytest.skip("no file system may be mounted here")
    return ("unshare", "-m", "bash", "-c", f'{command} && exec "$@"', "bash")


def test_without_shared_memory_this_process_reads_the_steps(run: Path) -> None:
    """Ray's object store fills /dev/shm; containers mount it read-only or not at all."""
    expected = printed(run, "--print", "steps").stdout
    assert expected.count("\n") == STEPS + 1
    for mount in (
        "mount -t tmpfs -o ro,size=4k none /dev/shm",
        "mount -t tmpfs none /mnt && mount --bind /mnt /dev/shm",
    ):
        done = printed(run, "--print", "steps", before=with_mount(mount))
        assert (done.returncode, done.stdout, done.stderr) == (0, expected, "")
    full = "mount -t tmpfs -o size=4k none /dev/shm && (head -c 9000 /dev/zero > /dev/shm/full; true) 2> /dev/null"
    done = printed(run, "--print", "steps", before=with_mount(full))
    assert (done.returncode, done.stdout, done.stderr) == (0, expected, "")


@pytest.mark.parametrize("tasks", [1, 3, 8, 12, 13, 14])
def test_with_few_tasks_the_steps_are_read_and_no_mirror_is_blamed(run: Path, tasks: int) -> None:
    steps = printed(run, "--print", "steps", before=with_tasks(tasks))
    assert (steps.returncode, steps.stdout.count("\n"), steps.stderr) == (0, STEPS + 1, "")
    health = printed(run, "--print", "health", before=with_tasks(tasks))
    assert (health.returncode, health.stderr) == (0, "")
    assert health.stdout.count("not checked here: ") == 1 and "unreadable" not in health.stdout
    where = printed(run, "--print", "samples", "--where", "reward == 1", before=with_tasks(tasks))
    assert (where.returncode, where.stdout) == (2, "")
    assert where.stderr == "dumptui: filter: not checked here: no more threads can be started (ulimit -u, -v)\n"


@pytest.mark.parametrize("mebibytes", [20, 80, 130, 170, 250, 500, 1000])
def test_with_little_address_space_it_is_said_and_no_file_is_blamed(run: Path, mebibytes: int) -> None:
    for view in (["steps"], ["health"], ["samples", "--where", "reward == 1"]):
        done = printed(run, "--print", *view, before=with_space(mebibytes))
        assert done.returncode in (0, 2) and "Traceback" not in done.stderr
        assert done.stderr.count("\n") == (done.returncode == 2)
        assert not done.stderr or "ulimit" in done.stderr
        assert "unreadable" not in done.stdout and "readable parquet" not in done.stdout and "error" not in done.stdout


def test_a_small_pickle_that_asks_for_too_much_is_to_blame_itself(run: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(run, tmp_path / "run")
    os.utime(write_pt(copy / "rollout_data" / "3.pt", program(Raw(b"Nr\xff\xff\xff\xff"))), (0, 0))
    done = printed(copy, "--print", "health", before=with_space(1600))
    assert (done.returncode, done.stderr) == (1, "")
    assert "asks for more memory than its size allows" in done.stdout


def test_a_screen_that_can_not_be_had_is_one_sentence(run: Path) -> None:
    with Terminal(run, code=limit_space(400)) as terminal:
        terminal.settle()
        assert "dumptui: terminal: the screen takes 768 MiB of address space (ulimit -v)" in terminal.text
        assert terminal.process.wait() == 2


def test_threads_share_what_address_space_there_is(run: Path) -> None:
    """Each of them reserved 64 MiB: which part of the screen got nothing was left to chance."""
    with Terminal(run, "--no-cache", code=limit_space(1000)) as terminal:
        terminal.until("? Keys", "step 25, 26 of 26", "reward against length")
        terminal.settle()
        status = Path(f"/proc/{terminal.process.pid}/status").read_text()
        reserved = next(line for line in status.splitlines() if line.startswith("VmSize:"))
        assert int(reserved.split()[1]) < 500 << 10


def test_a_filter_that_can_not_be_had_says_so_and_the_screen_goes_on(run: Path) -> None:
    """It froze for good: polars waits for threads that it does not get."""
    with Terminal(run, "--no-cache", code=limit_space(1000)) as terminal:
        terminal.until("? Keys", "step 25, 26 of 26", "sample")
        terminal.press("/")
        terminal.until("show steps where")
        terminal.press("reward == 1")
        terminal.until("not checked here: ")
        terminal.press("escape")
        terminal.settle(0.5)
        terminal.press("ctrl+c")
        terminal.settle()
        assert terminal.process.wait() == 0

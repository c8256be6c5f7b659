"""Listing a run folder: what belongs to which step, what is left out; reading files that are young or replaced."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dumptui.core.errors import BeingWritten, DumpError, NoDump
from dumptui.core.files.listing import list_folder
from dumptui.core.files.retry import CLOCK_SKEW_SECONDS, YOUNG_SECONDS, is_young, read_file
from dumptui.core.files.step_files import StepKey
from dumptui.core.formats.miles.parquet_mirror import read_mirror
from dumptui.core.run.run import Run
from dumptui.core.step.load import load
from tests.support.file_faults import FOREIGN, once, stale_handle
from tests.support.writer import Layout, sample, write_step

FOREIGN += ["3.tmp.pt", "notes.pt"]


def touch(*paths: Path) -> None:
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")


def ranks(run: Run, step: int) -> list[int | None]:
    return [rank for rank, _ in run.steps[StepKey(step)].shards]


def test_files_are_put_to_their_steps(tmp_path: Path) -> None:
    names = [
        "rollout_data/10.pt",
        "rollout_data/9.pt",
        "rollout_data/eval_9.pt",
        "train_data/9_10.pt",
        "train_data/9_2.pt",
    ]
    names += [
        "dashboard_columns/rollout_9.parquet",
        "dashboard_columns/rollout_eval_9.parquet",
        "trajectory/eval_9.jsonl",
    ]
    touch(*(tmp_path / name for name in names))
    run = Run.open(tmp_path)
    assert list(run.steps) == [StepKey(9), StepKey(9, True), StepKey(10)]
    assert ranks(run, 9) == [2, 10]
    found = {os.path.relpath(entry.path, tmp_path) for files in run.steps.values() for entry in files.entries()}
    assert found == set(names)
    assert not run.strays and not run.problems and not run.leftovers


def test_one_train_file_a_step_has_no_rank(tmp_path: Path) -> None:
    touch(tmp_path / "rollout_data/0.pt", tmp_path / "train_data/0.pt", tmp_path / "train_data/1.pt")
    run = Run.open(tmp_path)
    assert ranks(run, 0) == ranks(run, 1) == [None]
    assert run.steps[StepKey(1)].rollout is None


@pytest.mark.parametrize("folder", ["rollout_data", "train_data"])
def test_foreign_names_are_strays(tmp_path: Path, folder: str) -> None:
    touch(
        tmp_path / "rollout_data/0.pt", tmp_path / "train_data/0_0.pt", *(tmp_path / folder / name for name in FOREIGN)
    )
    (tmp_path / folder / "3.pt").mkdir()
    run = Run.open(tmp_path)
    assert list(run.steps) == [StepKey(0)]
    assert {path.name for path in run.strays} == set(FOREIGN)


def test_an_eval_name_means_nothing_among_train_files(tmp_path: Path) -> None:
    touch(tmp_path / "rollout_data/0.pt", tmp_path / "train_data/eval_0.pt", tmp_path / "rollout_data/0_1.pt")
    run = Run.open(tmp_path)
    assert [path.name for path in run.strays] == ["0_1.pt", "eval_0.pt"]
    assert ranks(run, 0) == []


def test_one_spelling_a_number(tmp_path: Path) -> None:
    touch(*(tmp_path / "train_data" / name for name in ("0_0.pt", "0_00.pt", "00_0.pt", f"{'9' * 30}_0.pt")))
    run = Run.open(tmp_path)
    assert ranks(run, 0) == [0]
    assert len(run.steps) == 1
    assert len(run.strays) == 3


@pytest.mark.parametrize(
    ("names", "steps"),
    [
        (["3.pt", "eval_3.pt"], [StepKey(3), StepKey(3, True)]),
        (["3_0.pt", "3_1.pt", "4_0.pt"], [StepKey(3), StepKey(4)]),
        (["3.pt", "3_1.pt", "readme.md", "best.pt"], [StepKey(3)]),
    ],
)
def test_a_bare_folder_goes_by_name(tmp_path: Path, names: list[str], steps: list[StepKey]) -> None:
    touch(*(tmp_path / name for name in names))
    run = Run.open(tmp_path)
    assert list(run.steps) == steps
    assert (run.steps[StepKey(3)].rollout is not None) == ("3.pt" in names)
    assert [path.name for path in run.strays] == [name for name in names if name == "best.pt"]


def test_the_mirrors_alone_are_a_run(tmp_path: Path) -> None:
    touch(tmp_path / "dashboard_columns/rollout_0.parquet")
    assert list(Run.open(tmp_path).steps) == [StepKey(0)]


def test_what_an_earlier_attempt_left(tmp_path: Path) -> None:
    touch(tmp_path / "rollout_data/0.pt", tmp_path / ".trash_20260801_120000_0123abcd/main.jsonl")
    assert [path.name for path in Run.open(tmp_path).leftovers] == [".trash_20260801_120000_0123abcd"]


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda path: None, "no such folder"),
        (lambda path: path.write_text("x"), "not a folder"),
        (lambda path: path.mkdir(), "holds no dump"),
        (lambda path: touch(path / "rollout_data/notes.txt"), "holds no dump"),
        (lambda path: path.symlink_to(path), "can't be listed: Too many levels of symbolic links"),
    ],
)
def test_no_run(tmp_path: Path, make: Callable[[Path], Any], problem: str) -> None:
    path = tmp_path / "run"
    make(path)
    with pytest.raises(DumpError, match=problem) as caught:
        Run.open(path)
    assert caught.value.path == str(path)


# Folders that can't be listed ----------------------------------------------------------------------------------------


@pytest.fixture
def shared_path() -> Iterator[Path]:
    """A folder that any user may enter, unlike tmp_path."""
    folder = Path(tempfile.mkdtemp(prefix="dumptui-test-"))
    folder.chmod(0o755)
    yield folder
    for path, _, _ in os.walk(folder):
        os.chmod(path, 0o755)
    shutil.rmtree(folder)


@contextmanager
def unprivileged() -> Iterator[None]:
    """Permissions mean nothing to root."""
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("folder", ["rollout_data", "train_data", "dashboard_columns", "trajectory"])
def test_a_folder_without_permission_costs_itself(shared_path: Path, folder: str) -> None:
    names = ["rollout_data/0.pt", "train_data/0_0.pt", "dashboard_columns/rollout_0.parquet", "trajectory/0.jsonl"]
    touch(*(shared_path / name for name in names))
    (shared_path / folder).chmod(0)
    with unprivileged():
        run = Run.open(shared_path)
    assert [str(error) for error in run.problems] == [f"{shared_path / folder}: can't be listed: Permission denied"]
    assert len(list(run.steps[StepKey(0)].entries())) == 3


@pytest.mark.parametrize("closed", [".", "rollout_data"])
def test_a_needed_folder_without_permission(shared_path: Path, closed: str) -> None:
    touch(shared_path / "rollout_data/0.pt")
    (shared_path / closed).chmod(0)
    with unprivileged(), pytest.raises(DumpError) as caught:
        Run.open(shared_path)
    assert str(caught.value) == f"{shared_path / closed}: can't be listed: Permission denied"


def test_files_without_permission_cost_themselves(shared_path: Path) -> None:
    truth = write_step(shared_path, 0, [sample(at) for at in range(4)], Layout(dp=2))
    for path in (truth.files[1], shared_path / "rollout_data/0.pt"):
        path.chmod(0)
    read_mirror(shared_path / "dashboard_columns/rollout_0.parquet")  # starts its process, as another user could not
    with unprivileged():
        step = load(Run.open(shared_path).steps[StepKey(0)])
        assert [error.problem for error in step.broken] == ["can't be opened: Permission denied"]
        assert step.rollout_problem is not None and "Permission denied" in str(step.rollout_problem)
        assert (step.trained, len(step.samples)) == (2, 4)


def test_a_read_only_run_opens_and_stays_as_it_was(shared_path: Path) -> None:
    touch(shared_path / "rollout_data/0.pt", shared_path / "train_data/0_0.pt")
    for path in (shared_path / "rollout_data", shared_path / "train_data", shared_path):
        path.chmod(0o555)
    before = sorted(os.walk(shared_path))
    with unprivileged():
        assert len(Run.open(shared_path).steps) == 1
    assert sorted(os.walk(shared_path)) == before


def test_a_file_that_vanishes_while_its_folder_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch(tmp_path / "0.pt", tmp_path / "1.pt")
    scan = os.scandir

    def scan_then_lose(folder: Path) -> list[os.DirEntry[str]]:
        found = list(scan(folder))
        (tmp_path / "0.pt").unlink()
        return found

    monkeypatch.setattr(os, "scandir", scan_then_lose)
    assert [entry.path.name for entry in list_folder(tmp_path)] == ["1.pt"]


def test_a_folder_that_vanished_is_empty(tmp_path: Path) -> None:
    assert list_folder(tmp_path / "gone") == []


# Case 35: getlogbook/logbook#243 and tox-dev/filelock#669


@pytest.mark.parametrize("call", ["listdir", "scandir"])
def test_a_stale_folder_is_listed_again_by_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    touch(tmp_path / "rollout_data/0.pt")
    monkeypatch.setattr(os, call, once(stale_handle(), getattr(os, call)))
    assert len(Run.open(tmp_path).steps) == 1


def test_a_folder_that_stays_stale_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stale(folder: Path) -> None:
        raise stale_handle()

    monkeypatch.setattr(os, "listdir", stale)
    with pytest.raises(DumpError, match="can't be listed: Stale file handle"):
        Run.open(tmp_path)


# Reading a file that others write ------------------------------------------------------------------------------------


def aged(path: Path, seconds: float) -> Path:
    touch(path)
    stamp = time.time() - seconds
    os.utime(path, (stamp, stamp))
    return path


@pytest.mark.parametrize(
    ("age", "young"),
    [
        (0, True),
        (YOUNG_SECONDS - 5, True),
        (YOUNG_SECONDS + 5, False),
        (5 - CLOCK_SKEW_SECONDS, True),
        (-5 - CLOCK_SKEW_SECONDS, False),
        (1e9, False),
    ],
)
def test_a_file_is_young_up_to_the_clock_skew_of_a_file_server(tmp_path: Path, age: float, young: bool) -> None:
    assert is_young(aged(tmp_path / "0.pt", age)) == young


def test_a_file_that_is_gone_is_not_young(tmp_path: Path) -> None:
    assert not is_young(tmp_path / "gone.pt")


def damaged(path: Path) -> None:
    raise DumpError(path, "is truncated")


def denied(path: Path) -> None:
    raise DumpError(path, "can't be opened") from PermissionError(errno.EACCES, "Permission denied")


def another_kind(path: Path) -> None:
    raise NoDump(path, "no train dump")


@pytest.mark.parametrize(
    ("read", "age", "error", "state"),
    [
        (damaged, 0, BeingWritten, "being written"),
        (damaged, 3600, DumpError, "unreadable"),
        (denied, 0, DumpError, "unreadable"),
        (another_kind, 0, NoDump, "unreadable"),
    ],
)
def test_only_damage_can_be_a_matter_of_time(
    tmp_path: Path, read: Callable[[Path], None], age: float, error: type[DumpError], state: str
) -> None:
    with pytest.raises(DumpError) as caught:
        read_file(aged(tmp_path / "0.pt", age), read)
    assert type(caught.value) is error
    assert caught.value.state == state


def test_a_file_replaced_while_it_is_read_is_read_again(tmp_path: Path) -> None:
    path = aged(tmp_path / "0.pt", 3600)

    def read(path: Path) -> str:
        text = path.read_text()
        if text == "x":
            aged(path.with_name("new"), 3600).replace(path)
            path.write_text("new")
            raise DumpError(path, "changed while it was being read")
        return text

    assert read_file(path, read) == "new"


def test_a_stale_file_is_opened_again_once(tmp_path: Path) -> None:
    path = aged(tmp_path / "0.pt", 3600)
    tries = []

    def read(path: Path) -> None:
        tries.append(path)
        raise DumpError(path, "can't be opened: Stale file handle") from stale_handle()

    with pytest.raises(DumpError, match="Stale file handle"):
        read_file(path, read)
    assert len(tries) == 2

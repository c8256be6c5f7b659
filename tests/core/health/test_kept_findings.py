"""The rows of Health between starts: a step is read again only if its files, or what they may say, changed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from dumptui.core.health import incremental_health, run_health
from dumptui.core.health.incremental_health import Checkup
from dumptui.core.health.kept_findings import KeptFindings
from dumptui.core.run.run import Run
from dumptui.core.store.cache import Cache, fingerprint
from dumptui.core.types import Record
from tests.support.writer import Layout, sample, write_step

STEPS = 3


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for step in range(STEPS):
        write_step(tmp_path / "run", step, [sample(step)], Layout(dp=1))
    return tmp_path / "run"


def check(root: Path, monkeypatch: pytest.MonkeyPatch, *, fresh: bool = False) -> tuple[list[Record], list[int]]:
    """The rows of a start, and the steps that were read for it."""
    read: list[int] = []

    def step_rows(root: Path, files: Any, *more: Any) -> Any:
        read.append(files.key.step)
        return run_health.step_rows(root, files, *more)

    monkeypatch.setattr(incremental_health, "step_rows", step_rows)
    kept = KeptFindings(Cache(root, root.parent / "cache"), fingerprint, fresh=fresh)
    run = Run.open(root)
    checkup = Checkup(root, lambda: None, kept=kept)
    for part in checkup.parts(run):
        part()
    kept.write()
    assert checkup.rows() == [*run_health.health(run), *run_health.stream_problems(root)]
    return checkup.rows(), read


def test_a_second_start_reads_no_step(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, read = check(root, monkeypatch)
    assert read == [0, 1, 2]
    again, read = check(root, monkeypatch)
    assert (again, read) == (first, [])
    assert check(root, monkeypatch, fresh=True)[1] == [0, 1, 2]


def test_a_step_whose_file_changed_is_read_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check(root, monkeypatch)
    path = root / "train_data" / "1_0.pt"
    written = path.stat().st_mtime
    path.write_bytes(b"")
    os.utime(path, (written, written))
    rows, read = check(root, monkeypatch)
    assert read == [1]
    assert any(row["level"] == "error" and row["step"] == 1 for row in rows)


def test_a_step_with_a_young_file_is_not_kept(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_step(root, 2, [sample(2)], age=0)
    check(root, monkeypatch)
    assert check(root, monkeypatch)[1] == [2]


def test_a_check_that_was_not_completed_is_not_kept(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(run_health, "read", lambda *_: 1 / 0)
        rows, _ = check(root, patch)
    assert sum("check not completed" in str(row["problem"]) for row in rows) == STEPS
    assert check(root, monkeypatch)[1] == [0, 1, 2]

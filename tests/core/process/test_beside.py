"""Work in a process of its own."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from dumptui.core.process.forked_call import start_forked


def test_the_answer_is_of_another_process() -> None:
    answer = start_forked(os.getpid)
    assert answer() not in (None, os.getpid())


def test_work_that_dies_has_no_answer_and_leaves_nothing(tmp_path: Path) -> None:
    def die() -> int:
        (tmp_path / "begun").touch()
        raise ValueError

    before = len(os.listdir("/proc/self/fd"))
    assert start_forked(die)() is None
    assert (tmp_path / "begun").exists()
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="the limit does not hold for root")
def test_where_no_process_may_be_begun_the_work_is_done_here() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    resource.setrlimit(resource.RLIMIT_NPROC, (0, hard))
    try:
        assert start_forked(os.getpid)() == os.getpid()
    finally:
        resource.setrlimit(resource.RLIMIT_NPROC, (soft, hard))

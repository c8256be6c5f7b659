"""What the reader thread tells of its work: how far it is in a step, and that it can be left."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from queue import Queue
from typing import Any

import pytest
from textual.message import Message

from dumptui.core.files.step_files import StepKey
from dumptui.core.health import step_health
from dumptui.core.health.run_health import health
from dumptui.core.run.run import Run
from dumptui.core.step import field_survey
from dumptui.core.store.cache import Cache
from dumptui.core.store.summaries import Summaries
from dumptui.core.tables import steps
from dumptui.core.telemetry import telemetry
from dumptui.tui.presentation.conversation import ConversationView
from dumptui.tui.reading import step_reader, tasks
from dumptui.tui.reading.messages import (
    BatchAnalysed,
    Broken,
    FieldSurveyed,
    HealthRows,
    ReadProgress,
    SampleOpened,
    StepFailed,
    StepLoaded,
    StepSummaries,
    ToolsRead,
)
from dumptui.tui.reading.reader import Reader
from tests.support.screen import DEADLINE, ROOT
from tests.support.session import busy
from tests.support.writer import Layout, sample, write_step


class Posted:
    """A reader, and what it posts."""

    def __init__(self, root: Path) -> None:
        self._posted: Queue[Message] = Queue()
        self.reader = Reader(Summaries(Run.open(root), Cache(root, None)), self._posted.put)

    def __enter__(self) -> Posted:
        return self

    def __exit__(self, *exc: object) -> None:
        self.reader.close()

    def until(self, last: Callable[[Message], bool]) -> list[Message]:
        messages = [self._posted.get(timeout=DEADLINE)]
        while not last(messages[-1]):
            messages.append(self._posted.get(timeout=DEADLINE))
        return messages

    def step(self) -> StepLoaded:
        self.reader.open_step(StepKey(0))
        loaded = self.until(lambda one: isinstance(one, StepLoaded))[-1]
        assert isinstance(loaded, StepLoaded)
        return loaded


def read_step(root: Path) -> list[Message]:
    """Everything that is posted until a step is there."""
    with Posted(root) as posted:
        posted.reader.open_step(StepKey(0))
        return posted.until(lambda one: isinstance(one, StepLoaded))


def test_the_progress_of_a_step_counts_all_its_files_and_never_goes_back(tmp_path: Path) -> None:
    write_step(tmp_path, 0, [sample(at, prompt_len=50, response_len=400) for at in range(8)], Layout(dp=2))
    told = [one for one in read_step(tmp_path) if isinstance(one, ReadProgress)]
    files = Run.open(tmp_path).steps[StepKey(0)]
    assert files.rollout is not None
    assert {one.total for one in told} == {files.rollout.size + sum(entry.size for _, entry in files.shards)}
    done = [one.done for one in told]
    assert done == sorted(done) and done[0] == 0 and done[-1] > files.rollout.size


def test_a_reader_that_was_asked_nothing_keeps_no_process_alive(tmp_path: Path) -> None:
    write_step(tmp_path, 0, [sample(0)], Layout())
    imports = "import sys; from dumptui.core.run.run import Run; from dumptui.tui.app.app import DumpTui"
    code = f"{imports}; DumpTui(Run.open(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", code, tmp_path], cwd=ROOT, check=True, timeout=DEADLINE)


def test_a_sample_that_is_asked_for_while_a_step_is_looked_at_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(field_survey, "PART_TOKENS", 500)
    write_step(tmp_path, 0, [sample(at, prompt_len=50, response_len=400) for at in range(4)], Layout(dp=2))
    with Posted(tmp_path) as posted:
        loaded = posted.step()
        with busy(posted.reader):
            posted.reader.pack(loaded)
            posted.reader.open_talk(loaded.step, 1)
        posted.until(lambda one: isinstance(one, ConversationView))
        packed = posted.until(lambda one: isinstance(one, BatchAnalysed))[-1]
    assert isinstance(packed, BatchAnalysed)
    assert [one.name for one in packed.columns] == loaded.step.fields


def test_a_step_that_is_asked_for_while_the_run_is_looked_through_comes_first_and_nothing_is_told_twice(
    tmp_path: Path,
) -> None:
    for step in range(2):
        write_step(tmp_path, step, [sample(at) for at in range(4)], Layout(dp=2)).files[1].write_bytes(b"")
    with Posted(tmp_path) as posted:
        with busy(posted.reader):
            posted.reader.find_health()
            posted.reader.open_step(StepKey(0))
        *before, _ = posted.until(lambda one: isinstance(one, StepLoaded))
        after = posted.until(lambda one: isinstance(one, HealthRows) and one.done)
    rows = [row for one in (*before, *after) if isinstance(one, HealthRows) for row in one.rows]
    assert rows == list(health(Run.open(tmp_path)))


def test_a_sample_that_is_opened_while_its_step_is_surveyed_gets_the_scale_too(tmp_path: Path) -> None:
    write_step(tmp_path, 0, [sample(at) for at in range(4)], Layout(dp=2))
    with Posted(tmp_path) as posted:
        step = posted.step().step
        for position in range(2):
            posted.reader.open_sample(step, position, 80)
            posted.until(lambda one: isinstance(one, SampleOpened))
            posted.reader.survey(step, "lp_diff")
        found = posted.until(lambda one: isinstance(one, FieldSurveyed))[-1]
        posted.reader.open_sample(step, 2, 80)
        opened = posted.until(lambda one: isinstance(one, SampleOpened))[-1]
    assert isinstance(found, FieldSurveyed) and isinstance(opened, SampleOpened)
    assert found.survey is opened.surveys["lp_diff"]


# Whatever ends a task: it is answered, and costs its part ------------------------------------------------------------


def fail(*_: object, **__: object) -> Any:
    raise MemoryError


def test_health_that_runs_out_of_memory_at_a_step_says_so_and_looks_at_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for step in range(2):
        write_step(tmp_path, step, [sample(at) for at in range(4)], Layout(dp=2)).files[1].write_bytes(b"")
    monkeypatch.setattr(step_health, "_coverage", lambda step, *_: fail() if step.files.key == StepKey(0) else iter(()))
    monkeypatch.setattr(telemetry.Telemetry, "problems", fail)
    with Posted(tmp_path) as posted:
        posted.reader.find_health()
        told = posted.until(lambda one: isinstance(one, HealthRows) and one.done)
    rows = [row for one in told if isinstance(one, HealthRows) for row in one.rows]
    said = {(row["step"], row["file"]) for row in rows if row["problem"] == "check not completed: not enough memory"}
    assert said == {(0, None), (None, "dashboard")}
    assert [row["step"] for row in rows if str(row["file"]).endswith(".pt")] == [0, 1]


def test_a_step_that_can_not_be_put_together_is_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_step(tmp_path, 0, [sample(0)], Layout())
    monkeypatch.setattr(steps, "groups", fail)
    with Posted(tmp_path) as posted:
        posted.reader.open_step(StepKey(0))
        failed = posted.until(lambda one: isinstance(one, StepFailed))[-1]
    assert isinstance(failed, StepFailed) and failed.problem == "not enough memory"
    assert failed.row["state"] == "unreadable"


def test_a_row_that_can_not_be_made_costs_that_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for step in range(3):
        write_step(tmp_path, step, [sample(0)], Layout())
    monkeypatch.setattr(step_reader, "is_whole", lambda step: fail() if step.files.key == StepKey(1) else True)
    with Posted(tmp_path) as posted:
        posted.reader.scan([StepKey(step) for step in range(3)])
        told = posted.until(lambda one: isinstance(one, StepSummaries) and StepKey(2) in one.rows)
    states = {key: row["state"] for one in told if isinstance(one, StepSummaries) for key, row in one.rows.items()}
    assert states == {StepKey(0): "ok", StepKey(1): "unreadable", StepKey(2): "ok"}


def test_what_ends_with_an_exception_in_the_background_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_step(tmp_path, 0, [sample(0)], Layout())
    monkeypatch.setattr(tasks, "loads", fail)
    with Posted(tmp_path) as posted:
        loaded = posted.step()
        posted.reader.pack(loaded)
        broken = posted.until(lambda one: isinstance(one, Broken))[-1]
        assert isinstance(broken, Broken) and isinstance(broken.error, MemoryError)
        posted.reader.open_talk(loaded.step, 0)
        posted.until(lambda one: isinstance(one, ConversationView))


def test_tools_are_read_of_the_step_that_is_asked_for_last(tmp_path: Path) -> None:
    """Whoever goes along the steps would wait for the tools of each of them."""
    write_step(tmp_path, 0, [sample(0)])
    with Posted(tmp_path) as posted:
        first = posted.step()
        write_step(tmp_path, 0, [sample(0), sample(1)])
        second = posted.step()
        with busy(posted.reader):
            posted.reader.read_tools(first)
            posted.reader.read_tools(second)
        read = posted.until(lambda one: isinstance(one, ToolsRead))[-1]
        assert isinstance(read, ToolsRead) and read.step is second.step

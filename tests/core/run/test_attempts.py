"""A run begun again in its old folder: which steps the earlier attempt left, by the times of the files alone."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from dumptui.core.files.step_files import CLOCK_TOLERANCE_SECONDS, Entry, StepFiles, StepKey
from dumptui.core.health.run_health import health
from dumptui.core.run.attempts import earlier_steps
from dumptui.core.run.run import Run
from tests.support.screen import run
from tests.support.writer import sample, write_step

PACE = 60.0  # seconds between two steps


class Clock:
    """A run's steps with the times that its attempts gave them, the next attempt a day later."""

    def __init__(self) -> None:
        self.now = 0.0
        self.times: dict[StepKey, float] = {}

    def attempt(self, first: int, last: int, evals: int = 0) -> Clock:
        for step in range(first, last + 1):
            if evals and step % evals == 0:
                self.write(StepKey(step, True))
            self.write(StepKey(step))
        self.now += 86_400
        return self

    def write(self, key: StepKey) -> None:
        self.now += PACE
        self.times[key] = self.now

    def earlier(self) -> list[str]:
        return earlier(self.times)


def earlier(times: dict[StepKey, float]) -> list[str]:
    entries = {
        key: Entry(Path("rollout_data"), f"{key}.pt", 1, time, at) for at, (key, time) in enumerate(times.items())
    }
    steps = {key: StepFiles(key, "miles", rollout=entry) for key, entry in sorted(entries.items())}
    return [str(key) for key in sorted(earlier_steps(steps))]


def steps(first: int, last: int) -> list[str]:
    return [str(StepKey(step)) for step in range(first, last + 1)]


def test_what_an_earlier_attempt_left_beyond_the_newest_step() -> None:
    assert Clock().attempt(0, 9).earlier() == []
    assert Clock().attempt(0, 9).attempt(0, 0).earlier() == steps(1, 9)
    assert Clock().attempt(0, 9).attempt(0, 5).earlier() == steps(6, 9)
    assert Clock().attempt(0, 9).attempt(4, 7).earlier() == steps(8, 9)
    assert Clock().attempt(0, 9).attempt(4, 12).earlier() == []
    assert Clock().attempt(0, 20).attempt(5, 12).attempt(5, 8).earlier() == steps(9, 20)
    assert set(Clock().attempt(0, 9, evals=3).attempt(0, 4, evals=3).earlier()) == {*steps(5, 9), "eval 6", "eval 9"}


@pytest.mark.parametrize("count", [5, 15, 25, 120])
def test_a_copy_that_did_not_keep_the_times_is_one_run(count: int) -> None:
    keys = [StepKey(step) for step in range(count)]
    by_name = sorted(keys, key=lambda key: f"{key.step}.pt")
    assert earlier({key: PACE * at for at, key in enumerate(by_name)}) == []
    assert earlier({key: PACE * at for at, key in enumerate(reversed(keys))}) == []
    assert earlier({key: CLOCK_TOLERANCE_SECONDS * at / count for at, key in enumerate(reversed(keys))}) == []
    shuffled = random.Random(count).sample(keys, count)
    assert earlier({key: PACE * at for at, key in enumerate(shuffled)}) == []


def test_health_says_which_and_the_newest_by_time_is_printed(tmp_path: Path) -> None:
    for step in range(5):
        write_step(tmp_path, step, [sample(at) for at in range(2)], age=90_000 - PACE * step)
    for step in range(2):
        write_step(tmp_path, step, [sample(at) for at in range(2)], age=3600 - PACE * step)
    problem = "steps 2-4 belong to an earlier attempt of the run: older than step 1, which was written last"
    rows = [row for row in health(Run.open(tmp_path)) if row["problem"] == problem]
    assert [(row["step"], row["level"]) for row in rows] == [(None, "warning")]
    done = run(tmp_path, "--print", "samples", "--json")
    assert '"step": 1,' in done.stdout

"""Staleness against the trainer's weight version, worked out for the whole run.

Public reports: radixark/miles#2581 (staleness off by one), radixark/miles#1892 (versions of prefill spans).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dumptui.core.files.step_files import StepKey
from dumptui.core.run.run import Run
from dumptui.core.store.cache import Cache
from dumptui.core.store.summaries import Summaries
from dumptui.core.weight_counter import NOT_RECORDED, Versions, WeightCounter
from tests.support.reading import read, samples
from tests.support.screen import run, until
from tests.support.session import opened
from tests.support.writer import sample, write_step

MORE = "known once there are more steps"


def counted(versions: dict[int, int | None]) -> dict[int, int | str]:
    """The current version at each step of a run whose samples each were written by one version."""
    known = {step: None if one is None else Versions(one, one) for step, one in versions.items()}
    counter = WeightCounter(versions, known.__getitem__)
    return {step: counter.current(step) for step in versions}


def stale(versions: list[int], start: int = 0) -> list[int | None]:
    found = counted(dict(enumerate(versions, start)))
    return [None if isinstance(one, str) else one - own for one, own in zip(found.values(), versions, strict=True)]


@pytest.mark.parametrize("interval", [1, 2, 3, 4])
@pytest.mark.parametrize("base", [0, 1, 17])
def test_an_on_policy_run_is_never_stale(interval: int, base: int) -> None:
    """--update-weights-interval 2 climbed to 16."""
    assert stale([base + step // interval for step in range(32)]) == [0] * 32


@pytest.mark.parametrize("interval", [1, 2, 3])
def test_in_asynchronous_training_samples_are_one_behind(interval: int) -> None:
    versions = [1 + max(step - 1, 0) // interval for step in range(40)]
    lag = [1 + step // interval - own for step, own in enumerate(versions)]
    assert stale(versions) == lag


def test_a_resumed_run_counts_from_its_restart() -> None:
    """It read 7."""
    assert stale([1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3]) == [0] * 11


def test_later_steps_of_the_attempt_before_are_of_that_one() -> None:
    assert stale([1, 2, 3, 4, 5, 1, 2, 8, 9]) == [0] * 9


def test_the_first_step_seen_shows_the_offset() -> None:
    assert stale([13, 14, 15, 15], start=40) == [0, 0, 0, 1]


def test_what_can_not_be_known_is_blank_with_the_reason() -> None:
    found = counted({0: 1, 1: 1})
    assert found[0] == 1 and MORE in str(found[1])
    assert counted({0: 1, 1: None}) == {0: 1, 1: NOT_RECORDED}
    found = counted({0: 1, 1: 2, 2: None, 3: 1, 4: 2})
    assert found[1] == 2 and "restart" in str(found[3]) and "restart" in str(found[4])


@given(st.integers(1, 4), st.integers(0, 3), st.lists(st.integers(0, 1), min_size=60, max_size=60))
def test_what_is_said_is_true(interval: int, behind: int, late: list[int]) -> None:
    """Whatever the interval and however far samples are behind: the counter of a run of 60 steps, or a reason."""
    true = [1 + step // interval for step in range(60)]
    versions: list[int] = []
    for step, current in enumerate(true):
        versions.append(max(1, *versions[-1:], current - behind - late[step]))
    found = counted(dict(enumerate(min(own, current) for own, current in zip(versions, true, strict=True))))
    for step, current in enumerate(true):
        assert found[step] == current or MORE in str(found[step])
    assert interval > 2 or found[59] == true[59]


# In files ---------------------------------------------------------------------------------------------------------


def dump(root: Path, versions: list[list[str]], **how: Any) -> Path:
    for step, wrote in enumerate(versions):
        made = [sample(4 * step + at, weight_versions=wrote if at else wrote[-1:]) for at in range(4)]
        write_step(root, step, made, mirror=False, **how)
    return root


def rows_of(root: Path, *words: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run(root, "--print", *words, "--json").stdout)["rows"]
    return found


@pytest.mark.parametrize("train", [True, False])
def test_printed_steps_and_samples_agree_cached_or_not(
    tmp_path: Path, train: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = dump(tmp_path / "run", [["1"], ["1"], ["1", "2"], ["3"], ["4"]], train=train)
    before = rows_of(root, "samples", "--step", "2")
    assert [row["staleness"] for row in before] == [1, 2, 2, 2]
    for _ in range(2):
        assert [row["staleness_mean"] for row in rows_of(root, "steps")] == [0.0, 1.0, 1.75, 1.0, 1.0]
    assert rows_of(root, "samples", "--step", "2") == before


def test_an_interval_that_is_not_known_yet_says_so(tmp_path: Path) -> None:
    root = dump(tmp_path, [["1"], ["1"]])
    first, second = rows_of(root, "steps")
    assert (first["staleness_mean"], first["staleness_reason"]) == (0.0, None)
    assert second["staleness_mean"] is None and MORE in second["staleness_reason"]
    assert all(row["staleness"] is None for row in rows_of(root, "samples", "--step", "1"))


def test_evals_are_not_stale(tmp_path: Path) -> None:
    write_step(tmp_path, 3, [sample(0, group_index=None, weight_versions=["1"])], evaluation=True, mirror=False)
    assert samples(read(tmp_path, 3, evaluation=True))[0]["staleness"] is None


def test_a_step_on_the_line_asks_for_no_other_file_than_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = dump(tmp_path, [[str(step + 1)] for step in range(6)])
    found = Summaries(Run.open(root), Cache(root, None))
    asked: list[StepKey] = []
    read_one = found.staleness._read

    def read_and_tell(key: StepKey) -> Versions | None:
        asked.append(key)
        return read_one(key)

    monkeypatch.setattr(found.staleness, "_read", read_and_tell)
    assert [row["staleness"] for row in found.samples(StepKey(5))] == [0] * 4
    assert asked == [StepKey(0)]


async def test_on_screen_the_steps_show_it_once_the_run_is_read(tmp_path: Path) -> None:
    root = dump(tmp_path, [["1"], ["1"], ["2"], ["3"], ["4"]])
    async with opened(root, size=(160, 40), scanned=True) as (app, pilot):
        await until(pilot, lambda: stale_of(app) == [0.0, 1.0, 1.0, 1.0, 1.0])


def stale_of(app: Any) -> list[float | None]:
    return [app.rollout.rows[StepKey(step)]["staleness_mean"] for step in range(5)]


# Prefill ----------------------------------------------------------------------------------------------------------


def test_versions_of_prefill_are_columns(tmp_path: Path) -> None:
    def call(output: list[str], prefill: list[str]) -> dict[str, Any]:
        spans = [
            [{"version": one, "abs_start": at, "abs_end": at + 1} for at, one in enumerate(each)]
            for each in (output, prefill)
        ]
        return {"spans": spans[0], "prefill_spans": spans[1], "output_start": 4}

    made = [
        sample(0, weight_versions=[call(["7", "8"], ["6", "5"]), call(["8"], ["8"])]),
        sample(1, weight_versions=["7"]),
    ]
    write_step(tmp_path, 0, made, mirror=False)
    names = ("prefill_weight_version_min", "prefill_lag")
    assert [tuple(row[name] for name in names) for row in samples(read(tmp_path))] == [(5, 3), (None, None)]

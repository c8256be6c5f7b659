"""A field over a whole step: its range and its worst tokens, held against a walk over every token."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dumptui.core.sample.view import view_sample
from dumptui.core.step import field_survey as module
from dumptui.core.step.field_survey import order, strength, survey, surveying
from tests.support.reading import read
from tests.support.writer import sample, write_step


def every(run: Path, name: str, step: int = 0) -> list[tuple[float, int, int]]:
    """(value, sample, absolute position) of every trained token with a value."""
    joined = read(run, step)
    found = []
    for position, one in enumerate(joined.samples):
        view = view_sample(joined, position, None)
        for at in range(one.total_length):
            if (value := view.value(name, at)) is not None:
                found.append((value, position, at))
    return found


@pytest.mark.parametrize("name", ["lp_diff", "imp_ratio", "entropy", "train_log_probs"])
def test_the_worst_of_a_step_are_the_worst_of_its_tokens(
    demo: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PART_TOKENS", 300)
    monkeypatch.setattr(module, "MOST_WORST", 50)
    found = survey(read(demo, 2), name)
    tokens = every(demo, name, 2)
    sizes = np.sort(strength(name, np.array([value for value, _, _ in tokens])))[::-1]
    assert strength(name, found.values) == pytest.approx(sizes[:50])
    named = {(position, at): value for value, position, at in tokens}
    shown = zip(found.positions.tolist(), found.tokens.tolist(), found.values.tolist(), strict=True)
    assert all(named[position, at] == value for position, at, value in shown)
    values = [value for value, _, _ in tokens]
    assert found.span == pytest.approx(tuple(np.percentile(values, [0.5, 99.5])), rel=1e-5)


def test_other_work_fits_between_the_parts(demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PART_TOKENS", 500)
    step = read(demo, 2)
    *between, last = surveying(step, "lp_diff")
    assert len(between) > 3
    assert set(between) == {None}
    assert last is not None
    assert np.concatenate(module.parts(step)).tolist() == list(range(len(step.samples)))


def test_masked_tokens_and_what_is_not_finite(tmp_path: Path) -> None:
    one = sample(0, response_len=4, loss_mask=[1, 0, 1, 1], rollout_log_probs=[-1.0, -9.0, math.nan, -math.inf])
    write_step(tmp_path, 0, [one], truth={"log_probs": [[-1.5, -1.0, -1.0, -1.0]]})
    found = survey(read(tmp_path), "lp_diff")
    assert found.tokens.tolist() == [6, 7, 4]
    assert found.span == (-0.5, -0.5)


def test_a_step_without_values_has_no_worst(tmp_path: Path) -> None:
    write_step(tmp_path, 0, [sample(0)], columns={"entropy": None})
    found = survey(read(tmp_path), "teacher_log_probs")
    assert found.span == (0.0, 0.0)
    assert not len(found.tokens)


def test_a_ratio_is_out_in_both_directions() -> None:
    values = np.array([1.0, 0.01, 3.0, 1.1])
    assert order("imp_ratio", values).tolist() == [1, 2, 3, 0]
    assert order("entropy", values).tolist() == [2, 3, 0, 1]


numbers = st.lists(st.floats(width=32), max_size=40)


@given(numbers, st.integers(1, 45))
def test_the_first_of_the_order_are_those_of_all(values: list[float], most: int) -> None:
    array = np.array(values, np.float32)
    some, all_ = order("lp_diff", array, most), order("lp_diff", array)
    size = strength("lp_diff", array)
    assert len(some) == min(most, len(values))
    assert len(set(some.tolist())) == len(some)
    assert size[some].tolist() == size[all_][:most].tolist()


def test_the_recorded_runs_too(shared: Path) -> None:
    run = shared / "runs" / "multiturn"
    found, tokens = survey(read(run, 2), "lp_diff"), every(run, "lp_diff", 2)
    assert abs(found.values[0]) == max(abs(value) for value, _, _ in tokens)

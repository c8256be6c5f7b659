"""The title of the window marks numbers that cover only a part of a step, as the tables do."""

from __future__ import annotations

import pytest

from dumptui.core.files.step_files import StepKey
from dumptui.core.types import Record
from dumptui.tui.presentation.headline import window_title

ROW: Record = {"state": "ok", "samples": 8, "rewarded": 8, "reward_mean": 0.625, "mean_abs_lp_diff": 0.0188}


@pytest.mark.parametrize(
    ("changes", "title"),
    [
        ({}, "dumptui step 3 reward 0.625 |Δ| 0.0188"),
        ({"rewarded": 6}, "dumptui step 3 reward ~0.625 |Δ| 0.0188"),
        ({"state": "partial"}, "dumptui step 3 reward 0.625 |Δ| ~0.0188"),
        ({"samples": None, "reward_mean": None, "mean_abs_lp_diff": None}, "dumptui step 3 reward - |Δ| -"),
    ],
)
def test_partial_numbers_are_marked(changes: Record, title: str) -> None:
    assert window_title(StepKey(3), {**ROW, **changes}) == title

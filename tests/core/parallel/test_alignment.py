"""One alignment a step: it refuses changes, and any thread may ask it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError
from pathlib import Path

import numpy as np
import pytest

from dumptui.core.files.step_files import StepKey
from dumptui.core.run.run import Run
from dumptui.core.step.load import load
from dumptui.core.step.step import Step


def load_step(shared: Path) -> Step:
    return load(Run.open(shared / "runs" / "cp4_thd").files(StepKey(1)))


def values(step: Step) -> dict[str, tuple[list[str], bytes]]:
    fields = step.gather_all(np.arange(len(step.samples)))
    return {name: ([*flat.states], np.where(flat.known, flat.values, 0).tobytes()) for name, flat in fields.items()}


def test_a_loaded_step_is_not_changed(shared: Path) -> None:
    step = load_step(shared)
    for holder, name in (
        (step, "broken"),
        (step, "pause"),
        (step.alignment, "rows"),
        (step.alignment.groups[0], "problem"),
    ):
        with pytest.raises(FrozenInstanceError):
            setattr(holder, name, None)


def test_threads_that_ask_at_once_get_the_same_values(shared: Path) -> None:
    """Verdicts and slicing rules are worked out on first use, here by four threads at the same time."""
    expected = values(load_step(shared))
    step = load_step(shared)
    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(values, [step] * 4)] == [expected] * 4
    assert {state for states, _ in expected.values() for state in states} >= {"ok"}

"""The worst tokens of a step and of a run, against all tokens of all steps in order."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dumptui.core.files.step_files import StepKey
from dumptui.core.run.run import Run
from dumptui.core.step.field_survey import MOST_WORST
from dumptui.core.step.load import load
from dumptui.core.step.step import Step
from dumptui.core.tables import steps
from dumptui.core.tables.tokens import tokens
from dumptui.core.tables.worst_tokens import RunSearch, worst_of_run, worst_of_step
from dumptui.core.types import Record
from tests.support.screen import ROOT
from tests.support.writer import sample, write_step

Place = tuple[int, int, int]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Six steps; in one, the engine's log-probs have a NaN and an infinity."""
    root = tmp_path / "run"
    for step in range(6):
        samples = [sample(at, response_len=20 + 7 * at, seed=10 * step + at) for at in range(4)]
        if step == 2:
            samples[1]["rollout_log_probs"][3] = math.nan
            samples[2]["rollout_log_probs"][5] = -math.inf
        write_step(root, step, samples)
    return Run.open(root)


def all_tokens(step: Step) -> dict[Place, float]:
    """The difference of every trained token."""
    found = {}
    documents: Any = tokens(step, None, list(step.samples))
    for document in documents:
        values = document["fields"]["lp_diff"]["values"]
        for at, (trained, value) in enumerate(zip(document["loss_mask"], values, strict=True)):
            if trained:
                found[document["step"], document["sample_index"], document["prompt_length"] + at] = value
    return found


def size(value: float) -> float:
    return math.inf if math.isnan(value) else abs(value)


def place(row: Record) -> Place:
    return row["step"], row["sample_index"], row["position"]  # type: ignore[return-value]


def search(run: Run, read: list[StepKey], limit: int) -> RunSearch:
    def load_step(key: StepKey) -> Step:
        read.append(key)
        return load(run.steps[key])

    rows = {key: steps.step_row(step := load(files), steps.samples(step)) for key, files in run.steps.items()}
    *_, found = worst_of_run(rows, load_step, None, limit)
    return found


@pytest.mark.parametrize("limit", [1, 2, 5, 1000])
def test_the_worst_of_a_run_are_those_of_all_its_tokens(run: Run, limit: int) -> None:
    every = {at: value for files in run.steps.values() for at, value in all_tokens(load(files)).items()}
    expected = sorted(map(size, every.values()), reverse=True)[:limit]
    found = search(run, [], limit)
    assert [size(float(str(row["lp_diff"]))) for row in found.rows] == pytest.approx(expected, rel=1e-6)
    assert found.complete and len(set(map(place, found.rows))) == len(found.rows)
    for row in found.rows:
        assert np.float32(str(row["lp_diff"])) == pytest.approx(np.float32(every[place(row)]), nan_ok=True)
        ratio = math.exp(float(str(row["lp_diff"])))
        assert float(str(row["imp_ratio"])) == pytest.approx(ratio, nan_ok=True, rel=1e-5)


def test_nan_and_infinity_come_first_and_end_the_search(run: Run) -> None:
    read: list[StepKey] = []
    found = search(run, read, 2)
    assert {place(row)[:2] for row in found.rows} == {(2, 1), (2, 2)}
    assert read == [StepKey(2)] and (found.read, found.steps) == (1, 6)


def test_a_step_is_read_only_if_it_can_hold_a_worse_token(run: Run) -> None:
    read: list[StepKey] = []
    search(run, read, 5)
    assert 1 < len(read) < 6 and len(set(read)) == len(read)


def test_a_row_names_the_sample_and_what_both_sides_say(run: Run) -> None:
    step = load(run.steps[StepKey(5)])
    row = worst_of_step(step, None, 1)[0]
    one = next(one for one in step.samples if one.index == row["sample_index"])
    position = int(str(row["position"]))
    assert row["token_id"] == one.tokens[position] and row["group_index"] == one.group
    assert row["text"] is None and one.prompt_length <= position < one.total_length
    difference = float(str(row["train_log_probs"])) - float(str(row["rollout_log_probs"]))
    assert difference == pytest.approx(float(str(row["lp_diff"])), abs=1e-5)


def printed(*words: str) -> Any:
    command = [sys.executable, "-m", "dumptui", *words, "--print", "worst", "--json"]
    return json.loads(subprocess.run(command, capture_output=True, check=True, cwd=ROOT).stdout)


def test_printed(run: Run) -> None:
    of_run, of_step = printed(str(run.root), "--limit", "3"), printed(str(run.root), "--step", "1", "--limit", "2")
    assert len(of_run["rows"]) == 3 and {row["step"] for row in of_run["rows"][:2]} == {2}
    assert [row["step"] for row in of_step["rows"]] == [1, 1]
    assert of_run["rows"][0]["lp_diff"] in ("NaN", "Infinity")


@pytest.mark.parametrize("limit", ["0", "1001", "many"])
def test_a_limit_that_can_not_be_ranked_is_refused(run: Run, limit: str) -> None:
    command = [sys.executable, "-m", "dumptui", str(run.root), "--print", "worst", "--limit", limit]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 2 and f"not a number from 1 to {MOST_WORST}" in done.stderr

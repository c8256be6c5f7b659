"""The overview: what is wrong with a run, the worst first, with the place to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dumptui.core.files.step_files import StepKey
from dumptui.core.health import overview, run_health
from dumptui.core.run.run import Run
from dumptui.core.tables.columns import STEP_COLUMNS
from tests.support import reading
from tests.support.writer import sample, write_step

LIMIT = 0.03


def row(step: int, difference: float | None = 0.01, evaluation: bool = False, **more: Any) -> dict[str, Any]:
    blank = dict.fromkeys(column.name for column in STEP_COLUMNS if column.recorded)
    counts = {"samples": 8, "train_samples": 8, "rewarded": 8, "state": "ok", "not_finite": 0}
    return {**blank, "step": step, "evaluation": evaluation, "mean_abs_lp_diff": difference, **counts, **more}


def rows(*found: dict[str, Any]) -> dict[StepKey, dict[str, Any]]:
    return {StepKey(one["step"], one["evaluation"]): one for one in found}


def finding(level: str, problem: str, step: int | None = None, **more: Any) -> dict[str, Any]:
    evaluation = None if step is None else False
    return {"step": step, "evaluation": evaluation, "file": None, "level": level, "problem": problem, **more}


def said(issues: list[overview.Issue]) -> list[tuple[str, str, str]]:
    return [(issue.severity, issue.where, issue.reason) for issue in issues]


def test_one_token_that_carries_the_divergence_is_named(tmp_path: Path) -> None:
    """The means of samples hide it: a short sample weighs as much as a long one."""
    engine = [np.full(2, -1.0), np.full(20, -1.0)]
    trainer = [np.array([-1.0, 0.0]), np.full(20, -1.01)]
    samples = [
        sample(at, prompt_len=3, response_len=len(one), rollout_log_probs=one.tolist()) for at, one in enumerate(engine)
    ]
    write_step(tmp_path, 0, samples, truth={"rollout_log_probs": engine, "log_probs": trainer})
    found = reading.step_row(reading.read(tmp_path))
    assert found["token_mean_abs_lp_diff"] == pytest.approx((1 + 20 * 0.01) / 22, rel=1e-3)
    assert found["worst_token_share"] == pytest.approx(1 / 1.2, rel=1e-3)
    assert (found["worst_sample"], found["worst_occurrence"], found["worst_token"]) == (0, 0, 4)

    issue = overview.overview(rows(found))[0]
    assert (issue.severity, issue.where) == ("warning", "step 0")
    assert issue.reason == "|Δ| 0.2550: one token carries 83% of the divergence (limit 0.03, mean over tokens 0.0545)"
    assert (issue.sample, issue.token) == ((0, 0), 4)


def test_a_divergence_of_many_tokens_is_not_put_on_one() -> None:
    (issue,) = overview.overview(rows(row(3, 0.05, worst_token_share=0.04, token_mean_abs_lp_diff=0.049)))
    assert said([issue]) == [("warning", "step 3", "|Δ| 0.0500 (limit 0.03, mean over tokens 0.0490)")]


def test_ten_times_the_limit_is_an_error() -> None:
    issues = overview.overview(rows(row(0, LIMIT), row(1, 10 * LIMIT)))
    assert [(issue.severity, issue.where) for issue in issues] == [("error", "step 1"), ("warning", "step 0")]


def test_where_every_step_is_beyond_the_limit_the_worst_has_a_row_and_the_others_share_one() -> None:
    issues = overview.overview(rows(*(row(step, 0.04 + step / 1000) for step in range(40))))
    assert said(issues) == [
        ("warning", "step 39", "|Δ| 0.0790 (limit 0.03)"),
        ("warning", "steps 0-38", "|Δ| up to 0.0780 in 39 more, at step 38 (limit 0.03)"),
    ]
    assert issues[1].keys[0] == StepKey(38)


def test_a_run_within_the_limits_says_where_the_divergence_is_largest() -> None:
    issues = overview.overview(rows(row(0, 0.01), row(1, 0.02, worst_sample=7, worst_occurrence=0, worst_token=5)))
    assert said(issues) == [("note", "step 1", "largest |Δ| 0.0200 (limit 0.03)")]
    assert (issues[0].sample, issues[0].token) == ((7, 0), 5)
    assert overview.overview(rows(row(0, 0.01))) == []


def test_alarms_of_rewards_are_notes_behind_what_is_wrong() -> None:
    issues = overview.overview(rows(row(0, zero_std_frac=0.5), row(1, 0.05, zero_std_frac=0.75), row(4, not_finite=3)))
    assert said(issues) == [
        ("error", "step 4", "3 NaN or inf"),
        ("warning", "step 1", "|Δ| 0.0500 (limit 0.03)"),
        ("note", "steps 0-1", "up to 75% of the groups have equal rewards, the most at step 1 (limit 50%)"),
    ]
    assert issues[2].keys[0] == StepKey(1)


def test_health_replaces_what_the_row_of_a_step_says_of_its_files() -> None:
    partial = row(2, state="partial", reason="4 of 8 samples have no train row; 2_1.pt: is empty")
    assert said(overview.overview(rows(partial))) == [("warning", "step 2", partial["reason"])]
    known = [finding("error", "is empty (0 bytes)", 2, file="train_data/2_1.pt")]
    issues = overview.overview(rows(partial), known)
    assert said(issues) == [("error", "step 2", "train_data/2_1.pt: is empty (0 bytes)")]
    assert issues[0].finding is known[0]


def test_findings_alike_share_a_row() -> None:
    problem = "{} of 8 samples have train data: 1 shard unreadable"
    issues = overview.overview({}, [finding("warning", problem.format(step), step) for step in (1, 2, 3, 7)])
    assert said(issues) == [("warning", "steps 1-3, 7", f"{problem.format(1)} (3 more such)")]


def test_findings_of_one_step_share_a_row_which_says_how_many_there_are() -> None:
    issues = overview.overview({}, [finding("error", f"{name} is NaN", 1) for name in ("entropy", "returns", "ref")])
    assert said(issues) == [("error", "step 1", "entropy is NaN; 2 more errors in Health")]


def test_the_layout_is_no_issue() -> None:
    assert overview.overview({}, [finding("info", "layout: dp 2 × cp 2", 0)], complete=True) == []


def test_nan_is_found_with_its_token(tmp_path: Path) -> None:
    trainer = [np.full(3, -1.0), np.array([-1.0, np.nan, -1.0])]
    samples = [sample(at, response_len=3, rollout_log_probs=[-1.0] * 3) for at in range(2)]
    engine = [np.full(3, -1.0), np.full(3, -1.0)]
    write_step(tmp_path, 0, samples, truth={"log_probs": trainer, "rollout_log_probs": engine})
    step = reading.step_row(reading.read(tmp_path))
    before = overview.overview(rows(step))[0]
    assert before.reason.startswith("1 NaN or inf; the first in sample 1 at #5")
    assert (before.severity, before.sample, before.token) == ("error", (1, 0), 5)

    findings = list(run_health.health(Run.open(tmp_path)))
    after = overview.overview(rows(step), findings, complete=True)[0]
    assert after.reason.startswith("train_log_probs is NaN at 1 trained token of 1 sample: first in sample 1 at #5")
    assert (after.severity, after.sample, after.token) == ("error", (1, 0), 5)


def test_a_long_list_of_steps_is_a_number() -> None:
    assert overview.steps_in_words([StepKey(step) for step in (0, 2, 4, 6, 8)]) == "5 steps"
    assert overview.steps_in_words([StepKey(2, True)]) == "eval 2"
    assert overview.steps_in_words([]) == "run"

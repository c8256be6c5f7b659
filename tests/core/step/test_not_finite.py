"""NaN, infinity and placeholders: in no statistic, counted beside them, marked, found by Health and gone to first.

Public reports: radixark/miles#2581 (statistics of nothing), huggingface/trl#5344, verl-project/verl#5859.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from dumptui.core.files.step_files import StepKey
from dumptui.core.run.run import Run
from dumptui.core.sample.view import view_sample
from dumptui.core.step.distribution import distributions
from dumptui.core.step.field_survey import survey
from dumptui.tui.presentation.headline import headline
from tests.support.reading import groups, read, samples, step_row
from tests.support.screen import run, text, until_shown
from tests.support.session import choose, column, go, opened, under_cursor
from tests.support.writer import sample, write_step

NAN, INF = math.nan, math.inf
ENGINE = [-1.0, -1.0, -1.0, -1.0]


def dump(path: Path, *trainers: list[float], **truth: list[list[float]]) -> Path:
    """A step of samples with four response tokens each, whose engine log-probs are -1."""
    made = [sample(at, group_index=0, response_len=4, rollout_log_probs=ENGINE) for at in range(len(trainers))]
    write_step(path, 0, made, truth={"log_probs": list(trainers), **truth}, mirror=False)
    return path


def problems(path: Path) -> list[tuple[str, str]]:
    from dumptui.core.health.run_health import health

    return [(str(row["level"]), str(row["problem"])) for row in health(Run.open(path)) if row["level"] != "info"]


@pytest.mark.parametrize("odd", [NAN, INF, -INF])
def test_one_such_token_costs_itself_and_is_counted(tmp_path: Path, odd: float) -> None:
    dump(tmp_path, [-1.5, odd, -1.0, -1.0], [-1.0, -1.0, -1.0, -1.25])
    step = read(tmp_path)
    first, second = samples(step)
    assert first["mean_abs_lp_diff"] == pytest.approx(0.5 / 3) and first["max_abs_lp_diff"] == 0.5
    assert first["mean_imp_ratio"] == pytest.approx((math.exp(-0.5) + 2) / 3)
    assert [row["not_finite"] for row in (first, second)] == [1, 0]
    row = step_row(step)
    assert row["mean_abs_lp_diff"] == pytest.approx((0.5 / 3 + 0.0625) / 2) and row["not_finite"] == 1
    assert groups(step)[0]["not_finite"] == 1
    assert "1 NaN or inf" in headline(Run.open(tmp_path), StepKey(0), row).plain


def test_every_statistic_is_of_the_finite_values(tmp_path: Path) -> None:
    odd = [0.5, NAN, INF, 0.5]
    dump(tmp_path, [-1.0] * 4, entropy=[odd], advantages=[odd], returns=[odd])
    (row,) = samples(read(tmp_path))
    assert (row["mean_entropy"], row["max_entropy"], row["adv_mean"], row["adv_std"]) == (0.5, 0.5, 0.5, 0.0)
    assert (row["return_mean"], row["not_finite"], row["diff_not_finite"]) == (0.5, 6, 0)
    assert step_row(read(tmp_path))["not_finite"] == 2  # of what the steps table has: |Δ| and entropy


def test_health_names_what_is_not_finite_and_what_stands_for_nothing(tmp_path: Path) -> None:
    dump(tmp_path, [NAN, -INF, -9999.0, 0.5], [-1.0, -3.4e38, -1e9, 1e-6], advantages=[[NAN] * 4, [1.0, -9999, 2, 3]])
    found = problems(tmp_path)
    assert ("error", "train_log_probs is NaN at 1 trained token of 1 sample: first in sample 0 at #4") in found
    assert (
        "error",
        "train_log_probs is infinite at 1 trained token of 1 sample: first in sample 0 at #5, -inf",
    ) in found
    assert (
        "warning",
        "train_log_probs is a placeholder, not a value, at 3 trained tokens of 2 samples: first in sample 0 at #6, "
        "-9999",
    ) in found
    assert (
        "warning",
        "train_log_probs is a log-prob above 0 at 1 trained token of 1 sample: first in sample 0 at #7, 0.5",
    ) in found
    assert ("error", "advantages is NaN at 4 trained tokens of 1 sample: first in sample 0 at #4") in found
    assert any(level == "warning" and problem.startswith("advantages is a placeholder") for level, problem in found)
    assert run(tmp_path, "--print", "health").returncode == 1


def test_masked_tokens_and_ordinary_values_are_no_finding(tmp_path: Path) -> None:
    one = sample(0, response_len=4, loss_mask=[1, 0, 0, 1], rollout_log_probs=[-1.0, NAN, -9999.0, -1.0])
    write_step(tmp_path, 0, [one], truth={"log_probs": [[-1.0, INF, 5.0, 1e-5]]}, mirror=False)
    assert problems(tmp_path) == []
    assert samples(read(tmp_path))[0]["not_finite"] == 0


def test_a_reward_that_is_not_finite_is_found_too(tmp_path: Path) -> None:
    write_step(tmp_path, 0, [sample(at, group_index=0, reward=[NAN, 1.0, 0.5][at]) for at in range(3)], mirror=False)
    row = step_row(read(tmp_path))
    assert (row["reward_mean"], row["not_finite"]) == (0.75, 1)
    assert ("error", "reward is NaN or infinite in 1 sample") in problems(tmp_path)


@pytest.mark.parametrize("trainer", [95.0, 88.0, 3e38])
def test_a_ratio_is_never_inf(tmp_path: Path, trainer: float) -> None:
    dump(tmp_path, [trainer, -1.0, -1.0, -1.0])
    step = read(tmp_path)
    (row,) = samples(step)
    assert row["mean_imp_ratio"] == pytest.approx((math.exp(20) + 3) / 4)
    columns = {one.name: one for one in distributions(step) if one is not None}
    assert columns["imp_ratio"].high == pytest.approx(math.exp(20), rel=1e-6)
    shown = run(tmp_path, "--print", "tokens").stdout
    assert ">4.85e+08" in shown and "inf" not in shown and "e+38" not in shown.replace("3.00e+38", "")


def test_the_worst_tokens_are_those(tmp_path: Path) -> None:
    dump(tmp_path, [-9.0, -1.0, -1.0, NAN], [-1.0, -1.0, INF, -1.0])
    step = read(tmp_path)
    assert view_sample(step, 0, None).worst()[:2].tolist() == [7, 4]
    found = survey(step, "lp_diff")
    assert list(zip(found.positions.tolist(), found.tokens.tolist(), strict=True))[:3] == [(0, 7), (1, 6), (0, 4)]


async def test_such_samples_are_marked_and_come_first_by_divergence(tmp_path: Path) -> None:
    dump(tmp_path, [-1.5, -1.0, -1.0, -1.0], [-1.0] * 4, [NAN] * 4, [-1.0, NAN, -1.0, -1.0])
    async with opened(tmp_path, size=(160, 40)) as (app, pilot):
        await until_shown(pilot, "!NaN inf 5")
        assert under_cursor(app.rollout.steps.table)[0] == "!0"
        await go(pilot, "enter", "s")
        await choose(pilot, "|Δ|")
        assert column(app.rollout.table, "sample") == ["!2", "!3", "0", "1"]
        assert column(app.rollout.table, "|Δ|") == ["!NaN", "0.0000", "0.1250", "0.0000"]
        await go(pilot, "S")
        assert column(app.rollout.table, "sample") == ["1", "0", "!2", "!3"]
        await go(pilot, "S", "enter", "right_square_bracket")
        await until_shown(pilot, "#4")
        assert "ratio inf" not in text(app)


def test_a_placeholder_is_marked_by_its_size(tmp_path: Path) -> None:
    from dumptui.tui.presentation import columns
    from dumptui.tui.presentation.signs import sample_cells

    dump(tmp_path, [-9999.0, -1.0, -1.0, -1.0])
    record: dict[str, Any] = {**samples(read(tmp_path))[0], "label": 0}
    assert sample_cells(columns.chosen("label", "max_abs_lp_diff"), record) == ["!0", "9998.000"]

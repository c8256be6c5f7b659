"""`~` before a number that covers only a part of a step: printed as on screen, for rewards as for |Δ|."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.reading import read as read_step
from tests.support.reading import step_row
from tests.support.screen import run, until_shown
from tests.support.session import column, opened
from tests.support.writer import Layout, sample, write_step


def dump(path: Path) -> Path:
    """Step 0 is whole, step 1 half trained, step 2 has samples without a reward."""
    write_step(path, 0, [sample(at) for at in range(4)], Layout(dp=2))
    write_step(path, 1, [sample(at) for at in range(4)], Layout(dp=2), drop=[1])
    write_step(path, 2, [sample(at, reward=None if at else 1.0) for at in range(4)], columns={"raw_reward": None})
    return path


def printed(path: Path, name: str) -> list[str]:
    """A column of the printed table: by where it ends, as numbers stand to the right."""
    heads, *lines = run(path, "--print", "steps").stdout.splitlines()
    end = heads.index(f" {name} ") + 1 + len(name)
    return [line[:end].split()[-1] for line in lines]


def test_the_printed_table_has_the_sign(tmp_path: Path) -> None:
    dump(tmp_path)
    assert [cell[0] == "~" for cell in printed(tmp_path, "mean_abs_lp_diff")] == [False, True, False]
    assert [cell[0] == "~" for cell in printed(tmp_path, "reward_mean")] == [False, True, True]
    assert printed(tmp_path, "reward_mean")[2] == "~1.000"


@pytest.mark.parametrize("form", ["--json", "--csv"])
def test_numbers_for_programs_stay_numbers(tmp_path: Path, form: str) -> None:
    out = run(dump(tmp_path), "--print", "steps", form).stdout
    assert "~" not in out
    if form == "--json":
        assert json.loads(out)["rows"][2]["reward_mean"] == step_row(read_step(tmp_path, 2))["reward_mean"] == 1.0


async def test_the_screen_has_it_for_rewards_too(tmp_path: Path) -> None:
    async with opened(dump(tmp_path), size=(120, 40), scanned=True) as (app, pilot):
        assert [cell[0] == "~" for cell in column(app.rollout.steps.table, "reward")] == [True, True, False]
        assert [cell[0] == "~" for cell in column(app.rollout.steps.table, "|Δ|")] == [False, True, False]
        await until_shown(pilot, "reward ~1.00")

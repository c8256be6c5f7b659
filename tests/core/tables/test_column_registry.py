"""One entry makes a column: the tables, the filter, the alarms, the cache and COLUMNS.md read the registry."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dumptui
from dumptui.core.fields.registry import FIELDS
from dumptui.core.run.run import Run
from dumptui.core.step.load import load
from dumptui.core.tables import steps
from dumptui.core.tables.alarms import alarms
from dumptui.core.tables.column_reference import reference
from dumptui.core.tables.columns import (
    ENTRY_PREFIX,
    SAMPLE_COLUMNS,
    STEP_COLUMNS,
    ColumnDefinition,
    Reduction,
    Statistic,
    alarm_words,
)
from dumptui.core.tables.view_columns import DISTRIBUTION_COLUMNS, FINDING_COLUMNS, GROUP_COLUMNS, TRAIN_FILE_COLUMNS
from dumptui.tui.presentation.columns import fields_of
from tests.support.writer import sample, write_step

TABLES = (
    *(SAMPLE_COLUMNS, STEP_COLUMNS, GROUP_COLUMNS),
    *(TRAIN_FILE_COLUMNS, DISTRIBUTION_COLUMNS, FINDING_COLUMNS),
)
ADDED = {
    "SAMPLE_COLUMNS = (": 'ColumnDefinition(name="added_by_test", label="added by test", tip="largest advantage", '
    'statistic=Statistic("advantages", "max")),',
    "STEP_COLUMNS = (": 'ColumnDefinition(name="added_by_test", label="added by test", tip="largest advantage", '
    'reduction=Reduction("added_by_test", "max")),',
}


@pytest.mark.parametrize("columns", TABLES)
def test_every_column_is_named_once_and_explained(columns: tuple[ColumnDefinition, ...]) -> None:
    names = [column.name for column in columns]
    assert len(set(names)) == len(names)
    labels = [column.label for column in columns if column.label and column.recorded]
    assert len(set(labels)) == len(labels)
    for column in columns:
        assert column.tip, column
        assert column.label or column.shown == "never", column
        assert column.alarm_limit is None or column.worse, column


def test_statistics_and_reductions_are_of_what_there_is() -> None:
    fields, columns = {field.name for field in FIELDS}, {column.name for column in SAMPLE_COLUMNS}
    for column in SAMPLE_COLUMNS:
        assert column.statistic is None or column.statistic.field in fields, column
    for column in STEP_COLUMNS:
        assert column.reduction is None or column.reduction.column in columns, column


@pytest.mark.parametrize("name", ["plain", "multiturn", "cp4_thd"])
def test_every_value_of_a_row_has_a_column_in_its_order(shared: Path, name: str) -> None:
    for files in Run.open(shared / "runs" / name).steps.values():
        step = load(files)
        table = steps.samples(step)
        made = [(SAMPLE_COLUMNS, table[0]), (STEP_COLUMNS, steps.step_row(step, table))]
        made += [(GROUP_COLUMNS, row) for row in steps.groups(table, evaluation=files.key.evaluation)]
        made += [(TRAIN_FILE_COLUMNS, row) for row in steps.batch(step)]
        for columns, row in made:
            declared = [name for name in row if not name.startswith(ENTRY_PREFIX)]
            assert declared == [column.name for column in columns if column.name in row]


def test_formulas_say_what_is_computed() -> None:
    assert Statistic("lp_diff", "mean_abs").formula == "mean(|lp_diff|)"
    assert Statistic("advantages", "std").formula == "std(advantages)"
    assert Reduction("truncated", "share").formula == "share(truncated)"


def test_a_value_at_the_limit_is_an_alarm() -> None:
    row = {"state": "ok", "mean_abs_lp_diff": 0.03, "truncated_frac": 0.24, "zero_std_frac": None, "not_finite": 1}
    assert alarms(row) == {"mean_abs_lp_diff": 0.03, "not_finite": 1}
    assert alarms({"state": "unreadable"}) == {"state": "unreadable"}


def test_a_limit_holds_in_the_direction_that_is_worse() -> None:
    column = ColumnDefinition(name="reward_mean", tip="", worse="low", alarm_limit=0.1)
    assert [column.alarms(value) for value in (0.2, 0.1, 0.0, None)] == [False, True, True, False]


def test_a_column_without_a_width_comes_last_and_has_room_for_its_label() -> None:
    columns = [ColumnDefinition(name="new", label="a new one", tip=""), ColumnDefinition(name="old", label="x", tip="")]
    assert [(field.key, field.width) for field in fields_of(columns, {"old": 3})] == [("old", 3), ("new", 9)]


def test_the_readme_names_what_marks_a_step() -> None:
    text = (Path(__file__).parents[3] / "README.md").read_text(encoding="utf-8")
    assert alarm_words() in " ".join(text.split())
    for column in STEP_COLUMNS:
        assert bool(column.alarm_words) == (column.alarm_limit is not None), column


def test_the_list_of_columns_is_up_to_date() -> None:
    """`make columns` writes it."""
    path = Path(__file__).parents[3] / "COLUMNS.md"
    assert path.read_text(encoding="utf-8") == reference()
    assert "](COLUMNS.md)" in path.with_name("README.md").read_text(encoding="utf-8")


# The cache ------------------------------------------------------------------------------------------------------


def printed(code: Path, cache: Path, *words: str) -> list[dict[str, Any]]:
    environment = {**os.environ, "PYTHONPATH": str(code), "XDG_CACHE_HOME": str(cache)}
    command = [sys.executable, "-m", "dumptui", *words, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=code, check=True)
    rows: list[dict[str, Any]] = json.loads(done.stdout)["rows"]
    return rows


def test_a_column_that_is_added_is_there_at_the_next_start(tmp_path: Path) -> None:
    """A new column was missing on every run looked at before: `--where` said that there is no such column."""
    code, cache, run = tmp_path / "code", tmp_path / "cache", tmp_path / "run"
    shutil.copytree(Path(dumptui.__file__).parent, code / "dumptui", ignore=shutil.ignore_patterns("__pycache__"))
    truth = write_step(run, 0, [sample(at) for at in range(4)], mirror=False)
    for view in ("steps", "samples"):
        assert "added_by_test" not in printed(code, cache, str(run), "--print", view)[0]
    assert len(list(cache.rglob("*.json"))) == 2

    registry = code / "dumptui" / "core" / "tables" / "columns.py"
    text = registry.read_text()
    for line, entry in ADDED.items():
        assert text.count(line) == 1
        text = text.replace(line, f"{line}\n    {entry}")
    registry.write_text(text)

    largest = [float(row.max()) for row in truth.fields["advantages"]]
    rows = printed(code, cache, str(run), "--print", "samples")
    assert [row["added_by_test"] for row in rows] == pytest.approx(largest)
    assert printed(code, cache, str(run), "--print", "steps")[0]["added_by_test"] == pytest.approx(max(largest))
    where = printed(code, cache, str(run), "--print", "samples", "--where", "added by test > -1000")
    assert len(where) == 4

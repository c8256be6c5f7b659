"""One sample read without its rollout file shows what the whole step shows of it, or the whole step is read."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from dumptui.core.files.step_files import StepKey
from dumptui.core.run.run import Run
from dumptui.core.step.load import load
from dumptui.core.step.single_sample import MIRROR_NOTE, load_single
from dumptui.core.tables import tokens
from dumptui.tui.cli.main import main
from tests.support.writer import Layout, sample, write_step

LAYOUTS = [Layout(dp=2), Layout(cp=2, dp=2), Layout(tp=2, cp=4, pp=2), Layout(cp=2, qkv="bshd", pad=16)]


def documents(step: Any) -> list[Any]:
    return list(tokens.tokens(step, None, list(step.samples)))


def compared(document: Any) -> Any:
    """All but what only the rollout file has."""
    kept = {key: value for key, value in document.items() if key not in ("metadata", "extra")}
    return {**kept, "notes": [note for note in document["notes"] if note != MIRROR_NOTE]}


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_it_is_the_same_sample(tmp_path: Path, layout: Layout) -> None:
    samples = [
        sample(n, prompt_len=3 + n, response_len=5 + 7 * n, loss_mask=[1, 0] * 2 + [1] * (1 + 7 * n)) for n in range(6)
    ]
    write_step(tmp_path, 0, samples, layout)
    files = Run.open(tmp_path).steps[StepKey(0)]
    for whole in documents(load(files)):
        single = load_single(files, whole["sample_index"])
        assert single is not None
        assert compared(documents(single)[0]) == compared(whole)


def test_a_column_that_other_rows_show_to_be_cut_in_another_way_needs_the_whole_step(tmp_path: Path) -> None:
    """radixark/miles: contiguous slices whose widths fit the zigzag rule in one sample by chance (THUDM/slime#1871)."""
    samples = [sample(0, prompt_len=4, response_len=4), sample(1, prompt_len=10, response_len=10)]
    write_step(tmp_path, 0, samples, Layout(cp=2, field_qkv={"entropy": "contiguous"}))
    files = Run.open(tmp_path).steps[StepKey(0)]
    assert load_single(files, 0) is None


def test_a_mirror_of_another_attempt_is_not_used(tmp_path: Path) -> None:
    write_step(tmp_path, 0, [sample(0), sample(1)])
    mirror = tmp_path / "dashboard_columns" / "rollout_0.parquet"
    old = mirror.read_bytes()
    write_step(tmp_path, 0, [sample(0, seed=7), sample(1, seed=8)])
    mirror.write_bytes(old)
    assert load_single(Run.open(tmp_path).steps[StepKey(0)], 0) is None


def test_a_mirror_and_train_files_of_an_earlier_attempt_do_not_confirm_each_other(tmp_path: Path) -> None:
    """While a step is written again, its rollout file is the first new one."""
    write_step(tmp_path, 0, [sample(0), sample(1)])
    for path in [*(tmp_path / "train_data").iterdir(), *(tmp_path / "dashboard_columns").iterdir()]:
        os.utime(path, (1e9, 1e9))
    rollout = tmp_path / "rollout_data" / "0.pt"
    os.utime(rollout, (1e9, 1e9))
    assert load_single(Run.open(tmp_path).steps[StepKey(0)], 0) is not None
    os.utime(rollout, (1e9 + 3600, 1e9 + 3600))
    assert load_single(Run.open(tmp_path).steps[StepKey(0)], 0) is None


def test_the_mirror_of_an_earlier_attempt_is_said_to_be_one(tmp_path: Path) -> None:
    write_step(tmp_path, 0, [sample(0), sample(1)])
    rollout, mirror = tmp_path / "rollout_data" / "0.pt", tmp_path / "dashboard_columns" / "rollout_0.parquet"
    rollout.write_bytes(b"")
    os.utime(rollout, (1e9 + 3600, 1e9 + 3600))
    os.utime(mirror, (1e9, 1e9))
    note = load(Run.open(tmp_path).steps[StepKey(0)]).samples[0].notes[-1]
    assert note.endswith("the mirror is older than the rollout file, so an earlier attempt may have written it")


def test_siblings_need_the_whole_step(tmp_path: Path) -> None:
    write_step(tmp_path, 0, [sample(7, seed=1), sample(7, seed=2), sample(8)])
    files = Run.open(tmp_path).steps[StepKey(0)]
    assert load_single(files, 7) is None
    single = load_single(files, 8)
    assert single is not None and np.array_equal(single.samples[0].tokens, load(files).samples[2].tokens)


@pytest.mark.parametrize("lacking", ["no engine column", "none in the mirror", "another copy"])
def test_a_mirror_whose_log_probs_the_train_files_do_not_confirm_is_not_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], lacking: str
) -> None:
    """Its log-probs would be shown as the rollout file's."""
    batch = [sample(at, response_len=9) for at in range(3)]
    given = {"rollout_log_probs": [None] * 3} if lacking == "no engine column" else None
    write_step(tmp_path, 0, batch, truth=given)
    mirror = tmp_path / "dashboard_columns" / "rollout_0.parquet"
    change = pl.lit(None, pl.List(pl.Float32)) if lacking == "none in the mirror" else pl.col("rollout_log_probs")
    if lacking != "none in the mirror":
        change = change.list.eval(pl.element() - 0.25)
    pl.read_parquet(mirror).with_columns(change.alias("rollout_log_probs")).write_parquet(mirror)
    files = Run.open(tmp_path).steps[StepKey(0)]
    assert load_single(files, 1) is None
    assert main([str(tmp_path), "--print", "tokens", "--sample", "1", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)["fields"]["rollout_log_probs"]["values"]
    assert shown == [np.float32(one) for one in batch[1]["rollout_log_probs"]]

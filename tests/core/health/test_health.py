"""What health says of a run, and that it says nothing of a sound one."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch

from dumptui.core.files.step_files import StepKey
from dumptui.core.health.run_health import exit_code, health
from dumptui.core.run.run import Run
from dumptui.core.step.ranks import in_words, missing_ranks
from dumptui.core.types import Record
from tests.support.writer import Json, Layout, Truth, sample, write_slime_v2, write_step

Said = tuple[object, object, str, str]


def said(run: Path) -> list[Said]:
    """(step, file, level, problem), without the parallel layout."""
    rows = health(Run.open(run))
    return [
        (row["step"], row["file"], str(row["level"]), str(row["problem"]))
        for row in rows
        if not str(row["problem"]).startswith("layout: ")
    ]


def layouts(run: Path) -> list[tuple[object, str]]:
    rows = [(row["step"], str(row["problem"])) for row in health(Run.open(run))]
    return [(step, problem) for step, problem in rows if problem.startswith("layout: ")]


def samples(step: int, count: int = 8) -> list[Json]:
    return [sample(100 * step + at, prompt_len=3 + at, response_len=9 + 2 * at) for at in range(count)]


def write(run: Path, step: int = 0, layout: Layout | None = None, **options: Any) -> Truth:
    return write_step(run, step, samples(step), layout or Layout(dp=2), **options)


def change(path: Path, edit: Callable[[Any], None]) -> None:
    """Save a .pt file anew, as old as it was."""
    stamp = path.stat().st_mtime
    payload = torch.load(path, weights_only=False)
    edit(payload)
    torch.save(payload, path)
    os.utime(path, (stamp, stamp))


# Sound runs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layout", "described"),
    [
        (Layout(), "layout: dp 1 × cp 1 × tp 1 × pp 1; train files of rank 0"),
        (Layout(tp=2, dp=2), "layout: dp 2 × cp 1 × tp 2 × pp 1; train files of ranks 0-3"),
        (Layout(cp=2, pp=2), "layout: dp 1 × cp 2 (recorded) × tp 1 × pp 2; train files of ranks 0-3"),
        (
            Layout(tp=2, cp=2, dp=2, pp=2),
            "layout: dp 2 × cp 2 (recorded) × tp 2 × pp 2; train files of ranks 0-15",
        ),
        (
            Layout(tp=2, cp=2, dp=2, pp=2, order="tp-cp-pp-dp", recorded=False),
            "layout: dp 2 × cp 2 (inferred) × tp 2 × pp 2; train files of ranks 0-15",
        ),
        (
            Layout(tp=2, cp=2, dp=2, pp=2, writers="shard"),
            "layout: dp 2 × cp 2 (recorded) × tp and pp unknown: each slice was written once; "
            "train files of ranks 8, 10, 12, 14",
        ),
    ],
)
def test_a_sound_run_says_its_layout_once(tmp_path: Path, layout: Layout, described: str) -> None:
    for step in range(3):
        write(tmp_path, step, layout)
    write(tmp_path, 2, evaluation=True)
    assert said(tmp_path) == []
    assert layouts(tmp_path) == [(0, described)]
    assert exit_code(health(Run.open(tmp_path))) == 0


def test_without_forward_columns_only_the_neighbours_tell_tp(tmp_path: Path) -> None:
    for name, layout, described in (
        ("sliced", Layout(tp=2, cp=2, pp=2), "layout: dp 1 × cp 2 (recorded) × tp 2 × pp 2"),
        ("whole", Layout(tp=2, pp=2), "layout: dp 1 × cp 1 × tp · pp 4"),
    ):
        write(tmp_path / name, 0, layout, fields=["rollout_log_probs"])
        assert [text.split(";")[0] for _, text in layouts(tmp_path / name)] == [described]


def test_a_run_of_row_wise_train_files_is_sound(tmp_path: Path) -> None:
    write_slime_v2(tmp_path, 0, samples(0), dp=2)
    assert said(tmp_path) == []
    assert layouts(tmp_path)[0][1].endswith("; one train file per step")


def test_the_recorded_runs_that_nothing_was_done_to(shared: Path) -> None:
    for name in (
        "plain",
        "cp4_thd",
        "cp2_bshd",
        "cp2_bshd_legacy",
        "shard_once",
        "shard_once_norank",
        "multiturn",
        "late_column",
    ):
        assert [row for row in said(shared / "runs" / name) if row[2] != "info"] == []


def test_the_recorded_run_that_was_damaged(shared: Path) -> None:
    run = Run.open(shared / "runs" / "broken")
    rows = [(row["step"], row["file"], row["level"]) for row in health(run)]
    assert rows == [
        (None, "rollout_data", "info"),
        (None, "train_data", "info"),
        (6, None, "warning"),
        (0, "trajectory/0.jsonl", "warning"),
        (0, None, "info"),
        (1, "rollout_data/1.pt", "error"),
        (2, "train_data/2_1.pt", "error"),
        (2, None, "warning"),
        (3, None, "error"),
        (3, None, "warning"),
        (4, "train_data/4_0.pt", "error"),
        (6, "dashboard_columns/rollout_6.parquet", "error"),
        (7, "train_data/7_0.pt", "error"),
        (7, None, "warning"),
    ]
    assert exit_code(health(run)) == 1


# What is told before a file is read ----------------------------------------------------------------------------------


def test_the_listing_is_told_before_any_file_is_read(tmp_path: Path) -> None:
    for step in range(1000):
        (tmp_path / "rollout_data").mkdir(exist_ok=True)
        (tmp_path / f"rollout_data/{step}.pt").write_bytes(b"garbage")
    (tmp_path / "rollout_data/latest.pt").write_bytes(b"")
    run = Run.open(tmp_path)
    for path in (tmp_path / "rollout_data").iterdir():
        path.unlink()
    rows = health(run)
    assert next(rows)["problem"] == "1 unrecognised file ignored: latest.pt"
    assert next(rows)["problem"] == "can't be opened: No such file or directory"


def test_strays_and_leftovers(tmp_path: Path) -> None:
    write(tmp_path)
    for at in range(7):
        (tmp_path / f"train_data/core.{at}").write_bytes(b"")
    (tmp_path / ".trash_20260801_120000_0123abcd").mkdir()
    assert said(tmp_path) == [
        (
            None,
            "train_data",
            "info",
            "7 unrecognised files ignored: core.0, core.1, core.2, core.3, core.4 and 2 more",
        ),
        (
            None,
            ".trash_20260801_120000_0123abcd",
            "info",
            "left over from an earlier attempt of the run",
        ),
    ]


def test_a_name_that_is_no_text_can_be_printed(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / os.fsdecode(b"rollout_data/\xff.pt")).write_bytes(b"")
    assert [problem for *_, problem in said(tmp_path)] == ["1 unrecognised file ignored: \ufffd.pt"]


def test_a_missing_rollout_file(tmp_path: Path) -> None:
    for step in range(3):
        write(tmp_path, step, mirror=step != 1)
        if step < 2:
            (tmp_path / f"rollout_data/{step}.pt").unlink()
    lost = "without rewards, status and text"
    assert said(tmp_path) == [
        (0, None, "error", f"the rollout file is missing: read from its parquet mirror, {lost}"),
        (1, None, "error", f"the rollout file is missing: read from its train files, {lost}"),
    ]


def test_a_folder_of_train_files_misses_nothing(tmp_path: Path) -> None:
    write(tmp_path)
    assert said(tmp_path / "train_data") == [
        (None, None, "info", "no rollout files: the samples are read from the train files")
    ]


def test_a_step_without_train_files(tmp_path: Path) -> None:
    for step in range(4):
        write(tmp_path, step, train=step not in (1, 3))
    assert said(tmp_path) == [
        (1, None, "warning", "no train files, though other steps have them"),
        (3, None, "info", "no train files yet"),
    ]


def test_a_run_that_never_trained(tmp_path: Path) -> None:
    for step in range(3):
        write(tmp_path, step, train=False)
    assert said(tmp_path) == []


def test_lost_ranks(tmp_path: Path) -> None:
    for step in range(4):
        write(tmp_path, step, Layout(cp=2, dp=2), drop={1: [1], 2: [2, 3]}.get(step, ()))
    fields = "train_log_probs, ref_log_probs, entropy, advantages, returns"
    assert said(tmp_path) == [
        (1, None, "error", "no train file of rank 1, only of ranks 0, 2-3"),
        (2, None, "error", "no train file of ranks 2-3, only of ranks 0-1"),
        (1, None, "warning", f"{fields} partial in 4 of 8 samples: cp rank 1 of 2 missing"),
        (2, None, "warning", "4 of 8 samples have train data: 2 shards missing"),
    ]


def test_ranks_that_are_still_written(tmp_path: Path) -> None:
    write(tmp_path, 0)
    write(tmp_path, 1, drop=[1], age=0)
    assert said(tmp_path)[0] == (1, None, "info", "still being written: no train file of rank 1, only of rank 0")


def test_one_train_file_between_files_of_ranks_lacks_none(tmp_path: Path) -> None:
    write(tmp_path, 0, Layout(dp=2))
    write_slime_v2(tmp_path, 1, [sample(0), sample(1)])
    write(tmp_path, 2, Layout(dp=2))
    assert said(tmp_path) == []


def test_shards_without_rows_tell_no_layout(tmp_path: Path) -> None:
    """Two empty files look alike, whether they are copies of one shard or two shards."""
    write_step(tmp_path, 0, samples(0, 1), Layout(cp=2, dp=3, recorded=False))
    assert said(tmp_path) == [] and layouts(tmp_path) == []


def test_a_run_that_went_on_with_other_ranks(tmp_path: Path) -> None:
    for step in range(6):
        write(tmp_path, step, Layout(dp=2) if step < 3 else Layout(tp=2, dp=2))
    assert said(tmp_path) == [
        (3, None, "info", "from this step on ranks 0-3 write train files; before it, ranks 0-1 did")
    ]
    assert [step for step, _ in layouts(tmp_path)] == [0, 3]


@pytest.mark.parametrize(
    ("ranks", "missing"),
    [
        ([], {}),
        (["0123"], {}),
        (["0123", "012", "0123"], {1: {3}}),
        (["012", "0123", "0123"], {0: {3}}),
        (["0123", "0123", "01"], {2: {2, 3}}),
        (["012", "123"], {0: {3}, 1: {0}}),
        (["0123", "0123", "01", "01", "01"], {}),
        (["0123", "8", "0123"], {}),
        (["0123", "0", "0123"], {1: {1, 2, 3}}),
    ],
)
def test_which_ranks_are_missing(tmp_path: Path, ranks: list[str], missing: dict[int, set[int]]) -> None:
    (tmp_path / "train_data").mkdir()
    (tmp_path / "rollout_data").mkdir()
    (tmp_path / "rollout_data/9.pt").write_bytes(b"")
    for step, there in enumerate(ranks):
        for rank in there:
            (tmp_path / f"train_data/{step}_{rank}.pt").write_bytes(b"")
    assert missing_ranks(Run.open(tmp_path)) == {StepKey(step): lost for step, lost in missing.items()}


def test_a_step_of_another_size(tmp_path: Path) -> None:
    for step in range(5):
        write_step(tmp_path, step, samples(step, 40 if step == 2 else 4), train=False)
    (row,) = said(tmp_path)
    assert row[:3] == (2, "rollout_data/2.pt", "info")
    assert "KB, while the median is " in row[3]


def set_age(path: Path, age: float) -> None:
    stamp = time.time() - age
    os.utime(path, (stamp, stamp))


def test_train_files_of_an_earlier_attempt(tmp_path: Path) -> None:
    for step in range(3):
        write(tmp_path, step)
    set_age(tmp_path / "rollout_data/1.pt", 600)
    problem = "train files are older than the rollout file: they belong to an earlier attempt"
    begun_again = "step 2 belongs to an earlier attempt of the run: older than step 1, which was written last"
    assert said(tmp_path) == [(1, None, "warning", problem), (None, None, "warning", begun_again)]


def test_a_copy_that_lost_the_times_is_no_earlier_attempt(tmp_path: Path) -> None:
    for step in range(3):
        write(tmp_path, step)
        set_age(tmp_path / f"rollout_data/{step}.pt", 600)
    problem = "in 3 of 3 steps train files are older than the rollout file"
    assert said(tmp_path) == [(None, None, "info", f"{problem}: was the run copied without its file times?")]


# What is told of the contents ----------------------------------------------------------------------------------------


def test_files_being_written(tmp_path: Path) -> None:
    write(tmp_path, 0)
    write(tmp_path, 1, train=False)
    for name in ("rollout_data/1.pt", "train_data/0_1.pt"):
        (tmp_path / name).write_bytes(b"PK\3\4")
    assert said(tmp_path) == [
        (1, None, "info", "no train files yet"),
        (0, "train_data/0_1.pt", "info", "still being written"),
        (0, None, "warning", "4 of 8 samples have train data: 1 shard being written"),
        (1, "rollout_data/1.pt", "info", "still being written"),
    ]


def test_dropped_by_the_schedule(tmp_path: Path) -> None:
    write(tmp_path, partition=[[0, 2, 4], [1, 3, 5]])
    problem = "6 of 8 samples have train data: the others were dropped by the schedule"
    assert said(tmp_path) == [(0, None, "info", problem)]


def test_a_data_parallel_shard_that_every_step_lacks(tmp_path: Path) -> None:
    """No step beside has its ranks, but the schedule in the other files counts its rollouts."""
    for step in range(3):
        write(tmp_path, step, Layout(tp=2, dp=2), drop=[2, 3])
    why = "the schedule has 8 rollouts, the train files 4: a data-parallel shard is missing"
    assert said(tmp_path) == [(at, None, "error", f"4 of 8 samples have train data: {why}") for at in range(3)]
    assert exit_code(health(Run.open(tmp_path))) == 1


def test_a_context_parallel_slice_that_every_step_lacks(tmp_path: Path) -> None:
    for step in range(3):
        write(tmp_path, step, Layout(cp=2), drop=[1])
    rows = said(tmp_path)
    assert [row[0] for row in rows if row[2] == "error" and "cp rank 1 of 2 missing" in row[3]] == [0, 1, 2]
    assert exit_code(health(Run.open(tmp_path))) == 1


def test_a_context_parallel_slice_that_is_not_there_yet(tmp_path: Path) -> None:
    write(tmp_path, 0, Layout(cp=2), drop=[1], age=0)
    assert exit_code(health(Run.open(tmp_path))) == 0


def test_rows_of_other_samples(tmp_path: Path) -> None:
    write(tmp_path, columns={"sample_indices": [0, 1, 2, 999, 4, 5, 6, 7]})
    assert said(tmp_path) == [
        (0, None, "error", "1 train row without a sample: 0_1.pt row 1: sample_index 999 is not in the rollout file"),
        (0, None, "warning", "7 of 8 samples have train data: 1 row of other samples"),
    ]


def test_raw_rewards_of_the_wrong_length(tmp_path: Path) -> None:
    truth = write(tmp_path)
    change(truth.files[0], lambda payload: payload["rollout_data"]["raw_reward"].pop())
    assert said(tmp_path) == [(0, "train_data/0_0.pt", "error", "raw_reward has 7 entries for 8 samples")]


def test_raw_rewards_of_the_trained_samples_alone(tmp_path: Path) -> None:
    write(tmp_path, partition=[[0, 2], [1, 3]], columns={"raw_reward": [0.0] * 4})
    assert {level for _, _, level, _ in said(tmp_path)} == {"info"}


def test_names_and_contents(tmp_path: Path) -> None:
    for step in (3, 4):
        write(tmp_path, step)
    files = [tmp_path / "train_data/3_0.pt", tmp_path / "train_data/4_0.pt", tmp_path / "train_data/x"]
    for old, new in ((0, 2), (1, 0), (2, 1)):
        files[old].rename(files[new])
    rows = said(tmp_path)
    assert (3, "train_data/3_0.pt", "error", "the name says step 3, the content says 4") in rows
    assert (4, "train_data/4_0.pt", "error", "the name says step 4, the content says 3") in rows
    assert not [row for row in rows if "dropped by the schedule" in row[3]]


def test_a_name_without_a_rank(tmp_path: Path) -> None:
    write(tmp_path, layout=Layout(tp=2)).files[0].rename(tmp_path / "train_data/0.pt")
    (tmp_path / "train_data/0_1.pt").unlink()
    problem = "no rank in the file name: ranks may have overwritten each other"
    assert said(tmp_path) == [(0, "train_data/0.pt", "warning", problem)]


def test_fields_that_can_t_be_placed_are_told_together(tmp_path: Path) -> None:
    write(tmp_path, layout=Layout(cp=2, field_qkv={"log_probs": "contiguous", "entropy": "contiguous"}))
    (row,) = said(tmp_path)
    assert row[2] == "error"
    assert row[3].startswith("train_log_probs, entropy unreadable in 8 of 8 samples: widths ")


def test_a_mask_that_does_not_fit(tmp_path: Path) -> None:
    write_step(tmp_path, 0, [sample(0), sample(1, loss_mask=[1, 0])], train=False)
    problem = "loss_mask unreadable in 1 of 2 samples: loss_mask has 2 entries for 6 response tokens"
    assert said(tmp_path) == [(0, None, "error", problem)]


def test_a_step_of_no_samples(tmp_path: Path) -> None:
    write_step(tmp_path, 0, [], train=False)
    assert said(tmp_path) == [(0, "rollout_data/0.pt", "info", "holds no samples")]


ROW = '{"sample_index": 0, "messages": []}\n'
NO_SAMPLE = "none of its lines names a sample: no conversation is read from it"


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        (ROW, []),
        (ROW + "{", ["last line truncated"]),
        ("", []),
        ("garbage\n{}\n[]\n", [NO_SAMPLE]),
        ("{}\n" + ROW, []),
        ("garbage", ["last line truncated", NO_SAMPLE]),
    ],
)
def test_a_torn_trajectory(tmp_path: Path, text: str, problems: list[str]) -> None:
    write(tmp_path, trajectory=[])
    path = tmp_path / "trajectory/0.jsonl"
    path.write_text(text)
    set_age(path, 3600)
    assert said(tmp_path) == [(0, "trajectory/0.jsonl", "warning", problem) for problem in problems]


def test_a_rollout_file_that_its_mirror_stands_in_for(tmp_path: Path) -> None:
    write(tmp_path)
    path = tmp_path / "rollout_data/0.pt"
    path.write_bytes(b"")
    set_age(path, 7200)
    problem = "is empty (0 bytes); read from its parquet mirror instead"
    assert said(tmp_path) == [(0, "rollout_data/0.pt", "error", problem)]


@pytest.mark.parametrize(
    ("ranks", "text"), [([3], "rank 3"), ([2, 1, 0], "ranks 0-2"), ([8, 10, 11, 14], "ranks 8, 10-11, 14")]
)
def test_ranks_in_words(ranks: list[int], text: str) -> None:
    assert in_words(ranks) == text


def test_a_mirror_of_an_earlier_attempt(tmp_path: Path) -> None:
    write(tmp_path)
    mirror = tmp_path / "dashboard_columns/rollout_0.parquet"
    write(tmp_path / "earlier", 1)
    (tmp_path / "earlier/dashboard_columns/rollout_1.parquet").replace(mirror)
    problem = "mirrors different samples than the rollout file"
    assert said(tmp_path) == [(0, "dashboard_columns/rollout_0.parquet", "error", problem)]


@pytest.mark.parametrize("column", ["tokens", "rollout_log_probs", "loss_mask"])
def test_a_mirror_that_holds_other_values(tmp_path: Path, column: str) -> None:
    write_step(tmp_path, 0, [sample(at, loss_mask=[1, 1, 0, 1, 1, 1]) for at in range(4)])
    assert said(tmp_path) == []
    mirror = tmp_path / "dashboard_columns/rollout_0.parquet"
    changed = pl.when(pl.col("sample_index") == 2).then(pl.col(column).list.reverse()).otherwise(pl.col(column))
    pl.read_parquet(mirror).with_columns(changed).write_parquet(mirror)
    problem = "tokens, masks or log-probs differ from the rollout file in 1 of 4 samples"
    assert said(tmp_path) == [(0, "dashboard_columns/rollout_0.parquet", "error", problem)]


def test_every_unreadable_file_of_a_step_is_told(tmp_path: Path) -> None:
    truth = write(tmp_path, mirror=False)
    for path in (tmp_path / "rollout_data/0.pt", truth.files[1]):
        path.write_bytes(b"")
        set_age(path, 3600)
    assert said(tmp_path) == [
        (0, "rollout_data/0.pt", "error", "is empty (0 bytes)"),
        (0, "train_data/0_1.pt", "error", "is empty (0 bytes)"),
    ]


@pytest.mark.parametrize(("levels", "code"), [([], 0), (["info", "warning"], 0), (["info", "error"], 1)])
def test_only_errors_make_the_exit_code(levels: list[str], code: int) -> None:
    rows: list[Record] = [{"level": level} for level in levels]
    assert exit_code(rows) == code

"""Public reports on how train files are cut, named and ordered: each is rebuilt small, and what is shown is held
against what is right.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dumptui.core.errors import DumpError
from dumptui.core.files.step_files import StepKey
from dumptui.core.formats.miles.train_file import INTEGER_COLUMNS
from dumptui.core.run.run import Run
from dumptui.core.step.load import load
from dumptui.core.tables import steps
from tests.support.reading import ELSEWHERE, assert_true, documents, elsewhere, field, read, samples, step_row, values
from tests.support.writer import Layout, sample, write_slime_v2, write_step

Json = dict[str, Any]


@pytest.fixture(autouse=True)
def forget_elsewhere() -> Iterator[None]:
    yield
    ELSEWHERE.forget()


def edit(path: Path, change: Any) -> None:
    payload = torch.load(path, weights_only=False)
    change(payload)
    torch.save(payload, path)


def counted(response: int) -> list[float]:
    """-0.1, -0.2, ...: the value says its response index."""
    return [round(-(at + 1) / 10, 6) for at in range(response)]


# Case 1: radixark/miles#2581, context-parallel slices joined in file order ---------------------------------


def write_counted(run: Path, total: int, response: int, cp: int, **options: Any) -> None:
    batch = [sample(0, prompt_len=total - response, response_len=response, rollout_log_probs=counted(response))]
    given = {"log_probs": [counted(response)], "rollout_log_probs": [counted(response)]}
    write_step(run, 0, batch, Layout(cp=cp), truth=given, mirror=False, **options)


@pytest.mark.parametrize(("total", "response", "cp"), [(20, 10, 2), (50, 40, 2), (17, 16, 4)])
def test_slices_go_where_they_were_cut_from(tmp_path: Path, total: int, response: int, cp: int) -> None:
    write_counted(tmp_path, total, response, cp)
    assert values(read(tmp_path), "train_log_probs") == counted(response)
    assert samples(read(tmp_path))[0]["mean_abs_lp_diff"] == 0


def test_a_lost_slice_is_neither_zeros_nor_not_dumped(tmp_path: Path) -> None:
    write_counted(tmp_path, 20, 10, 2, drop=[1])
    step = read(tmp_path)
    shown = field(step, "train_log_probs")
    assert (shown["state"], shown["reason"]) == ("partial", "cp rank 1 of 2 missing")
    assert values(step, "train_log_probs") == [*[None] * 6, *counted(10)[6:]]
    row = samples(step)[0]
    assert row["mean_abs_lp_diff"] is row["max_abs_lp_diff"] is row["mean_entropy"] is row["adv_mean"] is None
    assert (row["train_state"], row["train_reason"]) == ("partial", "cp rank 1 of 2 missing")
    assert values(step, "rollout_log_probs") == counted(10)


# Case 2: radixark/miles#3141, no file of rank 0, sparse ranks ---------------------------------------------


def test_one_file_a_slice_shows_what_files_of_all_ranks_show(tmp_path: Path) -> None:
    batch = [sample(at, prompt_len=9, response_len=12 + 5 * at) for at in range(6)]
    shown = []
    for writers, recorded in (("shard", True), ("all", True), ("all", False)):
        run = tmp_path / f"{writers}{recorded}"
        layout = Layout(tp=2, cp=2, dp=2, pp=2, writers=writers, recorded=recorded)
        truth = write_step(run, 0, batch, layout, mirror=False)
        step = read(run)
        assert_true(step, truth)
        assert step.trained == 6
        shown.append(([{**row, "dumped_rank": 0, "train_reason": None} for row in samples(step)], len(step.shards)))
    assert [files for _, files in shown] == [4, 16, 16]
    assert shown[0][0] == shown[1][0] == shown[2][0]


def test_ranks_start_where_they_start(tmp_path: Path) -> None:
    write_step(tmp_path, 0, [sample(0)], Layout(tp=2, cp=2, dp=1, pp=4, writers="shard"), mirror=False)
    rows = steps.batch(read(tmp_path))
    assert [(row["rank"], row["cp_rank"], row["cp_size"], row["dp_shard"]) for row in rows] == [
        (12, 0, 2, 0),
        (14, 1, 2, 0),
    ]


# Case 3: THUDM/slime#2266, one file a rollout -------------------------------------------------------------


@pytest.mark.parametrize("indexed", [True, False])
def test_rows_of_one_file_are_joined_by_their_position(tmp_path: Path, indexed: bool) -> None:
    batch = [sample(at, response_len=5 + at % 2, seed=1) for at in range(4)]
    truth = write_slime_v2(tmp_path, 0, batch, partition=[[3, 0], [1, 2]])
    if not indexed:
        edit(
            tmp_path / "train_data" / "0.pt",
            lambda payload: [row.update(sample_index=None) for row in payload["samples"]],
        )
    step = read(tmp_path)
    assert step.trained == 4 and not step.alignment.orphans
    assert_true(step, truth)


def test_rows_without_position_are_joined_by_index(tmp_path: Path) -> None:
    truth = write_slime_v2(tmp_path, 0, [sample(at) for at in range(4)], partition=[[3, 0], [1, 2]], positions=False)
    assert_true(read(tmp_path), truth)


def test_rows_that_do_not_say_whose_they_are_cannot_be_joined_by_number(tmp_path: Path) -> None:
    batch = [sample(None, seed=1, rollout_log_probs=[-0.1 * at] * 6) for at in range(4)]
    write_slime_v2(tmp_path, 0, batch, positions=False)
    step = read(tmp_path)
    assert step.trained == 0 and len(step.alignment.orphans) == 4
    assert all("cannot join" in one for one in step.alignment.orphans)
    assert {document["fields"]["train_log_probs"]["state"] for document in documents(step)} == {"not dumped"}


def test_rows_that_do_not_say_whose_they_are_may_be_known_by_their_tokens(tmp_path: Path) -> None:
    truth = write_slime_v2(tmp_path, 0, [sample(None, seed=at) for at in range(4)], positions=False)
    assert_true(read(tmp_path), truth)


def test_an_unknown_format_version_costs_that_file(tmp_path: Path) -> None:
    write_slime_v2(tmp_path, 0, [sample(0)], version=3)
    step = read(tmp_path)
    assert [error.problem for error in step.broken] == ["train dump of format_version 3; only 2 is supported"]
    assert field(step, "rollout_log_probs")["state"] == "ok"
    assert step_row(step)["train_samples"] == 0


# Case 6: THUDM/slime#1519, shards that are not all there yet ----------------------------------------------


def test_a_shard_that_is_not_there_yet(tmp_path: Path) -> None:
    batch = [sample(8 + at) for at in range(8)]
    truth = write_step(tmp_path, 1, batch, Layout(dp=2), mirror=False)
    late = truth.files[1].rename(tmp_path / "late.pt")
    row = step_row(read(tmp_path, 1))
    assert (row["samples"], row["train_samples"], row["state"]) == (8, 4, "partial")
    assert "4 of 8 samples have no train row" in row["reason"]
    late.rename(truth.files[1])
    row = step_row(read(tmp_path, 1))
    assert (row["train_samples"], row["state"], row["reason"]) == (8, "ok", None)


def test_a_train_row_without_a_sample_is_listed(tmp_path: Path) -> None:
    write_step(tmp_path, 0, [sample(at) for at in range(4)], mirror=False)
    write_step(tmp_path, 0, [sample(at) for at in range(3)], train=False, mirror=False)
    step = read(tmp_path)
    assert step.alignment.orphans == ("0_0.pt row 3: sample_index 3 is not in the rollout file",)
    assert steps.coverage(step)["orphans"] == [*step.alignment.orphans]


@pytest.mark.parametrize("length", [8, 10])
def test_a_trimmed_batch_has_its_raw_rewards(tmp_path: Path, length: int) -> None:
    """10 generated, 8 trained: raw_reward counts the one or the other."""
    batch = [sample(at, reward=float(at)) for at in range(10)]
    kept = [0, 1, 2, 4, 5, 6, 7, 9]
    raw = [float(at) for at in (kept if length == 8 else range(10))]
    write_step(
        tmp_path, 0, batch, Layout(dp=2), partition=[kept[::2], kept[1::2]], columns={"raw_reward": raw}, mirror=False
    )
    step = read(tmp_path)
    assert [row["raw_reward"] for row in samples(step)] == [None if at in (3, 8) else float(at) for at in range(10)]
    assert step_row(step)["train_samples"] == 8


def test_a_trimmed_batch_of_which_a_shard_is_missing(tmp_path: Path) -> None:
    batch = [sample(at, reward=float(at)) for at in range(10)]
    kept = list(range(8))
    raw = [float(at) for at in kept]
    partition, columns = [kept[::2], kept[1::2]], {"raw_reward": raw}
    write_step(tmp_path, 0, batch, Layout(dp=2), drop=[1], partition=partition, columns=columns, mirror=False)
    assert [row["raw_reward"] for row in samples(read(tmp_path))] == [0, None, 2, None, 4, None, 6, None, None, None]


# Case 7: THUDM/slime#1784 and #1996, raw_reward is of the whole batch -------------------------------------


def test_raw_rewards_are_in_rollout_order(tmp_path: Path) -> None:
    batch = [sample(at, reward=float(at), group_index=0) for at in range(8)]
    write_step(tmp_path, 0, batch, Layout(dp=2), partition=[[5, 0, 6, 3], [1, 7, 2, 4]], mirror=False)
    rows = samples(read(tmp_path))
    assert [row["raw_reward"] for row in rows] == [float(at) for at in range(8)]
    assert rows[5]["normalized_reward"] == pytest.approx((5 - 3.5) / np.std(range(8)), abs=1e-5)


# Case 8: radixark/miles#2881 and #3086, several samples share an index ------------------------------------


def test_siblings_are_known_by_their_tokens(tmp_path: Path) -> None:
    batch = [sample(7, seed=1, reward=1.0), sample(7, seed=2, reward=0.0), sample(8)]
    truth = write_step(tmp_path, 0, batch, partition=[[1, 2, 0]], mirror=False)
    step = read(tmp_path)
    assert_true(step, truth)
    assert [(row["sample_index"], row["occurrence"], row["raw_reward"]) for row in samples(step)] == [
        (7, 0, 1),
        (7, 1, 0),
        (8, 0, 1),
    ]


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("cp", [1, 2])
def test_siblings_in_shards_of_equal_indices_and_lengths(tmp_path: Path, cp: int, recorded: bool) -> None:
    batch = [sample(7, seed=1), sample(7, seed=2), sample(8, seed=3), sample(8, seed=4)]
    truth = write_step(
        tmp_path, 0, batch, Layout(cp=cp, dp=2, recorded=recorded), partition=[[1, 2], [0, 3]], mirror=False
    )
    assert_true(read(tmp_path), truth)


def test_siblings_that_nothing_tells_apart_are_matched_by_order(tmp_path: Path) -> None:
    batch = [sample(7, seed=1), sample(7, seed=1)]
    truth = write_step(tmp_path, 0, batch, mirror=False)
    step = read(tmp_path)
    assert_true(step, truth)
    assert all(any("matched by order" in note for note in document["notes"]) for document in documents(step))


def test_samples_without_an_index_are_listed_and_joined_by_their_tokens(tmp_path: Path) -> None:
    batch = [sample(None, seed=at, group_index=None, response_len=3 + at % 2) for at in range(4)]
    truth = write_step(tmp_path, 0, batch, Layout(dp=2), mirror=False)
    step = read(tmp_path)
    assert_true(step, truth)
    assert [(row["sample_index"], row["occurrence"]) for row in samples(step)] == [(None, at) for at in range(4)]


def test_an_eval_of_two_datasets_lists_every_row(tmp_path: Path) -> None:
    batch = [
        sample(
            at, seed=at + 10 * dataset, prompt=f"prompt {dataset} {at // 2}", group_index=None, reward=float(dataset)
        )
        for dataset in range(2)
        for at in range(4)
    ]
    write_step(tmp_path, 3, batch, evaluation=True, mirror=False)
    step = read(tmp_path, 3, evaluation=True)
    rows = samples(step)
    assert [row["dataset"] for row in rows] == [0] * 4 + [1] * 4
    assert [(row["sample_index"], row["occurrence"]) for row in rows] == [(at, d) for d in range(2) for at in range(4)]
    assert {row["group_index"] for row in rows} == {None}
    grouped = steps.groups(rows, evaluation=True)
    assert [(g["dataset"], g["group_index"], g["n"], g["reward_mean"]) for g in grouped] == [
        (0, 0, 2, 0.0),
        (0, 1, 2, 0.0),
        (1, 2, 2, 1.0),
        (1, 3, 2, 1.0),
    ]


# Case 22: radixark/miles mm_data, strands-rl/strands-sglang#33, media expanded on the train side -----------


@pytest.mark.parametrize("cp", [1, 2])
def test_media_expanded_in_the_prompt(tmp_path: Path, cp: int) -> None:
    short = sample(
        0,
        prompt_len=6,
        response_len=6,
        multimodal_inputs={"images": [elsewhere("miles.media", "Picture", size=(9, 9))]},
    )
    expanded = {**short, "tokens": [*short["tokens"][:3], *[-101] * 255, *short["tokens"][3:]]}
    media = {"multimodal_train_inputs": [{"pixel_values": torch.zeros(1000, 9)}]}
    truth = write_step(tmp_path, 0, [expanded], Layout(cp=cp), columns=media, mirror=False)
    write_step(tmp_path, 0, [short], train=False, mirror=False)
    truth.samples = [short]
    step = read(tmp_path)
    assert_true(step, truth)
    document = documents(step)[0]
    assert (document["total_length"], len(document["token_ids"])) == (12, 12)
    assert "train side expanded by 255 tokens" in document["notes"]
    assert "pixel_values" not in document["fields"] and "multimodal_train_inputs" not in document["fields"]


def test_media_expanded_in_the_response_shift_no_token(tmp_path: Path) -> None:
    short = sample(0, prompt_len=6, response_len=6, rollout_log_probs=[-0.1 * at for at in range(6)])
    longer = {
        **short,
        "tokens": [*short["tokens"][:8], *[-101] * 3, *short["tokens"][8:]],
        "response_length": 9,
        "rollout_log_probs": None,
        "loss_mask": [1, 1, 0, 0, 0, 1, 1, 1, 1],
    }
    write_step(tmp_path, 0, [longer], truth={"log_probs": [counted(9)], "rollout_log_probs": [None]}, mirror=False)
    write_step(tmp_path, 0, [short], train=False, mirror=False)
    step = read(tmp_path)
    assert values(step, "train_log_probs") == [*counted(9)[:2], *counted(9)[5:]]
    assert documents(step)[0]["loss_mask"] == [1] * 6


def test_another_sequence_is_no_expansion(tmp_path: Path) -> None:
    write_step(tmp_path, 0, [sample(0, prompt_len=20, seed=1)], mirror=False)
    write_step(tmp_path, 0, [sample(0, prompt_len=6, seed=2)], train=False, mirror=False)
    step = read(tmp_path)
    assert step.trained == 0 and "differ from the rollout file" in step.alignment.orphans[0]


# Case 36: THUDM/slime#1922, a template without the rank makes ranks overwrite one file ---------------------


def test_a_name_that_disagrees_with_its_content_is_said(tmp_path: Path) -> None:
    write_step(tmp_path, 0, [sample(0)], mirror=False)
    edit(tmp_path / "train_data" / "0_0.pt", lambda payload: payload.update(rank=5))
    assert "0_0.pt: the name says rank 0, the content says 5" in read(tmp_path).notes


# Layouts of the folder ------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", ["rollout_data", "."])
def test_a_folder_of_rollout_files_alone(tmp_path: Path, folder: str) -> None:
    write_step(tmp_path, 4, [sample(0), sample(1)], train=False, mirror=False)
    write_step(tmp_path, 4, [sample(0)], evaluation=True, mirror=False)
    if folder == ".":
        for path in (tmp_path / "rollout_data").iterdir():
            shutil.move(path, tmp_path)
        (tmp_path / "rollout_data").rmdir()
    run = Run.open(tmp_path)
    assert list(run.steps) == [StepKey(4), StepKey(4, True)]
    step = load(run.steps[StepKey(4)])
    assert step_row(step)["state"] == "not dumped"
    assert (samples(step)[0]["train_state"], samples(step)[0]["train_reason"]) == ("not dumped", "no train row")
    assert samples(load(run.steps[StepKey(4, True)]))[0]["train_reason"] is None


def test_the_oldest_rollout_files_are_a_bare_list(tmp_path: Path) -> None:
    write_step(tmp_path, 0, [sample(0)], train=False, mirror=False)
    torch.save([sample(at) for at in range(3)], tmp_path / "rollout_data" / "0.pt")
    assert len(read(tmp_path).samples) == 3


def test_a_train_file_that_is_none_costs_itself(tmp_path: Path) -> None:
    truth = write_step(tmp_path, 0, [sample(at) for at in range(4)], Layout(dp=2), mirror=False)
    torch.save({"rollout_data": {"tokens": [torch.ones(3)]}}, truth.files[1])
    step = read(tmp_path)
    assert [error.problem for error in step.broken] == ["not a train dump: its rows have no lengths"]
    assert step.trained == 2
    with pytest.raises(DumpError):
        raise step.broken[0]


@pytest.mark.parametrize("kind", [np.array, tuple, torch.tensor])
def test_plain_columns_of_any_container(tmp_path: Path, kind: Any) -> None:
    """The Mooncake store gives numpy arrays where the Ray store gives lists."""
    truth = write_step(tmp_path, 0, [sample(at, response_len=4 + at) for at in range(3)], Layout(cp=2), mirror=False)
    names = ("response_lengths", "total_lengths", "sample_indices", "rewards", "truncated", "raw_reward")

    def change(payload: Json) -> None:
        data = payload["rollout_data"]
        data.update({name: kind(data[name]) for name in names})

    for path in truth.files:
        edit(path, change)
    step = read(tmp_path)
    assert_true(step, truth)
    assert [row["normalized_reward"] for row in samples(step)] == pytest.approx(truth.rewards, abs=1e-6)


@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_columns_of_rows_that_are_lists(tmp_path: Path, kind: Any) -> None:
    batch = [sample(7, seed=at, response_len=80, loss_mask=[1, 0] * 40) for at in range(3)]
    truth = write_step(tmp_path, 0, batch, Layout(cp=2), mirror=False)

    def change(payload: Json) -> None:
        data = payload["rollout_data"]
        data.update({name: [kind(row.tolist()) for row in data[name]] for name in (*truth.fields, *INTEGER_COLUMNS)})

    for path in truth.files:
        edit(path, change)
    assert_true(read(tmp_path), truth)


def test_columns_that_nobody_knows_are_shown(tmp_path: Path) -> None:
    batch = [sample(at, prompt_len=9, response_len=20) for at in range(3)]
    given = {"top_entropy": [np.arange(20) / (at + 1) for at in range(3)]}
    truth = write_step(tmp_path, 0, batch, Layout(cp=2), truth=given, mirror=False)
    whole = {"whole_column": [torch.full((20,), float(at)) for at in range(3)], "odd_column": [torch.ones(3)] * 3}
    for path in truth.files:
        edit(path, lambda payload: payload["rollout_data"].update(whole))
    step = read(tmp_path)
    assert_true(step, truth)
    assert values(step, "top_entropy") == [float(at) for at in range(20)]
    assert values(step, "whole_column", 2) == [2.0] * 20
    assert field(step, "odd_column")["state"] == "unreadable"


def test_a_column_that_begins_late(tmp_path: Path) -> None:
    batch = [sample(at) for at in range(4)]
    truth = write_step(tmp_path, 0, batch, truth={"ref_entropy": [None, None, None, [0.5] * 6]}, mirror=False)
    step = read(tmp_path)
    assert_true(step, truth)
    assert field(step, "ref_entropy")["state"] == "not dumped" and field(step, "ref_entropy", 3)["state"] == "ok"

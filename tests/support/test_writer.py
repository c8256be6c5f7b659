"""The writer against the worked numbers of the format's description, and against what it wrote."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.writer import Layout, brute_force_slices, sample, write_slime_v2, write_step

Slices = list[list[int]]


def spans(*pairs: tuple[int, int]) -> list[int]:
    return [index for first, last in pairs for index in range(first, last + 1)]


@pytest.mark.parametrize(
    ("total", "response", "cp", "held"),
    [
        (13, 9, 2, [[0], spans((1, 8))]),
        (16, 12, 2, [spans((0, 0), (9, 11)), spans((1, 8))]),
        (40, 30, 4, [spans((26, 29)), spans((0, 0), (21, 25)), spans((1, 5), (16, 20)), spans((6, 15))]),
        (20, 10, 2, [spans((6, 9)), spans((0, 5))]),
        (50, 40, 2, [spans((0, 3), (30, 39)), spans((4, 29))]),
        (17, 16, 4, [spans((0, 2)), spans((3, 5)), spans((6, 8), (15, 15)), spans((9, 14))]),
        (8, 4, 2, [[3], [0, 1, 2]]),
    ],
)
def test_zigzag_of_packed_sequences(total: int, response: int, cp: int, held: Slices) -> None:
    assert brute_force_slices(total, response, cp) == held


@pytest.mark.parametrize(
    ("total", "response", "padded", "held"),
    [
        (13, 9, 128, [spans((0, 8)), []]),
        (13, 9, 16, [[0], spans((1, 8))]),
        (13, 9, 20, [[0, 1], spans((2, 8))]),
        (13, 9, 32, [spans((0, 4)), spans((5, 8))]),
        (20, 10, 32, [[], spans((0, 9))]),
    ],
)
def test_zigzag_of_padded_sequences(total: int, response: int, padded: int, held: Slices) -> None:
    assert brute_force_slices(total, response, 2, "bshd", padded) == held


@pytest.mark.parametrize(("total", "response", "widths"), [(104, 20, [12, 8, 0, 0]), (100, 3, [3, 0, 0, 0])])
def test_a_rank_may_hold_nothing(total: int, response: int, widths: list[int]) -> None:
    assert [len(held) for held in brute_force_slices(total, response, 4)] == widths


@pytest.mark.parametrize(("total", "response", "held"), [(20, 10, [[0], spans((1, 9))]), (8, 4, [[0], [1, 2, 3]])])
def test_contiguous_slices(total: int, response: int, held: Slices) -> None:
    assert brute_force_slices(total, response, 2, "contiguous") == held


@given(prompt=st.integers(1, 90), response=st.integers(0, 90), cp=st.sampled_from([1, 2, 3, 4, 8]))
@settings(max_examples=150, deadline=None)
def test_slices_tile_the_response(prompt: int, response: int, cp: int) -> None:
    for qkv in ("thd", "bshd", "contiguous"):
        held = brute_force_slices(prompt + response, response, cp, qkv, 256)
        assert sorted(chain(*held)) == list(range(response))


def load(path: Path) -> Any:
    return torch.load(path, weights_only=True)


def test_only_the_last_stage_of_tp_0_writes_once_a_shard(tmp_path: Path) -> None:
    layout = Layout(tp=2, cp=2, dp=2, pp=2, writers="shard")
    truth = write_step(tmp_path, 3, [sample(index) for index in range(4)], layout)
    assert [path.name for path in truth.files] == ["3_8.pt", "3_10.pt", "3_12.pt", "3_14.pt"]
    assert [load(path)["cp_rank"] for path in truth.files] == [0, 1, 0, 1]


def test_other_stages_have_no_forward_columns(tmp_path: Path) -> None:
    for order, last in (("tp-cp-dp-pp", {4, 5, 6, 7}), ("tp-cp-pp-dp", {2, 3, 6, 7})):
        layout = Layout(cp=2, dp=2, pp=2, order=order, recorded=False)
        truth = write_step(tmp_path, 0, [sample(index) for index in range(4)], layout)
        data = {int(path.stem.split("_")[1]): load(path)["rollout_data"] for path in truth.files}
        assert {rank for rank, columns in data.items() if "log_probs" in columns} == last
        assert all("rollout_log_probs" in columns for columns in data.values())


@pytest.mark.parametrize("qkv", ["thd", "bshd"])
def test_files_hold_the_truth_in_pieces(tmp_path: Path, qkv: str) -> None:
    samples = [sample(index, prompt_len=5, response_len=9 + 7 * index) for index in range(5)]
    truth = write_step(tmp_path, 0, samples, Layout(cp=2, dp=2, qkv=qkv, pad=16, packed=True), drop=[3])
    assert [path.name for path in truth.files] == ["0_0.pt", "0_1.pt", "0_2.pt"]
    for path, cp_rank in zip(truth.files[:2], (0, 1), strict=True):
        columns = load(path)["rollout_data"]
        for row, position in enumerate(truth.shards[0]):
            total, response = columns["total_lengths"][row], columns["response_lengths"][row]
            padded = columns.get("max_seq_lens", [0] * 3)[row]
            held = brute_force_slices(total, response, 2, qkv, padded)[cp_rank]
            for name, values in truth.fields.items():
                np.testing.assert_array_equal(columns[name][row].numpy(), values[position][held])


def test_masked_tokens(tmp_path: Path) -> None:
    mask = [1, 1, 0, 0, 1, 1]
    samples = [sample(0, loss_mask=mask), sample(1, remove_sample=True), sample(2)]
    truth = write_step(tmp_path, 0, samples)
    columns = load(truth.files[0])["rollout_data"]
    assert [row.tolist() for row in columns["loss_masks"]] == [mask, [0] * 6, [1] * 6]
    assert samples[0]["rollout_log_probs"][2:4] == [0.0, 0.0] == columns["rollout_log_probs"][0][2:4].tolist()
    assert (columns["log_probs"][0] != 0).all()
    assert load(tmp_path / "rollout_data" / "0.pt")["samples"][1]["loss_mask"] is None


def test_an_aborted_sample_and_a_missing_engine_column(tmp_path: Path) -> None:
    aborted = sample(0, response_len=0, tokens=[], reward=None, status="aborted", rollout_log_probs=None)
    truth = write_step(tmp_path, 0, [aborted, sample(1, rollout_log_probs=None)], Layout(cp=2))
    assert [len(values) if values is not None else None for values in truth.fields["rollout_log_probs"]] == [
        0,
        None,
    ]
    assert load(truth.files[0])["rollout_data"]["rollout_log_probs"][1] is None


def test_given_truth_is_what_low_precision_leaves_of_it(tmp_path: Path) -> None:
    layout, values = Layout(dtypes={"rollout_log_probs": torch.bfloat16}), [[-0.1234] * 6]
    truth = write_step(tmp_path, 0, [sample(0)], layout, truth={"rollout_log_probs": values})
    assert set(truth.fields["rollout_log_probs"][0].tolist()) == {-0.12353515625}


def test_one_file_of_slime(tmp_path: Path) -> None:
    samples = [sample(index) for index in range(4)]
    truth = write_slime_v2(tmp_path, 7, samples, partition=[[3, 0], [1, 2]])
    payload = load(tmp_path / "train_data" / "7.pt")
    assert payload["format_version"] == 2
    rows = payload["samples"]
    assert [row["rollout_position"] for row in rows] == [0, 1, 2, 3]
    assert [row["data_parallel_rank"] for row in rows] == [0, 1, 1, 0]
    assert [shard["sample_indices"] for shard in payload["dp_shards"]] == [[3, 0], [1, 2]]
    for row, full in zip(rows, truth.fields["log_probs"], strict=True):
        np.testing.assert_array_equal(row["log_probs"].numpy(), full)

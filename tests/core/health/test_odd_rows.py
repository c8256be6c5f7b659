"""A tensor, list or value of another shape than it should have: one value may have no side at all, and whatever else is
odd costs its own sample.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dumptui.core.health.run_health import health
from dumptui.core.run.run import Run
from dumptui.core.sample.view import view_sample
from dumptui.core.tables import packing, steps
from tests.support.reading import Document, assert_true, documents, read, samples
from tests.support.writer import Json, Layout, sample, write_step

ODD = [
    torch.tensor(-0.5),
    torch.zeros(6, 3),
    torch.zeros(1, 6),
    torch.zeros(0, 3),
    torch.tensor([1 + 2j] * 6),
    torch.tensor(7),
    "text",
    b"bytes",
    4,
    4.5,
    {"a": [1.0] * 6},
    [],
    [None],
    [(0.1, 3)] * 6,
    ["4"],
    np.array(3.5),
    np.array(["a"]),
    float("nan"),
    10**30,
    [10**30] * 6,
]


def look_at_everything(run: Path) -> list[Document]:
    step = read(run)
    rows = samples(step)
    steps.step_row(step, rows)
    steps.batch(step)
    steps.groups(rows)
    packing.loads(step)
    packing.left_out(step, rows)
    list(health(Run.open(run)))
    for position in range(len(step.samples)):
        view_sample(step, position, None)
    return documents(step)


def edit(path: Path, change: Any) -> None:
    payload = torch.load(path, weights_only=False)
    change(payload)
    torch.save(payload, path)


def without_side(payload: Json) -> None:
    """radixark/miles --true-on-policy-mode: what holds one token has lost its side by squeeze()."""
    for name, column in payload["rollout_data"].items():
        if isinstance(column, list):
            payload["rollout_data"][name] = [
                row.reshape(()) if isinstance(row, torch.Tensor) and row.numel() == 1 else row for row in column
            ]


@pytest.mark.parametrize("layout", [Layout(), Layout(cp=2, dp=2), Layout(cp=4), Layout(cp=2, recorded=False)], ids=str)
@pytest.mark.parametrize("responses", [[1, 1, 1, 1], [6, 1, 9, 2]])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_tensor_without_a_side_is_one_value(tmp_path: Path, layout: Layout, responses: list[int], dtype: Any) -> None:
    batch = [sample(at, prompt_len=5, response_len=response) for at, response in enumerate(responses)]
    names = ("log_probs", "entropy", "advantages", "returns", "values")
    layout = Layout(cp=layout.cp, dp=layout.dp, recorded=layout.recorded, dtypes=dict.fromkeys(names, dtype))
    given = {"values": [[0.25] * response for response in responses]}
    truth = write_step(tmp_path, 0, batch, layout, truth=given, mirror=False)
    for path in truth.files:
        edit(path, without_side)
    look_at_everything(tmp_path)
    assert_true(read(tmp_path), truth)


def test_so_it_is_in_a_rollout_file(tmp_path: Path) -> None:
    lone = sample(0, response_len=1, seed=3)
    write_step(tmp_path, 0, [lone, sample(1)], train=False, mirror=False)
    value = lone["rollout_log_probs"][0]
    for odd in (torch.tensor(value), np.array(value, np.float32), value, [torch.tensor(value)]):
        held = {**lone, "rollout_log_probs": odd, "teacher_log_probs": torch.tensor(-0.25), "own": torch.tensor(0.5)}
        torch.save({"rollout_id": 0, "samples": [held, sample(1)]}, tmp_path / "rollout_data" / "0.pt")
        fields = look_at_everything(tmp_path)[0]["fields"]
        assert fields["rollout_log_probs"]["values"] == [np.float32(value)]
        assert fields["teacher_log_probs"]["values"] == [-0.25]
        assert fields["own"]["values"] == [0.5]


@pytest.mark.parametrize("column", ["log_probs", "rollout_log_probs", "advantages", "own", "tokens", "loss_masks"])
def test_an_odd_row_of_a_train_file_costs_its_own_sample(tmp_path: Path, column: str) -> None:
    batch = [sample(at) for at in range(3)]
    truth = write_step(tmp_path, 0, batch, truth={"own": [[0.5] * 6] * 3}, mirror=False)
    whole = truth.files[0].read_bytes()
    sound = [document["fields"] for document in documents(read(tmp_path))]
    for at, odd in enumerate(ODD):
        truth.files[0].write_bytes(whole)
        edit(truth.files[0], lambda payload, at=at, odd=odd: payload["rollout_data"][column].__setitem__(at % 2, odd))
        found = look_at_everything(tmp_path)
        assert [found[one]["fields"] == sound[one] for one in (1 - at % 2, 2)] == [True, True], odd


@pytest.mark.parametrize("key", list(sample(0)))
def test_an_odd_value_of_a_sample_costs_that_sample(tmp_path: Path, key: str) -> None:
    batch = [sample(at) for at in range(3)]
    write_step(tmp_path, 0, batch, mirror=False)
    others = [document["fields"] for document in documents(read(tmp_path))]
    for odd in ODD:
        torch.save(
            {"rollout_id": 0, "samples": [batch[0], {**batch[1], key: odd}, batch[2]]}, tmp_path / "rollout_data/0.pt"
        )
        found = look_at_everything(tmp_path)
        assert len(found) == 3 and found[0]["fields"] == others[0] and found[2]["fields"] == others[2], odd


def test_a_sample_whose_reading_raises_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_step(tmp_path, 0, [sample(0), sample(1, weight_versions=["x"]), sample(2)], mirror=False)

    def fail(value: object) -> object:
        if value == ["x"]:
            raise ValueError("no such version")
        return ()

    monkeypatch.setattr("dumptui.core.formats.miles.rollout_file.read_calls", fail)
    found = look_at_everything(tmp_path)
    assert found[1]["notes"][0] == "can't be read: ValueError: no such version"
    assert found[0]["fields"]["train_log_probs"]["state"] == found[2]["fields"]["train_log_probs"]["state"] == "ok"


# Dumped, but not as one value a token ----------------------------------------------------------------------


SEVERAL = [
    (lambda row: row[:, None].repeat(1, 8), "holds 8 values per token"),
    (lambda row: [[value, 7] for value in row.tolist()], "holds 2 values per token"),
    (lambda row: [(value, 7) for value in row.tolist()], "holds 2 values per token"),
    (lambda row: {"big": row, "small": row}, "holds 2 series by name: big, small"),
]


@pytest.mark.parametrize(("shape", "said"), SEVERAL)
@pytest.mark.parametrize("where", ["train", "sample", "one train row"])
def test_several_values_a_token_are_dumped_and_no_damage(tmp_path: Path, where: str, shape: Any, said: str) -> None:
    """Teachers by name, or the top log-probs of one: neither "not dumped" nor an error of Health."""
    batch = [sample(at) for at in range(2)]
    odd = [shape(torch.full((6,), -0.5)) for _ in batch]
    if where == "sample":
        batch = [{**one, "teacher_log_probs": value} for one, value in zip(batch, odd, strict=True)]
        write_step(tmp_path, 0, batch, train=False, mirror=False)
    else:
        if where == "one train row":
            odd[0] = torch.full((6,), -0.5)
        write_step(tmp_path, 0, batch, columns={"teacher_log_probs": odd}, mirror=False)
    shown = look_at_everything(tmp_path)[1]["fields"]["teacher_log_probs"]
    assert shown == {"state": "unreadable", "reason": f"teacher_log_probs {said}", "values": None}
    rows = [row for row in health(Run.open(tmp_path)) if "teacher_log_probs" in str(row["problem"])]
    assert [row["level"] for row in rows] == ["info"]


@pytest.mark.parametrize("key", ["rollout_log_probs", "loss_mask"])
def test_pairs_are_no_list_of_no_values(tmp_path: Path, key: str) -> None:
    batch = [sample(0), {**sample(1), key: [[1.0, 5]] * 6}]
    write_step(tmp_path, 0, [sample(0), sample(1)], train=False, mirror=False)
    torch.save({"rollout_id": 0, "samples": batch}, tmp_path / "rollout_data" / "0.pt")
    document = documents(read(tmp_path))[1]
    assert f"{key} holds 2 values per token" in document["notes"]
    if key == "rollout_log_probs":
        assert document["fields"][key]["reason"] == f"{key} holds 2 values per token"


@pytest.mark.parametrize(("dumped", "said"), [("4", "response_length is '4'"), (None, "response_length is not dumped")])
def test_a_length_that_is_a_text_is_dumped(tmp_path: Path, dumped: object, said: str) -> None:
    write_step(tmp_path, 0, [sample(0)], train=False, mirror=False)
    torch.save({"rollout_id": 0, "samples": [{**sample(0), "response_length": dumped}]}, tmp_path / "rollout_data/0.pt")
    (document,) = documents(read(tmp_path))
    assert any(note.startswith(said) and note.endswith("6 is assumed") for note in document["notes"])
    assert document["response_length"] == 6


@pytest.mark.parametrize("where", ["sample", "train"])
def test_a_mask_between_0_and_1_is_told(tmp_path: Path, where: str) -> None:
    weights = [1.0, 0.5, 0.0, 1.0, 0.25, 1.0]
    batch = [sample(0), sample(1, loss_mask=weights if where == "sample" else None)]
    write_step(tmp_path, 0, batch, train=False, mirror=False)
    if where == "train":
        masks = [torch.ones(6), torch.tensor(weights)]
        write_step(tmp_path, 0, batch, columns={"loss_masks": masks}, mirror=False)
    documents_ = look_at_everything(tmp_path)
    assert documents_[1]["loss_mask"] == [1, 1, 0, 1, 1, 1]
    told = [[note for note in one["notes"] if "other than 0 and 1" in note] for one in documents_]
    assert not told[0] and len(told[1]) == 1
    assert any("other than 0 and 1" in str(row["problem"]) for row in health(Run.open(tmp_path)))


def test_an_odd_value_under_a_key_that_nobody_knows_costs_its_own_sample(tmp_path: Path) -> None:
    batch = [sample(at, own=[0.5] * 6 if at else [0.5] * 4) for at in range(4)]
    write_step(tmp_path, 0, batch, train=False, mirror=False)
    shown = [document["fields"]["own"] for document in look_at_everything(tmp_path)]
    assert [one["values"] for one in shown] == [None, *[[0.5] * 6] * 3]
    assert shown[0]["reason"] == "own has 4 values for 6 response tokens"


def test_a_damaged_tensor_of_a_rollout_file_costs_its_own_sample(tmp_path: Path) -> None:
    batch = [{**one, "rollout_log_probs": torch.tensor(one["rollout_log_probs"])} for one in map(sample, range(3))]
    path = tmp_path / "rollout_data" / "0.pt"
    write_step(tmp_path, 0, [sample(at) for at in range(3)], mirror=False)
    torch.save({"rollout_id": 0, "samples": batch}, path)
    sound = [document["fields"] for document in look_at_everything(tmp_path)]
    with zipfile.ZipFile(path) as file:
        header = file.getinfo("0/data/1").header_offset
    damaged = bytearray(path.read_bytes())
    damaged[header + 26] ^= 4
    path.write_bytes(damaged)
    found = look_at_everything(tmp_path)
    assert found[0]["fields"] == sound[0] and found[2]["fields"] == sound[2]
    assert "can't be read: its zip directory is damaged" in found[1]["notes"][0]

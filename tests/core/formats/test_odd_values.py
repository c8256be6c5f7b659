"""Values that no framework would write but a pickle can hold: they cost themselves, never the step, nor time."""

from __future__ import annotations

import json
import pickle
from array import array
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dumptui.core.formats.miles.rollout_file import read_rollout
from dumptui.core.formats.values import alike
from dumptui.core.health import run_health
from dumptui.core.ptfile.file import Placeholder, PtFile
from dumptui.core.run.run import Run
from dumptui.core.sample import conversation
from dumptui.core.sample.facts import sample_facts
from dumptui.core.sample.view import view_sample
from dumptui.core.step.step import Step
from dumptui.core.tables import steps
from dumptui.tui.app.app import DumpTui
from dumptui.tui.cell_formats.tables import to_json
from tests.support.crafted import Raw, program, write_pt
from tests.support.reading import ELSEWHERE, documents, elsewhere, field, groups, read, samples, values
from tests.support.screen import press, tab, text, until, until_shown
from tests.support.writer import sample, write_step

Json = dict[str, Any]


def show_all(step: Step) -> None:
    """Everything that can be shown of a step, as text."""
    table = steps.samples(step)
    for rows in (table, steps.groups(table), [steps.step_row(step, table)], steps.batch(step), documents(step)):
        json.loads(to_json({"rows": rows}))
    for one in step.samples:
        view_sample(step, one.position, None)
    for one in step.samples[:1]:
        sample_facts(step, one)
        json.loads(to_json(conversation.document(conversation.read_conversation(step, one, None, None))))


# Shapes ---------------------------------------------------------------------------------------------------

DEEP = 5000
DEEP_LIST = Raw(pickle.EMPTY_LIST * DEEP + pickle.APPEND * (DEEP - 1))
DEEP_DICT = Raw((pickle.EMPTY_DICT + b"K\0") * (DEEP - 1) + pickle.EMPTY_DICT + pickle.SETITEM * (DEEP - 1))
SELF_LIST = Raw(pickle.EMPTY_LIST + b"q\1h\1a")
SELF_DICT = Raw(pickle.EMPTY_DICT + b"q\1K\0h\1s")
KEYS: tuple[str, ...] = (
    "reward",
    "status",
    "label",
    "prompt",
    "response",
    "metadata",
    "weight_versions",
    "spec_info",
    "rollout_id",
)
KEYS += ("index", "group_index", "tokens", "loss_mask", "rollout_log_probs", "response_length", "trace")


# Sixty lists, each of which holds the one before twice.
DOUBLED = Raw(b"]" + b"q\1" + b"0](h\1h\1eq\1" * 60)
SHAPES = {
    "deep list": DEEP_LIST,
    "deep dict": DEEP_DICT,
    "list in itself": SELF_LIST,
    "dict in itself": SELF_DICT,
    "doubled list": DOUBLED,
    "huge number": Raw(pickle.dumps(10**5000, 2)[2:-1]),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("key", KEYS)
def test_a_value_of_any_shape_costs_itself(tmp_path: Path, key: str, shape: str) -> None:
    write_step(tmp_path, 0, [sample(at) for at in range(3)], mirror=False)
    odd = [{**sample(at), key: SHAPES[shape]} for at in range(2)]
    for name in ("0", "eval_0"):
        write_pt(tmp_path / "rollout_data" / f"{name}.pt", program({"rollout_id": 0, "samples": [*odd, sample(2)]}))
    for evaluation in (False, True):
        step = read(tmp_path, evaluation=evaluation)
        assert len(step.samples) == 3
        show_all(step)
        assert values(step, "rollout_log_probs", 2) == pytest.approx(sample(2)["rollout_log_probs"], abs=1e-5)
    list(run_health.health(Run.open(tmp_path)))


async def test_odd_values_on_screen(tmp_path: Path) -> None:
    seen = ("reward", "status", "label", "prompt", "response", "metadata", "trace", "weight_versions")
    batch = [{**sample(at), **dict.fromkeys(seen, shape)} for at, shape in enumerate(SHAPES.values())]
    write_step(tmp_path, 0, [sample(at) for at in range(len(batch))], mirror=False)
    write_pt(tmp_path / "rollout_data" / "0.pt", program({"rollout_id": 0, "samples": batch}))
    app = DumpTui(Run.open(tmp_path), None)
    async with app.run_test(size=(160, 40)) as pilot:
        await until_shown(pilot, "6 samples")
        for key in (
            "a",
            tab("groups"),
            "enter",
            tab("rollout"),
            "enter",
            *"in" * 6,
            tab("conversation"),
            *"pppppp",
            "y",
        ):
            await press(pilot, key)
            await until(pilot, lambda: not app.wait.waiting)
            assert "can't be shown" not in text(app)
        await press(pilot, "escape")


def test_values_are_compared_in_depth_but_not_for_ever() -> None:
    image = {"type": "image", "image": elsewhere("media", "Picture", size=(9, 9))}
    same = {"image": elsewhere("media", "Picture", size=(9, 9)), "type": "image"}
    assert alike([1, {"a": [2.0, None]}], (1, {"a": (2.0, None)})) and not alike([1], [1, 2])
    assert not alike({"a": 1}, {"b": 1}) and not alike([], {}) and not alike([], None) and not alike("1", 1)
    assert alike(np.arange(3), np.arange(3)) and not alike(np.arange(3), np.arange(4)) and not alike(np.arange(3), 3)
    assert alike(image["image"].size, same["image"].size)
    one: list[Any] = []
    other: list[Any] = []
    one.append(one)
    other.append(other)
    assert alike(one, one) and not alike(one, other)


def test_prompts_with_objects_and_arrays_make_groups(tmp_path: Path) -> None:
    """As of several samples of one image, of which each has a copy."""
    batch = []
    for at in range(6):
        picture = elsewhere("media", "Picture", data=b"%d" % (at // 2))
        content = [{"type": "image", "image": picture, "grid": np.arange(3)}, {"type": "ids", "ids": [at // 2] * 200}]
        batch.append(sample(at, group_index=None, prompt=[{"role": "user", "content": content}]))
    write_step(tmp_path, 0, batch, evaluation=True, mirror=False)
    ELSEWHERE.forget()
    assert [row["n"] for row in groups(read(tmp_path, evaluation=True))] == [2, 2, 2]


def test_a_tensor_is_no_text(tmp_path: Path) -> None:
    rewards: list[object] = [torch.zeros(2), "0.5", {"a": torch.tensor(0.5)}]
    batch = [{**sample(at), "reward": reward} for at, reward in enumerate(rewards)]
    write_step(tmp_path, 0, [], train=False, mirror=False)
    torch.save({"samples": batch}, tmp_path / "rollout_data" / "0.pt")
    step = read(tmp_path)
    assert [row["reward_note"] for row in samples(step, "b")] == ["<float32[2]>", "str 0.5", "dict{a}"]
    assert samples(step)[2]["reward"] == samples(step, "a")[2]["reward"] == 0.5


# Tensors, which are read when they are asked for ----------------------------------------------------------


def test_a_file_replaced_after_loading_costs_what_is_read_from_it(tmp_path: Path) -> None:
    batch = [sample(at, response_len=9000, teacher_log_probs=torch.full((9000,), -0.5)) for at in range(8)]
    truth = write_step(tmp_path, 0, batch, mirror=False)
    payload = torch.load(truth.files[0], weights_only=False)
    columns = payload["rollout_data"]
    columns["raw_reward"] = [{"score": torch.tensor(float(at))} for at in range(8)]
    columns.update({name: [torch.tensor(float(one)) for one in columns[name]] for name in ("rewards", "truncated")})
    torch.save(payload, truth.files[0])
    step = read(tmp_path)
    for path in (truth.files[0], tmp_path / "rollout_data" / "0.pt"):
        path.write_bytes(b"another")
    show_all(step)
    assert field(step, "teacher_log_probs")["reason"].endswith("changed while it was being read")
    assert [row["raw_reward"] for row in samples(step, "score")] == [float(at) for at in range(8)]


# Columns and lists that are not what they should be -------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        torch.stack,
        lambda rows: rows[:1],
        lambda rows: [row[None] for row in rows],
        lambda rows: [row.long() for row in rows],
        lambda rows: [1.0 for _ in rows],
        lambda rows: "text",
        lambda rows: {"a": rows},
    ],
)
def test_a_column_of_another_shape_is_unreadable_and_not_undumped(tmp_path: Path, change: Any) -> None:
    truth = write_step(tmp_path, 0, [sample(0), sample(1)], mirror=False)
    payload = torch.load(truth.files[0], weights_only=False)
    payload["rollout_data"]["log_probs"] = change(payload["rollout_data"]["log_probs"])
    torch.save(payload, truth.files[0])
    step = read(tmp_path)
    said = "log_probs of 0_0.pt is not a list of floats for each row"
    for name in ("train_log_probs", "lp_diff"):
        assert field(step, name) == {"state": "unreadable", "reason": said, "values": None}
    assert field(step, "entropy")["state"] == "ok"
    assert any(said in str(row["problem"]) for row in run_health.health(Run.open(tmp_path)))


@pytest.mark.parametrize("nothing", [None, [], [None, None]])
def test_a_column_of_nothing_is_not_dumped(tmp_path: Path, nothing: object) -> None:
    truth = write_step(tmp_path, 0, [sample(0), sample(1)], mirror=False)
    payload = torch.load(truth.files[0], weights_only=False)
    payload["rollout_data"]["log_probs"] = nothing
    torch.save(payload, truth.files[0])
    assert field(read(tmp_path), "train_log_probs")["state"] == "not dumped"


@pytest.mark.parametrize("mask", ["110110", [None] * 6, [[1] * 6], {"mask": [1] * 6}])
def test_a_mask_that_can_t_be_read_is_not_all_ones(tmp_path: Path, mask: object) -> None:
    batch = [{**sample(0), "loss_mask": mask}, sample(1)]
    write_step(tmp_path, 0, [sample(0), sample(1)], train=False, mirror=False)
    torch.save({"rollout_id": 0, "samples": batch}, tmp_path / "rollout_data" / "0.pt")
    step = read(tmp_path)
    document = documents(step)[0]
    assert document["loss_mask"] is None and "loss_mask is not a list of numbers" in document["notes"]
    assert [row["effective_length"] for row in samples(step)] == [None, 6]


def test_engine_log_probs_that_can_t_be_read_are_not_undumped(tmp_path: Path) -> None:
    write_step(tmp_path, 0, [sample(0)], mirror=False)
    odd = {**sample(0), "rollout_log_probs": "-0.5"}
    torch.save({"rollout_id": 0, "samples": [odd]}, tmp_path / "rollout_data" / "0.pt")
    step = read(tmp_path)
    assert field(step, "rollout_log_probs")["state"] == field(step, "lp_diff")["state"] == "unreadable"
    assert "rollout_log_probs is not a list of numbers" in documents(step)[0]["notes"]


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("length", [0, 6, 200])
def test_arrays_of_pythons_own_are_read_as_numbers(tmp_path: Path, protocol: int, length: int) -> None:
    """They were taken for what is no list of numbers."""
    tokens = array("q", range(length + 3))
    fields = {"loss_mask": array("b", [1] * length), "rollout_log_probs": array("f", [-0.5] * length)}
    one = sample(0, prompt_len=3, response_len=length) | {"tokens": tokens, "reward": 1.0} | fields
    torch.save({"rollout_id": 0, "samples": [one]}, tmp_path / "0.pt", pickle_protocol=protocol)
    (read,) = read_rollout(tmp_path / "0.pt", 0, False).samples
    assert read.tokens.tolist() == list(tokens) and read.notes == ()
    assert read.loss_mask is not None and read.loss_mask.tolist() == [1] * length
    assert read.rollout_log_probs is not None and read.rollout_log_probs.tolist() == [-0.5] * length


@pytest.mark.parametrize("code", "bBhHiIlLqQfd")
@pytest.mark.parametrize("protocol", [2, 5])
def test_every_kind_of_array_is_read(tmp_path: Path, code: str, protocol: int) -> None:
    values = array(code, [1, 2, 100])
    torch.save([values, array("u", "text")], tmp_path / "0.pt", pickle_protocol=protocol)
    found, text = PtFile(tmp_path / "0.pt").root
    assert found.numpy().tolist() == values.tolist()
    assert isinstance(text, Placeholder)

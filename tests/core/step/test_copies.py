"""Files that hold copies of the same values: where they contradict each other, that is said beside what is shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from dumptui.core.files.step_files import StepKey
from dumptui.core.health.run_health import exit_code, health
from dumptui.core.run.run import Run
from dumptui.core.sample.view import view_sample
from dumptui.core.step.copies import contradictions
from dumptui.core.step.single_sample import load_single
from tests.support.reading import documents, read
from tests.support.writer import Json, Layout, sample, write_step

SHARED_WITHOUT = ("plain", "cp4_thd", "cp2_bshd", "cp2_bshd_legacy", "cp4_legacy", "shard_once", "multiturn", "odd")


def shift(row: Any) -> Any:
    return row + 1 if row.dtype != torch.int32 else 1 - row


def edit(path: Path, change: Callable[[Json], object]) -> None:
    payload = torch.load(path, weights_only=False)
    change(payload["rollout_data"])
    torch.save(payload, path)


def change_row(path: Path, column: str, row: int) -> None:
    def change(data: Json) -> None:
        value = data[column][row]
        data[column][row] = shift(value) if isinstance(value, torch.Tensor) else value + 1

    edit(path, change)


CASES = [
    (Layout(tp=2), 1, "log_probs"),
    (Layout(tp=2), 1, "rollout_log_probs"),
    (Layout(tp=2), 1, "advantages"),
    (Layout(tp=2, packed=True), 1, "entropy"),
    (Layout(tp=2), 1, "loss_masks"),
    (Layout(tp=2), 1, "rewards"),
    (Layout(tp=2), 1, "raw_reward"),
    (Layout(dp=2), 1, "raw_reward"),
    (Layout(tp=2), 1, "truncated"),
    (Layout(tp=2), 1, "tokens"),
    (Layout(cp=2), 1, "loss_masks"),
    (Layout(tp=2, cp=2, pp=2), 5, "entropy"),
    (Layout(tp=2, cp=2, pp=2), 7, "rollout_log_probs"),
]


@pytest.mark.parametrize(("layout", "rank", "column"), CASES, ids=str)
def test_copies_that_differ_are_told_at_the_sample_and_in_health(
    tmp_path: Path, layout: Layout, rank: int, column: str
) -> None:
    batch = [sample(at, prompt_len=4, response_len=12) for at in range(8)]
    truth = write_step(tmp_path, 0, batch, layout)
    assert not list(contradictions(read(tmp_path))) and exit_code(health(Run.open(tmp_path))) == 0
    path = next(path for path in truth.files if path.name == f"0_{rank}.pt")
    change_row(path, column, 3)
    name = {"log_probs": "train_log_probs"}.get(column, column)
    notes = [[note for note in document["notes"] if "contradict" in note] for document in documents(read(tmp_path))]
    assert [at for at, found in enumerate(notes) if found] == [3]
    assert path.name in notes[3][0] and name in notes[3][0]
    assert [note for note in view_sample(read(tmp_path), 3, None).notes if "contradict" in note] == notes[3]
    (row,) = [row for row in health(Run.open(tmp_path)) if row["level"] == "error"]
    said = f"copies of {name} differ in 1 of 8 samples: {path.name} contradicts"
    assert str(row["problem"]).startswith(said)


def test_whole_columns_on_two_context_parallel_ranks(tmp_path: Path) -> None:
    truth = write_step(tmp_path, 0, [sample(at, response_len=20) for at in range(3)], Layout(cp=2), mirror=False)
    for path in truth.files:
        edit(path, lambda data: data.update(own=[torch.full((20,), 0.5) for _ in range(3)]))
    assert not list(contradictions(read(tmp_path)))
    change_row(truth.files[1], "own", 1)
    (found,) = contradictions(read(tmp_path))
    assert (found.name, found.position, found.shown, found.other) == ("own", 1, "0_0.pt", "0_1.pt")


def test_the_engine_s_own_copy(tmp_path: Path) -> None:
    write_step(tmp_path, 0, [sample(at) for at in range(3)], mirror=False)
    change_row(tmp_path / "train_data" / "0_0.pt", "rollout_log_probs", 1)
    (found,) = contradictions(read(tmp_path))
    assert (found.name, found.position, found.shown) == ("rollout_log_probs", 1, "0.pt")
    assert exit_code(health(Run.open(tmp_path))) == 1


def test_not_a_number_is_equal_to_itself(tmp_path: Path) -> None:
    truth = write_step(tmp_path, 0, [sample(at) for at in range(2)], Layout(tp=2), mirror=False)
    for size, path in enumerate(truth.files, start=1):
        payload = torch.load(path, weights_only=False)
        data = payload["rollout_data"]
        data["entropy"][0].fill_(float("nan"))
        data["rewards"][0] = float("nan")
        data["log_probs"][1] = data["log_probs"][1].repeat(size)[:6]  # in a storage of another size
        torch.save(payload, path)
    assert not list(contradictions(read(tmp_path)))


def test_one_sample_says_it_without_its_rollout_file(tmp_path: Path) -> None:
    truth = write_step(tmp_path, 0, [sample(at) for at in range(3)], Layout(tp=2))
    change_row(truth.files[1], "entropy", 1)
    single = load_single(Run.open(tmp_path).steps[StepKey(0)], 1)
    assert single is not None and any("contradicts" in note for note in documents(single)[0]["notes"])


@pytest.mark.parametrize("name", SHARED_WITHOUT)
def test_the_recorded_runs_contradict_nothing(shared: Path, name: str) -> None:
    run = Run.open(shared / "runs" / name)
    for key in run.steps:
        assert not list(contradictions(read(shared / "runs" / name, key.step, evaluation=key.evaluation)))

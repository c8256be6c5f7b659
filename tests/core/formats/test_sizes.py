"""Sizes that add up: what a small file claims is counted before memory is taken for it, and costs that file only."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from dumptui.core.errors import DumpError
from dumptui.core.formats.miles.train_file import read_shard
from dumptui.core.formats.miles.trajectory_file import Sidecar
from dumptui.core.formats.sample import read_rollout
from dumptui.core.ptfile.file import PtFile
from dumptui.core.run.run import Run, StepKey
from dumptui.core.step.load import load
from dumptui.core.telemetry.jsonl_tail import Tail
from tests.support.crafted import program, storage, tensor, write_zip
from tests.support.writer import Layout, sample, write_step

LONG, MANY = 20_000, 3000
HOLE = 6 << 30


def save(path: Path, root: Any) -> Path:
    torch.save(root, path)
    os.utime(path, (0, 0))
    return path


def test_a_list_that_all_samples_share_costs_its_file(tmp_path: Path) -> None:
    tokens = list(range(LONG))
    samples = [sample(at) | {"tokens": tokens, "rollout_log_probs": None, "loss_mask": None} for at in range(MANY)]
    path = save(tmp_path / "0.pt", {"rollout_id": 0, "samples": samples})
    with pytest.raises(DumpError, match="its samples share lists: together they claim more values than it can hold"):
        read_rollout(path, 0, False)
    assert len(read_rollout(save(path, {"samples": samples[:500]}), 0, False).samples) == 500


@pytest.mark.parametrize("shared", [False, True], ids=["expanded", "shared"])
def test_tensors_that_repeat_their_bytes_cost_their_file(tmp_path: Path, shared: bool) -> None:
    """340 kB of them came to 12 GB; the other train files and the samples stay."""
    samples = [sample(at, prompt_len=4, response_len=6) for at in range(4)]
    write_step(tmp_path, 0, samples, Layout(dp=2))
    path = tmp_path / "train_data" / "0_0.pt"
    root = torch.load(path, weights_only=False)
    columns = {name: [rows[0]] * MANY for name, rows in root["rollout_data"].items() if isinstance(rows, list)}
    one = torch.zeros(LONG)
    columns["log_probs"] = [one if shared else torch.zeros(1).expand(LONG) for _ in range(MANY)]
    columns["sample_indices"] = list(range(MANY))
    save(path, root | {"rollout_data": columns})
    with pytest.raises(DumpError, match=r"claim.* more (values )?than it can hold"):
        read_shard(path, 0, 0)
    step = load(Run.open(tmp_path).files(StepKey(0)))
    assert len(step.samples) == 4 and step.trained == 2 and len(step.broken) == 1


def test_a_hole_in_place_of_the_pickle_or_a_storage_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(DumpError, match="is hollow: of 6,442,450,944 bytes hardly any were ever written"):
        PtFile(write_zip(tmp_path / "0.pt", {"data.pkl": HOLE}, zip64=True))
    root = program(tensor(storage(HOLE // 4), 0, (HOLE // 4,), (1,)))
    opened = PtFile(write_zip(tmp_path / "1.pt", {"data.pkl": root, "data/0": HOLE}, zip64=True))
    with pytest.raises(DumpError, match="is hollow"):
        opened.root.numpy()


def test_a_line_of_gigabytes_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "0.jsonl"
    with path.open("wb") as file:
        file.write(b'{"sample_index": 0, "n": 1}\n{"sample_index": 1, "text": "')
        file.truncate(1 << 40)
        file.seek(0, os.SEEK_END)
        file.write(b'"}\n{"sample_index": 2, "n": 3}\n')
    begun = time.monotonic()
    sidecar = Sidecar.scan(path)
    assert sidecar.places.keys() == {0, 2} and [one["n"] for one in sidecar.rows(2)] == [3]
    tail, found, more = Tail(path), [], True
    while more:
        poll = tail.poll()
        found += poll.records
        more = poll.more
    assert [one["sample_index"] for one in found] == [0, 2] and tail.bad == 1 and "64 MiB" in str(tail.first_problem)
    assert time.monotonic() - begun < 60  # to read it all would take minutes
    with path.open("a") as file:
        file.write(json.dumps({"sample_index": 4}) + "\n")
    assert tail.poll().records == [{"sample_index": 4}] and tail.restarts == 0

"""Sizes that add up: what a small file claims is counted before memory is taken for it, and costs that file only."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from dumptui.core.errors import DumpError
from dumptui.core.files.step_files import StepKey
from dumptui.core.formats.miles.rollout_file import read_rollout
from dumptui.core.formats.miles.train_file import read_shards
from dumptui.core.formats.miles.trajectory_file import Trajectories
from dumptui.core.ptfile.file import PtFile
from dumptui.core.run.run import Run
from dumptui.core.step.load import load
from dumptui.core.telemetry.jsonl_tail import Tail
from tests.support.crafted import program, storage, tensor, write_zip
from tests.support.screen import ROOT
from tests.support.writer import Layout, sample, write_step

LONG, MANY = 20_000, 3000
HOLE = 6 << 30


SIZES = ("total_lengths", "response_lengths")


def printed(*words: str | Path, bytes_allowed: int | None = None) -> subprocess.CompletedProcess[str]:
    """A printed view of a process that may have so many bytes of address space."""

    def limit() -> None:
        if bytes_allowed is not None:
            resource.setrlimit(resource.RLIMIT_AS, (bytes_allowed, bytes_allowed))

    command = [sys.executable, "-m", "dumptui", *map(str, words), "--no-cache"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, preexec_fn=limit)


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
        read_shards(path, 0, 0)
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
    sidecar = Trajectories.scan(path)
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


def claiming(root: Path, ranks: int, rows: int) -> Path:
    """A run of one step, whose small train files claim `rows` times LONG values each."""
    (root / "rollout_data").mkdir(parents=True)
    (root / "train_data").mkdir()
    sizes = {"total_lengths": [LONG] * rows, "response_lengths": [LONG - 1] * rows}
    tokens = torch.zeros(1, dtype=torch.int64).expand(LONG)
    samples = [
        sample(at) | {"tokens": tokens, "response_length": LONG - 1, "rollout_log_probs": None, "loss_mask": None}
        for at in range(rows)
    ]
    save(root / "rollout_data" / "0.pt", {"rollout_id": 0, "samples": samples})
    for rank in range(ranks):
        columns = {"tokens": [tokens] * rows, f"stat_{rank}": [torch.zeros(1).expand(LONG - 1) for _ in range(rows)]}
        data = {"sample_indices": list(range(rows)), **sizes, **columns}
        payload = {"rank": rank, "cp_rank": 0, "cp_size": 1, "rollout_id": 0, "rollout_data": data}
        save(root / "train_data" / f"0_{rank}.pt", payload)
    return root


def test_what_the_files_of_a_step_claim_is_counted_together(tmp_path: Path) -> None:
    root = claiming(tmp_path / "run", ranks=6, rows=100)  # nearly 4 million values a file
    files = Run.open(root).files(StepKey(0))
    for rank, entry in files.shards:
        assert read_shards(entry.path, 0, rank)
    step = load(files)
    assert [shard.rank for shard in step.shards] == [0, 1, 2, 3] and step.trained == 100
    assert [Path(error.path).name for error in step.broken] == ["0_4.pt", "0_5.pt"]
    assert all("the train files of its step share values" in error.problem for error in step.broken)


@pytest.mark.e2e
@pytest.mark.parametrize("view", ["samples", "steps", "batch", "health", "tokens"])
def test_a_step_whose_files_claim_too_much_takes_little_memory(tmp_path: Path, view: str) -> None:
    root = claiming(tmp_path / "run", ranks=40, rows=390)
    done = printed(root, "--print", view, *(["--sample", "3"] if view == "tokens" else []), bytes_allowed=3 << 29)
    assert done.returncode == (1 if view == "health" else 0) and done.stderr == ""
    assert done.stdout.count("share values: together they claim") == (39 if view in ("health", "batch") else 0)


def test_a_step_that_is_unreadable_without_a_rollout_file_is_an_error_in_health(tmp_path: Path) -> None:
    root = claiming(tmp_path / "run", ranks=1, rows=390)
    (root / "rollout_data" / "0.pt").unlink()
    path = root / "train_data" / "0_0.pt"
    columns = torch.load(path, weights_only=False)["rollout_data"]
    shared = columns | {"tokens": [list(range(LONG))] * MANY} | {name: columns[name][:1] * MANY for name in SIZES}
    save(path, {"rank": 0, "rollout_data": shared | {"sample_indices": list(range(MANY))}})
    done = printed(root, "--print", "health", bytes_allowed=3 << 29)
    assert done.returncode == 1 and "claim more values than it can hold" in done.stdout


@pytest.mark.e2e
def test_a_healthy_step_needs_no_more_than_it_says(tmp_path: Path) -> None:
    """Too little memory is one sentence, and never a fault of the step."""
    samples = [sample(at, prompt_len=100, response_len=4000) for at in range(96)]
    write_step(tmp_path, 0, samples, Layout(dp=4), mirror=False)
    for view in ("samples", "health"):
        expected = printed(tmp_path, "--print", view)
        assert expected.returncode == 0
        for mebibytes in (60, 140, 150, 160, 170, 250):
            done = printed(tmp_path, "--print", view, bytes_allowed=mebibytes << 20)
            if done.returncode == 0:
                assert (done.stdout, done.stderr) == (expected.stdout, "")
            else:
                assert (done.returncode, done.stdout) == (2, "")
                assert done.stderr.count("\n") == 1 and "too little memory is allowed (ulimit -v)" in done.stderr
        assert done.returncode == 0

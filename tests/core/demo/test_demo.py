"""The generated run: written without torch, read by torch, and holding what it is meant to show."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from tokenizers import Tokenizer

from dumptui.core.demo import write_demo
from dumptui.core.demo.batch import BAD_SHARD, BAD_SHARD_STEP, train_batch
from tests.support.writer import brute_force_slices

NOW = 1_800_000_000
STEPS = 24
WRITE = f"""
import sys
from pathlib import Path
from dumptui.core.demo.write_demo import write_demo
write_demo(Path(sys.argv[1]), now={NOW})
assert not sys.modules.keys() & {{"torch", "textual", "rich"}}
"""


def load(path: Path) -> Any:
    return torch.load(path, weights_only=False)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root: Path = tmp_path_factory.mktemp("demo")
    subprocess.run([sys.executable, "-c", WRITE, str(root)], check=True)
    return root


@pytest.fixture(scope="module")
def rollouts(run: Path) -> list[list[dict[str, Any]]]:
    return [load(run / "rollout_data" / f"{step}.pt")["samples"] for step in range(STEPS)]


def joined(run: Path, step: int) -> dict[str, dict[int, Any]]:
    """Every per-token field of a step by sample index, put together from the files of all cp ranks."""
    fields: dict[str, dict[int, Any]] = defaultdict(dict)
    for path in (run / "train_data").glob(f"{step}_*.pt"):
        payload = load(path)
        data = payload["rollout_data"]
        for row, index in enumerate(data["sample_indices"]):
            total, response = data["total_lengths"][row], data["response_lengths"][row]
            held = brute_force_slices(total, response, payload["cp_size"])[payload["cp_rank"]]
            for name in (
                "log_probs",
                "rollout_log_probs",
                "ref_log_probs",
                "entropy",
                "advantages",
                "returns",
            ):
                full = fields[name].setdefault(index, np.full(response, np.nan, np.float32))
                full[held] = data[name][row].numpy()
    return fields


def trained_differences(run: Path, samples: list[dict[str, Any]], step: int) -> dict[int, Any]:
    fields = joined(run, step)
    masks = {one["index"]: one["loss_mask"] or [1] * one["response_length"] for one in samples}
    return {
        index: (values - fields["rollout_log_probs"][index])[np.array(masks[index]) == 1]
        for index, values in fields["log_probs"].items()
    }


def test_files_of_a_run_that_is_still_going(run: Path) -> None:
    names = {folder.name: {path.name for path in folder.iterdir()} for folder in run.iterdir()}
    train = {f"{step}_{rank}.pt" for step in range(STEPS) for rank in range(4)}
    assert names["train_data"] == train - {"17_3.pt", "23_2.pt", "23_3.pt"}
    steps = {*map(str, range(STEPS)), "eval_0", "eval_6", "eval_12", "eval_18"}
    assert names["rollout_data"] == {f"{step}.pt" for step in steps}
    assert names["trajectory"] == {f"{step}.jsonl" for step in steps}
    assert names["dashboard_columns"] == {f"rollout_{step}.parquet" for step in steps}


def test_nothing_in_the_files_needs_trust(run: Path) -> None:
    for name in ("rollout_data/0.pt", "rollout_data/eval_0.pt", "train_data/0_0.pt"):
        assert torch.load(run / name, weights_only=True)["rollout_id"] == 0


def test_every_file_loads_and_says_who_wrote_it(run: Path) -> None:
    for path in (run / "train_data").iterdir():
        payload = load(path)
        assert path.stem == f"{payload['rollout_id']}_{payload['rank']}"
        assert (payload["cp_rank"], payload["cp_size"], payload["qkv_format"]) == (
            payload["rank"] % 2,
            2,
            "thd",
        )
        rows = len(payload["rollout_data"]["sample_indices"])
        assert all(len(payload["rollout_data"][name]) == rows for name in ("tokens", "loss_masks", "log_probs"))


def test_slices_make_up_the_truth(run: Path) -> None:
    batch, fields = train_batch(0, 9), joined(run, 9)
    for position in sorted(batch.shards[0] + batch.shards[1]):
        sample, index = batch.samples[position], batch.samples[position].record["index"]
        np.testing.assert_array_equal(fields["log_probs"][index], sample.trainer)
        np.testing.assert_array_equal(fields["ref_log_probs"][index], sample.reference)
        np.testing.assert_array_equal(fields["entropy"][index], sample.entropy)
        np.testing.assert_array_equal(fields["advantages"][index], batch.advantages[position])
        np.testing.assert_array_equal(fields["rollout_log_probs"][index], sample.record["rollout_log_probs"])


def test_masked_tokens_have_placeholders_for_the_engine_only(run: Path, rollouts: Any) -> None:
    fields = joined(run, 9)
    masked = [one for one in rollouts[9] if one["loss_mask"] and 0 in one["loss_mask"]]
    assert masked
    for one in masked:
        tool = np.array(one["loss_mask"]) == 0
        assert not np.array(one["rollout_log_probs"])[tool].any()
        assert (fields["log_probs"][one["index"]][tool] < 0).all()


def test_tokens_decode_to_the_response(run: Path, rollouts: Any) -> None:
    tokenizer = Tokenizer.from_file(str(run / "tokenizer" / "tokenizer.json"))
    for one in [one for step in (0, 13, 23) for one in rollouts[step]]:
        ids = one["tokens"][len(one["tokens"]) - one["response_length"] :]
        assert tokenizer.decode(ids, skip_special_tokens=False) == one["response"]
    assert len(tokenizer.encode("🧮").ids) > 1
    assert len(tokenizer.encode("先").ids) > 1


def test_statuses_and_lengths(rollouts: Any) -> None:
    every = [one for samples in rollouts for one in samples]
    statuses = [one["status"] for one in every]
    assert statuses.count("completed") > 0.85 * len(every) > statuses.count("truncated") > 10
    aborted = [one for one in every if one["status"] == "aborted"]
    assert {(one["reward"], len(one["tokens"]), one["response_length"]) for one in aborted} == {(None, 0, 0)}
    lengths = [one["response_length"] for one in every if one["status"] != "aborted"]
    assert 40 < min(lengths) < 100 and 380 < max(lengths) <= 400
    assert {len(one["weight_versions"]) for one in every} == {0, 1, 2, 3, 4}


def test_conversations_are_those_of_tool_users(run: Path, rollouts: Any) -> None:
    rows = [json.loads(line) for line in (run / "trajectory" / "5.jsonl").read_text().splitlines()]
    users = [one for one in rollouts[5] if isinstance(one["prompt"], list)]
    assert [row["sample_index"] for row in rows] == [one["index"] for one in users]
    for row, one in zip(rows, users, strict=True):
        said = [message for message in row["messages"] if message["role"] == "assistant"]
        assert len(said) == len(one["weight_versions"])
        assert all(message["reasoning_content"] in one["response"] for message in said)


def test_eval_indices_restart_with_the_second_set(run: Path) -> None:
    samples = load(run / "rollout_data" / "eval_6.pt")["samples"]
    assert [one["index"] for one in samples] == [*range(12), *range(8)]
    assert {one["group_index"] for one in samples} == {None}


def test_mirror_equals_the_rollout_file(run: Path, rollouts: Any) -> None:
    table = pl.read_parquet(run / "dashboard_columns" / "rollout_5.parquet")
    assert table["tokens"].to_list() == [one["tokens"] for one in rollouts[5]]
    assert table["loss_mask"].to_list() == [one["loss_mask"] for one in rollouts[5]]


def test_the_story_of_the_run(run: Path, rollouts: Any) -> None:
    rewards = np.array(
        [[np.nan if one["reward"] is None else one["reward"] for one in samples] for samples in rollouts]
    )
    early, peak, late = (np.nanmean(rewards[steps]) for steps in (slice(0, 4), slice(12, 18), slice(20, 24)))
    assert peak > early + 0.15 and peak > late + 0.05
    agreed = (np.nanstd(rewards.reshape(STEPS, 8, 4), axis=2) == 0).sum(axis=1)
    assert agreed[:6].mean() + 1.5 < agreed[-6:].mean()
    trend = [
        np.abs(np.concatenate([*trained_differences(run, rollouts[step], step).values()])) for step in (0, 8, 14, 22)
    ]
    means = [values.mean() for values in trend]
    assert 0.004 < means[0] < 0.009 and means[2] < 0.015 and 0.03 < means[3] < 0.06
    entropies = [np.concatenate([*joined(run, step)["entropy"].values()]).mean() for step in (0, 22)]
    assert entropies[1] < 0.8 * entropies[0]


def test_outliers_of_one_step_sit_in_one_shard(run: Path, rollouts: Any) -> None:
    differences = trained_differences(run, rollouts[BAD_SHARD_STEP], BAD_SHARD_STEP)
    far = {index for index, values in differences.items() if np.abs(values).max() > 3}
    shard = load(run / "train_data" / f"{BAD_SHARD_STEP}_{2 * BAD_SHARD}.pt")["rollout_data"]["sample_indices"]
    assert far == set(shard)


def test_written_a_minute_apart_up_to_two_minutes_ago(run: Path) -> None:
    times = [(run / "rollout_data" / f"{step}.pt").stat().st_mtime for step in range(STEPS)]
    assert times[-1] == NOW - 120
    assert set(np.diff(times)) == {60}


def test_telemetry_is_small_and_on_its_axes(run: Path) -> None:
    for path in (run / "dashboard").rglob("*.jsonl"):
        assert path.stat().st_size < 300_000
        assert all(isinstance(json.loads(line), dict) for line in path.read_text().splitlines())
    metrics = [json.loads(line) for line in (run / "dashboard" / "metrics.jsonl").read_text().splitlines()]
    steps = defaultdict(set)
    for record in metrics:
        assert record["metrics"][record["step_key"]] == record["step"]
        steps[record["step_key"]].add(record["step"])
    assert steps == {
        "rollout/step": set(range(24)),
        "train/step": set(range(23)),
        "eval/step": {0, 6, 12, 18},
    }


def contents(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_equal_seeds_give_equal_bytes(tmp_path: Path, run: Path) -> None:
    seen = []
    write_demo.write_demo(tmp_path / "a", steps=2, now=NOW, on_step=lambda done, steps: seen.append((done, steps)))
    write_demo.write_demo(tmp_path / "b", steps=2, now=NOW)
    write_demo.write_demo(tmp_path / "c", steps=2, now=NOW, seed=1)
    first = contents(tmp_path / "a")
    assert seen == [(1, 2), (2, 2)]
    assert first == contents(tmp_path / "b")
    assert first["rollout_data/0.pt"] != contents(tmp_path / "c")["rollout_data/0.pt"]
    assert first["rollout_data/0.pt"] == (run / "rollout_data" / "0.pt").read_bytes()


def test_a_run_grows_file_by_file(tmp_path: Path) -> None:
    write_demo.write_demo(tmp_path, steps=6)
    before = set(contents(tmp_path))
    landed = []
    for name in write_demo.grow(tmp_path, 6, 1):
        landed.append(name)
        new = set(contents(tmp_path)) - before
        assert {one for one in new if one.startswith(("rollout_data", "train_data"))} == set(landed) & new
        assert (tmp_path / name).exists()
    assert set(landed[:2]) == {"train_data/5_2.pt", "train_data/5_3.pt"}
    assert landed[2:5] == ["dashboard/metrics.jsonl", "rollout_data/eval_6.pt", "rollout_data/6.pt"]
    assert set(landed[5:9]) == {f"train_data/6_{rank}.pt" for rank in range(4)}
    assert landed[9:] == ["dashboard/metrics.jsonl"]


def test_an_open_train_phase_is_closed_by_growing(tmp_path: Path) -> None:
    write_demo.write_demo(tmp_path, steps=1)
    list(write_demo.grow(tmp_path, 1, 1))
    phases = [json.loads(line) for file in (tmp_path / "dashboard" / "phases").iterdir() for line in file.open()]
    opened = {(one["rank"], one["t0"]) for one in phases if one["name"] == "train" and one["t1"] == -1.0}
    closed = {(one["rank"], one["t0"]) for one in phases if one["name"] == "train" and one["t1"] != -1.0}
    assert len(opened) == 8 and opened == closed

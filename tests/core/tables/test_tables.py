"""The tables against the recorded runs: the peer's answers where it is right, the truth everywhere."""

from __future__ import annotations

import gzip
import json
import math
import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dumptui.core.files.step_files import StepKey
from dumptui.core.formats.rewards import default_entry
from dumptui.core.run.run import Run
from dumptui.core.sample.conversation import open_sidecar, read_conversation
from dumptui.core.step.load import load
from dumptui.core.tables import steps
from dumptui.core.tables.samples import samples as sample_table
from tests.support.reading import documents, groups, read, samples, step_row
from tests.support.writer import Layout, sample, write_step

RUNS = ("plain", "cp4_thd", "cp2_bshd", "shard_once", "shard_once_norank", "multiturn")
# The peer's own quirks, or names of its implementation.
SKIPPED = {"alignment_failed", "dumped_rank", "tool_calls", "reward"}


def load_json(path: Path) -> Any:
    return json.loads(gzip.decompress(path.read_bytes()))


def agree(shown: Any, peer: Any) -> bool:
    if peer in ("NaN", "Infinity", "-Infinity"):
        return shown is None or not math.isfinite(shown)
    if isinstance(peer, float) and isinstance(shown, (int, float)):
        return math.isclose(shown, peer, rel_tol=1e-5, abs_tol=1e-7)
    return bool(shown == peer)


@pytest.mark.parametrize("name", RUNS)
def test_samples_and_groups_are_the_peers(shared: Path, name: str) -> None:
    oracle = load_json(shared / "oracle" / f"{name}.json.gz")
    for files in Run.open(shared / "runs" / name).steps.values():
        entry = oracle["rollouts"].get(str(files.key.step))
        if files.key.evaluation or entry is None or "error" in entry["summary"]:
            continue
        step = load(files)
        for mine, peer in ((samples(step), entry["summary"]), (groups(step), entry["groups"])):
            assert len(mine) == len(peer["rows"])
            for row, theirs in zip(mine, peer["rows"], strict=True):
                for column, value in zip(peer["columns"], theirs, strict=True):
                    assert column in SKIPPED or agree(row[column], value), (files.key, column, row[column], value)


@pytest.mark.parametrize("name", [*RUNS, "cp4_legacy", "cp2_bshd_legacy", "late_column", "odd"])
def test_every_value_of_the_recorded_runs_is_true(shared: Path, name: str) -> None:
    truth = load_json(shared / "truth" / f"{name}.json.gz")
    for files in Run.open(shared / "runs" / name).steps.values():
        entry = truth["evals" if files.key.evaluation else "rollouts"][str(files.key.step)]
        lost = entry.get("unrecoverable_response_positions", {})
        for document, true in zip(documents(load(files)), entry["samples"], strict=True):
            for column in ("rollout_log_probs", "ref_log_probs", "entropy", "advantages", "returns", "values"):
                shown, full = document["fields"][column]["values"], true.get(column)
                if full is None or not true.get("in_train"):
                    continue
                gone = set(lost.get(str(true["sample_index"]), [])) if column != "rollout_log_probs" else set()
                mask = [m and at not in gone for at, m in enumerate(true["train"]["loss_mask"])]
                expected = [as_number(value) if m else None for value, m in zip(full, mask, strict=True)]
                got = [None] * len(full) if shown is None else shown
                loose = name == "odd"
                assert all(map(partial(close, loose), got, expected)), (files.key, true["sample_index"], column)


def as_number(value: float | str) -> float:
    return float(value.replace("Infinity", "inf")) if isinstance(value, str) else value


def close(loose: bool, shown: float | None, true: float | None) -> bool:
    """`loose` where the truth was taken before it was rounded to 16 bits."""
    if shown is None or true is None:
        return shown is true
    relative, absolute = (1e-2, 2e-3) if loose else (2e-6, 1e-7)
    return math.isclose(shown, true, rel_tol=relative, abs_tol=absolute) or (math.isnan(shown) and math.isnan(true))


def test_the_worked_numbers(tmp_path: Path) -> None:
    """rewards [1,1,1,1] have no deviation; versions ["3","5","x"] in rollout 6 are 3 stale."""
    batch = [sample(at, reward=1.0, weight_versions=["3", "5", "x"]) for at in range(4)]
    write_step(tmp_path, 6, batch, mirror=False)
    step = read(tmp_path, 6)
    assert [(row["reward_std"], row["zero_std"]) for row in groups(step)] == [(0.0, True)]
    names = ("weight_version", "weight_version_min", "mixed_version", "turns", "staleness")
    assert [samples(step)[0][name] for name in names] == ["x", 3, True, 3, 3]


def test_a_step_row_counts_what_it_has(tmp_path: Path) -> None:
    batch = [sample(at, group_index=at // 2, status="truncated" if at == 3 else "completed") for at in range(6)]
    write_step(tmp_path, 0, batch, Layout(dp=2), partition=[[0, 2], [4, 1]], mirror=False)
    row = step_row(read(tmp_path))
    assert (row["samples"], row["train_samples"], row["groups"], row["state"]) == (6, 4, 3, "partial")
    assert row["statuses"] == {"completed": 5, "truncated": 1}
    assert row["truncated_frac"] == pytest.approx(1 / 6)


def test_samples_without_a_group_are_one_group_after_the_others(tmp_path: Path) -> None:
    batch = [
        sample(0, group_index=None),
        sample(1, group_index=3),
        sample(2, group_index=None),
        sample(3, group_index=0),
    ]
    write_step(tmp_path, 0, batch, train=False, mirror=False)
    assert [(row["group_index"], row["samples"]) for row in groups(read(tmp_path))] == [
        (0, [3]),
        (3, [1]),
        (None, [0, 2]),
    ]


def test_tool_calls_are_those_that_the_model_made(tmp_path: Path) -> None:
    """Those of the prompt are not: it may hold the messages of an example, or of an earlier conversation."""
    made = {"role": "assistant", "tool_calls": [{"function": {"name": "f"}}, {"name": "g"}]}
    inline = "<think><tool_call>no</tool_call></think><tool_call>{}</tool_call>so<tool_call>f(1)</tool_call>"
    asked, result = {"role": "user", "content": "<tool_call>"}, {"role": "tool", "content": "<tool_call>x</tool_call>"}
    told: list[list[Any]] = [
        [asked, made, result, result, {"role": "assistant", "content": inline}],
        [asked, {"role": "assistant", "content": "none is needed"}],
        [asked, made, result, made],
    ]
    batch = [sample(0), sample(1), sample(2, prompt=[asked, made, result]), sample(3)]
    batch.append(sample(4, metadata={"messages": [asked, {"role": "assistant", "function_call": {"name": "f"}}]}))
    batch.append(sample(5, prompt=[asked, made, result]))
    rows = [{"sample_index": at, "status": "completed", "messages": one} for at, one in enumerate(told)]
    write_step(tmp_path, 0, batch, train=False, mirror=False, trajectory=rows)
    assert [row["tool_calls"] for row in samples(read(tmp_path))] == [4, 0, 2, None, 1, None]


def test_the_tools_column_counts_what_the_conversation_shows(shared: Path) -> None:
    step = read(shared / "runs/multiturn", 2)
    table = samples(step)
    assert sum(row["tool_calls"] or 0 for row in table) > 0
    for row, one in zip(table, step.samples, strict=True):
        talk = read_conversation(step, one, open_sidecar(step), None)
        if talk.note is None or "matched by order" in talk.note:
            assert row["tool_calls"] == sum(part.kind == "call" for message in talk.messages for part in message.parts)
        else:
            assert row["tool_calls"] is None


def test_a_row_a_train_file(tmp_path: Path) -> None:
    write_step(tmp_path, 0, [sample(at) for at in range(4)], Layout(tp=2, cp=2, dp=2), drop=[3], mirror=False)
    damaged = tmp_path / "train_data" / "0_6.pt"
    damaged.write_bytes(b"")
    os.utime(damaged, (0, 0))
    rows = steps.batch(read(tmp_path))
    assert [row["file"] for row in rows if row["state"] == "ok"] == [
        "0_0.pt",
        "0_1.pt",
        "0_2.pt",
        "0_4.pt",
        "0_5.pt",
        "0_7.pt",
    ]
    assert [(row["cp_rank"], row["dp_shard"], row["rows"]) for row in rows[:3]] == [(0, 0, 2), (0, 0, 2), (1, 0, 2)]
    broken = rows[-1]
    assert (broken["file"], broken["rank"], broken["state"], broken["rows"]) == ("0_6.pt", 6, "unreadable", None)


def test_a_lost_slice_makes_a_step_partial_and_is_told_in_its_row(tmp_path: Path) -> None:
    write_step(tmp_path, 0, [sample(0, response_len=40)], Layout(cp=2), drop={1})
    row = step_row(read(tmp_path))
    assert (row["state"], row["train_samples"], row["reason"]) == ("partial", 1, "cp rank 1 of 2 missing")
    write_step(tmp_path, 0, [sample(0, response_len=40)], Layout(cp=2))
    row = step_row(read(tmp_path))
    assert (row["state"], row["reason"]) == ("ok", None)


@pytest.mark.parametrize(
    ("rewards", "entry"),
    [
        ([{"format": 1.0, "score": 0.5}] * 4, "score"),
        ([{"format": 1.0, "acc": 0.5, "reward": 2.0}] * 4, "reward"),
        ([{"format": 1.0, "note": "text", "em": 0.5}] * 4, "format"),
    ],
)
def test_an_entry_of_rewards_that_are_dicts_is_the_reward(
    tmp_path: Path, rewards: list[dict[str, float]], entry: str
) -> None:
    root = tmp_path / "run"
    write_step(root, 0, [sample(at, reward=reward) for at, reward in enumerate(rewards)], train=False)
    table = sample_table(load(Run.open(root).steps[StepKey(0)]))
    assert {row["reward_entry"] for row in table} == {entry}
    assert [row["reward"] for row in table] == [reward[entry] for reward in rewards]


def test_the_entry_that_the_trainer_used_goes_before_a_usual_name() -> None:
    rewards = [{"score": 1.0, "em": 0.0}, {"score": 0.0, "em": 1.0}, {"score": 1.0, "em": 1.0}]
    assert default_entry(rewards, [0.0, 1.0, None]) == "em"
    assert default_entry(rewards, [1.0, 0.0, 1.0]) == "score"
    assert default_entry(rewards, [7.0, 8.0, 9.0]) == default_entry(rewards, ()) == "score"
    assert default_entry([1.0, None], [1.0, 2.0]) is None

"""The tools table: calls and failures by tool, the rewards with and without failures, and the time of samples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dumptui.core.files.step_files import StepKey
from dumptui.core.run.run import Run
from dumptui.core.sample.tool_calls import outcome
from dumptui.core.tables.tools import by_sample, by_tool, tool_uses
from dumptui.core.telemetry.lifecycle import read_lifecycles
from dumptui.core.telemetry.telemetry import Telemetry
from dumptui.core.types import Record
from tests.support.reading import read, samples
from tests.support.streams import MIDNIGHT, append
from tests.support.writer import sample, write_step

USER = {"role": "user", "content": "q"}


def asks(*names: str) -> dict[str, Any]:
    return {"role": "assistant", "tool_calls": [{"id": name, "function": {"name": name}} for name in names]}


def result(name: str, content: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": name, "name": name, "content": content}


def tables(root: Path, told: list[list[Any]], rewards: list[float], **more: Any) -> tuple[list[Record], list[Record]]:
    batch = [sample(at, reward=reward, group_index=0) for at, reward in enumerate(rewards)]
    rows = [{"sample_index": at, "status": "completed", "messages": messages} for at, messages in enumerate(told)]
    write_step(root, 0, batch, train=False, mirror=False, trajectory=rows)
    return tables_of(root)


def tables_of(root: Path) -> tuple[list[Record], list[Record]]:
    step = read(root)
    indices = [one.index for one in step.samples if one.index is not None]
    lives = read_lifecycles(Telemetry(root), StepKey(0), indices)
    uses = tool_uses(step, samples(step), lives)
    return by_tool(uses), by_sample(uses)


def test_rewards_are_told_apart_by_whether_a_call_failed(tmp_path: Path) -> None:
    told = [
        [USER, asks("look", "run"), result("run", "Traceback (most recent call last):\n x"), result("look", "42")],
        [USER, asks("look"), result("look", "43"), {"role": "assistant", "content": "so"}],
        [USER, asks("run")],
        [USER, {"role": "assistant", "content": "no tool"}],
    ]
    rows, _ = tables(tmp_path, told, [0.0, 1.0, 0.5, 0.25, 1.0])
    names = ("calls", "failed", "no_result", "samples", "reward_mean", "reward_failed", "reward_ok")
    assert {row["tool"]: tuple(row[name] for name in names) for row in rows} == {
        "run": (2, 1, 1, 2, 0.25, 0.0, None),
        "look": (2, 0, 0, 2, 0.5, None, 0.5),
        "any tool": (4, 1, 1, 3, 0.5, 0.0, 1.0),
        "no tool": (None, None, None, 1, 0.25, None, None),
        "not recorded": (None, None, None, 1, 1.0, None, None),
    }


def test_rewards_are_those_that_the_groups_compare(demo: Path) -> None:
    """Samples without a train row count with their own reward, which their raw reward lacks."""
    from dumptui.core.tables.group_members import known_rewards

    step = read(demo, 3)
    table = samples(step)
    uses = tool_uses(step, table, {})
    known = known_rewards(table, False)
    assert [use.reward for use in uses] == known and any(row["raw_reward"] is None for row in table)
    assert sum(int(str(row["rewarded"])) for row in by_tool(uses) if row["scope"] in ("any", "none", "unknown")) == sum(
        reward is not None for reward in known
    )


def test_a_result_without_a_call_counts_as_one_in_an_unknown_form(tmp_path: Path) -> None:
    told = [[USER, {"role": "assistant", "content": "[search: x]"}, {"role": "tool", "name": "search", "content": "y"}]]
    rows, _ = tables(tmp_path, told, [1.0])
    assert [(row["tool"], row["calls"]) for row in rows] == [("search", 1), ("any tool", 1)]
    assert [row["tool_calls"] for row in samples(read(tmp_path))] == [1]


@pytest.mark.parametrize(
    ("content", "failed"),
    [
        ("Traceback (most recent call last):\n  File", True),
        ("ValueError: no", True),
        ("Error: no such file", True),
        ("The request timed out", True),
        ('{"error": "timeout after 30s"}', True),
        ('{"error": null, "result": 1}', False),
        ('{"exit_code": 1, "stdout": ""}', True),
        ('{"exit_code": 0}', False),
        ('{"status": "error"}', True),
        ('{"success": false}', True),
        ("Error correction is a technique", False),
        ("Paris has a population of 2,102,650", False),
        ("no errors found", False),
        ("", False),
    ],
)
def test_which_results_are_errors(content: str, failed: bool) -> None:
    assert outcome({"role": "tool", "content": content}) == ("failed" if failed else "ok")
    assert outcome({"role": "tool", "content": [{"type": "text", "text": content}]}) == ("failed" if failed else "ok")


def event(at: float, kind: str, index: int, turn: int = -1, detail: str = "") -> Record:
    place = {"sample_index": index, "group_index": 0, "turn": turn, "weight_version": ""}
    return {"ts": MIDNIGHT + at, "kind": kind, **place, "detail": detail}


def test_samples_that_ended_last_come_first_with_their_seconds(tmp_path: Path) -> None:
    told = [[USER, asks("look"), result("look", "42")], [USER, asks("look", "run"), result("look", "42")]]
    events = []
    for index, begun in enumerate((0.0, 1.0)):
        events += [
            event(begun, "attempt_start", index),
            event(begun + 1, "gen_start", index, 1),
            event(begun + 2, "gen_end", index, 1),
            event(begun + 2, "tool_start", index, 1, "1 calls"),
            event(begun + 4, "tool_end", index, 1, f"{index + 1} calls"),
            event(begun + 4.5, "attempt_end", index),
        ]
    append(tmp_path, "trajectories", *events)
    rows, by_end = tables(tmp_path, told, [1.0, 0.0])
    shown = [
        (row["sample_index"], row["ended"], row["in_tools"], row["generating"], row["span_calls"]) for row in by_end
    ]
    assert shown == [(1, 5.5, 2.0, 1.0, 2), (0, 4.5, 2.0, 1.0, 1)]
    timed = {row["tool"]: (row["timed_calls"], row["seconds_per_call"]) for row in rows}
    assert timed == {"look": (1, 2.0), "run": (0, None), "any tool": (3, pytest.approx(4 / 3))}


def test_the_lifecycles_of_a_step_are_those_of_each_sample(shared: Path) -> None:
    from dumptui.core.telemetry.lifecycle import read_lifecycle

    root = shared / "runs/multiturn"
    telemetry = Telemetry(root)
    for key in Run.open(root).steps:
        found = read_lifecycles(telemetry, key, range(50))
        assert found == {at: life for at in range(50) if (life := read_lifecycle(telemetry, key, at)) is not None}
        assert bool(found) != key.evaluation

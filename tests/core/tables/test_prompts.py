"""Prompts over the steps: what identifies one, how often it was solved, and what changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dumptui.core.files.step_files import StepKey
from dumptui.core.run.run import Run
from dumptui.core.store.cache import Cache
from dumptui.core.store.summaries import Summaries
from dumptui.core.tables.prompts import PromptHistory
from dumptui.core.types import Record
from tests.support.writer import sample, write_step


def write(root: Path, rewards: dict[str, list[list[float | None]]], **more: Any) -> None:
    """Write a step for each list of rewards; an empty one leaves the prompt out of it."""
    for step in range(max(map(len, rewards.values()))):
        batch: list[dict[str, Any]] = []
        for group, (prompt, steps) in enumerate(rewards.items()):
            for reward in steps[step]:
                at = 100 * step + len(batch)
                batch.append(sample(at, prompt=prompt, group_index=10 * step + group, reward=reward, **more))
        write_step(root, step, batch, train=False, mirror=False)


def history(root: Path, cache: Path | None = None) -> tuple[list[Record], dict[str, int]]:
    run = Run.open(root)
    found = PromptHistory()
    for key, prompts in Summaries(run, Cache(root, cache)).prompts().all(run.steps):
        found.add(key, prompts)
    return found.rows()


REWARDS: dict[str, list[list[float | None]]] = {
    "a": [[0, 0], [0, 0], [0, 0]],
    "b": [[1, 1], [1, 1], []],
    "c": [[0, 0], [0, 0], [0, 1]],
    "d": [[0, 1], [], [0, 0]],
    "e": [[0, 1], [1, 1], [0, 1]],
    "f": [[None], [None], [None]],
    "g": [[0, 0], [1, 0], [None, None]],
}


def test_each_kind_of_prompt_is_listed_with_its_rates(tmp_path: Path) -> None:
    write(tmp_path, REWARDS)
    rows, counts = history(tmp_path)
    assert [(row["prompt"], row["change"], row["rates"]) for row in rows if row["prompt"] != "g"] == [
        ("a", "never solved", [0.0, 0.0, 0.0]),
        ("d", "forgotten", [0.5, 0.0]),
        ("c", "newly solved", [0.0, 0.0, 0.5]),
        ("e", "sometimes solved", [0.5, 1.0, 0.5]),
        ("b", "always solved", [1.0, 1.0]),
        ("f", "no solve rate", [None, None, None]),
    ]
    [without_newest] = [row for row in rows if row["prompt"] == "g"]  # a step without rewards does not count
    assert (without_newest["change"], without_newest["rates"]) == ("newly solved", [0.0, 0.5, None])
    assert counts == {
        "never solved": 1,
        "forgotten": 1,
        "newly solved": 2,
        "sometimes solved": 1,
        "always solved": 1,
        "no solve rate": 1,
    }
    first = rows[0]
    assert (first["steps"], first["first_step"], first["last_step"], first["group"]) == (3, 0, 2, 20)
    assert (first["attempts"], first["rewarded"], first["solved"], first["reward_mean"]) == (6, 6, 0, 0.0)


def test_rewards_with_more_values_have_no_solve_rate(tmp_path: Path) -> None:
    write(tmp_path, {"a": [[0.5, 1.0]], "b": [[0.0, 0.0]]})
    rows, _ = history(tmp_path)
    assert [(row["change"], row["solved"], row["rates"]) for row in rows] == [("no solve rate", None, [None])] * 2
    assert {row["prompt"]: row["reward_mean"] for row in rows} == {"a": 0.75, "b": 0.0}


def test_prompts_differ_by_id_label_and_data_set(tmp_path: Path) -> None:
    told: list[dict[str, Any]] = [
        {"label": "1"},
        {"label": "2"},
        {"label": "1", "metadata": {"data_source": "x"}},
        {"label": "1", "metadata": {"id": 7}},
    ]
    for step in range(2):
        batch = [sample(at + 10 * step, prompt="q", group_index=at, reward=1.0, **one) for at, one in enumerate(told)]
        batch[3] = sample(13 + step, prompt=f"q{step}", group_index=3, reward=1.0, label="1", metadata={"id": 7})
        write_step(tmp_path, step, batch, train=False, mirror=False)
    rows, _ = history(tmp_path)
    assert [row["steps"] for row in rows] == [2, 2, 2, 2]


def test_the_same_text_in_two_groups_of_a_step_is_one_prompt(tmp_path: Path) -> None:
    batch = [sample(at, prompt="q", group_index=at, reward=float(at)) for at in range(2)]
    write_step(tmp_path, 0, batch, train=False, mirror=False)
    [row], _ = history(tmp_path)
    assert (row["steps"], row["attempts"], row["rates"]) == (1, 2, [0.5])


def test_prompts_come_from_the_cache_until_a_step_changes(tmp_path: Path) -> None:
    root, cache = tmp_path / "run", tmp_path / "cache"
    write(root, REWARDS)
    first = history(root, cache)
    run = Run.open(root)
    assert all(Summaries(run, Cache(root, cache)).prompts().known(key) is not None for key in run.steps)
    assert history(root, cache) == first
    write_step(root, 2, [sample(500, prompt="a", reward=1.0, group_index=20)], train=False, mirror=False)
    changed = Summaries(Run.open(root), Cache(root, cache)).prompts()
    assert changed.known(StepKey(2)) is None and changed.known(StepKey(1)) is not None
    rows, _ = history(root, cache)
    assert {row["prompt"]: row["change"] for row in rows}["a"] == "newly solved"


def test_each_kind_is_listed_up_to_the_limit(tmp_path: Path) -> None:
    rewards: dict[str, list[list[float | None]]] = {f"a{at}": [[0, 0]] for at in range(5)}
    rewards |= {f"b{at}": [[1, 1]] for at in range(5)}
    write(tmp_path, rewards)
    run = Run.open(tmp_path)
    found = PromptHistory()
    for key, prompts in Summaries(run, Cache(tmp_path, None)).prompts().all(run.steps):
        found.add(key, prompts)
    rows, counts = found.rows(limit=2)
    assert [row["change"] for row in rows] == ["never solved"] * 2 + ["always solved"] * 2
    assert counts == {"never solved": 5, "always solved": 5}

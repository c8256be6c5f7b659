"""Which samples answer the same prompt, and which of them are one attempt.

Public reports: radixark/miles#1930, #1929, #2710 (siblings of one execution, cases.md case 23), radixark/miles#2881.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dumptui.core.sample.facts import identity
from dumptui.core.step.grouping import mates
from dumptui.core.tables.group_members import mean_passes, ranked
from tests.support.reading import elsewhere, groups, read, samples, step_row
from tests.support.screen import press, until_shown
from tests.support.session import go, opened
from tests.support.writer import sample, write_step

Json = dict[str, Any]


def eval_groups(path: Path, *samples_: Json) -> list[list[int]]:
    made = [sample(at, group_index=None, prompt="the question", **fields) for at, fields in enumerate(samples_)]
    write_step(path, 0, made, evaluation=True, mirror=False)
    return [row["samples"] for row in groups(read(path, evaluation=True))]


# Questions of equal text ------------------------------------------------------------------------------------------


def test_another_label_is_another_question(tmp_path: Path) -> None:
    assert eval_groups(tmp_path, *[{"label": label} for label in "4477"]) == [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    "media",
    [
        lambda at: {"images": [np.full((2, 2), at, np.uint8)]},
        lambda at: {"images": [elsewhere("PIL.Image", "Image", mode="L", data=bytes([at]))]},
        lambda at: {"images": [torch.full((3,), float(at))]},
    ],
)
@pytest.mark.parametrize("name", ["multimodal_inputs", "multimodal_train_inputs"])
def test_other_media_are_another_question(tmp_path: Path, media: Any, name: str) -> None:
    assert eval_groups(tmp_path, *[{name: media(at // 2)} for at in range(6)]) == [[0, 1], [2, 3], [4, 5]]


def test_other_metadata_of_the_data_set_are_another_question(tmp_path: Path) -> None:
    kept = [{"metadata": {"level": at // 2, "set": "math", "seconds": at * 0.5}} for at in range(6)]
    assert eval_groups(tmp_path / "a", *kept) == [[0, 1], [2, 3], [4, 5]]
    generated = [{"metadata": {"seconds": at * 0.5, "lifecycle": at // 2}} for at in range(6)]
    assert eval_groups(tmp_path / "b", *generated) == [[0, 1, 2, 3, 4, 5]]
    uneven = [{"metadata": {"answer": at > 0}} for at in range(4)]
    assert eval_groups(tmp_path / "c", *uneven) == [[0, 1, 2, 3]]


def test_questions_that_are_asked_once(tmp_path: Path) -> None:
    """Another question of the data set is asked once, so that each of these is too."""
    made = [{"metadata": {"id": at}, "label": "a" if at < 3 else "b"} for at in range(4)]
    assert eval_groups(tmp_path, *made) == [[0], [1], [2], [3]]


# Adapters ---------------------------------------------------------------------------------------------------------


def adapters(path: Path, metadata: Json | None = None, *, named: bool = True) -> Path:
    """Two adapters that both count their prompts from 0, two prompts each of two samples."""
    made = [
        sample(at, group_index=at // 2 % 2, reward=float(at < 4), adapter=ref(at // 4) if named else None)
        for at in range(8)
    ]
    write_step(path, 0, made, metadata=metadata, mirror=False)
    return path


def ref(slot: int) -> Any:
    return elsewhere("miles.utils.types", "AdapterRef", name=f"adapter-{slot}", slot=slot)


def test_adapters_that_count_from_zero_have_groups_of_their_own(tmp_path: Path) -> None:
    step = read(adapters(tmp_path))
    found = groups(step)
    assert [(row["group_index"], row["adapter"], row["samples"]) for row in found] == [
        (0, "adapter-0", [0, 1]),
        (0, "adapter-1", [4, 5]),
        (1, "adapter-0", [2, 3]),
        (1, "adapter-1", [6, 7]),
    ]
    row = step_row(step)
    assert (row["groups"], row["zero_std_frac"]) == (4, 1.0)
    assert [one.index for one in mates(step, 4)] == [4, 5]
    assert identity(step, step.samples[5])["group"] == "0, 2 of 2"


def test_the_recorded_sizes_tell_where_no_adapter_does(tmp_path: Path) -> None:
    step = read(adapters(tmp_path, {"prompt_group_sizes": [2, 2, 2, 2]}, named=False))
    assert [row["samples"] for row in groups(step)] == [[0, 1], [4, 5], [2, 3], [6, 7]]
    step = read(adapters(tmp_path, {"prompt_group_sizes": [2, 2, 2]}, named=False))
    assert [row["samples"] for row in groups(step)] == [[0, 1, 4, 5], [2, 3, 6, 7]]


def test_samples_of_a_prompt_stay_one_group_whatever_adapter_they_name(shared: Path) -> None:
    assert step_row(read(shared / "runs" / "odd", 2))["groups"] == 4


async def test_on_screen_each_adapter_has_its_group(tmp_path: Path) -> None:
    async with opened(adapters(tmp_path), size=(120, 40)) as (_, pilot):
        await until_shown(pilot, "8 samples in 4 groups", "group 0: 1.00  1.00   zero-std")
        await go(pilot, "6", "down")
        await until_shown(pilot, "group 0 of adapter adapter-1 · 2 samples")


# Attempts ---------------------------------------------------------------------------------------------------------


def forked(path: Path, rewards: list[float], executions: list[int | None], *, train: bool = True) -> Path:
    pairs = enumerate(zip(rewards, executions, strict=True))
    made = [sample(at, group_index=0, reward=reward, rollout_id=execution) for at, (reward, execution) in pairs]
    write_step(path, 0, made, train=train, mirror=False)
    return path


def test_leaves_of_one_execution_are_one_attempt(tmp_path: Path) -> None:
    step = read(forked(tmp_path, [1.0, 1.0, 1.0, 0.0], [0, 0, 0, 1]))
    (row,) = groups(step)
    assert (row["n"], row["attempts"], row["rewarded"], row["reward_mean"]) == (4, 2, 2, 0.5)
    assert (row["pass_at_1"], row["pass_at_k"]) == (0.5, 1.0)
    (group,) = ranked(samples(step), [row], False)
    assert group.attempts == (1.0, 0.0) and group.mean == 0.5 and mean_passes([group]) == {1: 0.5, 2: 1.0}
    whole = step_row(step)
    assert (whole["reward_mean"], whole["reward_episode_mean"]) == (0.75, 0.5)


def test_leaves_that_differ_teach_nothing_where_their_executions_are_equal(tmp_path: Path) -> None:
    step = read(forked(tmp_path, [1.0, 0.0, 0.5], [7, 7, 8]))
    (row,) = groups(step)
    assert row["zero_std"] and row["zero_std_known"] and step_row(step)["zero_std_frac"] == 1.0
    assert ranked(samples(step), [row], False)[0].spread == "zero-std"


def test_one_execution_is_nothing_to_compare(tmp_path: Path) -> None:
    step = read(forked(tmp_path, [1.0, 0.0, 1.0], [7, 7, 7]))
    (row,) = groups(step)
    assert not row["zero_std_known"] and step_row(step)["zero_std_frac"] is None
    assert ranked(samples(step), [row], False)[0].spread == "single"


async def test_on_screen_executions_are_counted(tmp_path: Path) -> None:
    async with opened(forked(tmp_path, [1.0, 1.0, 1.0, 0.0], [0, 0, 0, 1]), size=(120, 40)) as (_, pilot):
        await press(pilot, "6")
        await until_shown(pilot, "4 samples of 2 executions", "pass@1 0.50")


# Unknown groups ---------------------------------------------------------------------------------------------------


def test_a_folder_of_train_files_alone_has_no_known_number_of_groups(tmp_path: Path) -> None:
    write_step(tmp_path, 0, [sample(at) for at in range(8)], mirror=False)
    shutil.rmtree(tmp_path / "rollout_data")
    step = read(tmp_path)
    row = step_row(step)
    assert (row["groups"], row["zero_std_frac"], row["samples"]) == (None, None, 8)
    (group,) = groups(step)
    assert (group["group_index"], group["n"], group["zero_std"], group["pass_at_1"]) == (None, 8, False, None)


def test_samples_without_a_group_are_not_compared(tmp_path: Path) -> None:
    write_step(tmp_path, 0, [sample(at, group_index=None, reward=1.0) for at in range(4)], mirror=False)
    step = read(tmp_path)
    assert (step_row(step)["groups"], step_row(step)["zero_std_frac"]) == (None, None)
    assert [group.spread for group in ranked(samples(step), groups(step), False)] == ["unknown"]

"""Rollout samples in the shapes that every year and framework dumped them in."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dumptui.core.errors import DumpError
from dumptui.core.formats.miles.rollout_file import read_rollout
from dumptui.core.formats.rewards import reward_value
from dumptui.core.formats.sample import Sample, datasets
from dumptui.core.step.grouping import prompt_groups
from tests.support import writer
from tests.support.reading import ELSEWHERE, elsewhere
from tests.support.writer import write_step

Json = dict[str, Any]


@pytest.fixture(autouse=True)
def forget_elsewhere() -> Iterator[None]:
    yield
    ELSEWHERE.forget()


def sample(**fields: Any) -> Json:
    return writer.sample(0, response_len=4, **fields)


def saved(folder: Path, payload: object) -> Path:
    torch.save(payload, folder / "0.pt")
    return folder / "0.pt"


def one(folder: Path, **fields: Any) -> Sample:
    path = saved(folder, {"rollout_id": 0, "samples": [sample(**fields)]})
    return read_rollout(path, 0, False).samples[0]


# Files ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrapped", [True, False])
def test_the_bare_list_of_old_dumps(tmp_path: Path, wrapped: bool) -> None:
    listed = [sample(), sample()]
    rollout = read_rollout(saved(tmp_path, {"samples": listed} if wrapped else listed), 0, False)
    assert [(s.index, s.occurrence) for s in rollout.samples] == [(0, 0), (0, 1)]


@pytest.mark.parametrize("payload", [3, {"samples": None}, {"rollout_data": {}}, "text"])
def test_what_holds_no_samples_says_so(tmp_path: Path, payload: object) -> None:
    with pytest.raises(DumpError, match="not a rollout dump: it holds no list of samples"):
        read_rollout(saved(tmp_path, payload), 0, False)


def test_the_number_inside_has_to_be_that_of_the_name(tmp_path: Path) -> None:
    rollout = read_rollout(saved(tmp_path, {"rollout_id": 5, "samples": []}), 0, False)
    assert rollout.notes == ("the name says step 0, the content says 5",)


def test_entries_that_are_no_samples_are_listed(tmp_path: Path) -> None:
    rollout = read_rollout(saved(tmp_path, {"samples": [None, sample(), 3]}), 0, False)
    assert [s.response_length for s in rollout.samples] == [0, 4, 0]
    assert rollout.samples[0].notes == ("is NoneType, not a sample",)


# Arrays ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [list, tuple, np.array, torch.tensor, lambda v: torch.tensor(v)[None]])
def test_a_list_of_numbers_may_be_of_any_kind(tmp_path: Path, kind: Any) -> None:
    read = one(tmp_path, tokens=kind([5, 6, 7, 8, 9]), loss_mask=kind([1, 0, 1, 1]), rollout_log_probs=kind([-0.5] * 4))
    assert read.tokens.tolist() == [5, 6, 7, 8, 9] and read.tokens.dtype == np.int64
    assert read.loss_mask is not None and read.loss_mask.tolist() == [1, 0, 1, 1]
    assert read.rollout_log_probs is not None and read.rollout_log_probs.tolist() == [-0.5] * 4
    assert read.notes == ()


def test_long_lists_of_numbers(tmp_path: Path) -> None:
    read = one(
        tmp_path, tokens=list(range(300)), response_length=200, rollout_log_probs=[-0.25] * 200, loss_mask=[1] * 200
    )
    assert read.tokens.tolist() == list(range(300))
    assert read.rollout_log_probs is not None and set(read.rollout_log_probs.tolist()) == {-0.25}


def test_nan_and_infinity_are_values_and_none_is_not(tmp_path: Path) -> None:
    read = one(tmp_path, rollout_log_probs=[math.nan, -math.inf, None, -1.0])
    assert read.rollout_log_probs is not None
    assert np.array_equal(read.rollout_log_probs[[0, 1, 3]], [math.nan, -math.inf, -1.0], equal_nan=True)
    assert read.unscored.tolist() == [2]
    assert read.notes == ("rollout_log_probs holds 1 entries that are not numbers",)


@pytest.mark.parametrize("values", ["abcd", {"a": 1}, [[-0.1, 5], [-0.2, 6]], ["x", "y"], [None, None]])
def test_what_is_no_list_of_numbers_is_not_shown_as_one(tmp_path: Path, values: object) -> None:
    read = one(tmp_path, rollout_log_probs=values)
    assert read.rollout_log_probs is not None and not len(read.rollout_log_probs)
    assert read.notes == ("rollout_log_probs is not a list of numbers",)


@pytest.mark.parametrize("tokens", [[1.5, 2.0, 3.0, 4.0], ["1", "2", "3", "4"], [[1, 2], [3, 4]], [1, 2**70, 3, 4]])
def test_token_ids_are_whole_numbers(tmp_path: Path, tokens: object) -> None:
    read = one(tmp_path, tokens=tokens)
    assert len(read.tokens) == 0 and "tokens is not a list of integers" in read.notes


def test_sentinels_of_media_are_token_ids(tmp_path: Path) -> None:
    assert one(tmp_path, tokens=[-101, -102, 1, 2, 3, 4]).tokens.tolist() == [-101, -102, 1, 2, 3, 4]


@pytest.mark.parametrize("weights", [[0.5, 0.0, 1.0, True], [1, 0, 0.5, 1], [1, 0, 300, 2], [True, False, 1, 1]])
def test_a_mask_of_weights_is_a_mask(tmp_path: Path, weights: list[float]) -> None:
    mask = one(tmp_path, loss_mask=weights).loss_mask
    assert mask is not None and mask.tolist() == [1, 0, 1, 1]


def test_a_mask_that_begins_with_whole_numbers_may_go_on_with_something_else(tmp_path: Path) -> None:
    read = one(tmp_path, loss_mask=[1, -1, 1, None])
    assert read.loss_mask is not None and read.loss_mask.tolist()[:3] == [1, 0, 1]
    assert read.notes == ("loss_mask holds 1 entries that are not numbers",)


@pytest.mark.parametrize(("dumped", "read_as"), [(-3, 0), (10**12, 8), (None, 4), ("4", 4), (4.0, 4)])
def test_a_length_that_cannot_be_is_said_and_costs_no_memory(tmp_path: Path, dumped: object, read_as: int) -> None:
    read = one(tmp_path, response_length=dumped)
    assert read.response_length == read_as
    assert (read.notes == ()) == (dumped == 4)


def test_a_response_longer_than_all_its_tokens(tmp_path: Path) -> None:
    read = one(tmp_path, tokens=[])
    assert (read.total_length, read.prompt_length, read.response_length) == (0, 0, 4)
    assert read.notes == ("the response of 4 tokens is longer than the sample's 0 tokens",)


# Rewards --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reward", "number"),
    [
        (1, 1.0),
        (True, 1.0),
        (-0.5, -0.5),
        (np.float32(0.5), 0.5),
        (np.int64(3), 3.0),
        (np.bool_(True), 1.0),
        (torch.tensor(0.25), 0.25),
        (torch.tensor([2], dtype=torch.bfloat16), 2.0),
        (None, None),
        ("0.5", None),
        ([1.0, 2.0], None),
        (torch.zeros(3), None),
        (10**400, None),
        ({"score": 1.0}, None),
    ],
)
def test_a_reward_is_a_number_or_none(tmp_path: Path, reward: object, number: float | None) -> None:
    assert reward_value(one(tmp_path, reward=reward).reward) == number


def test_nan_is_a_reward(tmp_path: Path) -> None:
    value = reward_value(one(tmp_path, reward=math.nan).reward)
    assert value is not None and math.isnan(value)


def test_a_key_chooses_from_a_dict(tmp_path: Path) -> None:
    reward = one(tmp_path, reward={"score": torch.tensor(0.5), "acc": True, "text": "fine"}).reward
    assert [reward_value(reward, key) for key in ("score", "acc", "text", "other", None)] == [
        0.5,
        1.0,
        None,
        None,
        None,
    ]


# Statuses and keys ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("status", "text"), [("evicted", "evicted"), (None, "unknown"), (3, "3")])
def test_any_status_is_shown(tmp_path: Path, status: object, text: str) -> None:
    assert one(tmp_path, status=status).status == text


def test_keys_that_are_not_known_are_kept(tmp_path: Path) -> None:
    read = one(tmp_path, session_id="s-1", rollout_entropy=[0.5, 0.25, 0.5, 0.5], trace={"version": 1}, adapter=None)
    assert read.extra["session_id"] == "s-1" and read.extra["trace"] == {"version": 1}
    assert isinstance(read.extra["rollout_entropy"], np.ndarray)
    assert "adapter" not in read.extra


# Weight versions ------------------------------------------------------------------------------------------

SPANS = [{"version": "3", "abs_start": 10, "abs_end": 14}, {"version": "4", "abs_start": 14, "abs_end": 20}]
LATER = [{"version": "4", "abs_start": 30, "abs_end": 33}]


def record(spans: list[Json]) -> Json:
    return {"spans": spans, "prefill_spans": [{"version": "2", "abs_start": 0, "abs_end": 10}], "output_start": 10}


def call_of(spans: list[Json]) -> object:
    return elsewhere("miles.utils.types", "WeightVersionsPerCall", **record(spans))


def call_of_objects(spans: list[Json]) -> object:
    return call_of([elsewhere("miles.utils.types", "Span", **span) for span in spans])


@pytest.mark.parametrize("call", [list, record, call_of, call_of_objects])
def test_versions_of_spans(tmp_path: Path, call: Callable[[list[Json]], object]) -> None:
    """radixark/miles#1892: a list of strings became, per call, a list of spans over token positions."""
    read = one(tmp_path, weight_versions=[call(SPANS), call(LATER)])
    assert read.versions == ["3", "4", "4"] and len(read.calls) == 2
    assert [read.version_at(at) for at in (9, 10, 12, 14, 19, 20, 25, 32, 33)] == [
        None, "3", "3", "4", "4", None, None, "4", None,
    ]  # fmt: skip


@pytest.mark.parametrize("dumped", [["3", "5"], ("3", "5"), [3, 5], np.array([3, 5]), torch.tensor([3, 5])])
def test_versions_of_calls_have_no_positions(tmp_path: Path, dumped: object) -> None:
    read = one(tmp_path, weight_versions=dumped)
    assert read.versions == ["3", "5"] and len(read.calls) == 2
    assert read.version_at(0) is read.version_at(5) is None


@pytest.mark.parametrize("dumped", [None, [], "7", ["default"], [None], [[]], [{"spans": []}], 5.5])
def test_odd_versions(tmp_path: Path, dumped: object) -> None:
    read = one(tmp_path, weight_versions=dumped)
    assert read.versions in ([], ["7"], ["default"]) and read.version_at(3) is None


def test_prefill_is_told_apart(tmp_path: Path) -> None:
    read = one(tmp_path, weight_versions=[record(SPANS)])
    assert [span.version for span in read.calls[0].prefill] == ["2"]


# Evaluations ----------------------------------------------------------------------------------------------


def evals(folder: Path, rows: list[tuple[int | None, object]]) -> list[Sample]:
    listed = [writer.sample(index, prompt=prompt, group_index=None) for index, prompt in rows]
    write_step(folder, 0, listed, evaluation=True, mirror=False)
    return list(read_rollout(folder / "rollout_data" / "eval_0.pt", 0, True).samples)


def test_a_drop_of_the_index_begins_the_next_dataset(tmp_path: Path) -> None:
    rows = evals(tmp_path, [(0, "a"), (1, "a"), (1, "a"), (2, "b"), (0, "c"), (None, "c"), (1, "d"), (0, "d")])
    assert datasets(rows) == [0, 0, 0, 0, 1, 1, 1, 2]
    assert prompt_groups(rows) == [0, 0, 0, 1, 2, 2, 3, 4]


def test_prompts_of_messages_and_token_ids(tmp_path: Path) -> None:
    message = [{"role": "user", "content": "hello"}]
    ids = list(range(100))
    rows = evals(tmp_path, [(0, message), (1, list(message)), (2, ids), (3, ids), (4, [*ids, 1]), (5, None), (6, None)])
    assert prompt_groups(rows) == [0, 0, 1, 1, 2, None, None]


def test_placeholder_objects_stand_for_samples(tmp_path: Path) -> None:
    """Forks pickle the Sample itself: its attributes are read, its class is not needed."""
    path = saved(tmp_path, {"samples": [elsewhere("miles.utils.types", "Sample", **sample(reward=0.5))]})
    read = read_rollout(path, 0, False).samples[0]
    assert (read.response_length, read.reward, read.notes) == (4, 0.5, ())

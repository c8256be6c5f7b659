"""Public reports on the values in dumps: each is rebuilt small, and what is shown is held against what is right."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dumptui.core.run.run import Run
from dumptui.core.sample import conversation
from dumptui.core.sample.facts import sample_facts
from dumptui.core.sample.view import MASKED, MISSING, PROMPT, TRAINED, view_sample
from dumptui.core.step.field_survey import survey
from dumptui.core.tables import steps, tokens
from dumptui.core.text import visible
from dumptui.tui.cell_formats.tables import to_csv, to_json, to_table
from dumptui.tui.terminal.clipboard import copyable
from tests.support.reading import ELSEWHERE, documents, elsewhere, field, groups, read, samples, step_row, values
from tests.support.writer import Layout, Truth, sample, write_step

Json = dict[str, Any]


@pytest.fixture(autouse=True)
def forget_elsewhere() -> Iterator[None]:
    yield
    ELSEWHERE.forget()


def pair(
    run: Path,
    engine: list[float],
    trainer: list[float],
    mask: list[int] | None = None,
    layout: Layout | None = None,
    **fields: Any,
) -> Truth:
    """One sample with these log-probs on both sides."""
    one = sample(0, response_len=len(engine), rollout_log_probs=engine, loss_mask=mask, **fields)
    return write_step(run, 0, [one], layout, truth={"log_probs": [trainer]}, mirror=False)


# Case 4: radixark/miles#2476, slime#65, placeholders read as divergence -----------------------------------

ENGINE, TRAINER, MASK = [-0.10, -0.20, 0.0, 0.0, -0.30], [-0.11, -0.19, -30.0, -25.0, -0.31], [1, 1, 0, 0, 1]


def test_masked_tokens_are_blank_and_count_nowhere(tmp_path: Path) -> None:
    pair(tmp_path, ENGINE, TRAINER, MASK)
    step = read(tmp_path)
    assert values(step, "lp_diff") == pytest.approx([-0.01, 0.01, None, None, -0.01])
    assert values(step, "train_log_probs") == [-0.11, -0.19, None, None, -0.31]
    assert values(step, "rollout_log_probs") == [-0.1, -0.2, None, None, -0.3]
    row = samples(step)[0]
    assert (row["mean_abs_lp_diff"], row["max_abs_lp_diff"]) == pytest.approx((0.01, 0.01), abs=1e-6)
    assert row["effective_length"] == 3
    assert survey(step, "train_log_probs").span[0] >= -0.31


def test_a_removed_sample_has_no_trained_tokens(tmp_path: Path) -> None:
    pair(tmp_path, ENGINE, TRAINER, remove_sample=True)
    row = samples(read(tmp_path))[0]
    assert (row["effective_length"], row["mean_abs_lp_diff"], row["adv_std"]) == (0, None, None)


def test_a_true_zero_is_a_value(tmp_path: Path) -> None:
    pair(tmp_path, [0.0, -0.5], [0.0, -0.5])
    step = read(tmp_path)
    assert values(step, "rollout_log_probs") == [0.0, -0.5] and values(step, "lp_diff") == [0.0, 0.0]


# Case 9: THUDM/slime#200, #1299, #2157, radixark/miles#3280, rewards that are no numbers ------------------


def rewarded(run: Path, *grouped: list[object]) -> None:
    batch = [
        sample(at + 10 * group, group_index=group, reward=reward)
        for group, rewards in enumerate(grouped)
        for at, reward in enumerate(rewards)
    ]
    with np.errstate(invalid="ignore"):
        write_step(run, 0, batch, train=False, mirror=False)


REWARDS: tuple[list[object], ...] = (
    [None, None],
    [{"score": 1, "acc": True}, {"score": -0.6, "acc": False}],
    [1.0, None],
    [np.float32(0.5), torch.tensor(0.5), True, False],
    [2.0, 2.0],
    [3.0],
)


def test_groups_of_rewards_that_are_no_numbers(tmp_path: Path) -> None:
    rewarded(tmp_path, *REWARDS)
    rows = groups(read(tmp_path))
    assert [row["reward_mean"] for row in rows] == [None, pytest.approx(0.2), 1.0, 0.5, 2.0, 3.0]
    assert [row["reward_std"] for row in rows] == [
        None,
        pytest.approx(1.131371),
        None,
        pytest.approx(0.408248),
        0.0,
        None,
    ]
    assert [(row["n"], row["rewarded"]) for row in rows] == [(2, 0), (2, 2), (2, 1), (4, 4), (2, 2), (1, 1)]
    assert [row["zero_std"] for row in rows] == [False, False, True, False, True, True]
    assert [row["zero_std_known"] for row in rows] == [False, True, False, True, True, False]


def test_a_key_chooses_the_reward(tmp_path: Path) -> None:
    rewarded(tmp_path, *REWARDS)
    step = read(tmp_path)
    assert groups(step, "score")[1]["reward_mean"] == pytest.approx(0.2)
    assert groups(step, "acc")[1]["reward_mean"] == 0.5
    assert groups(step)[1]["reward_mean"] == groups(step, "score")[1]["reward_mean"]
    assert [samples(step, key)[2]["reward_note"] for key in (None, "score", "other")] == [None, None, "dict{score,acc}"]


def test_a_key_chooses_from_the_trainers_raw_rewards_too(tmp_path: Path) -> None:
    batch = [sample(at, reward={"score": at + 0.5}, group_index=0) for at in range(2)]
    write_step(tmp_path, 0, batch, columns={"raw_reward": [{"score": 0.5}, {"score": 1.5}]}, mirror=False)
    step = read(tmp_path)
    assert [row["raw_reward"] for row in samples(step, "score")] == [0.5, 1.5]
    assert [row["raw_reward"] for row in samples(step)] == [0.5, 1.5]
    assert step_row(step, "score")["reward_mean"] == step_row(step)["reward_mean"] == 1.0


def test_a_nan_reward_is_seen_and_not_hidden_in_a_mean(tmp_path: Path) -> None:
    rewarded(tmp_path, [1.0, math.nan], [1.0, math.inf, -math.inf])
    rows = groups(read(tmp_path))
    assert [(row["reward_mean"], row["rewarded"], row["not_finite"]) for row in rows] == [(1.0, 1, 1), (1.0, 1, 2)]
    assert not any(row["zero_std"] for row in rows)


def test_zero_std_is_a_share_of_the_groups_that_can_tell(tmp_path: Path) -> None:
    rewarded(tmp_path, *REWARDS)
    assert step_row(read(tmp_path))["zero_std_frac"] == pytest.approx(1 / 3)


# Case 10: radixark/miles#2589, #2372, #2544, aborted samples ----------------------------------------------


def test_every_status_is_listed_and_empty_samples_divide_nothing(tmp_path: Path) -> None:
    batch = [
        sample(0),
        sample(1, status="truncated"),
        sample(2, prompt_len=5, response_len=0, status="aborted", reward=None),
        sample(3, tokens=[], response_len=0, status="aborted", reward=None, rollout_log_probs=None),
        sample(4, response_len=3, status="failed"),
        sample(5, status="evicted"),
    ]
    write_step(tmp_path, 0, batch, mirror=False)
    step = read(tmp_path)
    assert step.trained == 6
    assert step_row(step)["statuses"] == {"completed": 1, "truncated": 1, "aborted": 2, "failed": 1, "evicted": 1}
    rows = samples(step)
    assert [row["status"] for row in rows][-1] == "evicted"
    assert [(row["total_length"], row["effective_length"], row["mean_abs_lp_diff"]) for row in rows[2:4]] == [
        (5, 0, None),
        (0, 0, None),
    ]
    for position in range(6):
        view = view_sample(step, position, None)
        assert len(view.texts) == len(view.kinds("lp_diff")) == rows[position]["total_length"]
    assert len(documents(step)) == 6


# Case 11: radixark/miles#1892 and #2581, weight versions changed type -------------------------------------


def spans(*pieces: tuple[str, int, int]) -> list[Json]:
    return [{"version": version, "abs_start": start, "abs_end": stop} for version, start, stop in pieces]


def test_staleness_and_mixture_of_every_shape(tmp_path: Path) -> None:
    shapes: list[object] = [["3", "5"], [spans(("3", 10, 14), ("4", 14, 20)), spans(("4", 30, 33))], [], ["default"]]
    batch = [sample(at, prompt_len=10, response_len=30, weight_versions=shape) for at, shape in enumerate(shapes)]
    write_step(tmp_path, 5, batch, mirror=False)
    step = read(tmp_path, 5)
    names = ("weight_version", "weight_version_min", "staleness", "mixed_version", "turns")
    assert [tuple(row[name] for name in names) for row in samples(step)] == [
        ("5", 3, 2, True, 2),
        ("4", 3, 2, True, 2),
        (None, None, None, None, None),
        ("default", None, None, False, 1),
    ]
    assert [row["versions"] for row in samples(step)] == ["v3–v5", "v3–v4", None, "vdefault"]
    assert [step.samples[1].version_at(at) for at in (12, 15, 25)] == ["3", "4", None]
    assert step.samples[0].version_at(12) is None


def test_a_fresh_on_policy_run_is_not_stale(tmp_path: Path) -> None:
    """The counter is raised before the first rollout: version 1 writes rollout 0."""
    for number in range(3):
        write_step(tmp_path, number, [sample(0, weight_versions=[str(number + 1)])], mirror=False)
    assert [samples(read(tmp_path, number))[0]["staleness"] for number in range(3)] == [0, 0, 0]


@pytest.mark.parametrize("versions", [[["1"], ["1"]], [["13"], ["13"]], [["2"], ["1", "2"]]])
def test_a_counter_that_began_anew_is_not_held_against_the_step(tmp_path: Path, versions: list[list[str]]) -> None:
    """A resumed attempt counts from 1 again; updates every fourth step count to 13 in step 50."""
    write_step(tmp_path, 50, [sample(at, weight_versions=one) for at, one in enumerate(versions)], mirror=False)
    newest = max(int(one) for sample in versions for one in sample)
    oldest = [min(map(int, one)) for one in versions]
    assert [row["staleness"] for row in samples(read(tmp_path, 50))] == [newest - one for one in oldest]


SPEC = {"spec_num_correct_drafts": 3, "spec_num_proposed_drafts": 4, "completion_tokens": 6}
OLD_SPEC = {"spec_accept_token_num": 3, "spec_draft_token_num": 4, "spec_verify_ct": 2, "completion_token_num": 6}


@pytest.mark.parametrize("spec", [SPEC, OLD_SPEC, None])
def test_both_spellings_of_speculative_decoding(tmp_path: Path, spec: Json | None) -> None:
    cache = {"cached_tokens": 5, "total_prompt_tokens": 20}
    info = elsewhere("miles.utils.types", "SpecInfo", **SPEC) if spec is None else spec
    write_step(tmp_path, 0, [sample(0, spec_info=info, prefix_cache_info=cache), sample(1)], train=False, mirror=False)
    rows = samples(read(tmp_path))
    assert [(row["spec_accept_rate"], row["prefix_cache_hit_rate"]) for row in rows] == [(0.75, 0.25), (None, 0.0)]


# Case 12: radixark/miles Sample.to_dict, THUDM/slime#680, numpy/numpy#28340, objects of the framework in a sample ---


def test_objects_of_classes_that_are_not_here(tmp_path: Path) -> None:
    adapter = elsewhere("miles.utils.types", "AdapterRef", name="math", slot=2)
    experts = np.zeros((9, 2, 2), np.int32)
    write_step(tmp_path, 0, [sample(0, adapter=adapter, rollout_routed_experts=experts)], train=False, mirror=False)
    extra = documents(read(tmp_path))[0]["extra"]
    assert extra == {"adapter": "<miles.utils.types.AdapterRef>", "rollout_routed_experts": "<int32[9, 2, 2]>"}


# Case 14: radixark/miles#2817, a step without samples -----------------------------------------------------


def test_a_step_without_samples_is_a_row_without_statistics(tmp_path: Path) -> None:
    for number in range(3):
        write_step(tmp_path, number, [] if number == 1 else [sample(0)], train=number != 1, mirror=False)
    rows = [step_row(read(tmp_path, number)) for number in range(3)]
    assert [row["samples"] for row in rows] == [1, 0, 1]
    assert rows[1]["reward_mean"] is rows[1]["mean_abs_lp_diff"] is rows[1]["zero_std_frac"] is None
    assert rows[0]["mean_abs_lp_diff"] is not None and rows[2]["mean_abs_lp_diff"] is not None
    step = read(tmp_path, 1)
    assert samples(step) == groups(step) == documents(step) == []
    assert tokens.newest(Run.open(tmp_path)).files.key.step == 2


# Case 17: vllm-project/vime#64 and #69, log-probs at different temperatures -------------------------------


def test_differences_and_ratios_of_a_temperature_mismatch(tmp_path: Path) -> None:
    pair(tmp_path, [-0.1269, -2.1269], [-0.0181, -4.0181])
    step = read(tmp_path)
    assert values(step, "lp_diff") == pytest.approx([0.1088, -1.8912], abs=1e-5)
    assert values(step, "imp_ratio") == pytest.approx([1.1149, 0.1509], abs=1e-4)
    assert samples(step)[0]["mean_imp_ratio"] == pytest.approx((1.1149 + 0.1509) / 2, abs=1e-4)


# Case 18: vllm-project/vime#70, rllm-org/rllm#816, eval-protocol/python-sdk#457, zeros and shifts ----------


def test_zeros_of_trained_tokens_still_count(tmp_path: Path) -> None:
    pair(tmp_path, [-0.5, -0.5, 0.0, 0.0, 0.0], [-0.5, -0.5, -4.0, -5.0, -6.0])
    step = read(tmp_path)
    assert values(step, "lp_diff") == [0, 0, -4, -5, -6]
    assert samples(step)[0]["mean_abs_lp_diff"] == 3


def test_log_probs_shifted_by_one_are_shown_as_they_are(tmp_path: Path) -> None:
    engine = [-0.1, -2.0, -0.3, -4.0]
    pair(tmp_path, engine, [-9.0, *engine[:3]])
    assert values(read(tmp_path), "lp_diff") == pytest.approx([-8.9, 1.9, -1.7, 3.7], abs=1e-5)


@pytest.mark.parametrize("length", [5, 7])
@pytest.mark.parametrize("trained", [True, False])
def test_a_list_of_another_length_is_not_paired(tmp_path: Path, length: int, trained: bool) -> None:
    one = sample(0, response_len=6, rollout_log_probs=[-0.5] * length)
    fields = ("log_probs",)
    truth = {"log_probs": [[-0.5] * 6], "rollout_log_probs": [[-0.5] * 6]}
    write_step(tmp_path, 0, [one], fields=fields, truth=truth, train=trained, mirror=False)
    step = read(tmp_path)
    said = f"rollout_log_probs has {length} values for 6 response tokens"
    for name in ("rollout_log_probs", *(["lp_diff", "imp_ratio"] if trained else [])):
        assert (field(step, name)["state"], field(step, name)["reason"]) == ("unreadable", said)
    assert samples(step)[0]["mean_abs_lp_diff"] is None
    if trained:
        assert values(step, "train_log_probs") == [-0.5] * 6


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("length", [5, 7])
def test_trainer_log_probs_of_another_length_are_refused_alone(tmp_path: Path, length: int, recorded: bool) -> None:
    batch = [sample(0, response_len=6), sample(1, response_len=6)]
    truth = {"log_probs": [[-0.5] * length, [-0.5] * 6]}
    write_step(tmp_path, 0, batch, Layout(recorded=recorded), truth=truth, mirror=False)
    step = read(tmp_path)
    assert field(step, "train_log_probs")["state"] == "unreadable"
    assert f"log_probs holds {length} values for 6 response tokens" in field(step, "train_log_probs")["reason"]
    assert field(step, "train_log_probs", 1)["state"] == field(step, "entropy")["state"] == "ok"


# Case 20: verl-project/verl#5859, huggingface/trl#5344, statistics of nothing -----------------------------


def test_one_trained_token_has_no_deviation(tmp_path: Path) -> None:
    pair(tmp_path, [-0.1, -0.2, -0.3], [-0.1, -0.5, -0.3], [0, 1, 0])
    row = samples(read(tmp_path))[0]
    assert (row["effective_length"], row["adv_std"]) == (1, None)
    assert row["mean_abs_lp_diff"] == row["max_abs_lp_diff"] == pytest.approx(0.3)


def test_a_mask_of_zeros_leaves_nothing_to_average(tmp_path: Path) -> None:
    pair(tmp_path, [-0.1, -0.2], [-0.1, -0.5], [0, 0])
    step = read(tmp_path)
    row = samples(step)[0]
    assert row["effective_length"] == 0 and values(step, "lp_diff") == [None, None]
    names = (
        "mean_entropy",
        "max_entropy",
        "mean_abs_lp_diff",
        "max_abs_lp_diff",
        "mean_imp_ratio",
        "adv_mean",
        "adv_std",
    )
    assert {row[name] for name in names} == {None}


# Case 21: THUDM/slime#1440 and #1445, masks of another length ---------------------------------------------


@pytest.mark.parametrize("trained", [True, False])
@pytest.mark.parametrize("length", [5, 9])
def test_a_mask_of_another_length_is_told_and_not_stretched(tmp_path: Path, length: int, trained: bool) -> None:
    one = sample(0, response_len=8, loss_mask=[0] * length)
    write_step(tmp_path, 0, [one, sample(1, response_len=8)], train=trained, mirror=False)
    step = read(tmp_path)
    said = f"loss_mask has {length} entries for 8 response tokens"
    document = documents(step)[0]
    assert document["loss_mask"] is None and said in document["notes"]
    assert values(step, "rollout_log_probs") == pytest.approx(one["rollout_log_probs"], abs=1e-5)
    if trained:
        assert field(step, "lp_diff") == {"state": "unreadable", "reason": said, "values": None}
    assert [row["effective_length"] for row in samples(step)] == [None, 8]
    assert len(view_sample(step, 0, None).kinds("lp_diff")) == document["total_length"]


# Case 23: radixark/miles#1930, #1929, #2710, several samples of one execution ------------------------------


@pytest.mark.parametrize("trained", [True, False])
def test_siblings_of_one_execution_count_once_in_the_episode_mean(tmp_path: Path, trained: bool) -> None:
    batch = [
        sample(at, rollout_id=execution, reward=reward, group_index=0)
        for at, (execution, reward) in enumerate([(0, 1.0), (0, 1.0), (0, 1.0), (1, 0.0)])
    ]
    write_step(tmp_path, 0, batch, train=trained, mirror=False)
    step = read(tmp_path)
    assert [row["execution"] for row in samples(step)] == [0, 0, 0, 1]
    row = step_row(step)
    assert (row["reward_mean"], row["reward_episode_mean"]) == (0.75, 0.5)


def test_without_executions_an_index_is_one(tmp_path: Path) -> None:
    batch = [
        sample(index, seed=at, reward=reward)
        for at, (index, reward) in enumerate([(7, 1.0), (7, 0.0), (8, None), (9, 1.0)])
    ]
    write_step(tmp_path, 0, batch, train=False, mirror=False)
    row = step_row(read(tmp_path))
    assert (row["reward_mean"], row["reward_episode_mean"]) == (pytest.approx(2 / 3), 0.75)


def test_indices_of_two_eval_datasets_are_not_one_episode(tmp_path: Path) -> None:
    batch = [sample(index, seed=at, reward=float(at)) for at, index in enumerate([0, 1, 0, 1])]
    write_step(tmp_path, 0, batch, evaluation=True, mirror=False)
    assert step_row(read(tmp_path, evaluation=True))["reward_episode_mean"] == 1.5


# Case 24: pytorch#110285, musubi-tuner#870, columns of low precision --------------------------------------


@pytest.mark.parametrize("cp", [1, 2])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_the_rounding_of_a_16_bit_copy_is_not_divergence(tmp_path: Path, dtype: Any, cp: int) -> None:
    engine = [-0.1234, -3.21, -0.0007, -11.7]
    pair(tmp_path, engine, engine, layout=Layout(cp=cp, dtypes={"rollout_log_probs": dtype}))
    step = read(tmp_path)
    assert values(step, "lp_diff") == [0.0] * 4
    assert values(step, "rollout_log_probs") == engine
    assert documents(step)[0]["notes"] == [f"the train files hold rollout_log_probs rounded to {str(dtype)[6:]}"]


def test_both_sides_in_bfloat16_differ_by_nothing(tmp_path: Path) -> None:
    engine = [-0.1234, -3.21]
    pair(
        tmp_path,
        engine,
        engine,
        layout=Layout(dtypes={"rollout_log_probs": torch.bfloat16, "log_probs": torch.bfloat16}),
    )
    assert values(read(tmp_path), "lp_diff") == [0.0, 0.0]


def test_float8_is_read(tmp_path: Path) -> None:
    pair(tmp_path, [-0.1234, -3.21], [-0.125, -3.25], layout=Layout(dtypes={"log_probs": torch.float8_e4m3fn}))
    step = read(tmp_path)
    assert values(step, "train_log_probs") == [-0.125, -3.25]
    assert values(step, "lp_diff") == pytest.approx([-0.0016, -0.04], abs=1e-5)


# Not finite -----------------------------------------------------------------------------------------------


def test_values_that_are_not_finite_are_values(tmp_path: Path) -> None:
    pair(tmp_path, [-math.inf, -1.0, math.nan, -2.0, -1e9], [-1.0, -math.inf, -1.0, -2.0, -1e9])
    step = read(tmp_path)
    shown = field(step, "lp_diff")["values"]
    assert shown[0] == math.inf and shown[1] == -math.inf and math.isnan(shown[2]) and shown[3:] == [0.0, 0.0]
    ratio = field(step, "imp_ratio")["values"]
    assert ratio[:2] == [math.inf, 0.0] and math.isnan(ratio[2])
    row = samples(step)[0]
    assert (row["mean_abs_lp_diff"], row["max_abs_lp_diff"], row["diff_not_finite"]) == (0.0, 0.0, 3)
    assert view_sample(step, 0, None).worst()[:3].tolist() == [4, 5, 6]


def test_infinite_on_both_sides_is_no_number(tmp_path: Path) -> None:
    pair(tmp_path, [-math.inf, -1.0], [-math.inf, -1.0])
    shown = field(read(tmp_path), "lp_diff")["values"]
    assert math.isnan(shown[0]) and shown[1] == 0


def test_what_is_no_number_is_a_gap(tmp_path: Path) -> None:
    one = sample(0, response_len=4, rollout_log_probs=[-0.5, None, -0.25, "?"])
    write_step(tmp_path, 0, [{**one, "rollout_log_probs": None}], truth={"log_probs": [[-0.5] * 4]}, mirror=False)
    torch.save({"samples": [one]}, tmp_path / "rollout_data" / "0.pt")
    step = read(tmp_path)
    assert values(step, "rollout_log_probs") == [-0.5, None, -0.25, None]
    assert values(step, "lp_diff") == [0.0, None, -0.25, None]
    kinds = view_sample(step, 0, None).kinds("lp_diff")
    assert kinds.tolist() == [*[PROMPT] * 4, TRAINED, MISSING, TRAINED, MISSING]


# On-policy distillation, and keys that nobody knows -------------------------------------------------------


def test_teacher_values_that_only_the_rollout_file_holds(tmp_path: Path) -> None:
    batch = [sample(0, teacher_log_probs=[-0.5] * 6, opd_reverse_kl=[0.1] * 5), sample(1)]
    write_step(tmp_path, 0, batch, mirror=False)
    step = read(tmp_path)
    assert values(step, "teacher_log_probs") == [-0.5] * 6
    assert field(step, "opd_reverse_kl")["reason"] == "opd_reverse_kl has 5 values for 6 response tokens"
    assert field(step, "teacher_log_probs", 1)["state"] == "not dumped"


def test_unknown_keys_with_a_float_a_token_are_fields(tmp_path: Path) -> None:
    batch = []
    for at in range(2):
        extra: Json = {"surprise": [0.5 * at] * (70 + at), "scores": [0.5] * 3, "ids": [1] * (70 + at)}
        batch.append(sample(at, response_len=70 + at, loss_mask=[1] * 69 + [0] * (at + 1), **extra))
    write_step(tmp_path, 0, batch, train=False, mirror=False)
    step = read(tmp_path)
    assert values(step, "surprise", 1) == [*[0.5] * 69, None, None]
    assert "scores" not in step.fields and "ids" not in step.fields
    assert documents(step)[0]["extra"]["scores"] == "[0.5, 0.5, 0.5]"


# Case 25: pytorch/pytorch#1995 and #40157, THUDM/slime#2385, what is large and not asked for --------------


def test_what_is_not_looked_at_is_not_read(tmp_path: Path) -> None:
    """Routed experts of 19 MB, and log-probs of one sample that are a view of 40 MB."""
    batch = [sample(at, prompt_len=100, response_len=900) for at in range(4)]
    truth = write_step(tmp_path, 0, batch, Layout(dp=4), mirror=False)
    payload = torch.load(truth.files[2], weights_only=False)
    payload["rollout_data"]["rollout_routed_experts"] = [torch.zeros(999, 48, 100, dtype=torch.int32)]
    payload["rollout_data"]["entropy"] = [torch.arange(1e7)[5_000_000:5_000_900]]
    torch.save(payload, truth.files[2])
    assert truth.files[2].stat().st_size > 50e6
    before = bytes_read()
    step = read(tmp_path)
    rows = samples(step)
    view_sample(step, 2, None)
    assert bytes_read() - before < 2e6
    assert rows[2]["max_entropy"] == 5_000_899
    experts = next(fact for part in sample_facts(step, step.samples[2]) for fact in part.facts if "routed" in fact.name)
    assert experts.value == "<int32[999, 48, 100]>"


def bytes_read() -> int:
    return int(Path("/proc/self/io").read_text().split()[1])


# Case 30: daaain/claude-code-log#144, lone surrogates -----------------------------------------------------


def test_halves_of_characters_are_shown_and_printed(tmp_path: Path) -> None:
    half = "x\udcb2y\ud83d"
    prompt = [{"role": "user", "content": half}]
    said = [{"sample_index": 0, "status": "completed", "messages": [*prompt, {"role": "assistant", "content": half}]}]
    batch = [sample(0, status=half, response=half, prompt=prompt, metadata={half: half})]
    write_step(tmp_path, 0, batch, train=False, mirror=False, trajectory=said)
    step = read(tmp_path)
    rows = samples(step)
    assert to_table(rows).encode() and to_csv(rows).encode() and to_json({"rows": documents(step)}).encode()
    assert "x‹dcb2›y‹d83d›" in to_table(rows)
    talk = conversation.read_conversation(step, step.samples[0], conversation.open_sidecar(step), None)
    assert [visible(part.text) for one in talk.messages for part in one.parts] == ["x‹dcb2›y‹d83d›"] * 2
    assert to_json(conversation.document(talk)).encode() and copyable(half).encode()


# Case 36: PrimeIntellect-ai/verifiers#827, #830 and #1000, huge metadata -----------------------------------


def test_huge_metadata_is_cut_with_its_size(tmp_path: Path) -> None:
    metadata = {"info": "x" * 5_000_000, "nested": [[0] * 1000] * 50, "short": "fine"}
    write_step(tmp_path, 0, [sample(0, metadata=metadata)], train=False, mirror=False)
    shown = documents(read(tmp_path))[0]["metadata"]
    assert shown["short"] == "fine"
    assert shown["info"].endswith("(5,000,000 characters)") and shown["nested"].endswith("(50 entries)")
    assert max(map(len, shown.values())) < 400


# What is shown of a position ------------------------------------------------------------------------------


def test_kinds_of_positions(tmp_path: Path) -> None:
    pair(tmp_path, ENGINE, TRAINER, MASK)
    view = view_sample(read(tmp_path), 0, None)
    assert view.kinds("lp_diff").tolist() == [*[PROMPT] * 4, TRAINED, TRAINED, MASKED, MASKED, TRAINED]
    assert (
        view.value("lp_diff", 4) == pytest.approx(-0.01)
        and view.value("lp_diff", 6) is view.value("lp_diff", 0) is None
    )
    assert view.worst().tolist() and set(view.worst().tolist()) == {4, 5, 8}


def test_a_row_a_position(tmp_path: Path) -> None:
    pair(tmp_path, ENGINE, TRAINER, MASK)
    rows = list(tokens.position_rows(documents(read(tmp_path))[0]))
    assert [row["loss_mask"] for row in rows] == [None] * 4 + MASK
    assert [row["position"] for row in rows] == list(range(9))


def test_a_response_without_its_tokens_still_has_its_rows(tmp_path: Path) -> None:
    write_step(
        tmp_path,
        0,
        [sample(0, response_len=3, tokens=[], rollout_log_probs=[-1.0, -2.0, -3.0])],
        train=False,
        mirror=False,
    )
    step = read(tmp_path)
    rows = list(tokens.position_rows(documents(step)[0]))
    assert [(row["token_id"], row["rollout_log_probs"]) for row in rows] == [(None, -1.0), (None, -2.0), (None, -3.0)]
    assert len(view_sample(step, 0, None).texts) == 0 == len(view_sample(step, 0, None).kinds("rollout_log_probs"))
    assert steps.samples(step)[0]["response_length"] == 3

"""Layouts of context-parallel slices: recorded, inferred from what both files hold, or refused with the reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dumptui.core.step.step import Step
from dumptui.core.tables import steps
from tests.support.reading import assert_true, documents, field, read, samples, step_row, values
from tests.support.writer import FIELDS, Layout, Truth, sample, write_step

Json = dict[str, Any]
CANNOT = "the context-parallel layout is not recorded and can't be inferred"


def write(
    run: Path, lengths: list[tuple[int, int]], layout: Layout, *, engine: bool = True, **options: Any
) -> tuple[Step, Truth]:
    """A step of samples of the given (total, response) lengths."""
    batch = [
        sample(at, prompt_len=total - response, response_len=response) for at, (total, response) in enumerate(lengths)
    ]
    if not engine:
        batch = [{**one, "rollout_log_probs": None} for one in batch]
    truth = write_step(run, 0, batch, layout, mirror=False, **options)
    return read(run), truth


def edit(run: Path, name: str, change: Any) -> None:
    path = run / "train_data" / name
    payload = torch.load(path, weights_only=False)
    change(payload)
    torch.save(payload, path)


def states(step: Step, name: str) -> set[str]:
    return {document["fields"][name]["state"] for document in documents(step)}


# Inferred -------------------------------------------------------------------------------------------------
#
# Case 5: radixark/miles#2581, whose reader counts distinct slices: those of ranks without response tokens are equal


@pytest.mark.parametrize("tp", [1, 2])
@pytest.mark.parametrize(
    "lengths", [[(104, 20)], [(100, 3)], [(100, 1)], [(97, 1)], [(104, 20), (100, 3), (97, 1), (12, 0)]]
)
def test_ranks_that_hold_nothing_tell_the_layout_too(tmp_path: Path, tp: int, lengths: list[tuple[int, int]]) -> None:
    step, truth = write(tmp_path, lengths, Layout(tp=tp, cp=4, recorded=False))
    assert_true(step, truth)
    assert field(step, "train_log_probs")["reason"] == "layout inferred (cp 4)"
    assert {row["reason"] for row in steps.batch(step)} == {"layout inferred (cp 4)"}


@pytest.mark.parametrize("lengths", [[(104, 20)], [(100, 3)], [(100, 1)]])
def test_ranks_that_hold_nothing_are_not_missing(tmp_path: Path, lengths: list[tuple[int, int]]) -> None:
    step, truth = write(tmp_path, lengths, Layout(cp=4))
    assert_true(step, truth)
    assert step_row(step)["state"] == "ok" and field(step, "train_log_probs")["reason"] is None


def test_of_layouts_that_place_all_alike_one_that_divides_the_ranks_is_named(tmp_path: Path) -> None:
    """Slices 0, 1, 0 and 0 wide are those of cp 3, of which there would be one rank and a part, and of cp 4."""
    step, truth = write(tmp_path, [(3, 1)], Layout(cp=4, recorded=False))
    assert_true(step, truth)
    assert field(step, "train_log_probs")["reason"] == "layout inferred (cp 4)"


@pytest.mark.parametrize("qkv", ["thd", "bshd"])
@pytest.mark.parametrize("order", ["tp-cp-dp-pp", "tp-cp-pp-dp"])
def test_every_rank_order_of_the_trainers(tmp_path: Path, order: str, qkv: str) -> None:
    lengths = [(30 + 7 * at, 9 + 5 * at) for at in range(6)]
    layout = Layout(tp=2, cp=2, dp=3, pp=2, order=order, qkv=qkv, recorded=False)
    step, truth = write(tmp_path, lengths, layout)
    assert_true(step, truth)


def test_a_run_without_context_parallelism_is_whole_and_says_nothing_of_a_layout(tmp_path: Path) -> None:
    step, truth = write(tmp_path, [(30, 9), (40, 22)], Layout(dp=2, recorded=False), engine=False)
    assert_true(step, truth)
    assert field(step, "train_log_probs")["reason"] is None


def test_without_engine_log_probs_the_widths_decide(tmp_path: Path) -> None:
    step, truth = write(tmp_path, [(30, 9), (40, 22)], Layout(tp=2, cp=2, recorded=False), engine=False, drop=[1])
    assert_true(step, truth)


def test_a_16_bit_copy_of_the_engines_log_probs_is_as_good_a_proof(tmp_path: Path) -> None:
    layout = Layout(tp=2, cp=2, recorded=False, dtypes={"rollout_log_probs": torch.bfloat16})
    step, truth = write(tmp_path, [(30, 9), (40, 22)], layout)
    assert values(step, "train_log_probs", 1) == [round(one, 6) for one in truth.fields["log_probs"][1].tolist()]
    assert "the train files hold rollout_log_probs rounded to bfloat16" in documents(step)[0]["notes"]


def test_equal_widths_are_told_apart_by_the_values(tmp_path: Path) -> None:
    """8 tokens, 2 of them response: each rank holds one value, so any pairing of four files has the right widths."""
    step, truth = write(tmp_path, [(8, 2)], Layout(tp=2, cp=2, recorded=False))
    assert_true(step, truth)


def test_copies_have_to_be_equal_where_only_widths_tell(tmp_path: Path) -> None:
    step, truth = write(tmp_path, [(8, 2)], Layout(tp=2, cp=2, recorded=False), engine=False)
    assert_true(step, truth)


def test_one_lost_slice_costs_its_positions_only(tmp_path: Path) -> None:
    step, truth = write(tmp_path, [(50, 40), (30, 12)], Layout(cp=2, recorded=False), drop=[0])
    shown = field(step, "train_log_probs")
    assert shown["state"] == "partial" and shown["reason"] == "cp rank 0 of 2 missing; layout inferred (cp 2)"
    true = truth.fields["log_probs"][0].tolist()
    assert shown["values"] == [*[None] * 4, *true[4:30], *[None] * 10]


def test_the_first_token_of_an_empty_prompt_is_held_by_no_rank(tmp_path: Path) -> None:
    step, truth = write(tmp_path, [(8, 8)], Layout(cp=2))
    shown = field(step, "train_log_probs")
    assert (shown["state"], shown["reason"]) == ("partial", "1 of 8 tokens belong to no cp rank")
    assert shown["values"] == [None, *truth.fields["log_probs"][0].tolist()[1:]]


def test_a_column_that_fits_no_layout_is_refused_alone(tmp_path: Path) -> None:
    step, truth = write(
        tmp_path, [(50, 40), (30, 12)], Layout(cp=2, recorded=False, field_qkv={"entropy": "contiguous"})
    )
    assert states(step, "entropy") == {"unreadable"}
    assert "widths are not zigzag" in field(step, "entropy")["reason"]
    del truth.fields["entropy"]
    assert_true(step, truth)


# Refused --------------------------------------------------------------------------------------------------


def test_two_layouts_that_fit_with_different_values_are_refused(tmp_path: Path) -> None:
    """Of 8 tokens with 4 of response, ranks 0 and 1 hold 0 and 1 values under cp 3 (token 0) and cp 4 (token 3)
    alike.
    """
    step, _ = write(tmp_path, [(8, 4)], Layout(cp=4, recorded=False), engine=False, drop=[2, 3])
    shown = field(step, "train_log_probs")
    assert (shown["state"], shown["values"]) == ("unreadable", None)
    assert shown["reason"] == f"{CANNOT}: cp 3 and 4 fit with different values"


def test_the_rollout_file_decides_between_two_layouts(tmp_path: Path) -> None:
    step, truth = write(tmp_path, [(8, 4)], Layout(cp=4, recorded=False), drop=[2, 3])
    shown = field(step, "train_log_probs")
    assert shown["state"] == "partial" and shown["values"] == [None, None, None, truth.fields["log_probs"][0][3]]


def test_another_sample_of_the_step_decides_between_two_layouts(tmp_path: Path) -> None:
    step, truth = write(tmp_path, [(8, 4), (40, 30)], Layout(cp=4, recorded=False), engine=False, drop=[2, 3])
    assert field(step, "train_log_probs")["values"] == [None, None, None, truth.fields["log_probs"][0][3]]


def test_files_that_are_all_alike_may_all_be_copies(tmp_path: Path) -> None:
    """Four files of one value each: two slices twice, or one slice four times and another one lost."""
    batch = [sample(0, prompt_len=6, response_len=2, rollout_log_probs=None)]
    given = {"log_probs": [np.full(2, -0.5)]}
    write_step(tmp_path, 0, batch, Layout(tp=2, cp=2, recorded=False), fields=(), truth=given, mirror=False)
    shown = field(read(tmp_path), "train_log_probs")
    assert (shown["state"], shown["reason"]) == (
        "unreadable",
        f"{CANNOT}: several rank orders of cp 2 fit with different values",
    )


# Case 16: THUDM/slime#1871 and #73, contiguous slices -----------------------------------------------------


@pytest.mark.parametrize("recorded", [True, False])
def test_contiguous_slices_have_the_wrong_widths(tmp_path: Path, recorded: bool) -> None:
    """20 tokens, 10 of response, cp 2: contiguous slices are 1 and 9 wide, zigzag ones 4 and 6."""
    layout = Layout(cp=2, recorded=recorded, field_qkv=dict.fromkeys(FIELDS, "contiguous"))
    step, _ = write(tmp_path, [(20, 10)], layout)
    for name in ("train_log_probs", "lp_diff", "entropy", "advantages"):
        assert states(step, name) == {"unreadable"}
        assert "widths" in field(step, name)["reason"]
    assert states(step, "rollout_log_probs") == {"ok"}


@pytest.mark.parametrize("recorded", [True, False])
def test_contiguous_slices_with_the_widths_of_zigzag_are_contradicted(tmp_path: Path, recorded: bool) -> None:
    """8 tokens, 4 of response, cp 2: [0] and [1,2,3] against [3] and [0,1,2]."""
    layout = Layout(cp=2, recorded=recorded, field_qkv=dict.fromkeys(FIELDS, "contiguous"))
    step, _ = write(tmp_path, [(8, 4)], layout)
    for name in ("train_log_probs", "lp_diff", "entropy"):
        shown = field(step, name)
        assert (shown["state"], shown["values"]) == ("unreadable", None)
        assert ("order contradicted by the rollout file" if recorded else CANNOT) in shown["reason"]
    assert samples(step)[0]["mean_abs_lp_diff"] is None


def test_contiguous_slices_of_one_sample_refuse_the_coincidence_of_another(tmp_path: Path) -> None:
    """8 tokens with 4 of response have zigzag widths by chance; 20 with 10 show that the column is cut in another
    way.
    """
    step, _ = write(tmp_path, [(8, 4), (20, 10)], Layout(cp=2, dp=2, field_qkv={"entropy": "contiguous"}))
    assert states(step, "entropy") == {"unreadable"}
    assert states(step, "train_log_probs") == {"ok"}


def test_an_order_that_one_sample_contradicts_is_refused_for_those_that_cannot_tell(tmp_path: Path) -> None:
    """The engine's log-probs of the second sample are all equal: they would agree with any order."""
    batch = [
        sample(0, prompt_len=4, response_len=4),
        sample(1, prompt_len=4, response_len=4, rollout_log_probs=[-0.5] * 4),
    ]
    write_step(tmp_path, 0, batch, Layout(cp=2, dp=2, field_qkv=dict.fromkeys(FIELDS, "contiguous")), mirror=False)
    step = read(tmp_path)
    assert [one["fields"]["train_log_probs"]["state"] for one in documents(step)] == ["unreadable"] * 2


def test_swapped_ranks_are_contradicted(tmp_path: Path) -> None:
    """8 tokens with 2 of response: one value a rank, so swapped cp ranks have the right widths."""
    write(tmp_path, [(8, 2)], Layout(cp=2))
    for name, cp_rank in (("0_0.pt", 1), ("0_1.pt", 0)):
        edit(tmp_path, name, lambda payload, cp_rank=cp_rank: payload.update(cp_rank=cp_rank))
    shown = field(read(tmp_path), "train_log_probs")
    assert (shown["state"], shown["reason"]) == ("unreadable", "order contradicted by the rollout file")


def test_rank_numbers_say_nothing_where_cp_ranks_are_recorded(tmp_path: Path) -> None:
    _, truth = write(tmp_path, [(20, 10), (50, 40)], Layout(cp=4))
    folder = tmp_path / "train_data"
    for rank, other in enumerate((17, 3, 40, 8)):
        (folder / f"0_{rank}.pt").rename(folder / f"x{other}")
    for path in list(folder.iterdir()):
        path.rename(folder / f"0_{path.name[1:]}.pt")
    assert_true(read(tmp_path), truth)


@pytest.mark.parametrize(
    ("recorded", "problem"),
    [
        ({"cp_rank": None}, "records no cp rank"),
        ({"cp_rank": 7}, "records no cp rank"),
        ({"cp_size": 3}, "different cp sizes"),
        ({"qkv_format": "sbhd"}, "unknown qkv_format"),
        ({"cp_size": 0}, "different cp sizes"),
    ],
)
def test_a_record_that_makes_no_sense_is_refused(tmp_path: Path, recorded: Json, problem: str) -> None:
    write(tmp_path, [(20, 10)], Layout(cp=2))
    edit(tmp_path, "0_0.pt", lambda payload: payload.update(recorded))
    shown = field(read(tmp_path), "train_log_probs")
    assert shown["state"] == "unreadable" and problem in shown["reason"]


@pytest.mark.parametrize("cp_size", [0, -2, 10**9])
def test_a_cp_size_that_cannot_be_is_refused(tmp_path: Path, cp_size: int) -> None:
    write(tmp_path, [(20, 10)], Layout(cp=2))
    for name in ("0_0.pt", "0_1.pt"):
        edit(tmp_path, name, lambda payload: payload.update(cp_size=cp_size))
    step = read(tmp_path)
    shown = field(step, "train_log_probs")
    assert shown["state"] == "unreadable" and str(cp_size) in shown["reason"]
    assert {row["state"] for row in steps.batch(step)} == {"unreadable"}


def test_a_name_may_claim_any_rank(tmp_path: Path) -> None:
    _, truth = write(tmp_path, [(20, 10), (50, 40)], Layout(recorded=False))
    path = truth.files[0]
    path.rename(path.with_name(f"0_{10**12}.pt"))
    assert_true(read(tmp_path), truth)


@pytest.mark.parametrize(
    ("name", "value"), [("total_lengths", 2**70), ("response_lengths", -3), ("max_seq_lens", 2**70)]
)
def test_lengths_that_cannot_be_cost_no_more_than_their_file(tmp_path: Path, name: str, value: int) -> None:
    write(tmp_path, [(20, 10)], Layout(cp=2, qkv="bshd", pad=32))
    edit(tmp_path, "0_0.pt", lambda payload: payload["rollout_data"].update({name: [value]}))
    shown = field(read(tmp_path), "train_log_probs")
    assert shown["state"] in ("ok", "partial")


# Case 15: radixark/miles cp_utils and data.py, padded slices and fields that are cut by another rule ------


@pytest.mark.parametrize("recorded", [True, False])
def test_padded_slices_and_fields_that_follow_the_other_rule(tmp_path: Path, recorded: bool) -> None:
    """20 tokens, 10 of response, padded to 32, cp 2: 0 and 10 values; by the thd rule 4 and 6."""
    layout = Layout(cp=2, qkv="bshd", pad=32, recorded=recorded, field_qkv={"returns": "thd", "advantages": "thd"})
    given = {"returns": [np.arange(10) / 10]}
    batch = [sample(0, prompt_len=10, response_len=10)]
    truth = write_step(tmp_path, 0, batch, layout, truth=given, mirror=False)
    step = read(tmp_path)
    assert [shard.widths("log_probs").tolist() for shard in step.shards] == [[0], [10]]
    assert [shard.widths("returns").tolist() for shard in step.shards] == [[4], [6]]
    assert_true(step, truth)


def test_both_rules_fit_the_returns_with_different_values(tmp_path: Path) -> None:
    """8 tokens, 4 of response, padded to 16, cp 2: [0] and [1,2,3]; by the thd rule [3] and [0,1,2].

    Advantages are all equal.
    """
    layout = Layout(cp=2, qkv="bshd", pad=16, field_qkv={"returns": "thd", "advantages": "thd"})
    batch = [sample(0, prompt_len=4, response_len=4)]
    given = {"returns": [np.arange(4) / 10], "advantages": [np.full(4, 0.5)]}
    truth = write_step(tmp_path, 0, batch, layout, truth=given, mirror=False)
    step = read(tmp_path)
    shown = field(step, "returns")
    assert shown["state"] == "unreadable"
    assert shown["reason"] == "the bshd and the thd rule both fit its widths, with different values"
    del truth.fields["returns"]
    assert_true(step, truth)


def test_where_both_rules_fit_only_what_they_agree_on_is_left_of_a_lost_slice(tmp_path: Path) -> None:
    """Of the equal advantages, rank 1 holds 1 to 3 by the one rule and 0 to 2 by the other."""
    layout = Layout(cp=2, qkv="bshd", pad=16)
    given = {"advantages": [np.full(4, 0.5)]}
    write_step(tmp_path, 0, [sample(0, prompt_len=4, response_len=4)], layout, truth=given, drop=[0], mirror=False)
    step = read(tmp_path)
    assert (field(step, "advantages")["state"], values(step, "advantages")) == ("partial", [None, 0.5, 0.5, None])
    assert field(step, "train_log_probs")["values"][0] is None is not field(step, "train_log_probs")["values"][3]


def test_padded_slices_without_the_padded_length_are_refused(tmp_path: Path) -> None:
    write(tmp_path, [(20, 10)], Layout(cp=2, qkv="bshd", pad=32))
    for name in ("0_0.pt", "0_1.pt"):
        edit(tmp_path, name, lambda payload: payload["rollout_data"].pop("max_seq_lens"))
    step = read(tmp_path)
    shown = field(step, "train_log_probs")
    assert shown["state"] == "unreadable" and "max_seq_lens" in shown["reason"]
    assert samples(step)[0]["train_state"] == "unreadable"


def test_a_padded_length_that_is_too_short_costs_what_belongs_to_no_rank(tmp_path: Path) -> None:
    write(tmp_path, [(20, 10)], Layout(cp=2, qkv="bshd", pad=32))
    for name in ("0_0.pt", "0_1.pt"):
        edit(tmp_path, name, lambda payload: payload["rollout_data"].update(max_seq_lens=[12]))
    assert field(read(tmp_path), "train_log_probs")["state"] == "unreadable"


# Other attempts -------------------------------------------------------------------------------------------


def attempt(run: Path, seed: int, layout: Layout, **options: Any) -> Truth:
    """The same indices and lengths, other tokens and values."""
    batch = [sample(at, prompt_len=10, response_len=10 + at, seed=seed + at) for at in range(4)]
    return write_step(run, 0, batch, layout, mirror=False, **options)


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("engine", [True, False])
def test_a_stale_file_of_an_earlier_attempt_is_a_missing_one(tmp_path: Path, recorded: bool, engine: bool) -> None:
    fields = [name for name in FIELDS if engine or name != "rollout_log_probs"]
    layout = Layout(cp=2, recorded=recorded)
    attempt(tmp_path, 100, layout, fields=fields)
    stale = (tmp_path / "train_data" / "0_1.pt").read_bytes()
    truth = attempt(tmp_path, 200, layout, fields=fields)
    (tmp_path / "train_data" / "0_1.pt").write_bytes(stale)
    step = read(tmp_path)
    assert step.trained == 4 and len(step.orphans) == 4 and "differ from the rollout file" in step.orphans[0]
    for position, document in enumerate(documents(step)):
        shown = document["fields"]["train_log_probs"]
        assert shown["state"] == "partial" and "cp rank 1 of 2 missing" in shown["reason"]
        true = truth.fields["log_probs"][position].tolist()
        assert all(one in (None, true[at]) for at, one in enumerate(shown["values"]))
    assert samples(step)[0]["mean_abs_lp_diff"] is None
    assert "cp rank 1 of 2 missing" in samples(step)[0]["train_reason"]


def test_a_stale_row_between_fresh_ones_is_seen_too(tmp_path: Path) -> None:
    """The first and last rows, by which files are known as peers, are the same in both."""
    layout = Layout(cp=2)
    lengths = [(20, 10 + at % 3) for at in range(9)]

    def batch(seed: int) -> list[Json]:
        return [
            sample(at, prompt_len=t - r, response_len=r, seed=seed if at == 4 else at)
            for at, (t, r) in enumerate(lengths)
        ]

    fields = [name for name in FIELDS if name != "rollout_log_probs"]
    write_step(tmp_path, 0, batch(100), layout, fields=fields, mirror=False)
    stale = (tmp_path / "train_data" / "0_1.pt").read_bytes()
    write_step(tmp_path, 0, batch(200), layout, fields=fields, mirror=False)
    (tmp_path / "train_data" / "0_1.pt").write_bytes(stale)
    shown = field(read(tmp_path), "train_log_probs", 4)
    assert shown["state"] == "partial"
    assert shown["reason"] == "cp rank 1 of 2 missing; 0_1.pt holds other tokens than the sample"


def test_an_attempt_that_is_stale_as_a_whole_has_no_train_rows(tmp_path: Path) -> None:
    layout = Layout(cp=2, dp=2)
    attempt(tmp_path, 100, layout)
    attempt(tmp_path, 200, layout, train=False)
    step = read(tmp_path)
    assert step.trained == 0 and len(step.orphans) == 4
    assert states(step, "train_log_probs") == {"not dumped"}
    assert {row["reason"] for row in steps.batch(step)} == {"none of its rows is a sample of the rollout file"}


def test_a_stale_attempt_with_equal_tokens_is_never_divergence(tmp_path: Path) -> None:
    """Greedy decoding gives the same tokens again, with other log-probs: the trainer's are not to be held against
    these.
    """
    batch = [sample(at, response_len=8) for at in range(2)]
    write_step(tmp_path, 0, batch, mirror=False)
    again = [{**one, "rollout_log_probs": [value - 0.5 for value in one["rollout_log_probs"]]} for one in batch]
    write_step(tmp_path, 0, again, train=False, mirror=False)
    step = read(tmp_path)
    shown = field(step, "lp_diff")
    assert shown["state"] == "unreadable" and "contradict the rollout file" in shown["reason"]
    assert samples(step)[0]["max_abs_lp_diff"] is None

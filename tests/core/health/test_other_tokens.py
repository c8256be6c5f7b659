"""A run begun again rewrites its rollout files while train files of the earlier attempt are still there: none of what
these hold is shown beside the new samples.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dumptui.core.fields.registry import train_column
from dumptui.core.health.run_health import exit_code, health
from dumptui.core.run.run import Run
from dumptui.core.step.step import Step
from dumptui.core.tables import steps
from tests.support.reading import documents, read, samples
from tests.support.writer import Json, Layout, Truth, sample, write_slime_v2, write_step

LAYOUTS = [
    Layout(),
    Layout(dp=2),
    Layout(tp=2, cp=2, dp=2, pp=2),
    Layout(tp=2, cp=2, dp=2, pp=2, recorded=False),
    Layout(cp=4, writers="shard"),
    Layout(cp=2, qkv="bshd", pad=16),
    Layout(cp=2, qkv="bshd", pad=16, recorded=False),
    Layout(cp=2, packed=True),
]
LENGTHS = [1, 2, 3, 5, 9, 16]


def attempt(number: int, responses: list[int], prefix: int = 0) -> list[Json]:
    """Samples of the same prompts and indices; responses of two attempts have only their first `prefix` tokens in
    common.
    """
    batch = []
    for index, response in enumerate(responses):
        one = sample(index, prompt_len=4, response_len=response, seed=1000 * number + index)
        common = sample(index, prompt_len=4, response_len=99)["tokens"]
        head = 4 + min(prefix, response)
        batch.append({**one, "tokens": common[:head] + [token + 1000 * number for token in one["tokens"][head:]]})
    return batch


def shown_of_train(step: Step) -> list[tuple[str, int, Any]]:
    """Everything that only train files hold, of any sample."""
    found = []
    for position, document in enumerate(documents(step)):
        for name, field in document["fields"].items():
            if train_column(name) != "rollout_log_probs" and any(one is not None for one in field["values"] or ()):
                found.append((name, position, field["values"]))
    rows = samples(step)
    found += [("raw_reward", at, row["raw_reward"]) for at, row in enumerate(rows) if row["raw_reward"] is not None]
    return found


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("prefix", [0, 2])
def test_no_value_of_another_attempt_is_shown(tmp_path: Path, layout: Layout, prefix: int) -> None:
    """Old responses shorter, equal and longer than the new ones, with and without a common beginning."""
    pairs = [(old, new) for old in LENGTHS for new in LENGTHS if prefix < min(old, new) or old != new]
    write_step(tmp_path, 0, attempt(1, [old for old, _ in pairs], prefix), layout, mirror=False)
    write_step(tmp_path, 0, attempt(2, [new for _, new in pairs], prefix), train=False, mirror=False)
    step = read(tmp_path)
    assert step.trained == 0 and len(step.alignment.orphans) == len(pairs)
    assert not shown_of_train(step)
    row = steps.step_row(step, samples(step))
    assert (row["train_samples"], row["mean_abs_lp_diff"], row["state"]) == (0, None, "not dumped")
    assert "rows of other samples" in str(row["reason"])
    assert all("sample_index" in document["fields"]["train_log_probs"]["reason"] for document in documents(step))
    assert exit_code(health(Run.open(tmp_path))) == 1


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_beside_samples_that_both_attempts_have(tmp_path: Path, layout: Layout) -> None:
    """An aborted sample is the same in both; the old raw_reward column counts as many samples as the new one."""
    old, new = attempt(1, [0, 5, 5, 9, 9, 4, 7, 7]), attempt(2, [0, 5, 9, 5, 9, 7, 4, 7])
    write_step(tmp_path, 0, old, layout, mirror=False)
    write_step(tmp_path, 0, new, train=False, mirror=False)
    assert read(tmp_path).trained == 1
    assert not shown_of_train(read(tmp_path))


@pytest.mark.parametrize("layout", [one for one in LAYOUTS if len(list(one.ranks())) > 1], ids=str)
def test_old_files_among_new_ones(tmp_path: Path, layout: Layout) -> None:
    """Of equal lengths, they look like copies or slices of the same shard."""
    responses = [1, 2, 3, 8, 12, 12, 20, 5]
    truth = write_step(tmp_path, 0, attempt(1, responses), layout, mirror=False)
    old = {path: path.read_bytes() for path in truth.files[:: max(2, len(truth.files) // 3)]}
    truth = write_step(tmp_path, 0, attempt(2, responses), layout, mirror=False)
    for path, content in old.items():
        path.write_bytes(content)
    assert not wrong(read(tmp_path), truth)


def wrong(step: Step, truth: Truth) -> list[tuple[str, int]]:
    found = []
    for position, document in enumerate(documents(step)):
        for name, field in document["fields"].items():
            full = truth.fields.get(train_column(name))
            pairs = zip(field["values"] or (), full[position], strict=True) if full and field["values"] else ()
            if any(value is not None and np.float32(value) != true for value, true in pairs):
                found.append((name, position))
    return found


def test_an_eval_file_in_the_place_of_a_rollout_file(tmp_path: Path) -> None:
    write_step(tmp_path, 0, attempt(1, [6] * 8), Layout(dp=2), mirror=False)
    evaluated = [{**one, "group_index": None} for one in attempt(3, [3, 6, 9, 12] * 2)]
    write_step(tmp_path, 0, evaluated, train=False, mirror=False)
    assert read(tmp_path).trained == 0 and not shown_of_train(read(tmp_path))


def test_rows_of_one_file_that_say_their_position(tmp_path: Path) -> None:
    """THUDM/slime#2266: a position alone doesn't make a row a sample's."""
    write_slime_v2(tmp_path, 0, attempt(1, [3, 6, 9, 6]), dp=2)
    write_step(tmp_path, 0, attempt(2, [6, 6, 6, 9]), train=False, mirror=False)
    assert read(tmp_path).trained == 0 and not shown_of_train(read(tmp_path))


def test_what_is_shown_of_one_token_adds_up(tmp_path: Path) -> None:
    """radixark/miles: files with the same tokens whose engine log-probs are other than the rollout file's."""
    batch = attempt(1, [6, 9, 12])
    write_step(tmp_path, 0, batch, mirror=False)
    other = [{**one, "rollout_log_probs": [value - 0.5 for value in one["rollout_log_probs"]]} for one in batch]
    write_step(tmp_path, 0, other, train=False, mirror=False)
    for document in documents(read(tmp_path)):
        fields = document["fields"]
        assert fields["lp_diff"]["values"] is None and "contradict" in fields["lp_diff"]["reason"]
        assert fields["imp_ratio"]["values"] is None


def test_media_in_a_response_keep_every_value_at_its_token(tmp_path: Path) -> None:
    """radixark/miles mm_data: each media id of the rollout file stands for a run of it in the train file."""
    media = 990
    short = sample(0, prompt_len=5, response_len=12, loss_mask=[1, 1, 1, 0, 0, 1, 1, 0, 1, 1, 1, 1])
    for at in (2, 8, 12):
        short["tokens"][at] = media
    sizes = {2: 7, 8: 3, 12: 40}
    places = [at for at in range(17) for _ in range(sizes.get(at, 1))]
    longer = {
        **short,
        "tokens": [short["tokens"][at] for at in places],
        "response_length": sum(at >= 5 for at in places),
        "loss_mask": [short["loss_mask"][at - 5] for at in places if at >= 5],
        "rollout_log_probs": [short["rollout_log_probs"][at - 5] for at in places if at >= 5],
    }
    for layout in (Layout(), Layout(cp=2), Layout(cp=4, recorded=False), Layout(cp=2, qkv="bshd", pad=16)):
        run = tmp_path / f"{layout.cp}{layout.qkv}"
        trained = write_step(run, 0, [longer], layout, mirror=False).fields["log_probs"][0]
        write_step(run, 0, [short], train=False, mirror=False)
        first = {at - 5: places.index(at) - places.index(5) for at in range(5, 17)}
        fields = documents(read(run))[0]["fields"]
        engine = fields["rollout_log_probs"]["values"]
        for at in range(12):
            shown = fields["train_log_probs"]["values"][at]
            assert shown == (trained[first[at]] if short["loss_mask"][at] else None), (layout, at)
            if short["loss_mask"][at]:
                assert abs(fields["lp_diff"]["values"][at] - (shown - engine[at])) < 1e-6
        assert documents(read(run))[0]["loss_mask"] == short["loss_mask"]
        assert any(
            note.startswith("2 tokens of the response stand for runs") for note in documents(read(run))[0]["notes"]
        )


@pytest.mark.parametrize("evidence", ["mask", "media", None])
def test_a_repeated_token_is_of_media_only_where_that_is_told(tmp_path: Path, evidence: str | None) -> None:
    short = sample(0, prompt_len=4, response_len=4, loss_mask=[1, 0, 1, 1])
    tokens = short["tokens"]
    longer = {**short, "tokens": [*tokens[:5], *tokens[5:6] * 3, *tokens[6:]], "response_length": 6}
    longer |= {"loss_mask": [1, 0, 0, 0, 1, 1] if evidence == "mask" else [1] * 6, "rollout_log_probs": None}
    columns = {"multimodal_train_inputs": [{"pixel_values": None}]} if evidence == "media" else None
    write_step(tmp_path, 0, [longer], columns=columns, mirror=False)
    write_step(tmp_path, 0, [short], train=False, mirror=False)
    assert read(tmp_path).trained == int(evidence is not None)


def test_media_that_cannot_be_aligned_are_refused_with_the_reason(tmp_path: Path) -> None:
    short = sample(0, prompt_len=4, response_len=6, multimodal_inputs={"images": []})
    longer = {**short, "tokens": [*short["tokens"][:5], *range(2000, 2009), *short["tokens"][6:]]}
    longer |= {"response_length": 14, "rollout_log_probs": None}
    write_step(tmp_path, 0, [longer], mirror=False)
    write_step(tmp_path, 0, [short], train=False, mirror=False)
    shown = documents(read(tmp_path))[0]["fields"]["train_log_probs"]
    assert shown["values"] is None and shown["state"] == "unreadable"
    assert "media in the train file that can't be aligned" in shown["reason"]


@pytest.mark.parametrize("layout", [Layout(tp=2), Layout(cp=2)], ids=str)
def test_a_copy_whose_tokens_cannot_be_read_may_be_of_any_attempt(tmp_path: Path, layout: Layout) -> None:
    """Its engine log-probs are too few to tell: nothing of it is shown."""
    batch = attempt(1, [2] * 8)
    old = write_step(tmp_path, 0, batch, layout, mirror=False).files[1].read_bytes()
    truth = write_step(tmp_path, 0, attempt(2, [2] * 8), layout, mirror=False)
    truth.files[1].write_bytes(old)
    payload = torch.load(truth.files[1], weights_only=False)
    payload["rollout_data"]["tokens"] = [None] * len(payload["rollout_data"]["tokens"])
    torch.save(payload, truth.files[1])
    assert not wrong(read(tmp_path), truth)


def test_rows_whose_tokens_cannot_be_read_are_joined_by_nothing_less_than_their_log_probs(tmp_path: Path) -> None:
    batch = attempt(1, [6, 6, 6])
    truth = write_step(tmp_path, 0, batch, mirror=False)
    payload = torch.load(truth.files[0], weights_only=False)
    payload["rollout_data"]["tokens"] = [None] * 3
    payload["rollout_data"]["rollout_log_probs"][1] += 0.5
    torch.save(payload, truth.files[0])
    step = read(tmp_path)
    shown = [document["fields"]["train_log_probs"] for document in documents(step)]
    assert [one["state"] for one in shown] == ["ok", "unreadable", "ok"]
    assert "the tokens of the row can't be read" in shown[1]["reason"]
    assert not wrong(step, truth)

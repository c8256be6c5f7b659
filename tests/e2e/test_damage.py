"""Damage costs what is damaged: nothing else is lost, and nothing wrong is shown."""

from __future__ import annotations

import errno
import os
import shutil
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

from dumptui.core.errors import BeingWritten, DumpError, NoDump
from dumptui.core.files.step_files import StepFiles, StepKey
from dumptui.core.run.run import Run
from dumptui.core.step.load import load
from dumptui.core.step.step import Step
from dumptui.core.tables import steps, tokens
from dumptui.core.types import Record
from dumptui.tui.cli.main import main
from tests.support.against_truth import states, wrong_values
from tests.support.file_faults import FOREIGN, once, stale_handle
from tests.support.writer import Layout, Truth, sample, write_slime_v2, write_step

MIRRORED = "the rollout file is {}: read from its parquet mirror, without rewards, status and text"
CUTS = {"empty": 0, "ten bytes": 10, "half": 0.5, "one byte short": -1}


def write(run: Path, step: int = 0, layout: Layout | None = None, **options: Any) -> Truth:
    samples = [sample(8 * step + at, prompt_len=3 + at, response_len=9 + 2 * at) for at in range(8)]
    return write_step(run, step, samples, layout or Layout(dp=2), **options)


def open_step(run: Path, step: int = 0, *, evaluation: bool = False) -> Step:
    return load(Run.open(run).steps[StepKey(step, evaluation)])


def cut(path: Path, how: str, age: float = 3600) -> bytes:
    """Cut a file and give back what it held."""
    whole = path.read_bytes()
    length = CUTS[how]
    path.write_bytes(whole[: int(len(whole) * length) if isinstance(length, float) else length])
    set_age(path, age)
    return whole


def set_age(path: Path, age: float) -> None:
    stamp = time.time() - age
    os.utime(path, (stamp, stamp))


def step_rows(run: Path) -> list[tuple[object, object, object]]:
    rows = map(step_row, Run.open(run).steps.values())
    return [(row["step"], row["state"], row["reason"]) for row in rows]


def step_row(files: StepFiles) -> Record:
    try:
        step = load(files)
    except DumpError as error:
        return steps.unreadable_step(files, error)
    return steps.step_row(step, steps.samples(step))


# Case 13: radixark/miles#2815, half-written files and landing on one -------------------------------------------------


@pytest.mark.parametrize("how", CUTS)
def test_a_rollout_file_being_written(tmp_path: Path, how: str) -> None:
    truths = [write(tmp_path, step) for step in (0, 1)]
    path = tmp_path / "rollout_data/1.pt"
    whole = cut(path, how, age=0)
    assert step_rows(tmp_path) == [(0, "ok", None), (1, "being written", "still being written")]
    assert tokens.newest(Run.open(tmp_path)).files.key == StepKey(0)
    path.write_bytes(whole)
    assert step_rows(tmp_path) == [(0, "ok", None), (1, "ok", None)]
    assert not list(wrong_values(open_step(tmp_path, 1), truths[1]))


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ("empty", "is empty (0 bytes)"),
        ("ten bytes", "is truncated: the zip directory at its end is missing"),
        ("half", "is truncated: the zip directory at its end is missing"),
        ("one byte short", "is truncated: the zip directory at its end is missing"),
    ],
)
def test_a_rollout_file_that_stayed_cut(tmp_path: Path, how: str, sentence: str) -> None:
    for step in (0, 1):
        write(tmp_path, step, mirror=False)
    cut(tmp_path / "rollout_data/1.pt", how)
    assert step_rows(tmp_path) == [(0, "ok", None), (1, "unreadable", sentence)]
    assert tokens.newest(Run.open(tmp_path)).files.key == StepKey(0)


@pytest.mark.parametrize("age", [0, 3600])
@pytest.mark.parametrize("how", CUTS)
def test_a_cut_train_file_costs_its_slices(tmp_path: Path, how: str, age: float) -> None:
    truth = write(tmp_path, layout=Layout(cp=2, dp=2))
    whole = cut(truth.files[1], how, age)
    step = open_step(tmp_path)
    assert not list(wrong_values(step, truth))
    assert states(step, "train_log_probs") == ["partial", "ok"] * 4
    row = next(row for row in steps.batch(step) if row["file"] == "0_1.pt")
    assert row["state"] == ("unreadable" if age else "being written")
    assert age or row["reason"] == "still being written"
    truth.files[1].write_bytes(whole)
    assert states(open_step(tmp_path), "train_log_probs") == ["ok"] * 8


@pytest.mark.parametrize("garbage", [b"garbage", b"\x00" * 5000, b"\x80\x02garbage.", b"PK\x03\x04 garbage"])
@pytest.mark.parametrize("age", [0, 3600])
def test_garbage(tmp_path: Path, garbage: bytes, age: float) -> None:
    truth = write(tmp_path, mirror=False)
    truth.files[0].write_bytes(garbage)
    set_age(truth.files[0], age)
    step = open_step(tmp_path)
    assert step.trained == 4
    assert not list(wrong_values(step, truth))
    assert [error.state for error in step.broken] == ["unreadable" if age else "being written"]
    (tmp_path / "rollout_data/0.pt").write_bytes(garbage)
    set_age(tmp_path / "rollout_data/0.pt", age)
    with pytest.raises(DumpError) as caught:
        open_step(tmp_path)
    assert isinstance(caught.value, BeingWritten) == (not age)
    assert caught.value.path.endswith("rollout_data/0.pt")


@pytest.mark.parametrize("age", [0, 3600])
def test_a_train_file_of_a_later_format_is_never_called_unfinished(tmp_path: Path, age: float) -> None:
    write_slime_v2(tmp_path, 0, [sample(0)], version=3, age=age)
    step = open_step(tmp_path)
    assert [error.problem for error in step.broken] == ["train dump of format_version 3; only 2 is supported"]
    assert [error.state for error in step.broken] == ["unreadable"]


@pytest.mark.parametrize("resident", [True, False])
@pytest.mark.parametrize(("what", "offset"), [("length of the name", 26), ("length of the padding", 28), ("name", 36)])
def test_a_wrong_bit_in_front_of_a_tensor_never_shows_its_neighbour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, offset: int, resident: bool
) -> None:
    if not resident:
        monkeypatch.setattr("dumptui.core.ptfile.snapshot._SMALL_FILE_BYTES", 0)
    truth = write(tmp_path, layout=Layout())
    whole = truth.files[0].read_bytes()
    with zipfile.ZipFile(truth.files[0]) as file:
        headers = [entry.header_offset for entry in file.infolist() if "/data/" in entry.filename]
    unreadable = 0
    for header in headers:
        damaged = bytearray(whole)
        damaged[header + offset] ^= 4
        truth.files[0].write_bytes(damaged)
        set_age(truth.files[0], 3600)
        step = open_step(tmp_path)
        assert not list(wrong_values(step, truth))
        unreadable += "unreadable" in states(step, "entropy")
    assert unreadable == len(truth.samples)


def test_a_wrong_bit_in_the_byte_order(tmp_path: Path) -> None:
    truth = write(tmp_path, layout=Layout())
    truth.files[0].write_bytes(truth.files[0].read_bytes().replace(b"little", b"littlf"))
    set_age(truth.files[0], 3600)
    assert [error.problem for error in open_step(tmp_path).broken] == ["its byte order is damaged: 'littlf'"]


# Contents ------------------------------------------------------------------------------------------------------------


def test_a_row_of_an_unknown_sample(tmp_path: Path) -> None:
    columns = {"sample_indices": [0, 1, 2, 99999, 4, 5, 6, 7]}
    truth = write(tmp_path, columns=columns)
    step = open_step(tmp_path)
    assert [row is not None for row in step.alignment.rows] == [True, True, True, False, True, True, True, True]
    assert step.alignment.orphans == ("0_1.pt row 1: sample_index 99999 is not in the rollout file",)
    assert not list(wrong_values(step, truth))


def test_raw_rewards_of_the_wrong_length(tmp_path: Path) -> None:
    truth = write(tmp_path)
    payload = torch.load(truth.files[0])
    true = payload["rollout_data"]["raw_reward"]
    payload["rollout_data"]["raw_reward"] = true[:5]
    torch.save(payload, truth.files[0])
    assert open_step(tmp_path).alignment.raw_rewards == tuple(true)
    truth.files[1].unlink()
    assert open_step(tmp_path).alignment.raw_rewards is None


def test_foreign_files_change_nothing(tmp_path: Path) -> None:
    truth = write(tmp_path)
    for folder in ("rollout_data", "train_data"):
        for name in FOREIGN:
            shutil.copy(truth.files[0], tmp_path / folder / name)
    run = Run.open(tmp_path)
    assert len(run.strays) == 2 * len(FOREIGN)
    assert [row[1] for row in step_rows(tmp_path)] == ["ok"]
    assert not list(wrong_values(open_step(tmp_path), truth))


def test_a_name_that_says_another_rank(tmp_path: Path) -> None:
    truth = write(tmp_path, layout=Layout(dp=6))
    for path in truth.files[:5]:
        path.unlink()
    truth.files[5].rename(tmp_path / "train_data/0_0.pt")
    step = open_step(tmp_path)
    assert step.notes == ["0_0.pt: the name says rank 0, the content says 5"]
    assert step.trained == 1
    assert not list(wrong_values(step, truth))


def test_names_without_a_rank(tmp_path: Path) -> None:
    """A save template without {rank}: the last rank's file is what is left."""
    truth = write(tmp_path, layout=Layout(cp=2))
    truth.files[0].unlink()
    truth.files[1].rename(tmp_path / "train_data/0.pt")
    step = open_step(tmp_path)
    assert [shard.rank for shard in step.shards] == [1]
    assert set(states(step, "train_log_probs")) == {"partial"}
    assert not list(wrong_values(step, truth))


# The mirror ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [*CUTS, "missing"])
@pytest.mark.parametrize("evaluation", [False, True])
def test_a_mirror_stands_in_for_the_rollout_file(tmp_path: Path, how: str, evaluation: bool) -> None:
    truth = write(tmp_path, layout=Layout(cp=2, dp=2), evaluation=evaluation)
    path = tmp_path / "rollout_data" / ("eval_0.pt" if evaluation else "0.pt")
    if how == "missing":
        path.unlink()
    else:
        cut(path, how)
    step = open_step(tmp_path, evaluation=evaluation)
    note = MIRRORED.format("missing" if how == "missing" else "unreadable")
    assert step.notes == [note]
    assert all(sample.notes == (note,) for sample in step.samples)
    assert [sample.reward for sample in step.samples] == [None] * 8
    assert not list(wrong_values(step, truth))
    assert set(states(step, "rollout_log_probs")) == {"ok"}
    assert set(states(step, "train_log_probs")) == {"not dumped" if evaluation else "ok"}
    assert step_rows(tmp_path) == [(0, "partial", note)]


def test_a_mirror_stands_in_for_a_file_that_vanished_after_the_listing(tmp_path: Path) -> None:
    write(tmp_path)
    files = Run.open(tmp_path).steps[StepKey(0)]
    (tmp_path / "rollout_data/0.pt").unlink()
    assert load(files).notes == [MIRRORED.format("missing")]


def test_a_cut_mirror_costs_nothing_beside_its_rollout_file(tmp_path: Path) -> None:
    truth = write(tmp_path)
    mirror = tmp_path / "dashboard_columns/rollout_0.parquet"
    mirror.write_bytes(mirror.read_bytes()[:100])
    assert step_rows(tmp_path) == [(0, "ok", None)]
    assert not list(wrong_values(open_step(tmp_path), truth))


def test_without_any_copy_the_sentence_is_about_the_rollout_file(tmp_path: Path) -> None:
    write(tmp_path)
    cut(tmp_path / "rollout_data/0.pt", "empty")
    (tmp_path / "dashboard_columns/rollout_0.parquet").write_bytes(b"PAR1")
    with pytest.raises(DumpError, match=r"rollout_data/0\.pt: is empty"):
        open_step(tmp_path)


def test_the_engine_s_log_probs_of_a_mirror_tell_the_layout(tmp_path: Path) -> None:
    truth = write(tmp_path, layout=Layout(cp=2, recorded=False))
    (tmp_path / "rollout_data/0.pt").unlink()
    step = open_step(tmp_path)
    assert not list(wrong_values(step, truth))
    assert set(states(step, "train_log_probs")) == {"ok"}


# Folders of train files ----------------------------------------------------------------------------------------------


def test_a_bare_folder_of_train_files(tmp_path: Path) -> None:
    truth = write(tmp_path, layout=Layout(cp=2, dp=2))
    step = open_step(tmp_path / "train_data")
    assert step.notes == ["no rollout file: read from the train files, without rewards, status and text"]
    assert not list(wrong_values(step, truth))
    assert set(states(step, "train_log_probs")) == {"ok"}
    assert step.alignment.raw_rewards is None


def test_train_rows_that_share_an_index_say_that_their_order_is_not_known(tmp_path: Path) -> None:
    samples = [sample(at // 2, response_len=5 + at, seed=at) for at in range(3)]
    write_step(tmp_path, 0, samples, Layout(dp=2))
    notes = {one.index: list(one.notes) for one in open_step(tmp_path / "train_data").samples}
    assert notes[1] == ["no rollout file: read from the train files, without rewards, status and text"]
    assert notes[0] == ["several samples have this index; only the rollout file shows which one this is", *notes[1]]


def test_a_bare_folder_of_row_wise_train_files(tmp_path: Path) -> None:
    write_slime_v2(tmp_path, 0, [sample(0)])
    with pytest.raises(NoDump, match="is a train file of a whole step"):
        open_step(tmp_path / "train_data")


# Files that change ---------------------------------------------------------------------------------------------------


def long_step(run: Path) -> Truth:
    """Tensors of 280 KB, too large to be kept in memory when their file is opened."""
    return write_step(run, 0, [sample(at, response_len=70_000) for at in range(2)], mirror=False)


def test_a_file_replaced_after_it_was_opened_gives_no_values(tmp_path: Path) -> None:
    truth = long_step(tmp_path)
    step = open_step(tmp_path)
    new = write_step(tmp_path / "new", 0, [sample(at + 2, response_len=70_000) for at in range(2)])
    new.files[0].replace(truth.files[0])
    flat = step.gather("train_log_probs")
    assert flat.states == ["unreadable"] * 2
    assert flat.reasons == [f"{truth.files[0]}: changed while it was being read"] * 2
    assert not flat.known.any()


def test_a_file_that_is_gone_after_it_was_opened_gives_no_values(tmp_path: Path) -> None:
    truth = long_step(tmp_path)
    step = open_step(tmp_path)
    truth.files[0].unlink()
    flat = step.gather("train_log_probs")
    assert flat.states == ["unreadable"] * 2
    assert flat.reasons == [f"{truth.files[0]}: can't be opened: No such file or directory"] * 2


def test_files_that_vanish_after_the_listing(tmp_path: Path) -> None:
    truth = write(tmp_path, mirror=False)
    files = Run.open(tmp_path).steps[StepKey(0)]
    truth.files[1].unlink()
    step = load(files)
    assert [str(error) for error in step.broken] == [f"{truth.files[1]}: can't be opened: No such file or directory"]
    assert not list(wrong_values(step, truth))
    shutil.rmtree(tmp_path)
    with pytest.raises(DumpError, match=r"rollout_data/0\.pt: can't be opened: No such file or directory"):
        load(files)


def test_a_link_to_nowhere_is_no_file(tmp_path: Path) -> None:
    truth = write(tmp_path)
    truth.files[0].unlink()
    truth.files[0].symlink_to(tmp_path / "nowhere")
    assert [rank for rank, _ in Run.open(tmp_path).steps[StepKey(0)].shards] == [1]


# Case 35: getlogbook/logbook#243 and tox-dev/filelock#669, handles that go stale on a file server ---------------------


def test_a_stale_handle_is_opened_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    truth = write(tmp_path, mirror=False)
    files = Run.open(tmp_path).steps[StepKey(0)]
    monkeypatch.setattr(os, "open", once(stale_handle(), os.open))
    step = load(files)
    assert not step.broken
    assert not list(wrong_values(step, truth))


def test_a_handle_that_goes_stale_between_two_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    truth = long_step(tmp_path)
    step = open_step(tmp_path)
    monkeypatch.setattr(os, "open", once(stale_handle(), os.open))
    assert states(step, "train_log_probs") == ["ok", "ok"]
    assert not list(wrong_values(step, truth))


def test_a_handle_that_stays_stale_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, mirror=False)
    files = Run.open(tmp_path).steps[StepKey(0)]

    def stale(*args: Any, **kwargs: Any) -> int:
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    monkeypatch.setattr(os, "open", stale)
    with pytest.raises(DumpError, match=r"0\.pt: can't be opened: Stale file handle"):
        load(files)


# Files under other names ---------------------------------------------------------------------------------------------


def swap(first: Path, second: Path) -> None:
    other = first.with_name("other")
    first.rename(other)
    second.rename(first)
    other.rename(second)


@pytest.mark.parametrize(
    "layout",
    [Layout(dp=2), Layout(cp=2), Layout(cp=2, recorded=False), Layout(cp=2, qkv="bshd", pad=16, recorded=False)],
)
def test_swapped_ranks_are_harmless(tmp_path: Path, layout: Layout) -> None:
    truth = write(tmp_path, layout=layout)
    swap(*truth.files)
    step = open_step(tmp_path)
    assert not list(wrong_values(step, truth))
    assert len(step.notes) == 2


def test_train_files_of_another_step_are_noticed(tmp_path: Path) -> None:
    truths = [write(tmp_path, number) for number in (3, 4)]
    swap(truths[0].files[0], truths[1].files[0])
    for truth in truths:
        step = open_step(tmp_path, truth.step)
        assert step.trained == 4
        assert step.notes == [f"{truth.step}_0.pt: the name says step {truth.step}, the content says {7 - truth.step}"]
        assert not list(wrong_values(step, truth))


def test_rollout_files_of_another_step_are_noticed(tmp_path: Path) -> None:
    for number in (3, 4):
        write(tmp_path, number)
    swap(tmp_path / "rollout_data/3.pt", tmp_path / "rollout_data/4.pt")
    step = open_step(tmp_path, 3)
    assert step.trained == 0
    assert step.notes == ["the name says step 3, the content says 4"]
    assert step_rows(tmp_path)[0][1] == "not dumped"


def test_the_reason_of_64_dead_ranks_is_one_line_and_the_batch_is_quick(tmp_path: Path) -> None:
    """A line of 2,142 characters; and the table of 2,000 such files took the square of them."""
    write_step(tmp_path, 0, [sample(at) for at in range(4)], Layout(dp=2))
    for rank in range(2, 2002):
        path = tmp_path / "train_data" / f"0_{rank}.pt"
        path.write_bytes(b"PK" if rank % 2 else b"")
        os.utime(path, (0, 0))
    os.unlink(tmp_path / "train_data" / "0_0.pt")
    step = load(Run.open(tmp_path).files(StepKey(0)))
    reason = steps.train_reason(step)
    assert reason is not None and len(reason) < 200
    assert "0_2.pt and 999 more: is empty (0 bytes)" in reason
    begun = time.process_time()
    rows = steps.batch(step)
    assert time.process_time() - begun < 0.5
    assert len(rows) == 2001 and rows[1] | {"file": "0_2.pt", "rank": 2, "state": "unreadable", "bytes": 0} == rows[1]


def test_what_can_not_be_read_beside_the_dumps_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The output was blank, and the exit code 0."""
    write(tmp_path, trajectory=None)
    broken = [tmp_path / "tokenizer" / "tokenizer.json", tmp_path / "dashboard" / "metrics.jsonl"]
    for path in broken:
        path.parent.mkdir()
        path.write_text('{"no tokenizer": [')
    (tmp_path / "dashboard" / "metrics.jsonl").write_text("no record\n")
    os.mkfifo(tmp_path / "dashboard" / "topology.jsonl")
    named = {
        ("tokens", "--sample", "0"): "tokenizer.json: unreadable tokenizer: ",
        ("conversation", "--sample", "0"): "tokenizer.json: unreadable tokenizer: ",
        ("metrics",): "metrics.jsonl: 1 malformed line: byte 0: ",
        ("lanes",): "topology.jsonl: can't be read: is not a file",
    }
    for view, sentence in named.items():
        assert main([str(tmp_path), "--step", "0", "--no-cache", "--print", *view]) == 0
        said = capsys.readouterr().err
        assert sentence in said and said.startswith("dumptui: ") and said.count("\n") == 1
    main([str(tmp_path), "--no-cache", "--print", "health"])
    found = capsys.readouterr().out
    assert all(path.name in found for path in (*broken, tmp_path / "topology.jsonl"))

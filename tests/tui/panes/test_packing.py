"""What was trained on: tokens a shard and micro-batch, what was left out, and the values of every per-token column."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from dumptui.core.files.step_files import StepKey
from dumptui.core.sample.facts import rows, sample_facts
from dumptui.core.step.distribution import distributions
from dumptui.core.step.step import Step
from dumptui.core.tables.packing import Load, imbalance, left_out, loads, worst_imbalance
from dumptui.core.tables.steps import batch
from dumptui.tui.panes.batch import BatchPane
from dumptui.tui.presentation.packing import left_out_text, micro_text, shards_text
from dumptui.tui.widgets.plot.histogram import axis, bars
from dumptui.tui.widgets.table.table import Table
from tests.support.reading import read, samples
from tests.support.screen import still, text, until, until_shown
from tests.support.session import choose, go, opened, under_cursor
from tests.support.writer import Layout, sample, write_slime_v2, write_step

MADE = [sample(at, prompt_len=4, response_len=length) for at, length in enumerate([6, 16, 26, 36])]  # 10 to 40 tokens


def rewritten(tmp_path: Path, **columns: object) -> Step:
    """A step of two shards whose train files hold these columns as well."""
    import torch

    truth = write_step(tmp_path, 0, MADE, Layout(dp=2), partition=[[3, 0], [1, 2]], mirror=False)
    for path in truth.files:
        payload = torch.load(path, weights_only=False)
        payload["rollout_data"] |= columns
        torch.save(payload, path)
    return read(tmp_path)


def test_tokens_of_shards_and_micro_batches(tmp_path: Path) -> None:
    step = rewritten(tmp_path, micro_batch_indices=[[1], [0]], num_microbatches=[1, 1])
    assert loads(step) == [Load(50, 2, (10, 40), (1, 1)), Load(50, 2, (30, 20), (1, 1))]
    assert imbalance([50, 50]) == 0.0
    assert worst_imbalance(loads(step)) == pytest.approx(0.5)  # 10 against 30 tokens in the first optimizer step


@pytest.mark.parametrize(
    ("dumped", "reason"),
    [
        (None, "micro_batch_indices is not dumped"),
        ([[0], [2]], "micro_batch_indices doesn't list each row exactly once"),
        ([[0, 0]], "micro_batch_indices doesn't list each row exactly once"),
        ([0, 1], "micro_batch_indices doesn't list each row exactly once"),
        ("text", "micro_batch_indices doesn't list each row exactly once"),
    ],
)
def test_without_a_schedule_the_tokens_are_known_all_the_same(tmp_path: Path, dumped: object, reason: str) -> None:
    found = loads(rewritten(tmp_path, micro_batch_indices=dumped))
    assert [(load.tokens, load.micro_batches, load.reason) for load in found] == [(50, None, reason)] * 2


def test_optimizer_steps_that_contradict_the_micro_batches_are_not_told(tmp_path: Path) -> None:
    found = loads(rewritten(tmp_path, micro_batch_indices=[[0], [1]], num_microbatches=[5]))
    assert found[0] == Load(50, 2, (40, 10), None)


def test_micro_batches_of_a_row_wise_file_follow_its_partition(tmp_path: Path) -> None:
    write_slime_v2(tmp_path, 0, MADE, dp=2, partition=[[3, 0], [1, 2]])
    assert loads(read(tmp_path)) == [Load(50, 2, (50,), (1,)), Load(50, 2, (50,), (1,))]


def test_each_sample_is_told_its_micro_batch_and_optimizer_step(tmp_path: Path) -> None:
    step = rewritten(tmp_path, micro_batch_indices=[[1], [0]], num_microbatches=[1, 1])  # of rows 3 0 and 1 2
    table = samples(step)
    assert [(row["micro_batch"], row["optimizer_step"]) for row in table] == [(0, 0), (1, 1), (0, 0), (1, 1)]
    assert [(row["micro_batch_tokens"], row["num_microbatches"]) for row in batch(step)] == [
        ([10, 40], [1, 1]),
        ([30, 20], [1, 1]),
    ]
    told = {row["name"]: row["value"] for row in rows(sample_facts(step, step.samples[3]))}
    assert (told["micro-batch of the row"], told["optimizer step of the row"]) == ("1 of 2", "1 of 2")


@pytest.mark.parametrize("dumped", [None, [[0], [2]], "text"])
def test_a_micro_batch_that_is_not_told_is_not_guessed(tmp_path: Path, dumped: object) -> None:
    step = rewritten(tmp_path, micro_batch_indices=dumped, num_microbatches=[1, 1])
    assert {(row["micro_batch"], row["optimizer_step"]) for row in samples(step)} == {(None, None)}
    assert {row["micro_batch_tokens"] for row in batch(step)} == {None}
    assert "micro-batch of the row" not in {row["name"] for row in rows(sample_facts(step, step.samples[3]))}


def test_a_sample_without_a_train_row_is_in_no_micro_batch(tmp_path: Path) -> None:
    write_slime_v2(tmp_path, 0, MADE, dp=2, partition=[[3, 0], [1]])
    assert [row["micro_batch"] for row in samples(read(tmp_path))] == [0, 0, None, 0]


def test_imbalance_is_how_far_the_largest_is_above_the_mean() -> None:
    assert imbalance([30, 10]) == pytest.approx(0.5)
    assert imbalance([]) == imbalance([0, 0]) == 0.0
    assert worst_imbalance([]) == 0.0
    assert worst_imbalance([Load(30, 1, (30,), (1,)), Load(10, 1)]) == pytest.approx(0.5)


def test_what_was_left_out(tmp_path: Path) -> None:
    made = [sample(at, group_index=at // 2, response_len=2) for at in range(8)]
    made[0]["remove_sample"] = True
    made[2]["loss_mask"] = [0, 0]
    write_step(tmp_path, 0, made, partition=[[0, 1, 2, 4]], mirror=False)
    step = read(tmp_path)
    assert [(one.fact, one.positions) for one in left_out(step, samples(step))] == [
        ("without a train row, like their whole group", (6, 7)),
        ("without a train row", (3, 5)),
        ("removed by a filter (loss mask is zero)", (0,)),
        ("without unmasked tokens", (2,)),
    ]
    write_step(tmp_path, 1, made, train=False)
    step = read(tmp_path, 1)
    assert [(one.fact, len(one.positions)) for one in left_out(step, samples(step))] == [("without a train row", 8)]


def test_of_a_file_that_cannot_be_read_nobody_knows_what_was_left_out(tmp_path: Path) -> None:
    made = [sample(at, group_index=at // 2, response_len=2) for at in range(4)]
    truth = write_step(tmp_path, 0, made, Layout(dp=2), partition=[[0, 1], [2, 3]], mirror=False)
    truth.files[1].write_bytes(b"")
    step = read(tmp_path)
    assert [(one.fact, one.positions) for one in left_out(step, samples(step))] == [
        ("without a train row (an unreadable file may hold it)", (2, 3))
    ]


def test_columns_over_unmasked_tokens(tmp_path: Path) -> None:
    made = [sample(at, response_len=4, loss_mask=[1, 1, 0, 1]) for at in range(2)]
    advantages = [[1.0, 2.0, 99.0, 3.0], [4.0, np.nan, 99.0, np.inf]]
    write_step(tmp_path, 0, made, truth={"advantages": advantages}, fields=["returns"], mirror=False)
    found = {one.name: one for one in distributions(read(tmp_path)) if one is not None}
    shown = found["advantages"]
    assert (shown.samples, shown.count, shown.not_finite) == (2, 6, 2)
    assert (shown.mean, shown.low, shown.median, shown.high) == (2.5, 1.0, 2.5, 4.0)
    assert shown.std == pytest.approx(np.std([1, 2, 3, 4], ddof=1)) and sum(shown.bins) == 4
    assert found["rollout_log_probs"].count == 6
    assert sum(found["returns"].bins) == 6 and found["returns"].ends[0] <= found["returns"].ends[1]


def test_a_column_of_nothing_has_no_statistics(tmp_path: Path) -> None:
    made = [sample(at, response_len=2, loss_mask=[0, 0]) for at in range(2)]
    write_step(tmp_path, 0, made, truth={"advantages": [[1.0, 1.0], None]}, mirror=False)
    found = {one.name: one for one in distributions(read(tmp_path)) if one is not None}["advantages"]
    assert (found.samples, found.count, found.mean, found.bins) == (1, 0, None, ())


# On screen --------------------------------------------------------------------------------------------------------


def test_packing_in_sentences() -> None:
    two = [Load(3000, 4, (2000, 1000), (1, 1)), Load(1000, 2, (500, 500), (1, 1))]
    assert shards_text(two).plain == "tokens  dp 0 3,000  dp 1 1,000 · max/mean 1.50"
    assert micro_text(two).plain == (
        "2 micro-batches per DP shard in 2 optimizer steps · tokens 500-2,000, max/mean 2.00"
        " · worst step across DP shards max/mean 1.60"
    )
    many = [Load(1000 + at, 1, reason="micro_batch_indices is not dumped") for at in range(64)]
    assert shards_text(many).plain == "tokens per DP shard 1,000-1,063 · max/mean 1.03"
    assert micro_text(many).plain == "micro-batches -: micro_batch_indices is not dumped"
    assert shards_text([]).plain == "tokens -: no train files" and left_out_text([], []).plain == "not trained  none"


def test_bars_fill_their_width_and_no_value_is_lost() -> None:
    assert bars((8, 0, 4, 1), 8, 1) == ["██  ▄▄▁▁"]
    assert bars((8, 0, 4, 1), 4, 2) == ["█   ", "█ █▂"]
    assert bars((0, 1, 100_000), 3, 1) == [" ▁█"]
    assert bars(tuple(range(100)), 10, 1)[0][-1] == "█"
    assert bars((3,), 4, 1) == ["████"] and bars((3,), 4, 0) == []
    assert axis((-1.0, 2.5), "label", 20) == "-1     label     2.5" and axis((0.5, 0.5), "", 9) == "0.5"


async def test_the_batch_pane_tells_of_packing_and_columns(demo: Path) -> None:
    async with opened(demo, key=StepKey(3), size=(120, 40)) as (app, pilot):
        await go(pilot, "2")
        await until_shown(
            pilot, "not trained  4 without a train row, like their whole group: 124 125 126 127 · 12", "adv, "
        )
        await until_shown(pilot, "4 micro-batches per DP shard in 1 optimizer step", "tokens  dp 0 3,876")
        table = app.panes.of(BatchPane).query_one("#batch-columns", Table)
        assert under_cursor(table)[0] == "adv"
        await go(pilot, "tab", "home")
        await until_shown(pilot, "trainer, ")
        await go(pilot, "v", "down")
        await until(pilot, lambda: "per-token fields" not in text(app) and "engine, " in text(app))
        await go(pilot, "less_than_sign")
        await until_shown(pilot, "step 2 · trained on 32 of 32", "not trained  none", "engine, ")
        await go(pilot, "v")
        await until_shown(pilot, "per-token fields")


async def test_the_batch_pane_tells_the_micro_batch_of_each_sample(shared: Path, tmp_path: Path) -> None:
    rewritten(tmp_path, micro_batch_indices=[[1], [0]], num_microbatches=[1, 1])
    async with opened(tmp_path, size=(120, 40)) as (app, pilot):
        await go(pilot, "2")
        await until_shown(pilot, "  mb  opt ")
        table = app.panes.of(BatchPane).query_one("#batch-samples", Table)
        assert [table.texts(at)["micro_batch"] for at in range(4)] == ["0", "1", "0", "1"]
        assert [table.texts(at)["optimizer_step"] for at in range(4)] == ["0", "1", "0", "1"]
    async with opened(shared / "runs" / "plain", key=StepKey(0), size=(120, 40)) as (app, pilot):
        await go(pilot, "2")
        await until_shown(pilot, "  mb ")
        texts = app.panes.of(BatchPane).query_one("#batch-samples", Table).texts(0)
        assert texts["micro_batch"] == "-" and "optimizer_step" not in texts


async def test_the_samples_of_the_batch_are_sorted_as_those_of_the_step_are(demo: Path) -> None:
    async with opened(demo, key=StepKey(2), size=(120, 40)) as (app, pilot):
        await go(pilot, "2")
        await until_shown(pilot, "adv, ")
        table = app.panes.of(BatchPane).query_one("#batch-samples", Table)
        await go(pilot, "s")
        await until_shown(pilot, "sort the samples by")
        await choose(pilot, "mb")
        await until_shown(pilot, "▼mb")
        batches = [int(table.texts(at)["micro_batch"]) for at in range(table.row_count)]
        assert batches == sorted(batches, reverse=True) and len(set(batches)) == 4
        await go(pilot, "S")
        await until_shown(pilot, "▲mb")
        await go(pilot, "tab", "tab", "n")
        second = [at for at, row in enumerate(app.panes.of(BatchPane).samples) if row["micro_batch"] == 0][1]
        assert table.cursor == 1 and app.rollout.current == second
        await go(pilot, "1")
        await until_shown(pilot, "by mb, smallest first")


async def test_the_batch_pane_without_train_files_or_schedule(shared: Path, tmp_path: Path) -> None:
    async with opened(shared / "runs" / "plain", key=StepKey(0), size=(100, 30)) as (app, pilot):
        await go(pilot, "2")
        await until_shown(pilot, "micro-batches -: micro_batch_indices is not dumped", "tokens  dp 0")
        await go(pilot, "1")
        app.steps.open(StepKey(0, True))
        await until(pilot, lambda: not app.wait.waiting)
        await go(pilot, "2")
        await until_shown(pilot, "evals have no train batch", ">engine")
    write_step(tmp_path, 0, [sample(at) for at in range(10)], train=False)
    async with opened(tmp_path, size=(100, 30)) as (_, pilot):
        await go(pilot, "2")
        await until_shown(pilot, "not trained  10 without a train row: 0 1 2 3 4 5 6 7 …", "tokens -: no train files")


async def test_a_step_that_can_not_be_read_looks_the_same_after_any_other(tmp_path: Path) -> None:
    for step, shards in ((0, 1), (1, 4)):
        write_step(tmp_path, step, [sample(at) for at in range(4)], Layout(dp=shards))
    (tmp_path / "rollout_data" / "2.pt").write_bytes(b"")
    os.utime(tmp_path / "rollout_data" / "2.pt", (0, 0))
    async with opened(tmp_path, key=StepKey(0), size=(120, 40)) as (app, pilot):
        seen = []
        for before in (StepKey(0), StepKey(1)):
            app.steps.choose(before)
            await until(pilot, lambda before=before: app.steps.is_at(before))  # type: ignore[misc]
            await go(pilot, "2")
            await still(pilot)
            app.steps.choose(StepKey(2))
            await until_shown(pilot, "2.pt: is empty (0 bytes)")
            seen.append(await still(pilot))
        assert seen[0] == seen[1]

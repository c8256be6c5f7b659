"""The join of rollout samples with train files, whatever the ranks, the order of the rows and the files that are
there.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dumptui.core.parallel.slicing import AMBIGUOUS_COLUMNS
from tests.support.against_truth import wrong_values
from tests.support.reading import assert_true, documents, read
from tests.support.writer import FIELDS, Layout, Rank, Truth, brute_force_slices, sample, write_step

Json = dict[str, Any]


@st.composite
def batches(draw: st.DrawFn) -> list[Json]:
    lengths = draw(st.lists(st.tuples(st.integers(1, 30), st.integers(0, 40)), min_size=1, max_size=6))
    out = []
    for index, (prompt, response) in enumerate(lengths):
        masked = draw(st.booleans())
        mask = [int(at % 5 != 2) for at in range(response)] if masked else None
        out.append(
            sample(
                index,
                prompt_len=prompt,
                response_len=response,
                loss_mask=mask,
                remove_sample=draw(st.integers(0, 9)) == 0,
            )
        )
    return out


layouts = st.builds(
    Layout,
    tp=st.integers(1, 2),
    cp=st.sampled_from([1, 2, 3, 4, 8]),
    dp=st.integers(1, 2),
    pp=st.integers(1, 2),
    order=st.sampled_from(["tp-cp-dp-pp", "tp-cp-pp-dp"]),
    writers=st.sampled_from(["all", "shard"]),
    qkv=st.sampled_from(["thd", "bshd"]),
    pad=st.sampled_from([16, 128]),
    recorded=st.just(True),
    explicit_none=st.booleans(),
    packed=st.booleans(),
)


@st.composite
def partitions(draw: st.DrawFn, samples: int, shards: int) -> list[list[int]]:
    """Shuffled rows over the shards, some trained by none, but some in each shard."""
    assume(samples >= shards)
    order = draw(st.permutations(range(samples)))
    kept = order[: draw(st.integers(shards, samples))]
    return [list(kept[at::shards]) for at in range(shards)]


def lost_values(truth: Truth, layout: Layout, drop: set[int]) -> dict[str, set[tuple[int, int]]]:
    """What no file that is left holds, by column."""
    lost: dict[str, set[tuple[int, int]]] = {name: set() for name in truth.fields}
    ranks = [rank for rank in layout.ranks() if rank.number not in drop]
    for dp, shard in enumerate(truth.shards):
        padded = -(-max((len(truth.samples[p]["tokens"]) for p in shard), default=1) // layout.pad) * layout.pad
        for name in truth.fields:
            cps = {rank.cp for rank in ranks if rank.dp == dp and holds(rank, name, layout)}
            for position in shard:
                one = truth.samples[position]
                held = brute_force_slices(len(one["tokens"]), one["response_length"], layout.cp, layout.qkv, padded)
                lost[name] |= {(position, at) for cp in range(layout.cp) if cp not in cps for at in held[cp]}
    return lost


def holds(rank: Rank, column: str, layout: Layout) -> bool:
    return column == "rollout_log_probs" or rank.pp == layout.pp - 1


@settings(max_examples=60, deadline=None)
@given(data=st.data(), samples=batches(), layout=layouts)
def test_recorded_dumps_show_the_truth_wherever_a_slice_is_there(
    data: st.DataObject, samples: list[Json], layout: Layout
) -> None:
    partition = data.draw(partitions(len(samples), layout.dp))
    with tempfile.TemporaryDirectory() as folder:
        truth = write_step(Path(folder), 0, samples, layout, partition=partition, mirror=False)
        step = read(Path(folder))
        assert step.trained == sum(map(len, partition)) and not step.alignment.orphans
        assert_true(step, truth)


@settings(max_examples=50, deadline=None)
@given(data=st.data(), samples=batches(), layout=layouts)
def test_what_a_missing_file_held_is_blank_and_everything_else_is_right(
    data: st.DataObject, samples: list[Json], layout: Layout
) -> None:
    partition = data.draw(partitions(len(samples), layout.dp))
    numbers = [rank.number for rank in layout.ranks()]
    drop = data.draw(st.sets(st.sampled_from(numbers), max_size=3))
    # Where both rules fit, less than what is held is shown of these: that has a test of its own.
    fields = FIELDS if layout.qkv == "thd" else [name for name in FIELDS if name not in AMBIGUOUS_COLUMNS]
    with tempfile.TemporaryDirectory() as folder:
        truth = write_step(
            Path(folder), 0, samples, layout, fields=fields, partition=partition, drop=drop, mirror=False
        )
        step = read(Path(folder))
        left = {rank.dp for rank in layout.ranks() if rank.number not in drop}
        truth.shards = [shard if dp in left else [] for dp, shard in enumerate(truth.shards)]
        lost = lost_values(truth, layout, drop)
        for name in set(fields) - {"rollout_log_probs"}:
            stages = {rank.dp for rank in layout.ranks() if rank.number not in drop and holds(rank, name, layout)}
            gone = [p for dp, shard in enumerate(truth.shards) if dp not in stages for p in shard]
            for position in gone:
                truth.fields[name][position] = None
            lost[name] = {one for one in lost[name] if one[0] not in gone}
        lost.pop("rollout_log_probs")
        assert_true(step, truth, lost)


@settings(max_examples=50, deadline=None)
@given(data=st.data(), samples=batches(), layout=layouts, engine=st.booleans())
def test_a_layout_that_is_not_recorded_is_inferred_or_refused(
    data: st.DataObject, samples: list[Json], layout: Layout, engine: bool
) -> None:
    layout = replace(layout, recorded=False, packed=layout.packed and engine)
    partition = data.draw(partitions(len(samples), layout.dp))
    drop = data.draw(st.sets(st.sampled_from([rank.number for rank in layout.ranks()]), max_size=2))
    if not engine:
        samples = [{**one, "rollout_log_probs": None} for one in samples]
    with tempfile.TemporaryDirectory() as folder:
        truth = write_step(Path(folder), 0, samples, layout, partition=partition, drop=drop, mirror=False)
        step = read(Path(folder))
        for position, document in enumerate(documents(step)):
            for name in FIELDS:
                full = truth.fields[name][position]
                shown = document["fields"][{"log_probs": "train_log_probs"}.get(name, name)]
                assert shown["state"] in ("ok", "partial") or shown["values"] is None
                for at, value in enumerate(shown["values"] or []):
                    assert value is None or (full is not None and value == full[at]), (name, position, shown)
        if engine and not drop:
            assert_true(step, truth)


@pytest.mark.parametrize(("total", "pad"), [(3, 8), (3, 16), (4, 16)])
def test_a_layout_that_only_a_rule_for_each_file_fits_is_none(tmp_path: Path, total: int, pad: int) -> None:
    """As cp 2, one file would have been cut by the bshd rule and its copy by the thd rule."""
    layout = Layout(cp=3, qkv="bshd", pad=pad, recorded=False)
    truth = write_step(tmp_path, 0, [sample(0, prompt_len=total - 1, response_len=1)], layout, mirror=False)
    assert_true(read(tmp_path), truth)


def edit(path: Path, change: Callable[[Json], object]) -> None:
    payload = torch.load(path, weights_only=False)
    change(payload)
    torch.save(payload, path)


def swap_ranks(paths: list[Path]) -> None:
    """Two files record each other's cp rank."""
    ranks = [torch.load(path, weights_only=False).get("cp_rank", 0) for path in paths[:2]]
    for path, cp_rank in zip(paths[:2], reversed(ranks), strict=True):
        edit(path, lambda payload, cp_rank=cp_rank: payload.update(cp_rank=cp_rank))  # type: ignore[misc]


def forget_record(paths: list[Path]) -> None:
    for path in paths[::2]:
        edit(path, lambda payload: [payload.pop(name, None) for name in ("cp_rank", "cp_size", "qkv_format")])


def swap_names(paths: list[Path]) -> None:
    """Two files are each other's rank, as their names say."""
    first, second = paths[0], paths[-1]
    spare = first.with_suffix(".spare")
    first.rename(spare)
    if second != first:
        second.rename(first)
    spare.rename(second)


def claim_another_size(paths: list[Path]) -> None:
    for path in paths:
        edit(path, lambda payload: payload.update(cp_size=2 * payload.get("cp_size", 1)))


HARM = (swap_ranks, forget_record, swap_names, claim_another_size)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), samples=batches(), layout=layouts, contiguous=st.booleans())
def test_whatever_is_done_to_the_files_no_value_is_shown_that_is_not_true(
    data: st.DataObject, samples: list[Json], layout: Layout, contiguous: bool
) -> None:
    if contiguous:
        layout = replace(layout, field_qkv=dict.fromkeys(FIELDS, "contiguous"))
    partition = data.draw(partitions(len(samples), layout.dp))
    harm = data.draw(st.lists(st.sampled_from(HARM), max_size=2, unique=True))
    stale = data.draw(st.integers(0, 3))
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder)
        earlier = [{**one, "tokens": [token + 1 for token in one["tokens"]]} for one in samples]
        write_step(run, 0, earlier, layout, partition=partition, mirror=False)
        old = {path: path.read_bytes() for path in sorted((run / "train_data").iterdir())[:stale]}
        truth = write_step(run, 0, samples, layout, partition=partition, mirror=False)
        for change in harm:
            change(truth.files)
        for path, content in old.items():
            path.write_bytes(content)
        assert not list(wrong_values(read(run), truth))

"""The parquet mirror: any rows of it, and damage said in one sentence."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dumptui.core.errors import DumpError, NotHere
from dumptui.core.formats.miles.parquet_mirror import mirror_index, read_mirror
from dumptui.core.formats.sample import Sample
from dumptui.core.process.isolated_reader import read_isolated
from tests.support.writer import Json, sample, write_step

SAMPLES = 41


def samples() -> list[Json]:
    """All that varies: no index, shared indices, masks, no engine log-probs, nothing generated."""
    made = [sample(at // 2 if at % 7 else None, prompt_len=at % 5, response_len=at, seed=at) for at in range(SAMPLES)]
    made[3] |= {"loss_mask": [1, 0, 1], "rollout_log_probs": None}
    made[20] |= {"tokens": [], "response_length": 0, "rollout_log_probs": []}
    return made


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root: Path = tmp_path_factory.mktemp("mirror")
    write_step(root, 0, samples(), train=False)
    return root / "dashboard_columns" / "rollout_0.parquet"


def same(found: Any, dumped: Any) -> bool:
    if found is None or dumped is None:
        return found is dumped
    return np.array_equal(found, np.array(dumped, found.dtype))


def test_everything_a_mirror_holds(mirror: Path) -> None:
    found = read_mirror(mirror)
    assert len(found) == SAMPLES
    seen: list[int | None] = []
    for position, (shown, dumped) in enumerate(zip(found, samples(), strict=True)):
        assert (shown.position, shown.index, shown.occurrence) == (
            position,
            dumped["index"],
            seen.count(dumped["index"]),
        )
        assert shown.response_length == dumped["response_length"]
        for name in ("tokens", "loss_mask", "rollout_log_probs"):
            assert same(getattr(shown, name), dumped[name])
        assert (shown.reward, shown.status, shown.response, shown.prompt) == (None, "unknown", "", None)
        assert shown.notes == ()
        seen.append(dumped["index"])


@given(rows=st.lists(st.integers(0, SAMPLES - 1), max_size=12))
@settings(max_examples=100, deadline=None)
def test_any_rows_in_any_order(mirror: Path, rows: list[int]) -> None:
    every = read_mirror(mirror)
    found = read_mirror(mirror, rows)
    assert [one.position for one in found] == rows
    for one in found:
        whole = every[one.position]
        assert (one.index, one.occurrence, one.tokens.tolist()) == (
            whole.index,
            whole.occurrence,
            whole.tokens.tolist(),
        )


def test_the_lengths_alone(mirror: Path) -> None:
    index = mirror_index(mirror)
    assert [one.total_length for one in index] == [len(one["tokens"]) for one in samples()]
    assert [one.sample_index for one in index] == [one["index"] for one in samples()]


def test_a_mirror_of_no_samples(tmp_path: Path) -> None:
    write_step(tmp_path, 0, [], train=False)
    path = tmp_path / "dashboard_columns" / "rollout_0.parquet"
    assert read_mirror(path) == []
    with pytest.raises(DumpError, match="has no row 0: it holds 0 samples"):
        read_mirror(path, [0])


@pytest.mark.parametrize("row", [-1, SAMPLES])
def test_a_row_that_is_not_there(mirror: Path, row: int) -> None:
    with pytest.raises(DumpError, match=f"has no row {row}: it holds {SAMPLES} samples"):
        read_mirror(mirror, [0, row])


@pytest.mark.parametrize("cut", [0, 3, 100, -1])
def test_a_cut_mirror(mirror: Path, tmp_path: Path, cut: int) -> None:
    path = tmp_path / "cut.parquet"
    path.write_bytes(mirror.read_bytes()[:cut])
    for read in (read_mirror, mirror_index):
        with pytest.raises(DumpError, match="unreadable parquet file: ") as caught:
            read(path)
        assert "\n" not in str(caught.value)


def test_a_mirror_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(DumpError, match=r"gone\.parquet: unreadable parquet file: .*No such file"):
        read_mirror(tmp_path / "gone.parquet")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (pl.col("tokens").cast(pl.List(pl.String)), "tokens is List.String., not List.Int32."),
        (pl.col("total_length") + 1, "row 0 holds 0 tokens for lengths of 1 and 0"),
        (pl.col("response_length") * 1000 - 1, "row 0 holds 0 tokens for lengths of 0 and -1"),
        (pl.lit(None, pl.Int32).alias("response_length"), "row 0 holds 0 tokens for lengths of 0 and None"),
    ],
)
def test_a_mirror_that_contradicts_itself(mirror: Path, tmp_path: Path, change: pl.Expr, problem: str) -> None:
    path = tmp_path / "odd.parquet"
    pl.read_parquet(mirror).with_columns(change).write_parquet(path)
    with pytest.raises(DumpError, match=problem):
        read_mirror(path)


def test_another_parquet_file(mirror: Path, tmp_path: Path) -> None:
    path = tmp_path / "other.parquet"
    pl.read_parquet(mirror).drop("loss_mask").write_parquet(path)
    assert len(mirror_index(path)) == SAMPLES
    with pytest.raises(DumpError, match="loss_mask"):
        read_mirror(path)


def test_every_flipped_bit_is_samples_or_one_sentence(mirror: Path, tmp_path: Path) -> None:
    """Some made polars ask for more memory than there is, which no `except` catches, or panic over the screen."""
    path, whole = tmp_path / "flipped.parquet", mirror.read_bytes()
    footer = len(whole) - 1000  # where the sizes stand
    for bit in (*range(0, 8 * footer, 997), *range(8 * footer, 8 * len(whole), 29)):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        try:
            assert all(isinstance(one, Sample) for one in read_mirror(path))
        except DumpError as error:
            assert "\n" not in str(error) and not isinstance(error, NotHere)


def end(path: Path) -> None:
    os.abort()


def test_a_file_that_ends_the_process_costs_itself_only(mirror: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(DumpError, match="is damaged: the process that read it had to end"):
        read_isolated(end, mirror)
    assert len(read_mirror(mirror)) == SAMPLES
    assert capfd.readouterr() == ("", "")


def test_a_process_that_is_killed_does_not_blame_the_file(mirror: Path) -> None:
    with pytest.raises(NotHere, match="SIGKILL"):
        read_isolated(kill, mirror)


def kill(path: Path) -> None:
    os.kill(os.getpid(), signal.SIGKILL)

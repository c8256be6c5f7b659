"""The writer of a demo run: the files that miles writes with `--dump-details`, written without torch.

TP 1, CP 2, DP 2, so four train files per step; 32 samples per step, evals every 6 steps. Step 17 lacks a train
file, and the newest step is still being written: it has two of its four train files.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from dumptui.core.demo import telemetry as telemetry
from dumptui.core.demo.batch import CP, DP, Batch, Sample, eval_samples, shard_columns, train_batch
from dumptui.core.demo.text import write_tokenizer
from dumptui.core.ptfile.writer import write_pt

RANKS = range(CP * DP)
EVAL_EVERY = 6
LOST_STEP, LOST_RANK = 17, 3
STEP_SECONDS, ROLLOUT_SECONDS, TRAIN_SECONDS = 60, 34, 24
NEWEST_AGE = 120
LANE_STEPS = 8
"""How many of the newest steps have a lifecycle in the trajectories stream, at 25 KB each."""


def write_demo(
    root: Path,
    *,
    steps: int = 24,
    seed: int = 0,
    now: float | None = None,
    on_step: Callable[[int, int], None] | None = None,
) -> None:
    """Write a run of `steps` steps, one per minute; the newest ends two minutes before `now` (epoch seconds).

    `on_step` is called with the number of steps written so far and `steps`. Equal `seed` and `now` give equal bytes.
    """
    newest = int(time.time() if now is None else now) - NEWEST_AGE
    _start_run(root, newest - steps * STEP_SECONDS)
    for step in range(steps):
        last = step == steps - 1
        ranks = RANKS[: len(RANKS) // 2] if last else _written_ranks(step)
        generated = newest - (steps - 1 - step) * STEP_SECONDS
        write_demo_step(
            root,
            step,
            seed=seed,
            generated=generated,
            ranks=ranks,
            trained=not last,
            lanes=steps - step <= LANE_STEPS,
        )
        if on_step is not None:
            on_step(step + 1, steps)
    _set_times((path for path in (root / "dashboard").rglob("*") if path.is_file()), newest)


def write_demo_step(
    root: Path,
    step: int,
    *,
    seed: int = 0,
    generated: float | None = None,
    ranks: Sequence[int] = RANKS,
    trained: bool = True,
    lanes: bool = True,
) -> None:
    """Write a step whose rollout ended at `generated`, by default 2 minutes ago, with the train files of `ranks`."""
    generated = int(time.time()) - NEWEST_AGE if generated is None else generated
    began, done = generated - ROLLOUT_SECONDS, generated + TRAIN_SECONDS
    batch = train_batch(seed, step)
    if step % EVAL_EVERY == 0:
        _write_eval(root, seed, step, began - 2)
    _write_rollout(root, batch, began, generated, lanes)
    for rank in ranks:
        _write_shard(root, batch, rank, done)
    telemetry.record_training(root, batch, generated, done if trained else None)


def grow(root: Path, start: int, steps: int, *, seed: int = 0) -> Iterator[str]:
    """Write one file at a time and yield its path in `root`: what step `start - 1` lacks, then `steps` more steps.

    A step is its eval, its rollout, its train files in any order and its metrics; the caller sets the pace.
    """
    if start:
        yield from _finish_step(root, seed, start - 1)
    else:
        _start_run(root, int(time.time()))
    for step in range(start, start + steps):
        began = int(time.time())
        if step % EVAL_EVERY == 0:
            yield _write_eval(root, seed, step, began)
        batch = train_batch(seed, step)
        generated = int(time.time())
        yield _write_rollout(root, batch, began, generated, lanes=True)
        telemetry.record_training(root, batch, generated, None)
        yield from _write_training(root, batch, _written_ranks(step), generated)


def _finish_step(root: Path, seed: int, step: int) -> Iterator[str]:
    missing = [rank for rank in _written_ranks(step) if not _shard_path(root, step, rank).exists()]
    if missing:
        generated = _rollout_path(root, str(step)).stat().st_mtime
        yield from _write_training(root, train_batch(seed, step), missing, generated)


def _write_training(root: Path, batch: Batch, ranks: Sequence[int], generated: float) -> Iterator[str]:
    for rank in random.Random(batch.step).sample(ranks, len(ranks)):
        yield _write_shard(root, batch, rank, int(time.time()))
    telemetry.record_training(root, batch, generated, time.time())
    yield "dashboard/metrics.jsonl"


def _written_ranks(step: int) -> Sequence[int]:
    return [rank for rank in RANKS if (step, rank) != (LOST_STEP, LOST_RANK)]


def _rollout_path(root: Path, name: str) -> Path:
    return root / "rollout_data" / f"{name}.pt"


def _shard_path(root: Path, step: int, rank: int) -> Path:
    return root / "train_data" / f"{step}_{rank}.pt"


def _start_run(root: Path, started: float) -> None:
    for folder in ("rollout_data", "train_data", "dashboard_columns", "trajectory"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    write_tokenizer(root / "tokenizer")
    _set_times((root / "tokenizer").iterdir(), started)
    telemetry.start_run(root, started)


def _write_eval(root: Path, seed: int, step: int, timestamp: float) -> str:
    samples = eval_samples(seed, step)
    path = _write_samples(root, f"eval_{step}", step, samples, timestamp)
    telemetry.record_eval(root, step, samples, timestamp)
    return path


def _write_rollout(root: Path, batch: Batch, began: float, generated: float, lanes: bool) -> str:
    path = _write_samples(root, str(batch.step), batch.step, batch.samples, generated)
    telemetry.record_rollout(root, batch, began, generated)
    if lanes:
        telemetry.record_lanes(root, batch, began, generated)
    return path


def _write_samples(root: Path, name: str, step: int, samples: Sequence[Sample], timestamp: float) -> str:
    """Write the conversations and the parquet mirror, then the rollout file; return the path of that in `root`."""
    records = [sample.record for sample in samples]
    conversations = root / "trajectory" / f"{name}.jsonl"
    conversations.write_text("".join(_conversation(sample) for sample in samples if sample.messages))
    mirror = root / "dashboard_columns" / f"rollout_{name}.parquet"
    _write_mirror(mirror, records)
    rollout = _rollout_path(root, name)
    write_pt(rollout, {"rollout_id": step, "metadata": {}, "samples": records})
    _set_times([conversations, mirror, rollout], timestamp)
    return str(rollout.relative_to(root))


def _conversation(sample: Sample) -> str:
    keys = {"sample_index": "index", "group_index": "group_index", "status": "status", "reward": "reward"}
    row = {name: sample.record[key] for name, key in keys.items()}
    row |= {"prompt": sample.record["prompt"], "messages": sample.messages}
    return json.dumps(row, separators=(",", ":")) + "\n"


def _write_mirror(path: Path, records: Sequence[dict[str, Any]]) -> None:
    import polars as pl

    lists = {"tokens": pl.Int32, "loss_mask": pl.Int8, "rollout_log_probs": pl.Float32}
    columns = {
        "sample_index": pl.Series([record["index"] for record in records], dtype=pl.Int32),
        "response_length": pl.Series([record["response_length"] for record in records], dtype=pl.Int32),
        "total_length": pl.Series([len(record["tokens"]) for record in records], dtype=pl.Int32),
    }
    for name, dtype in lists.items():
        columns[name] = pl.Series([record[name] for record in records], dtype=pl.List(dtype))
    pl.DataFrame(columns).write_parquet(path, row_group_size=8)


def _write_shard(root: Path, batch: Batch, rank: int, timestamp: float) -> str:
    dp_rank, cp_rank = divmod(rank, CP)
    data = shard_columns(batch, dp_rank, cp_rank)
    layout = {"cp_rank": cp_rank, "cp_size": CP, "qkv_format": "thd"}
    path = _shard_path(root, batch.step, rank)
    write_pt(path, {"rollout_id": batch.step, "rank": rank, "rollout_data": data, **layout})
    _set_times([path], timestamp)
    return str(path.relative_to(root))


def _set_times(paths: Iterable[Path], timestamp: float) -> None:
    for path in paths:
        os.utime(path, (timestamp, timestamp))

"""The dashboard/ streams of a demo run: node-a trains on four GPUs, node-b generates with two engines."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np

from dumptui.core.demo.batch import EVAL_SETS, GROUP_SIZE, GROUPS, MAX_RESPONSE, Batch, Sample

Record = dict[str, Any]

TRAINER, SAMPLER = "node-a", "node-b"
GPUS = range(4)
ENGINES = {"http://node-b:30000": [0, 1], "http://node-b:30002": [2, 3]}
GPU_EVERY, ENGINE_EVERY = 5, 10
"""Seconds between records; miles records every 1 and 2 seconds, which would take a megabyte here."""
TRAIN_PHASES = {"data_preprocess": 0.04, "ref_log_probs": 0.14, "log_probs": 0.16, "actor_train": 0.54}
"""The phases within the train phase, as shares of the time from the end of the rollout to new weights."""


def start_run(root: Path, started: float) -> None:
    folder = root / "dashboard"
    folder.mkdir(parents=True, exist_ok=True)
    args = {
        "wandb_group": "demo-grpo",
        "colocate": False,
        "num_gpus_per_node": len(GPUS),
        "actor_num_nodes": 1,
        "actor_num_gpus_per_node": len(GPUS),
        "rollout_num_gpus": len(GPUS),
        "rollout_num_gpus_per_engine": 2,
        "rollout_batch_size": GROUPS,
        "n_samples_per_prompt": GROUP_SIZE,
        "rollout_max_response_len": MAX_RESPONSE,
        "sglang_max_running_requests": 64,
    }
    meta = {"run_name": "demo-grpo", "start_ts": float(started), "args": args, "schema_version": 1}
    (folder / "meta.json").write_text(json.dumps(meta, indent=1))
    trainers = {f"{TRAINER}:{gpu}": _lane([gpu], [], "train") for gpu in GPUS}
    samplers = {f"{SAMPLER}:{gpu}": _lane([], [addr], "rollout") for addr, gpus in ENGINES.items() for gpu in gpus}
    (folder / "lane_catalog.json").write_text(json.dumps({"version": 1, "lanes": trainers | samplers}))
    engines = [
        {
            "addr": addr,
            "worker_type": "regular",
            "engine_rank": rank,
            "gpus": [[SAMPLER, gpu] for gpu in gpus],
            "gpu_uuids": [f"GPU-{SAMPLER}-{gpu}" for gpu in gpus],
        }
        for rank, (addr, gpus) in enumerate(ENGINES.items())
    ]
    _append(folder / "topology.jsonl", [{"ts": float(started), "engines": engines}])


def record_eval(root: Path, step: int, samples: Sequence[Sample], ended: float) -> None:
    metrics: Record = {}
    first = 0
    for name, count in EVAL_SETS.items():
        part = samples[first : first + count]
        first += count
        metrics[f"eval/{name}"] = _mean(sample.reward for sample in part)
        metrics[f"eval/{name}/response_len/mean"] = _mean(len(sample.mask) for sample in part)
    _append_metrics(root, ended, "eval/step", step, metrics)
    _append_hours(root, "phases", [_manager_phase("eval_rollout", ended - 1, ended)])


def record_rollout(root: Path, batch: Batch, began: float, generated: float) -> None:
    metrics = _rollout_metrics(batch) | {"perf/rollout_time": float(generated - began)}
    _append_metrics(root, generated, "rollout/step", batch.step, metrics)
    waits = [_train_phase("train_wait", began, generated, rank) for rank in GPUS]
    _append_hours(root, "phases", [_manager_phase("rollout", began, generated), *waits])
    _append_hours(root, "gpu_util", _gpu_util(batch.step, began, generated, training=False))
    _append_hours(root, "engine_series", _engine_series(batch.step, began, generated))


def record_training(root: Path, batch: Batch, generated: float, trained: float | None) -> None:
    """Append the records from the end of the rollout to new weights; `trained` None leaves the train phase open."""
    if trained is None:
        _append_hours(root, "phases", [_train_phase("train", generated, -1.0, rank) for rank in GPUS])
        return
    duration = trained - generated
    waited = duration * 34 / 24
    perf = {
        "perf/train_time": duration,
        "perf/train_wait_time": waited,
        "perf/step_time": duration + waited,
        "perf/wait_time_ratio": waited / max(duration + waited, 1e-6),
        "perf/actor_train_mfu": 0.31 + 0.02 * np.sin(batch.step),
        "perf/mfu_peak_tflops": 989.0,
    }
    _append_metrics(root, trained, "rollout/step", batch.step, _scored_metrics(batch) | perf)
    _append_metrics(root, trained, "train/step", batch.step, _loss_metrics(batch))
    _append_hours(root, "phases", [phase for rank in GPUS for phase in _train_phases(generated, duration, rank)])
    _append_hours(root, "gpu_util", _gpu_util(batch.step, generated, trained, training=True))


def record_lanes(root: Path, batch: Batch, began: float, generated: float) -> None:
    """Append the lifecycle of every sample: its queueing, its turns and tool calls, its end."""
    rng = random.Random(batch.step)
    _append_hours(
        root,
        "trajectories",
        [event for sample in batch.samples for event in _lane_events(rng, sample.record, began, generated)],
    )


def _lane(ranks: Sequence[int], engines: Sequence[str], role: str) -> Record:
    return {"ranks": ranks, "engine_addrs": engines, "roles": [role]}


def _mean(values: Iterable[float | None]) -> float:
    return float(np.mean([value for value in values if value is not None]))


def _rollout_metrics(batch: Batch) -> Record:
    rewards = np.array([np.nan if sample.reward is None else sample.reward for sample in batch.samples])
    groups = rewards.reshape(GROUPS, GROUP_SIZE)
    agreed = np.nanstd(groups, axis=1) == 0
    lengths = [len(sample.mask) for sample in batch.samples]
    statuses = [sample.record["status"] for sample in batch.samples]
    return {
        "rollout/raw_reward": float(np.nanmean(rewards)),
        "rollout/response_len/mean": _mean(lengths),
        "rollout/response_len/max": max(lengths),
        "rollout/truncated_ratio": statuses.count("truncated") / len(statuses),
        "rollout/zero_std/count_0": int((agreed & (np.nanmean(groups, axis=1) == 0)).sum()),
        "rollout/zero_std/count_1": int((agreed & (np.nanmean(groups, axis=1) == 1)).sum()),
    }


def _trained_mean(batch: Batch, values: Sequence[Any]) -> float:
    """Return the mean over samples of the mean over their trained tokens."""
    mask = np.concatenate([sample.mask for sample in batch.samples])
    rows = np.repeat(np.arange(len(values)), [len(sample.mask) for sample in batch.samples])
    counts = np.bincount(rows, mask, len(values))
    sums = np.bincount(rows, mask * np.concatenate(values), len(values))
    return float((sums[counts > 0] / counts[counts > 0]).mean())


def _scored_metrics(batch: Batch) -> Record:
    names = {"log_probs": "trainer", "rollout_log_probs": "engine", "ref_log_probs": "reference"}
    columns = {name: [getattr(sample, attribute) for sample in batch.samples] for name, attribute in names.items()}
    columns |= {"entropy": [sample.entropy for sample in batch.samples], "advantages": batch.advantages}
    return {f"rollout/{name}": _trained_mean(batch, column) for name, column in columns.items()}


def _loss_metrics(batch: Batch) -> Record:
    rng = random.Random(f"loss {batch.step}")
    difference = [np.abs(sample.trainer - sample.engine) for sample in batch.samples]
    return {
        "train/loss": rng.gauss(0, 0.01),
        "train/grad_norm": 0.8 + 20 * _trained_mean(batch, difference) * rng.uniform(0.8, 1.2),
        "train/entropy_loss": _trained_mean(batch, [sample.entropy for sample in batch.samples]),
        "train/ppo_kl": rng.uniform(1e-4, 4e-4),
        "train/pg_clipfrac": rng.uniform(0.001, 0.004),
        "train/kl_loss": _trained_mean(batch, [np.abs(sample.trainer - sample.reference) for sample in batch.samples]),
        "train/train_rollout_logprob_abs_diff": _trained_mean(batch, difference),
    }


def _manager_phase(name: str, t0: float, t1: float) -> Record:
    record = {"name": name, "t0": float(t0), "t1": float(t1), "node": TRAINER, "gpus": [], "rank": -1}
    return record | {"role": "rollout_manager"}


def _train_phase(name: str, t0: float, t1: float, rank: int) -> Record:
    record = {"name": name, "t0": float(t0), "t1": float(t1), "node": TRAINER, "gpus": [rank], "rank": rank}
    return record | {"role": "train"}


def _train_phases(generated: float, duration: float, rank: int) -> list[Record]:
    phases, start = [], generated
    for name, share in TRAIN_PHASES.items():
        phases.append(_train_phase(name, start, start + share * duration, rank))
        start += share * duration
    envelope = _train_phase("train", generated, start, rank)
    return [*phases, envelope, _train_phase("update_weights", start, generated + duration, rank)]


def _gpu_util(step: int, began: float, ended: float, *, training: bool) -> list[Record]:
    rng = random.Random(f"gpu {step} {training}")
    records = []
    for ts in np.arange(began, ended, GPU_EVERY):
        for node in (TRAINER, SAMPLER):
            busy = training == (node == TRAINER)
            for gpu in GPUS:
                util = rng.randint(82, 99) if busy else rng.randint(0, 4)
                usage = {"util": util, "mem_mb": (61000 if node == TRAINER else 70000) + 10 * gpu}
                record = {"ts": float(ts), "node": node, "gpu": gpu}
                records.append(record | usage | {"power_w": 110 + 5 * util + rng.randint(0, 40)})
    return records


def _engine_series(step: int, began: float, ended: float) -> list[Record]:
    rng = random.Random(f"engine {step}")
    records = []
    for ts in np.arange(began, ended, ENGINE_EVERY):
        done = (ts - began) / (ended - began)
        running = round(16 * (1 - done) ** 0.7)
        total = step + done
        for addr in ENGINES:
            metrics = {
                "sglang_num_running_reqs": float(running),
                "sglang_num_queue_reqs": float(max(running - 12, 0)),
                "sglang_gen_throughput": running * rng.uniform(38, 46),
                "sglang_token_usage": 0.02 + 0.011 * running,
                "sglang_cache_hit_rate": rng.uniform(0.35, 0.5),
                "sglang_generation_tokens_total": float(round(2900 * total)),
                "sglang_num_requests_total": float(round(28 * total)),
                "sglang_num_aborted_requests_total": float((step + 3) // 8),
            }
            labels = {"engine_type": "unified", "dp_rank": "0"}
            for name, value in metrics.items():
                records.append({"ts": float(ts), "addr": addr, "metric": name, "labels": labels, "value": value})
    return records


def _lane_events(rng: random.Random, record: Record, began: float, ended: float) -> list[Record]:
    versions, span = record["weight_versions"], ended - began
    queued = began + rng.uniform(0.02, 0.15) * span
    turn_start, finish = queued, queued + rng.uniform(0.3, 0.8) * span
    ids = {"sample_index": record["index"], "group_index": record["group_index"]}

    def event(ts: float, kind: str, turn: int = -1, version: str = "", detail: str = "") -> Record:
        end = {"turn": turn, "weight_version": version, "detail": detail}
        return {"ts": round(ts, 3), "kind": kind, **ids, **end}

    events = [event(began, "attempt_start"), event(queued, "gen_start")]
    for turn, version in enumerate(versions if len(versions) > 1 else [], start=1):
        share = (finish - queued) / len(versions)
        events.append(event(turn_start, "gen_start", turn, version))
        events.append(event(turn_start + 0.7 * share, "gen_end", turn, version, str(rng.randint(40, 70))))
        if turn < len(versions):
            events.append(event(turn_start + 0.7 * share, "tool_start", turn, version, "1 calls"))
            events.append(event(turn_start + share, "tool_end", turn, version, "1 calls"))
        turn_start += share
    return [*events, event(finish, "attempt_end", detail=record["status"])]


def _append_metrics(root: Path, ts: float, step_key: str, step: int, metrics: Record) -> None:
    record = {"ts": float(ts), "step_key": step_key, "step": step, "metrics": {step_key: step} | metrics}
    _append(root / "dashboard" / "metrics.jsonl", [record])


def _append_hours(root: Path, stream: str, records: Iterable[Record]) -> None:
    """Append each record to the file of its UTC hour: that of `ts`, of a phase's end, or of an open phase's start."""
    hours = defaultdict(list)
    for record in records:
        ended: float = record["ts"] if "ts" in record else record["t1"]
        hour = datetime.fromtimestamp(record["t0"] if ended == -1.0 else ended, timezone.utc)
        hours[f"{hour:%Y%m%d_%H}.jsonl"].append(record)
    for name, part in hours.items():
        _append(root / "dashboard" / stream / name, part)


def _append(path: Path, records: Iterable[Record]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.writelines(json.dumps(record, separators=(",", ":")) + "\n" for record in records)

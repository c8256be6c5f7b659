"""Dumps written with torch as miles and slime write them, and the truth that a right reader shows for each.

The context-parallel cut goes token by token and shares nothing with dumptui.core: it is the reader's oracle.
"""

from __future__ import annotations

import json
import os
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

Json = dict[str, Any]
Values = Mapping[str, Sequence[Any]]

FIELDS = ("log_probs", "rollout_log_probs", "ref_log_probs", "entropy", "advantages", "returns")
# The other per-token fields are outputs of the forward pass: last pipeline stage only.
EVERY_STAGE = {"rollout_log_probs", "teacher_log_probs", "opd_reverse_kl"}
BATCH_GLOBAL = {"raw_reward", "dynamic_global_batch_size", "prompt_group_sizes", "step_slots"}


class Rank(NamedTuple):
    number: int
    tp: int
    cp: int
    dp: int
    pp: int


@dataclass(frozen=True)
class Layout:
    """How a training job is cut over ranks, and what each of them writes."""

    tp: int = 1
    cp: int = 1
    dp: int = 1
    pp: int = 1
    order: str = "tp-cp-dp-pp"
    """Which counts fastest in the rank number, or "tp-cp-pp-dp"."""
    writers: str = "all"
    """"shard": only tp 0 of the last pipeline stage, as since 2026-09-08."""
    qkv: str = "thd"
    field_qkv: Mapping[str, str] = field(default_factory=dict)
    """Fields cut by another rule: "thd", "bshd" or "contiguous"."""
    pad: int = 128
    """bshd: a shard is padded to its longest sample, rounded up to a multiple of this."""
    recorded: bool = True
    """False: no cp_rank, cp_size and qkv_format, as before 2026-08-17."""
    rank_key: bool = True
    explicit_none: bool = False
    """Earlier pipeline stages hold None for last-stage columns instead of lacking them."""
    dtypes: Mapping[str, Any] = field(default_factory=dict)
    """torch dtype by field, default float32."""
    packed: bool = False
    """The tensors of a column are views of one storage."""

    def ranks(self) -> Iterator[Rank]:
        names = self.order.split("-")[::-1]
        for number, at in enumerate(product(*(range(getattr(self, name)) for name in names))):
            rank = Rank(number, **dict(zip(names, at, strict=True)))
            if self.writers == "all" or (rank.tp == 0 and rank.pp == self.pp - 1):
                yield rank


@dataclass
class Truth:
    """A step before it was cut; lists have one entry per rollout position."""

    step: int
    samples: list[Json]
    masks: list[Any]
    """int32 arrays, as trained: None filled with ones, zero where `remove_sample`."""
    rewards: list[float]
    """Normalised per group."""
    fields: dict[str, list[Any]]
    """Per-token values, float32 arrays of length R; None for a row that has none."""
    shards: list[list[int]] = field(default_factory=list)
    """Rollout positions per data-parallel shard."""
    files: list[Path] = field(default_factory=list)
    """The train files."""


def brute_force_slices(total: int, response: int, cp: int, qkv: str = "thd", max_seq_len: int = 0) -> list[list[int]]:
    """The response indices each context-parallel rank stores, in stored order."""
    if cp == 1:
        return [list(range(response))]
    owners = [*range(cp)] if qkv == "contiguous" else [*range(cp), *reversed(range(cp))]
    chunk = -(-(max_seq_len if qkv == "bshd" else total) // len(owners))
    held: list[list[int]] = [[] for _ in range(cp)]
    for index in range(response):
        logit = total - response + index - 1
        if logit >= 0:
            held[owners[logit // chunk]].append(index)
    return held


def sample(
    index: int | None, *, prompt_len: int = 4, response_len: int = 6, seed: int | None = None, **fields: Any
) -> Json:
    """A miles Sample.to_dict(), random by `seed` (default: the index); `fields` override keys or add some."""
    rng = np.random.default_rng(index or 0 if seed is None else seed)
    log_probs = -rng.exponential(0.35, response_len).astype(np.float32)
    mask = fields.get("loss_mask")
    if mask is not None and len(mask) == response_len:
        log_probs = np.where(mask, log_probs, np.float32(0))
    spec_info = ("spec_accept_token_num", "spec_draft_token_num", "spec_verify_ct", "completion_token_num")
    return {
        "group_index": None if index is None else index // 4,
        "index": index,
        "rollout_id": None,
        "prompt": "a prompt",
        "multimodal_inputs": None,
        "multimodal_train_inputs": None,
        "tokens": rng.integers(0, 1000, prompt_len + response_len).tolist(),
        "response": "a response",
        "response_length": response_len,
        "label": "42",
        "reward": float(rng.integers(0, 2)),
        "loss_mask": None,
        "weight_versions": ["1"],
        "rollout_log_probs": log_probs.tolist(),
        "rollout_routed_experts": None,
        "rollout_indexer_topk": None,
        "remove_sample": False,
        "teacher_log_probs": None,
        "opd_reverse_kl": None,
        "status": "completed",
        "metadata": {},
        "generate_function_path": None,
        "train_metadata": None,
        "adapter": None,
        "reward_spec": None,
        "routing_key": None,
        "non_generation_time": 0.0,
        "spec_info": dict.fromkeys(spec_info, 0),
        "prefix_cache_info": {"cached_tokens": 0, "total_prompt_tokens": prompt_len},
        **fields,
    }


def write_step(
    run: Path,
    step: int,
    samples: list[Json],
    layout: Layout | None = None,
    *,
    evaluation: bool = False,
    train: bool = True,
    fields: Sequence[str] = FIELDS,
    truth: Values | None = None,
    partition: list[list[int]] | None = None,
    drop: Iterable[int] = (),
    columns: Json | None = None,
    mirror: bool = True,
    trajectory: Sequence[Json] | None = None,
    metadata: Json | None = None,
    age: float = 3600,
) -> Truth:
    """One step of a miles run.

    `fields` are per-token columns to make up; `truth` gives some as one full-length array (or None) a sample.
    `partition` has the rollout positions of each shard, default strided; what it leaves out has no train row.
    `drop` has the numbers of ranks whose file is missing. `columns` are more train columns, an entry a sample
    (batch-global ones as they are; None instead of a list leaves a column out). `age` is in seconds.
    """
    layout = layout or Layout()
    name = f"eval_{step}" if evaluation else str(step)
    out = _truth(step, samples, fields, truth or {}, layout)
    payload = {"rollout_id": step, "metadata": metadata or {}, "samples": samples}
    written = [_save(run / "rollout_data" / f"{name}.pt", payload)]
    if trajectory is not None:
        written.append(_write_lines(run / "trajectory" / f"{name}.jsonl", trajectory))
    if mirror:
        written.append(_write_mirror(run / "dashboard_columns" / f"rollout_{name}.parquet", samples))
    if train and not evaluation:
        out.shards = partition or [list(range(len(samples)))[at :: layout.dp] for at in range(layout.dp)]
        whole = _whole_columns(out, columns or {})
        for rank in layout.ranks():
            if rank.number not in drop:
                path = run / "train_data" / f"{step}_{rank.number}.pt"
                out.files.append(_save(path, _train_file(out, layout, rank, whole)))
    _set_age([*written, *out.files], age)
    return out


def write_slime_v2(
    run: Path,
    step: int,
    samples: list[Json],
    *,
    dp: int = 1,
    fields: Sequence[str] = FIELDS,
    truth: Values | None = None,
    partition: list[list[int]] | None = None,
    positions: bool = True,
    version: int = 2,
    age: float = 3600,
) -> Truth:
    """One step of a slime run with one train file; `positions=False` leaves out its `rollout_position`."""
    out = _truth(step, samples, fields, truth or {}, Layout())
    out.shards = partition or [list(range(len(samples)))[at::dp] for at in range(dp)]
    whole = _whole_columns(out, {}) | {name: [*map(_tensor, column)] for name, column in out.fields.items()}
    indices, raw_reward = whole.pop("sample_indices"), whole.pop("raw_reward")
    rows = [
        {"data_parallel_rank": dp_rank, "sample_index": indices[position], "rollout_position": position}
        | {name: column[position] for name, column in whole.items()}
        for position, dp_rank in sorted((at, rank) for rank, shard in enumerate(out.shards) for at in shard)
    ]
    if not positions:
        rows = [{key: value for key, value in row.items() if key != "rollout_position"} for row in rows]
    shards = [
        {"rank": rank, "data_parallel_rank": rank, "partition": shard}
        | {"sample_indices": [indices[position] for position in shard]}
        | {"micro_batch_indices": [list(range(len(shard)))], "num_microbatches": [1]}
        for rank, shard in enumerate(out.shards)
    ]
    payload = {"format_version": version, "rollout_id": step, "rank": 0, "samples": rows, "dp_shards": shards}
    out.files = [_save(run / "train_data" / f"{step}.pt", payload | {"raw_reward": raw_reward})]
    rollout = _save(run / "rollout_data" / f"{step}.pt", {"rollout_id": step, "samples": samples})
    _set_age([rollout, *out.files], age)
    return out


def _truth(step: int, samples: list[Json], names: Sequence[str], given: Values, layout: Layout) -> Truth:
    rewards = _normalised(samples)
    made = [_made_up(step, at, one, rewards[at]) for at, one in enumerate(samples)]
    whole = {name: [row[name] for row in made] for name in names} | dict(given)
    fields = {
        name: [None if v is None else _tensor(v, layout.dtypes.get(name)).float().numpy() for v in column]
        for name, column in whole.items()
    }
    return Truth(step, samples, [_mask(one) for one in samples], rewards, fields)


def _made_up(step: int, position: int, one: Json, reward: float) -> Json:
    """Trainer and engine differ by 0.01; where the engine has a 0.0 placeholder, the trainer has a number."""
    length, engine = one["response_length"], one.get("rollout_log_probs")
    rng = np.random.default_rng([step, position, length])
    scores: Any = -rng.exponential(0.35, length)
    if engine is not None and len(engine) == length:
        scores = np.where(np.equal(engine, 0), scores, engine)
    trainer = np.minimum(scores + rng.normal(0, 0.01, length), 0)
    return {
        "rollout_log_probs": engine if engine is not None or length else [],
        "log_probs": trainer,
        "ref_log_probs": np.minimum(trainer + rng.normal(0, 0.05, length), 0),
        "entropy": rng.exponential(0.5, length),
        "advantages": [reward] * length,
        "returns": [reward] * length,
    }


def _mask(one: Json) -> Any:
    stored = one.get("loss_mask")
    mask = np.ones(one["response_length"], np.int32) if stored is None else np.asarray(stored, np.int32)
    return np.zeros_like(mask) if one.get("remove_sample") else mask


def _raw(one: Json) -> float:
    reward = next(iter(one["reward"].values())) if isinstance(one["reward"], dict) else one["reward"]
    return 0.0 if reward is None else float(reward)


def _normalised(samples: Sequence[Json]) -> list[float]:
    groups = defaultdict(list)
    for one in samples:
        groups[one["group_index"]].append(_raw(one))
    mean, std = ({key: f(group) for key, group in groups.items()} for f in (np.mean, np.std))
    return [float((_raw(one) - mean[key]) / (std[key] + 1e-6)) for one in samples for key in [one["group_index"]]]


def _whole_columns(truth: Truth, extra: Json) -> Json:
    """The columns that aren't cut, over rollout positions."""
    samples = truth.samples
    columns = {
        "tokens": [torch.tensor(one["tokens"], dtype=torch.int64) for one in samples],
        "response_lengths": [one["response_length"] for one in samples],
        "total_lengths": [len(one["tokens"]) for one in samples],
        "rewards": truth.rewards,
        "truncated": [int(one["status"] == "truncated") for one in samples],
        "loss_masks": [torch.from_numpy(mask) for mask in truth.masks],
        "sample_indices": [one["index"] for one in samples],
        "rollout_ids": [one["index"] if one["rollout_id"] is None else one["rollout_id"] for one in samples],
        "weight_versions": [one["weight_versions"] for one in samples],
        "raw_reward": [_raw(one) for one in samples],
        **extra,
    }
    return {name: column for name, column in columns.items() if column is not None}


def _train_file(truth: Truth, layout: Layout, rank: Rank, whole: Json) -> Json:
    shard = truth.shards[rank.dp]
    data = {k: v if k in BATCH_GLOBAL else [v[position] for position in shard] for k, v in whole.items()}
    data["rollout_mask_sums"] = torch.tensor([float(truth.masks[position].sum()) for position in shard])
    data["num_microbatches"], data["micro_batch_indices"] = [1], [list(range(len(shard)))]
    data["num_rollouts"] = [sum(map(len, truth.shards))]
    if layout.qkv == "bshd":
        data["max_seq_lens"] = [-(-max(data["total_lengths"]) // layout.pad) * layout.pad] * len(shard)
    for name, column in truth.fields.items():
        if all(row is None for row in column):
            continue
        if name in EVERY_STAGE or rank.pp == layout.pp - 1:
            data[name] = _cut(name, [column[position] for position in shard], layout, rank, data)
        elif layout.explicit_none:
            data[name] = None
    payload = {"rollout_id": truth.step} | ({"rank": rank.number} if layout.rank_key else {})
    recorded = {"cp_rank": rank.cp, "cp_size": layout.cp, "qkv_format": layout.qkv} if layout.recorded else {}
    return payload | {"rollout_data": data} | recorded


def _cut(name: str, rows: list[Any], layout: Layout, rank: Rank, data: Json) -> list[Any]:
    if layout.cp > 1:
        qkv = layout.field_qkv.get(name, layout.qkv)
        lengths = zip(data["total_lengths"], data["response_lengths"], strict=True)
        padded = data.get("max_seq_lens", [0])[0]
        held = [brute_force_slices(total, response, layout.cp, qkv, padded)[rank.cp] for total, response in lengths]
        rows = [None if row is None else row[mine] for row, mine in zip(rows, held, strict=True)]
    parts: list[Any] = [_tensor(row, layout.dtypes.get(name)) for row in rows]
    return list(torch.cat(parts).split([len(part) for part in parts])) if layout.packed else parts


def _tensor(values: Any, dtype: Any = None) -> Any:
    return None if values is None else torch.from_numpy(np.array(values, np.float32)).to(dtype or torch.float32)


def _save(path: Path, payload: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(payload, path)
    return path


def _write_lines(path: Path, rows: Sequence[Json]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows))
    return path


def _write_mirror(path: Path, samples: Sequence[Json]) -> Path:
    import polars as pl

    path.parent.mkdir(parents=True, exist_ok=True)
    lists = {"tokens": pl.Int32, "loss_mask": pl.Int8, "rollout_log_probs": pl.Float32}
    columns = {
        "sample_index": pl.Series([one["index"] for one in samples], dtype=pl.Int32),
        "response_length": pl.Series([one["response_length"] for one in samples], dtype=pl.Int32),
        "total_length": pl.Series([len(one["tokens"]) for one in samples], dtype=pl.Int32),
    } | {name: pl.Series([one[name] for one in samples], dtype=pl.List(dtype)) for name, dtype in lists.items()}
    pl.DataFrame(columns).write_parquet(path, row_group_size=8)
    return path


def _set_age(paths: Sequence[Path], age: float) -> None:
    stamp = time.time() - age
    for path in paths:
        os.utime(path, (stamp, stamp))

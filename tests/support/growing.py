"""A run that grows as a real one does, written by a process of its own:

`python -m tests.support.growing ROOT STEPS SEED`.

Every file of a step is written in pieces over the one of its name, train files in any order, with telemetry in torn
lines in between; towards the end an attempt that resumed writes some steps anew. The last line on standard output says
what was written.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.writer import Layout, sample, write_step

LAYOUT = Layout(cp=2, dp=2)
SAMPLES = 8
GPUS = range(8)
EVAL_EVERY = 20
RESUMED = 5  # steps that are written twice
PACE = 0.05  # seconds a step takes at least


class Writer:
    def __init__(self, root: Path, seed: int) -> None:
        self.root = root
        self.rng = random.Random(seed)
        self.steps: dict[str, dict[str, Any]] = {}
        self.records: Counter[str] = Counter()
        self.start = time.time()
        (root / "dashboard").mkdir(parents=True)
        meta = {"run_name": "soak", "start_ts": self.start, "args": {}}
        (root / "dashboard" / "meta.json").write_text(json.dumps(meta))

    def step(self, step: int, attempt: int = 0) -> None:
        if step % EVAL_EVERY == 0:
            self._write(step, attempt, evaluation=True)
        began = time.time()
        for record in phases(began, -1.0):
            self._append("phases", record)
        self._write(step, attempt)
        for record in phases(began, time.time()):
            self._append("phases", record)
            self.records["closed phases"] += 1
        self._append("metrics", logged(step, self.rng.gauss(0, 1)))

    def _write(self, step: int, attempt: int, evaluation: bool = False) -> None:
        name = f"eval {step}" if evaluation else str(step)
        samples = [
            sample(SAMPLES * step + at, group_index=step, seed=(step * 1000 + at) * 10 + attempt)
            for at in range(SAMPLES)
        ]
        with tempfile.TemporaryDirectory() as folder:
            staged = Path(folder)
            write_step(staged, step, samples, LAYOUT, evaluation=evaluation, age=0)
            rollouts = sorted((staged / "rollout_data").iterdir())
            shards = sorted((staged / "train_data").glob("*"))
            mirrors = sorted((staged / "dashboard_columns").iterdir())
            for path in [*rollouts, *mirrors, *self.rng.sample(shards, len(shards))]:
                self._land(path, self.root / path.relative_to(staged))
        rewards = [one["reward"] for one in samples]
        trained = 0 if evaluation else SAMPLES
        self.steps[name] = {"samples": SAMPLES, "train_samples": trained, "reward_mean": float(np.mean(rewards))}

    def _land(self, source: Path, target: Path) -> None:
        """As torch.save does it: over what is there, not whole until the end."""
        content = source.read_bytes()
        target.parent.mkdir(exist_ok=True)
        with open(target, "wb", buffering=0) as file:
            for cut in sorted(self.rng.sample(range(1, len(content)), 2)):
                file.write(content[file.tell() : cut])
                for record in samples_of_the_machines(time.time(), self.rng):
                    self._append(*record)
            file.write(content[file.tell() :])

    def _append(self, stream: str, record: dict[str, Any]) -> None:
        """In two writes, so that whoever reads in between sees a torn line."""
        hour = time.strftime("%Y%m%d_%H", time.gmtime(record.get("ts", record.get("t0"))))
        name = "metrics.jsonl" if stream == "metrics" else f"{stream}/{hour}.jsonl"
        path = self.root / "dashboard" / name
        path.parent.mkdir(exist_ok=True)
        line = json.dumps(record).encode() + b"\n"
        cut = self.rng.randrange(len(line))
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.write(descriptor, line[:cut])
        os.write(descriptor, line[cut:])
        os.close(descriptor)
        self.records[stream] += 1


def phases(t0: float, t1: float) -> Iterator[dict[str, Any]]:
    for rank in GPUS[:4]:
        yield {"name": "train", "t0": t0, "t1": t1, "node": "a", "gpus": [rank], "rank": rank, "role": "train"}


def samples_of_the_machines(ts: float, rng: random.Random) -> Iterator[tuple[str, dict[str, Any]]]:
    for gpu in GPUS:
        usage = {"util": rng.randrange(100), "mem_mb": 61000, "power_w": rng.randrange(700)}
        yield "gpu_util", {"ts": ts, "node": "a", "gpu": gpu, **usage}
    yield "engine_series", {"ts": ts, "addr": "b:1", "metric": "running", "labels": {}, "value": rng.random()}


def logged(step: int, loss: float) -> dict[str, Any]:
    metrics = {"train/loss": loss, "train/step": step}
    return {"ts": time.time(), "step_key": "train/step", "step": step, "metrics": metrics}


def main(root: str, steps: int, seed: int) -> None:
    writer = Writer(Path(root), seed)
    order = [*range(steps - RESUMED), *range(steps - 2 * RESUMED, steps)]
    for at, step in enumerate(order):
        begun = time.monotonic()
        writer.step(step, attempt=at >= steps - RESUMED)
        time.sleep(max(0.0, PACE - (time.monotonic() - begun)))
    print(json.dumps({"steps": writer.steps, "records": writer.records}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))

"""A run that a test writes piece by piece; between two pieces somebody may look."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.streams import append, document
from tests.support.writer import Layout, sample, write_step

LAYOUT = Layout(dp=2)
SAMPLES = 4
HOUR = 3600.0
PACE = 60.0  # seconds between two steps, by the times of their files
VOCABULARY = {f"w{number}": number for number in range(1000)}
FOLDERS = ("rollout_data", "train_data", "dashboard_columns", "trajectory")
MESSAGES = [{"role": "user", "content": "a prompt"}, {"role": "assistant", "content": "a response"}]


class Job:
    """Writes each file in two pieces over the one of its name, all but the rollout file in any order."""

    def __init__(self, root: Path, aside: Path, seed: int = 5) -> None:
        self.root = root
        self.begun = time.time() - 4 * HOUR
        self._aside = aside
        self._random = random.Random(seed)
        root.mkdir()

    def step(
        self, number: int, attempt: int = 0, drop: tuple[int, ...] = (), late: tuple[str, ...] = (), **how: Any
    ) -> Iterator[Path]:
        """The path that was just written to, at each piece of each file, the rollout file's first.

        Files in a folder of `late` are left to `rest`.
        """
        staged = self._staged(number, attempt, how.get("evaluation", False))
        samples = [self._sample(number, at, attempt) for at in range(SAMPLES)]
        talk = [{"sample_index": one["index"], "status": "completed", "messages": MESSAGES} for one in samples]
        write_step(staged, number, samples, LAYOUT, drop=drop, trajectory=talk, **how)
        folders = [name for name in FOLDERS if name not in late]
        yield from self._land_all(staged, folders, number, attempt)

    def rest(self, number: int, late: tuple[str, ...], attempt: int = 0) -> Iterator[Path]:
        """The files of a step that `step` left out."""
        yield from self._land_all(self._staged(number, attempt, False), late, number, attempt)

    def _staged(self, number: int, attempt: int, evaluation: bool) -> Path:
        return self._aside / f"{number}-{attempt}-{evaluation}"

    def _sample(self, number: int, at: int, attempt: int) -> dict[str, Any]:
        index = SAMPLES * number + at
        return sample(index, group_index=number, seed=100 * attempt + index, response_len=6 + attempt)

    def _land_all(
        self, staged: Path, folders: tuple[str, ...] | list[str], number: int, attempt: int
    ) -> Iterator[Path]:
        first, *others = [path for name in folders for path in sorted((staged / name).glob("*"))]
        for path in (first, *self._random.sample(others, len(others))):
            yield from self._land(path, self.begun + attempt * HOUR + number * PACE)

    def _land(self, source: Path, then: float) -> Iterator[Path]:
        content, target = source.read_bytes(), self.root / source.parent.name / source.name
        target.parent.mkdir(exist_ok=True)
        cut = self._random.randrange(len(content))
        with open(target, "wb", buffering=0) as file:
            file.write(content[:cut])
            yield target
            file.write(content[cut:])
        os.utime(target, (then, then))
        yield target

    def tokenizer(self, length: int | None = None) -> None:
        """All of the tokenizer, or its first bytes."""
        model = {"type": "WordLevel", "vocab": VOCABULARY, "unk_token": "w0"}
        path = self.root / "tokenizer" / "tokenizer.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"version": "1.0", "model": model, "added_tokens": []})[:length])

    def metrics(self, line: str) -> None:
        (self.root / "dashboard").mkdir(exist_ok=True)
        with open(self.root / "dashboard" / "metrics.jsonl", "a") as file:
            file.write(line)

    def telemetry(self, *numbers: int) -> None:
        """The settings of the run, its machines, and the phases of these steps."""
        document(self.root, "meta.json", {"run_name": "job", "start_ts": self.begun, "args": {"lr": 1e-6}})
        for number in numbers:
            ts = self.begun + number * PACE
            hour = time.strftime("%Y%m%d_%H", time.gmtime(ts))
            where = {"node": "a", "gpus": [0], "rank": 0, "role": "train"}
            append(self.root, f"phases/{hour}", {"name": "train", "t0": ts, "t1": ts + 9, **where})
            usage = {"util": 50, "mem_mb": 61000, "power_w": 300}
            append(self.root, f"gpu_util/{hour}", {"ts": ts, "node": "a", "gpu": 0, **usage})

    def rotate(self, number: int) -> None:
        """Remove all files of a step."""
        for pattern in (f"*/{number}.*", f"train_data/{number}_*", f"dashboard_columns/*_{number}.parquet"):
            for path in self.root.glob(pattern):
                path.unlink()

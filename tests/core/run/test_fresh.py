"""Who has followed a run for long sees, in every pane, what somebody sees who starts now."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from dumptui.core.run.run import Run, StepKey
from dumptui.tui.app.app import DumpTui
from dumptui.tui.panes import SAMPLE_PANES
from tests.support.screen import DEADLINE, lines, press, text, until
from tests.support.writer import Layout, sample, write_step

LAYOUT = Layout(dp=2)
SAMPLES = 4
HOUR = 3600.0
PACE = 60.0  # seconds between two steps, by the times of their files
VOCABULARY = {f"w{number}": number for number in range(1000)}

# Each pane, by the keys that lead there from wherever the screen is.
PANES = {
    "steps": ("1", "escape", "escape", "F"),
    "samples": ("enter", "home"),
    "batch": ("2",),
    "groups": ("6", "home"),
    "health": ("5", "home"),
    "tokens": ("1", "home", "3", "home"),
    "conversation": ("4", "home"),
}


class Job:
    """A run as its processes write it, piece by piece; between two pieces somebody may look."""

    def __init__(self, root: Path, aside: Path, seed: int = 5) -> None:
        self.root = root
        self._aside = aside
        self._random = random.Random(seed)
        self._begun = time.time() - 4 * HOUR
        root.mkdir()

    def step(self, number: int, attempt: int = 0, drop: tuple[int, ...] = (), **how: Any) -> Iterator[Path]:
        """The path that was just written to, at each piece of each file, the rollout file's first."""
        staged = self._aside / f"{number}-{attempt}-{how.get('evaluation')}"
        samples = [self._sample(number, at, attempt) for at in range(SAMPLES)]
        talk = [{"sample_index": one["index"], "status": "completed", "messages": MESSAGES} for one in samples]
        write_step(staged, number, samples, LAYOUT, drop=drop, trajectory=talk, **how)
        first, *others = [path for name in FOLDERS for path in sorted((staged / name).glob("*"))]
        for path in (first, *self._random.sample(others, len(others))):
            yield from self._land(path, self._begun + attempt * HOUR + number * PACE)

    def _sample(self, number: int, at: int, attempt: int) -> dict[str, Any]:
        index = SAMPLES * number + at
        return sample(index, group_index=number, seed=100 * attempt + index, response_len=6 + attempt)

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
        model = {"type": "WordLevel", "vocab": VOCABULARY, "unk_token": "w0"}
        path = self.root / "tokenizer" / "tokenizer.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"version": "1.0", "model": model, "added_tokens": []})[:length])

    def metrics(self, line: str) -> None:
        (self.root / "dashboard").mkdir(exist_ok=True)
        with open(self.root / "dashboard" / "metrics.jsonl", "a") as file:
            file.write(line)

    def rotate(self, number: int) -> None:
        for pattern in (f"*/{number}.*", f"train_data/{number}_*", f"dashboard_columns/*_{number}.parquet"):
            for path in self.root.glob(pattern):
                path.unlink()


FOLDERS = ("rollout_data", "train_data", "dashboard_columns", "trajectory")
MESSAGES = [{"role": "user", "content": "a prompt"}, {"role": "assistant", "content": "a response"}]


@asynccontextmanager
async def following(root: Path, size: tuple[int, int]) -> AsyncIterator[tuple[DumpTui, Pilot[None]]]:
    app = DumpTui(Run.open(root), follow=True)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: hasattr(app, "panes"))
        yield app, pilot


async def look(app: DumpTui, pilot: Pilot[None]) -> None:
    app.reader.look()
    await until(pilot, lambda: not app.reader._looking)


async def assert_fresh(app: DumpTui, pilot: Pilot[None]) -> None:
    """Every pane of the newest step is, in the end, that of a new start."""
    await look(app, pilot)
    async with following(app.steps.run.root, (app.size.width, app.size.height)) as (fresh, second):
        for name, keys in PANES.items():
            for one in (pilot, second):
                await press(one, *keys)
            await until_same(name, app, fresh)
        await press(pilot, "1", "escape", "escape")


async def until_same(name: str, app: DumpTui, fresh: DumpTui) -> None:
    """Both may still be reading; their rows are those of the printed view."""
    end = time.monotonic() + DEADLINE
    while (lines(app), sheet(app)) != (lines(fresh), sheet(fresh)):
        other = [f"{ours}\n{theirs}" for ours, theirs in zip(lines(app), lines(fresh), strict=True) if ours != theirs]
        assert time.monotonic() < end, "\n".join(
            [f"{name}, the follower and the new start:", *other, *differing(app, fresh)]
        )
        await asyncio.sleep(0.05)


def differing(app: DumpTui, fresh: DumpTui) -> list[str]:
    """What the rows differ in."""
    ours, theirs = (found[2] if (found := sheet(one)) else [] for one in (app, fresh))
    pairs = ((a, b) for a, b in zip(ours, theirs, strict=False) if a != b)
    return [f"{key}: {a.get(key)} {b.get(key)}" for a, b in pairs for key in a | b if a.get(key) != b.get(key)]


def sheet(app: DumpTui) -> tuple[str, StepKey | None, list[Any]] | None:
    found = None if app.pane in SAMPLE_PANES else app.sheets.sheet()
    return None if found is None else (found.view, found.key, list(found.rows()))


@pytest.mark.parametrize(("size", "between"), [((120, 40), True), ((200, 60), False)])
async def test_a_follower_sees_what_a_new_start_sees(tmp_path: Path, size: tuple[int, int], between: bool) -> None:
    """At the end and, `between`, at three moments before."""
    root = tmp_path / "run"
    job = Job(root, tmp_path / "aside")
    first = job.step(0)
    next(first)  # the only step is half written
    async with following(root, size) as (app, pilot):
        await until(pilot, lambda: app.steps.failed)
        await press(pilot, "5", "1")  # health is looked for once
        for _ in first:
            await look(app, pilot)
        if between:
            await assert_fresh(app, pilot)

        job.tokenizer(length=500)
        for path in job.step(1):
            if path.name == "1.pt" and StepKey(1) in app.steps.run.steps:
                app.steps.choose(StepKey(1))  # selected while half written
            await look(app, pilot)
        job.tokenizer()
        job.metrics('{"ts": 1.0, "step_key": null, "step": 0, "metrics": {"loss": 1.0}}\n{"ts": 2')
        for _ in (*job.step(2, drop=(1,)), *job.step(2, evaluation=True)):
            await look(app, pilot)
        if between:
            await assert_fresh(app, pilot)

        for number in (3, 4):
            for _ in job.step(number):
                pass
            await look(app, pilot)
        for number in (2, 3):  # an attempt that resumes, two steps behind the one before
            for _ in job.step(number, attempt=1):
                await look(app, pilot)
        half = job.step(4, attempt=1)
        next(half)
        if between:
            await assert_fresh(app, pilot)
        for _ in half:
            await look(app, pilot)

        root.rename(tmp_path / "away")
        await look(app, pilot)
        await until(pilot, lambda: "no such folder" in text(app))
        app.steps.choose(StepKey(1))
        (tmp_path / "away").rename(root)
        await look(app, pilot)
        job.rotate(0)
        job.metrics(', "step_key": null, "step": 0, "metrics": {}}\n')
        shutil.rmtree(root / "trajectory")
        await assert_fresh(app, pilot)
    assert app._exception is None

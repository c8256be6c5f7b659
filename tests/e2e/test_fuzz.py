"""Runs damaged at random: no traceback, no hang, and no value that was never dumped.

DUMPTUI_FUZZ=N tries N damages instead of 150. A failing seed is run alone with `-k 'seed[N]'`.
"""

from __future__ import annotations

import faulthandler
import os
import random
import shutil
import struct
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest

from dumptui.core.errors import DumpError
from dumptui.core.health.run_health import health
from dumptui.core.ptfile.file import PtFile, Tensor
from dumptui.core.run.run import Run
from dumptui.core.step.load import load
from dumptui.core.step.step import Step
from dumptui.core.tables import steps
from tests.support.against_truth import Wrong, wrong_values
from tests.support.writer import Json, Layout, Truth, sample, write_slime_v2, write_step

SEEDS = int(os.environ.get("DUMPTUI_FUZZ", "150"))
STEPS = (3, 4)
HANG = 60  # seconds; a damaged run is read in hundredths

# What a field shows may differ where the damage lies in one of these.
SOURCES = {
    "train_log_probs": {"log_probs"},
    "loss_mask": {"loss_masks"},
    "lp_diff": {"log_probs", "rollout_log_probs", "loss_masks"},
}
MIRRORED = {"index", "tokens", "response_length", "loss_mask", "rollout_log_probs", "lp_diff"}

LAYOUTS = {
    "cp2": Layout(cp=2, dp=2),
    "cp2 legacy": Layout(cp=2, recorded=False),
    "cp2 bshd": Layout(cp=2, dp=2, qkv="bshd", pad=16),
    "cp2 bshd legacy": Layout(cp=2, qkv="bshd", pad=16, recorded=False),
    "dp2": Layout(dp=2, packed=True),
    "tp2 without ranks": Layout(tp=2, dp=2, rank_key=False),
    "siblings": Layout(dp=2),
}


def samples(step: int, kind: str) -> list[Json]:
    made = []
    for at in range(6):
        index = 10 * step + (at // 3 if kind == "siblings" else at)
        length = 0 if at == 5 else 3 + 4 * at
        mask = [int(one % 4 != 2) for one in range(length)] if at % 2 else None
        made.append(sample(index, prompt_len=3 + at, response_len=length, seed=10 * step + at, loss_mask=mask))
    return made


@dataclass
class Original:
    """An undamaged run and what it holds."""

    root: Path
    truths: dict[int, Truth]


@pytest.fixture(scope="session")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Original]:
    made = {}
    for kind, layout in LAYOUTS.items():
        root: Path = tmp_path_factory.mktemp("fuzz")
        truths = {step: write_step(root, step, samples(step, kind), layout) for step in STEPS}
        made[kind] = Original(root, truths)
    root = tmp_path_factory.mktemp("fuzz")
    truths = {step: write_slime_v2(root, step, samples(step, "slime"), dp=2) for step in STEPS}
    return made | {"slime": Original(root, truths)}


# Damage --------------------------------------------------------------------------------------------------------------


@dataclass
class Content:
    """What a file holds: the bytes of an original file, changed in some ranges of them."""

    origin: Path
    ranges: list[tuple[int, int]] = field(default_factory=list)


@dataclass
class Damaged:
    """A copy of a run, and what its files hold after some damage."""

    root: Path
    random: random.Random
    contents: dict[Path, Content] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)

    def pick(self) -> Path:
        return self.random.choice(sorted(self.contents))

    def write(self, path: Path, data: bytes | bytearray, start: int = 0, stop: int = 0) -> None:
        path.write_bytes(data)
        if stop > start:
            self.contents[path].ranges.append((start, stop))

    def cut(self) -> None:
        path = self.pick()
        data = path.read_bytes()
        self.write(path, data[: self.random.randrange(len(data) + 1)])
        self.done.append(f"{path} cut")

    def flip(self) -> None:
        path = self.pick()
        data = bytearray(path.read_bytes())
        for _ in range(self.random.randint(1, 4) if data else 0):
            at = self._place(data)
            data[at] ^= 1 << self.random.randrange(8)
            self.write(path, data, at, at + 1)
            self.done.append(f"{path} flipped at {at}")

    def zero(self) -> None:
        path = self.pick()
        data = bytearray(path.read_bytes())
        if data:
            start = self._place(data)
            stop = min(len(data), start + self.random.choice((1, 16, 300, 4000)))
            data[start:stop] = bytes(stop - start)
            self.write(path, data, start, stop)
            self.done.append(f"{path} zeroed {start} to {stop}")

    def _place(self, data: bytes | bytearray) -> int:
        """Anywhere, but as often in the zip directory as in all the rest."""
        directory = data.find(b"PK\1\2")
        return self.random.randrange(directory if directory > 0 and self.random.random() < 0.5 else 0, len(data))

    def shift(self) -> None:
        """Bytes too many or too few: what lies behind them is not where it was."""
        path = self.pick()
        data = path.read_bytes()
        at, length = self.random.randrange(len(data) + 1), self.random.randint(1, 64)
        new = data[:at] + (bytes(length) + data[at:] if self.random.random() < 0.5 else data[at + length :])
        self.write(path, new, at, max(len(data), at + 1))
        self.done.append(f"{path} shifted at {at}")

    def delete(self) -> None:
        path = self.pick()
        path.unlink()
        del self.contents[path]
        self.done.append(f"{path} deleted")

    def swap(self) -> None:
        one = self.pick()
        other = self.random.choice([path for path in sorted(self.contents) if path.parent == one.parent])
        held = self.contents[one], self.contents[other]
        data = one.read_bytes(), other.read_bytes()
        other.write_bytes(data[0])
        one.write_bytes(data[1])
        self.contents[other], self.contents[one] = held
        self.done.append(f"{one} swapped with {other}")

    def duplicate(self) -> None:
        path = self.pick()
        names = [f"{step}{tail}" for step in (*STEPS, 5) for tail in (".pt", "_0.pt", "_1.pt", "_2.pt", "_7.pt")]
        copy = path.with_name(self.random.choice([name for name in names if name != path.name]))
        shutil.copy(path, copy)
        self.contents[copy] = Content(self.contents[path].origin, list(self.contents[path].ranges))
        self.done.append(f"{path} copied to {copy}")


DAMAGES: list[Callable[[Damaged], None]] = [
    Damaged.cut,
    Damaged.flip,
    Damaged.flip,
    Damaged.flip,
    Damaged.zero,
    Damaged.zero,
    Damaged.shift,
    Damaged.delete,
    Damaged.swap,
    Damaged.swap,
    Damaged.duplicate,
]


def damage(original: Original, root: Path, rng: random.Random) -> Damaged:
    shutil.copytree(original.root, root)
    damaged = Damaged(root, rng)
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        damaged.contents[path] = Content(original.root / path.relative_to(root))
    for _ in range(rng.randint(1, 3)):
        if damaged.contents:
            rng.choice(DAMAGES)(damaged)
    for path in damaged.contents:
        os.utime(path, (1.7e9, 1.7e9))
    return damaged


# What may be wrong then ----------------------------------------------------------------------------------------------


def touched(content: Content) -> set[tuple[str, int | None]]:
    """The (column, sample_index) of a train file whose own bytes were changed."""
    if not content.ranges or content.origin.parent.name != "train_data":
        return set()
    return {
        (column, index)
        for column, index, first, end in tensors(content.origin)
        if any(start < end and first < stop for start, stop in content.ranges)
    }


@cache
def tensors(path: Path) -> list[tuple[str, int | None, int, int]]:
    """(column, sample_index, first byte, end) of every tensor of a train file."""
    places = entries(path)
    return [
        (column, index, *places[value.storage.name.decode().partition("/")[2]])
        for column, index, value in values(PtFile(path).root)
        if isinstance(value, Tensor)
    ]


def values(root: Any) -> Iterator[tuple[str, int | None, object]]:
    for row in root.get("samples", ()):
        yield from ((name, row["sample_index"], value) for name, value in row.items())
    columns = root.get("rollout_data", {})
    for name, column in columns.items():
        if isinstance(column, list):
            yield from zip(repeat(name), columns["sample_indices"], column, strict=False)


def entries(path: Path) -> dict[str, tuple[int, int]]:
    """First byte and end of what a zip holds, by name without the root folder."""
    data, places = path.read_bytes(), {}
    with zipfile.ZipFile(path) as file:
        for entry in file.infolist():
            name, extra = struct.unpack_from("<HH", data, entry.header_offset + 26)
            start = entry.header_offset + 30 + name + extra
            places[entry.filename.partition("/")[2]] = start, start + entry.file_size
    return places


def is_another_step(step: Step, damaged: Damaged) -> bool:
    """Whether the samples are another step's and nothing can be held against the truth: it is said, but for a mirror.

    A mirror does not hold the number of its step.
    """
    if step.files.rollout is None and step.files.mirror is None:
        return any("the name says step" in note for note in step.notes)
    mirror = mirror_read(step, damaged)
    if mirror is not None:
        return f"_{step.files.key.step}." not in mirror.origin.name
    return any(note.startswith("the name says step") for note in step.rollout.notes)


def in_order_of(step: Step, truth: Truth) -> Truth:
    """The truth of the samples there are: train files don't hold all, and not in the order of the rollout file."""
    dumped = [(one["index"], one["response_length"]) for one in truth.samples]
    order = [dumped.index((sample.index, sample.response_length)) for sample in step.samples]
    return replace(
        truth,
        samples=[truth.samples[at] for at in order],
        masks=[truth.masks[at] for at in order],
        fields={name: [column[at] for at in order] for name, column in truth.fields.items()},
    )


def mirror_read(step: Step, damaged: Damaged) -> Content | None:
    return None if step.rollout_problem is None else damaged.contents.get(step.rollout.path)


def unexplained(step: Step, truth: Truth, damaged: Damaged) -> list[Wrong]:
    if is_another_step(step, damaged):
        return []
    if step.files.rollout is None and step.files.mirror is None:
        truth = in_order_of(step, truth)
    tainted = set().union(*(touched(content) for content in damaged.contents.values()))
    mirror = mirror_read(step, damaged)
    excused = MIRRORED if mirror is not None and mirror.ranges else set()
    found = []
    for wrong in wrong_values(step, truth):
        sources = SOURCES.get(wrong.field, {wrong.field})
        index = truth.samples[wrong.position]["index"]
        if wrong.field not in excused and not any((column, index) in tainted for column in sources):
            found.append(wrong)
    return found


# The tests -----------------------------------------------------------------------------------------------------------


def read_everything(step: Step) -> None:
    """What the views read of a step."""
    table = steps.samples(step)
    steps.groups(table)
    steps.batch(step)
    steps.coverage(step)
    steps.step_row(step, table)


def check(damaged: Damaged, truths: dict[int, Truth]) -> None:
    run = Run.open(damaged.root)
    for key, files in run.steps.items():
        try:
            step = load(files)
        except DumpError as error:
            assert "\n" not in str(error)
            continue
        read_everything(step)
        if key.step in truths and not key.evaluation:
            assert not unexplained(step, truths[key.step], damaged), damaged.done


@pytest.mark.parametrize("seed", range(SEEDS))
def test_seed(seed: int, originals: dict[str, Original], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    if seed % 2:  # as if the files were large: nothing is kept in memory
        monkeypatch.setattr("dumptui.core.ptfile.snapshot._SMALL_FILE_BYTES", 0)
    original = originals[rng.choice(sorted(originals))]
    faulthandler.dump_traceback_later(HANG, exit=True)
    damaged = damage(original, tmp_path / "run", rng)
    try:
        check(damaged, original.truths)
        if seed % 4 == 0:  # reads it all once more
            list(health(Run.open(damaged.root)))
    except DumpError as error:
        assert "holds no dump" in str(error)
    finally:
        faulthandler.cancel_dump_traceback_later()
        shutil.rmtree(tmp_path)


def test_undamaged_runs_are_whole(originals: dict[str, Original]) -> None:
    for original in originals.values():
        for files in Run.open(original.root).steps.values():
            step = load(files)
            assert set(step.gather("train_log_probs").states) == {"ok"}
            assert not list(wrong_values(step, original.truths[files.key.step]))

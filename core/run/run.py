"""A run folder: its steps and their files, by the names in its sub-folders; no file is read."""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, TypeVar

from dumptui.core.errors import BeingWritten, DumpError, NoDump, NothingYet
from dumptui.core.run.attempts import CLOCK_TOLERANCE_SECONDS, earlier_steps

T = TypeVar("T")

# One spelling per number, so that 07.pt is not a second file of step 7; 18 digits fit an int64.
_NUMBER_PATTERN = "(0|[1-9][0-9]{0,17})"
_ROLLOUT_NAME = re.compile(rf"(eval_)?{_NUMBER_PATTERN}\.pt")
_TRAIN_NAME = re.compile(rf"{_NUMBER_PATTERN}_{_NUMBER_PATTERN}\.pt")
_MIRROR_NAME = re.compile(rf"rollout_(eval_)?{_NUMBER_PATTERN}\.parquet")
_TRAJECTORY_NAME = re.compile(rf"(eval_)?{_NUMBER_PATTERN}\.jsonl")

# The trainer writes files in place, so an unreadable file may be half written until it is this many seconds old.
YOUNG_SECONDS = 60.0
# A file server's clock may be ahead of ours, but not by more than the 5 minutes that Kerberos allows.
CLOCK_SKEW_SECONDS = 300.0


class StepKey(NamedTuple):
    """A train step or, with `evaluation`, an eval step; both may have the same number."""

    step: int
    evaluation: bool = False

    def __str__(self) -> str:
        return f"eval {self.step}" if self.evaluation else f"step {self.step}"


READ_BITS = 0o444


class Entry(NamedTuple):
    """A file as it was listed, with its time in seconds since the epoch."""

    folder: Path
    name: str
    size: int
    mtime: float
    inode: int
    readable: int = READ_BITS
    """The read bits of its mode: who may read it can change without any change of the file."""

    @property
    def path(self) -> Path:
        """The path, made only when needed: for 65,000 files it would double the time of listing."""
        return self.folder / self.name


@dataclass
class StepFiles:
    """The files of one step. `shards` are (rank, file) by rank; a file without a rank in its name has rank None."""

    key: StepKey
    rollout: Entry | None = None
    shards: list[tuple[int | None, Entry]] = field(default_factory=list)
    mirror: Entry | None = None
    trajectory: Entry | None = None

    @property
    def rollout_bytes(self) -> int:
        return self.rollout.size if self.rollout is not None else 0

    @property
    def train_bytes(self) -> int:
        return sum(entry.size for _, entry in self.shards)

    def entries(self) -> Iterator[Entry]:
        yield from (entry for entry in (self.rollout, self.mirror, self.trajectory) if entry is not None)
        yield from (entry for _, entry in self.shards)

    @property
    def begun(self) -> float | None:
        """When the first file of the step was written: the rollout file, or the newest file without one."""
        if self.rollout is not None:
            return self.rollout.mtime
        return max((entry.mtime for entry in self.entries()), default=None)

    @property
    def outdated(self) -> bool:
        """Whether a train file is older than the rollout file, which is written first.

        Then an earlier attempt wrote it, or the files were copied without their times.
        """
        oldest = min((entry.mtime for _, entry in self.shards), default=None)
        return self.rollout is not None and oldest is not None and oldest < self.rollout.mtime - CLOCK_TOLERANCE_SECONDS


@dataclass
class Run:
    """A listing of a run folder.

    `steps` are by number, an eval after the train step with the same number. `strays` are unrecognised files,
    `leftovers` folders that earlier attempts moved away, `problems` the sub-folders that can't be listed. `earlier` are
    the steps of an earlier attempt that the present one has not reached yet.
    """

    root: Path
    steps: dict[StepKey, StepFiles] = field(default_factory=dict)
    strays: list[Path] = field(default_factory=list)
    leftovers: list[Path] = field(default_factory=list)
    problems: list[DumpError] = field(default_factory=list)
    earlier: frozenset[StepKey] = frozenset()

    @classmethod
    def open(cls, root: str | os.PathLike[str], entries: Callable[[Path], list[Entry]] | None = None) -> Run:
        """List a `--dump-details` folder, or a bare folder of rollout or train files, which differ by name.

        `entries` returns the files of a folder, by default as they are now. Raises DumpError when the run is missing,
        not a folder, can't be listed, or has no steps in the sub-folders that can.
        """
        run = cls(Path(root))
        names = list_names(run.root)
        places = {
            "rollout_data": run._place_rollout,
            "train_data": run._place_train,
            "dashboard_columns": run._place_mirror,
            "trajectory": run._place_trajectory,
        }
        run.leftovers = [run.root / name for name in sorted(names) if name.startswith(".trash_")]
        if places.keys().isdisjoint(names):
            run._list(run.root, run._place_bare, entries or list_folder)
        for name, place in places.items():
            run._list(run.root / name, place, entries or list_folder)
        if not run.steps:
            raise next(iter(run.problems), None) or NothingYet(
                run.root, "holds no dump: it has no rollout_data/N.pt and no train_data/N_RANK.pt"
            )
        run._sort()
        return run

    def files(self, key: StepKey) -> StepFiles:
        """Return the files of a step. Raises DumpError for a missing step, which names those that the run has."""
        if key not in self.steps:
            kind = "eval" if key.evaluation else "train"
            steps = [str(known.step) for known in self.steps if known.evaluation == key.evaluation]
            has = f"the run has {kind} steps {steps[0]} to {steps[-1]}" if steps else f"the run has no {kind} steps"
            raise DumpError(self.root, f"no {key}: {has}")
        return self.steps[key]

    @cached_property
    def newest_first(self) -> list[StepKey]:
        """The steps in the order in which one to show is chosen: train steps, then evals, the present attempt first."""
        return sorted(self.steps, key=lambda key: (key.evaluation, key in self.earlier, -key.step))

    @cached_property
    def ages(self) -> dict[StepKey, int]:
        """The position of each step in `newest_first`."""
        return {key: age for age, key in enumerate(self.newest_first)}

    @property
    def tokenizer(self) -> Path:
        return tokenizer_of(self.root)

    def _list(self, folder: Path, place: Callable[[Entry], bool], entries: Callable[[Path], list[Entry]]) -> None:
        try:
            self.strays += [entry.path for entry in entries(folder) if not place(entry)]
        except DumpError as error:
            self.problems.append(error)

    def _sort(self) -> None:
        self.steps = dict(sorted(self.steps.items()))
        self.earlier = earlier_steps(self.steps)
        self.strays.sort()
        for files in self.steps.values():
            files.shards.sort(key=lambda shard: (shard[0] is not None, shard[0] or 0))

    # Each adds one file to its step and returns False for a name that is unrecognised in that folder.

    def _place_rollout(self, entry: Entry) -> bool:
        if match := _ROLLOUT_NAME.fullmatch(entry.name):
            self._files_of(match).rollout = entry
        return match is not None

    def _place_train(self, entry: Entry) -> bool:
        if match := _TRAIN_NAME.fullmatch(entry.name):
            self._files(StepKey(int(match[1]))).shards.append((int(match[2]), entry))
            return True
        match = _ROLLOUT_NAME.fullmatch(entry.name)
        if match is None or match[1]:
            return False
        self._files_of(match).shards.append((None, entry))
        return True

    def _place_mirror(self, entry: Entry) -> bool:
        if match := _MIRROR_NAME.fullmatch(entry.name):
            self._files_of(match).mirror = entry
        return match is not None

    def _place_trajectory(self, entry: Entry) -> bool:
        if match := _TRAJECTORY_NAME.fullmatch(entry.name):
            self._files_of(match).trajectory = entry
        return match is not None

    def _place_bare(self, entry: Entry) -> bool:
        """Add a file by its name alone: N.pt is a rollout file here. Only unrecognised .pt files count as strays."""
        return self._place_rollout(entry) or self._place_train(entry) or ".pt" not in entry.name

    def _files_of(self, match: re.Match[str]) -> StepFiles:
        return self._files(StepKey(int(match[2]), match[1] is not None))

    def _files(self, key: StepKey) -> StepFiles:
        files = self.steps.get(key)
        if files is None:
            files = self.steps[key] = StepFiles(key)
        return files


def tokenizer_of(root: Path) -> Path:
    return root / "tokenizer" / "tokenizer.json"


# Listing --------------------------------------------------------------------------------------------------


def list_names(folder: Path) -> set[str]:
    """Return every name in a folder. Raises DumpError when it is missing, not a folder or can't be listed."""
    try:
        return set(past_stale(lambda: os.listdir(folder)))
    except FileNotFoundError:
        raise NothingYet(folder, "no such folder") from None
    except NotADirectoryError:
        raise DumpError(folder, "not a folder") from None
    except OSError as error:
        raise DumpError(folder, f"can't be listed: {error.strerror or error}") from error


def list_folder(folder: Path) -> list[Entry]:
    """Return the plain files of a folder by name, without those that vanish meanwhile; none if the folder is gone.

    Raises DumpError when it can't be listed.
    """
    try:
        listing = past_stale(lambda: list(os.scandir(folder)))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise DumpError(folder, f"can't be listed: {error.strerror or error}") from error
    entries = (_entry(folder, file) for file in sorted(listing, key=lambda file: file.name))
    return [entry for entry in entries if entry is not None]


def _entry(folder: Path, file: os.DirEntry[str]) -> Entry | None:
    try:
        if not file.is_file():
            return None
        stat = past_stale(file.stat)
    except OSError:  # gone between listing and stat
        return None
    return entry_of(folder, file.name, stat)


def entry_of(folder: Path, name: str, status: os.stat_result) -> Entry:
    return Entry(folder, name, status.st_size, status.st_mtime, status.st_ino, status.st_mode & READ_BITS)


def past_stale(call: Callable[[], T]) -> T:
    """Return `call()`, tried again once when a network file system reports that the file was replaced (ESTALE)."""
    try:
        return call()
    except OSError as error:
        if error.errno != errno.ESTALE:
            raise
    return call()


# Reading --------------------------------------------------------------------------------------------------


def read_file(path: Path, read: Callable[[Path], T]) -> T:
    """Return `read(path)`, tried again once when the file was replaced meanwhile.

    Raises its DumpError, or BeingWritten instead if the file is damaged but young.
    """
    before = _stamp(path)
    try:
        return read(path)
    except DumpError as error:
        if not _is_stale(error) and _stamp(path) == before:
            raise _of_its_age(path, error) from error.__cause__
    try:
        return read(path)
    except DumpError as error:
        raise _of_its_age(path, error) from error.__cause__


def is_young(path: Path, now: float | None = None) -> bool:
    """Whether a file may still be being written: its age is between -CLOCK_SKEW_SECONDS and YOUNG_SECONDS."""
    try:
        age = (time.time() if now is None else now) - path.stat().st_mtime
    except OSError:
        return False
    return -CLOCK_SKEW_SECONDS <= age < YOUNG_SECONDS


def _of_its_age(path: Path, error: DumpError) -> DumpError:
    damaged = not isinstance(error, NoDump) and not isinstance(error.__cause__, OSError)
    return BeingWritten(path) if damaged and is_young(path) else error


def _is_stale(error: DumpError) -> bool:
    return isinstance(error.__cause__, OSError) and error.__cause__.errno == errno.ESTALE


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_ino, stat.st_size, stat.st_mtime_ns

"""A run folder: which steps there are and which files each has. Nothing is read but the folders."""

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

# One spelling a number, so that 07.pt is no second file of step 7; 18 digits fit an int64.
_NUMBER_PATTERN = "(0|[1-9][0-9]{0,17})"
_ROLLOUT_NAME = re.compile(rf"(eval_)?{_NUMBER_PATTERN}\.pt")
_TRAIN_NAME = re.compile(rf"{_NUMBER_PATTERN}_{_NUMBER_PATTERN}\.pt")
_MIRROR_NAME = re.compile(rf"rollout_(eval_)?{_NUMBER_PATTERN}\.parquet")
_TRAJECTORY_NAME = re.compile(rf"(eval_)?{_NUMBER_PATTERN}\.jsonl")

# Nothing is renamed into place, so a file that can't be read may be half written: until it is this old, in seconds.
YOUNG_SECONDS = 60.0
# A file server's clock may be ahead of ours, but not by more than the 5 minutes that Kerberos puts up with.
CLOCK_SKEW_SECONDS = 300.0


class StepKey(NamedTuple):
    """A train step or, with `evaluation`, an eval step; both may have the same number."""

    step: int
    evaluation: bool = False

    def __str__(self) -> str:
        return f"eval {self.step}" if self.evaluation else f"step {self.step}"


class Entry(NamedTuple):
    """A file and what its folder said of it when it was listed; times in seconds since the epoch."""

    folder: Path
    name: str
    size: int
    mtime: float
    inode: int

    @property
    def path(self) -> Path:
        """Made when asked for: half the time of listing 65,000 files would go into their paths."""
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
        """When the step was written: the rollout file comes first."""
        if self.rollout is not None:
            return self.rollout.mtime
        return max((entry.mtime for entry in self.entries()), default=None)

    @property
    def outdated(self) -> bool:
        """Whether a train file is older than the rollout file it is written after: then it is of an earlier attempt,
        or the files were copied without their times.
        """
        oldest = min((entry.mtime for _, entry in self.shards), default=None)
        return self.rollout is not None and oldest is not None and oldest < self.rollout.mtime - CLOCK_TOLERANCE_SECONDS


@dataclass
class Run:
    """What one look at a run folder found.

    `steps` are by number, an eval after the train step of its number. `strays` are files whose names mean nothing
    here, `leftovers` what earlier attempts of the run moved away, `problems` the sub-folders that can't be listed.
    `earlier` are the steps that an earlier attempt left beyond where the present one has come to.
    """

    root: Path
    steps: dict[StepKey, StepFiles] = field(default_factory=dict)
    strays: list[Path] = field(default_factory=list)
    leftovers: list[Path] = field(default_factory=list)
    problems: list[DumpError] = field(default_factory=list)
    earlier: frozenset[StepKey] = frozenset()

    @classmethod
    def open(cls, root: str | os.PathLike[str], entries: Callable[[Path], list[Entry]] | None = None) -> Run:
        """List a `--dump-details` folder, or a bare folder of rollout or train files, which are told apart by name.

        `entries` gives the files of a folder, by default as they are now. Raises DumpError when the run is missing, no
        folder, can't be listed, or nothing is left in it that can.
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
        """Those of a step. Raises DumpError for one that is not there, saying which are."""
        if key not in self.steps:
            kind = "eval" if key.evaluation else "train"
            there = [str(one.step) for one in self.steps if one.evaluation == key.evaluation]
            has = f"the run has {kind} steps {there[0]} to {there[-1]}" if there else f"the run has no {kind} steps"
            raise DumpError(self.root, f"no {key}: {has}")
        return self.steps[key]

    @cached_property
    def newest_first(self) -> list[StepKey]:
        """Train steps before evals, those of the present attempt first: where to look for one to show."""
        return sorted(self.steps, key=lambda key: (key.evaluation, key in self.earlier, -key.step))

    @cached_property
    def ages(self) -> dict[StepKey, int]:
        """The place of each step in that order: the newer the smaller."""
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

    # Each places one file and answers False when the name means nothing in that folder.

    def _place_rollout(self, entry: Entry) -> bool:
        if match := _ROLLOUT_NAME.fullmatch(entry.name):
            self._at(match).rollout = entry
        return match is not None

    def _place_train(self, entry: Entry) -> bool:
        if match := _TRAIN_NAME.fullmatch(entry.name):
            self._files(StepKey(int(match[1]))).shards.append((int(match[2]), entry))
            return True
        match = _ROLLOUT_NAME.fullmatch(entry.name)
        if match is None or match[1]:
            return False
        self._at(match).shards.append((None, entry))
        return True

    def _place_mirror(self, entry: Entry) -> bool:
        if match := _MIRROR_NAME.fullmatch(entry.name):
            self._at(match).mirror = entry
        return match is not None

    def _place_trajectory(self, entry: Entry) -> bool:
        if match := _TRAJECTORY_NAME.fullmatch(entry.name):
            self._at(match).trajectory = entry
        return match is not None

    def _place_bare(self, entry: Entry) -> bool:
        """By name alone: N.pt is a rollout file here. Only what looks like a dump counts as a stray."""
        return self._place_rollout(entry) or self._place_train(entry) or ".pt" not in entry.name

    def _at(self, match: re.Match[str]) -> StepFiles:
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
    """Every name in a folder. Raises DumpError when it is missing, no folder or can't be listed."""
    try:
        return set(past_stale(lambda: os.listdir(folder)))
    except FileNotFoundError:
        raise NothingYet(folder, "no such folder") from None
    except NotADirectoryError:
        raise DumpError(folder, "not a folder") from None
    except OSError as error:
        raise DumpError(folder, f"can't be listed: {error.strerror or error}") from error


def list_folder(folder: Path) -> list[Entry]:
    """The plain files of a folder by name, none when it is gone. A file that vanishes meanwhile is left out.

    Raises DumpError when it can't be listed.
    """
    try:
        found = past_stale(lambda: list(os.scandir(folder)))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise DumpError(folder, f"can't be listed: {error.strerror or error}") from error
    entries = (_entry(folder, one) for one in sorted(found, key=lambda one: one.name))
    return [entry for entry in entries if entry is not None]


def _entry(folder: Path, one: os.DirEntry[str]) -> Entry | None:
    try:
        if not one.is_file():
            return None
        stat = past_stale(one.stat)
    except OSError:  # gone between listing and stat
        return None
    return Entry(folder, one.name, stat.st_size, stat.st_mtime, stat.st_ino)


def past_stale(call: Callable[[], T]) -> T:
    """`call()`, and once more by path when a network file system answers that the file was replaced there (ESTALE)."""
    try:
        return call()
    except OSError as error:
        if error.errno != errno.ESTALE:
            raise
    return call()


# Reading --------------------------------------------------------------------------------------------------


def read_file(path: Path, read: Callable[[Path], T]) -> T:
    """`read(path)`, and once more when the file was replaced meanwhile.

    Raises its DumpError, or BeingWritten in place of one that tells of the damage a young file may show.
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
    """Whether a file may still be being written: less than YOUNG seconds old, or from a future no farther than SKEW."""
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

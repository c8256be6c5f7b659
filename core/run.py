"""A run folder: which steps there are and which files each has. Nothing is read but the folders."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from dumptui.core.errors import DumpError

_ROLLOUT = re.compile(r"(eval_)?(\d+)\.pt")
_SHARD = re.compile(r"(\d+)_(\d+)\.pt")
_MIRROR = re.compile(r"rollout_(eval_)?(\d+)\.parquet")
_TRAJECTORY = re.compile(r"(eval_)?(\d+)\.jsonl")


class StepKey(NamedTuple):
    """A train step or, with `evaluation`, an eval step; both may have the same number."""

    step: int
    evaluation: bool = False

    def __str__(self) -> str:
        return f"eval {self.step}" if self.evaluation else f"step {self.step}"


class Entry(NamedTuple):
    """A file and what its folder said of it when it was listed; times in seconds since the epoch."""

    path: Path
    size: int
    mtime: float
    inode: int


@dataclass
class StepFiles:
    """The files of one step. `shards` are (rank, file) by rank; the one file of the row-wise train format has rank None."""

    key: StepKey
    rollout: Entry | None = None
    shards: list[tuple[int | None, Entry]] = field(default_factory=list)
    mirror: Entry | None = None
    trajectory: Entry | None = None

    def entries(self) -> Iterator[Entry]:
        yield from (entry for entry in (self.rollout, self.mirror, self.trajectory) if entry is not None)
        yield from (entry for _, entry in self.shards)


@dataclass
class Run:
    """What one look at a run folder found: `steps` by number, an eval after the train step of its number."""

    root: Path
    steps: dict[StepKey, StepFiles]
    strays: list[Path]

    @classmethod
    def open(cls, root: str | os.PathLike[str]) -> Run:
        """List a `--dump-details` folder, or a bare folder of rollout or train files.

        Raises DumpError when it is missing, no folder, or holds no dump.
        """
        path = Path(root)
        if not path.exists():
            raise DumpError(path, "no such folder")
        if not path.is_dir():
            raise DumpError(path, "not a folder")
        run = cls(path, {}, [])
        run._list()
        if not run.steps:
            raise DumpError(path, "holds no dump: no rollout_data/N.pt or train_data/N_RANK.pt in it")
        run.steps = dict(sorted(run.steps.items()))
        for files in run.steps.values():
            files.shards.sort(key=lambda shard: (shard[0] is not None, shard[0] or 0))
        return run

    @property
    def tokenizer(self) -> Path:
        return self.root / "tokenizer" / "tokenizer.json"

    def _list(self) -> None:
        folders = [self.root / name for name in ("rollout_data", "train_data")]
        rollouts, trains = folders if any(one.is_dir() for one in folders) else (self.root, self.root)
        self._list_pt(rollouts, train=False, bare=rollouts == trains)
        if trains != rollouts:
            self._list_pt(trains, train=True, bare=False)
        for entry in list_folder(self.root / "dashboard_columns"):
            if match := _MIRROR.fullmatch(entry.path.name):
                self._at(match).mirror = entry
        for entry in list_folder(self.root / "trajectory"):
            if match := _TRAJECTORY.fullmatch(entry.path.name):
                self._at(match).trajectory = entry

    def _list_pt(self, folder: Path, *, train: bool, bare: bool) -> None:
        for entry in list_folder(folder):
            name = entry.path.name
            if (train or bare) and (match := _SHARD.fullmatch(name)):
                key = StepKey(int(match[1]))
                self.steps.setdefault(key, StepFiles(key)).shards.append((int(match[2]), entry))
            elif (match := _ROLLOUT.fullmatch(name)) and not (train and match[1]):
                if train:
                    self._at(match).shards.append((None, entry))
                else:
                    self._at(match).rollout = entry
            elif not bare or name.endswith(".pt"):
                self.strays.append(entry.path)

    def _at(self, match: re.Match[str]) -> StepFiles:
        key = StepKey(int(match[2]), match[1] is not None)
        return self.steps.setdefault(key, StepFiles(key))


def list_folder(folder: Path) -> Iterator[Entry]:
    """The plain files of a folder by name; nothing when it is missing. A file that vanishes meanwhile is left out."""
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise DumpError(folder, f"can't be listed: {error.strerror or error}") from error
    for one in entries:
        try:
            if one.is_file():
                stat = one.stat()
                yield Entry(Path(one.path), stat.st_size, stat.st_mtime, stat.st_ino)
        except OSError:  # gone, or replaced on a network file system, between listing and stat
            continue

"""The files of a step, as they were listed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

# A train step takes longer than this many seconds, and the clocks of two nodes differ by less.
CLOCK_TOLERANCE_SECONDS = 10.0


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


class FileRole(NamedTuple):
    """What a file is by its name; a train file without a rank in its name holds all ranks."""

    kind: Literal["rollout", "shard", "mirror", "trajectory"]
    key: StepKey
    rank: int | None = None


@dataclass
class StepFiles:
    """The files of one step, as `format` writes them: `core/formats` has a folder of this name.

    `shards` are (rank, file) by rank; a file without a rank in its name has rank None.
    """

    key: StepKey
    format: str
    rollout: Entry | None = None
    shards: list[tuple[int | None, Entry]] = field(default_factory=list)
    mirror: Entry | None = None
    trajectory: Entry | None = None

    def add(self, entry: Entry, role: FileRole) -> None:
        if role.kind == "shard":
            self.shards.append((role.rank, entry))
        else:
            setattr(self, role.kind, entry)

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
        return any(self._is_older(entry) for _, entry in self.shards)

    @property
    def mirror_outdated(self) -> bool:
        """Whether the mirror is older than the rollout file; the cause is one of the same two."""
        return self.mirror is not None and self._is_older(self.mirror)

    def _is_older(self, entry: Entry) -> bool:
        return self.rollout is not None and entry.mtime < self.rollout.mtime - CLOCK_TOLERANCE_SECONDS

"""The frameworks whose dumps are read: each is a folder beside this file and a name in FORMATS.

Such a folder has two modules. `layout` says what the files of a run are, by their names; the first screen waits for it,
so it imports nothing large. `readers` reads the files.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias, cast

from dumptui.core.files.step_files import FileRole, StepFiles

if TYPE_CHECKING:
    from dumptui.core.formats.sample import Rollout, Sample
    from dumptui.core.formats.shard import Shard
    from dumptui.core.formats.sidecar import Sidecar
    from dumptui.core.ptfile.file import OnRead

FORMATS = ("miles",)
"""Of several that fit a folder, the first one reads it."""

RoleOf: TypeAlias = Callable[[str], FileRole | None]
"""What a file of this name is; None where the format has no such file."""


class Layout(Protocol):
    """Where a framework writes the files of a step."""

    @property
    def FOLDERS(self) -> Mapping[str, RoleOf]:
        """The sub-folders of a run."""

    @property
    def RUN_FOLDERS(self) -> frozenset[str]:
        """Of these sub-folders, those that only a run has."""

    @property
    def WITHOUT_STEPS(self) -> str:
        """What is wrong with a folder that has none of its files."""

    @property
    def LEFTOVER_PREFIX(self) -> str:
        """How the names of folders begin that hold the files of an earlier attempt."""

    def bare_role(self, name: str) -> FileRole | None:
        """Return what a file is in a folder without sub-folders."""

    def is_stray(self, name: str) -> bool:
        """Whether an unrecognised file of such a folder may have been meant for a dump."""


class MirrorRow(NamedTuple):
    """A row of a mirror: Sample.index, null where it has none, and the lengths in tokens."""

    sample_index: int | None
    response_length: int | None
    total_length: int | None


class Readers(Protocol):
    """How the files of a framework are read. Every function raises DumpError for a file that can't be."""

    def read_rollout(self, path: Path, step: int, evaluation: bool, on_read: OnRead | None = None) -> Rollout: ...

    def read_shards(self, path: Path, step: int, rank: int | None, on_read: OnRead | None = None) -> list[Shard]:
        """Return the shards of a train file: one, or one for each data-parallel rank that it holds."""

    def samples_of_rows(self, shards: Sequence[Shard], file_bytes: int) -> list[Sample]:
        """Return train rows as samples, in the rollout file's order as far as it is known."""

    def mirror_index(self, path: Path) -> Sequence[MirrorRow]:
        """Return the rows of a mirror, which holds tokens, masks and engine log-probs, in the rollout file's order."""

    def read_mirror(self, path: Path, rows: Sequence[int] | None = None) -> list[Sample]:
        """Return the samples at `rows`, all by default, without what the mirror lacks."""

    def open_sidecar(self, path: Path) -> Sidecar: ...

    def sidecar_faults(self, path: Path) -> Sequence[str]:
        """Return what is wrong with a file of conversations as a whole."""


def layouts() -> Mapping[str, Layout]:
    return {name: cast(Layout, import_module(f"dumptui.core.formats.{name}.layout")) for name in FORMATS}


def format_of(names: Collection[str]) -> str:
    """Return the format of a run by the names in its folder; the first format where none of them says it."""
    fitting = (name for name, layout in layouts().items() if not layout.FOLDERS.keys().isdisjoint(names))
    return next(fitting, FORMATS[0])


def is_run(names: Collection[str]) -> bool:
    """Whether a folder with these sub-folders is a run."""
    return any(not layout.RUN_FOLDERS.isdisjoint(names) for layout in layouts().values())


def readers_of(files: StepFiles) -> Readers:
    return cast(Readers, import_module(f"dumptui.core.formats.{files.format}.readers"))

"""A run folder: its steps and their files, by the names in its sub-folders; no file is read."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from dumptui.core.errors import DumpError, NothingYet
from dumptui.core.files.listing import list_folder, list_names
from dumptui.core.files.step_files import Entry, StepFiles, StepKey
from dumptui.core.formats.format import RoleOf, format_of, layouts
from dumptui.core.run.attempts import earlier_steps


@dataclass
class Run:
    """A listing of a run folder, whose files are as `format` writes them.

    `steps` are by number, an eval after the train step with the same number. `strays` are unrecognised files,
    `leftovers` folders that earlier attempts moved away, `problems` the sub-folders that can't be listed. `earlier` are
    the steps of an earlier attempt that the present one has not reached yet.
    """

    root: Path
    format: str = ""  # before anything is listed
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
        root = Path(root)
        names = list_names(root)
        run = cls(root, format_of(names))
        layout = layouts()[run.format]
        if layout.FOLDERS.keys().isdisjoint(names):
            run._list(root, layout.bare_role, layout.is_stray, entries or list_folder)
        for folder, role_of in layout.FOLDERS.items():
            run._list(root / folder, role_of, lambda _: True, entries or list_folder)
        if not run.steps:
            raise next(iter(run.problems), None) or NothingYet(root, layout.WITHOUT_STEPS)
        run.leftovers = [root / name for name in sorted(names) if name.startswith(layout.LEFTOVER_PREFIX)]
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

    def _list(
        self,
        folder: Path,
        role_of: RoleOf,
        is_stray: Callable[[str], bool],
        entries: Callable[[Path], list[Entry]],
    ) -> None:
        """Add the files of a folder to their steps."""
        try:
            listed = entries(folder)
        except DumpError as error:
            self.problems.append(error)
            return
        for entry in listed:
            role = role_of(entry.name)
            if role is not None:
                self._files(role.key).add(entry, role)
            elif is_stray(entry.name):
                self.strays.append(entry.path)

    def _sort(self) -> None:
        self.steps = dict(sorted(self.steps.items()))
        self.earlier = earlier_steps(self.steps)
        self.strays.sort()
        for files in self.steps.values():
            files.shards.sort(key=lambda shard: (shard[0] is not None, shard[0] or 0))

    def _files(self, key: StepKey) -> StepFiles:
        files = self.steps.get(key)
        if files is None:
            files = self.steps[key] = StepFiles(key, self.format)
        return files


def tokenizer_of(root: Path) -> Path:
    return root / "tokenizer" / "tokenizer.json"

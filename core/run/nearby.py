"""What a path that is no run folder may have been meant for: the run that it lies in, or the runs that lie in it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from dumptui.core.errors import DumpError
from dumptui.core.run.run import Run, StepKey
from dumptui.core.text import listed

RUN_FOLDERS = frozenset(("rollout_data", "train_data"))
"""What makes a folder a run, seen from outside."""
MAX_LEVELS_UP = 3  # folders from a path up to the run it lies in: RUN/dashboard/phases/HOUR.jsonl
MAX_LEVELS_DOWN = 2  # and down to the runs that lie in it
MOST_FOLDERS = 200  # looked into at most: a file server takes a millisecond for each


def with_suggestion(error: DumpError, root: Path) -> DumpError:
    """The reason why `root` can't be opened, and what to give in its place where that is known."""
    found = suggestion(root)
    return error if found is None else DumpError(error.path, f"{error.problem}; {found}")


def suggestion(path: Path) -> str | None:
    return _within(path) or _inside(path)


def _within(path: Path) -> str | None:
    """Of a file or folder of a run, how that run is opened, at its step where it is of one."""
    above = path.parents[:MAX_LEVELS_UP] if path.exists() else ()
    for folder in reversed(above):  # a folder of a run can be opened too, but shows a part of it
        try:
            run = Run.open(folder)
        except DumpError:
            continue
        key = _step_of(run, path)
        if key is not None:
            return (
                f"to see {key}: dumptui {shlex.quote(str(folder))} --{'eval' if key.evaluation else 'step'} {key.step}"
            )
        if not RUN_FOLDERS.isdisjoint(_names(folder)):
            return f"to see the run it lies in: dumptui {shlex.quote(str(folder))}"
    return None


def _step_of(run: Run, path: Path) -> StepKey | None:
    steps = run.steps.values()
    return next((files.key for files in steps if any(entry.path == path for entry in files.entries())), None)


def _inside(path: Path) -> str | None:
    """Of a folder that holds runs, which they are."""
    for depth in range(1, MAX_LEVELS_DOWN + 1):
        folders = islice(_folders(path, depth), MOST_FOLDERS)
        runs = [folder for folder in folders if not RUN_FOLDERS.isdisjoint(_names(folder))]
        if len(runs) == 1:
            return f"it holds a run: dumptui {shlex.quote(str(runs[0]))}"
        if runs:
            return f"it holds {len(runs)} runs: give one of {listed([str(run.relative_to(path)) for run in runs])}"
    return None


def _folders(path: Path, depth: int) -> Iterator[Path]:
    for name in sorted(_names(path)):
        folder = path / name
        if folder.is_dir() and not name.startswith("."):
            yield from _folders(folder, depth - 1) if depth > 1 else (folder,)


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []

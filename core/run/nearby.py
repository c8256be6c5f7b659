"""Suggestions for a path that is not a run folder: the run that contains it, or the runs in it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from dumptui.core.errors import DumpError
from dumptui.core.files.step_files import StepKey
from dumptui.core.formats.format import is_run
from dumptui.core.run.run import Run
from dumptui.core.text import listed

MAX_LEVELS_UP = 3  # folders from a path up to its run: RUN/dashboard/phases/HOUR.jsonl
MAX_LEVELS_DOWN = 2  # folders from a path down to the runs in it
MOST_FOLDERS = 200  # folders that are listed at most: a file server takes a millisecond for each


def with_suggestion(error: DumpError, root: Path) -> DumpError:
    """Return an error that also names the path to open instead of `root`; the same error where none is known."""
    hint = suggestion(root)
    return error if hint is None else DumpError(error.path, f"{error.problem}; {hint}")


def suggestion(path: Path) -> str | None:
    return _within(path) or _inside(path)


def _within(path: Path) -> str | None:
    """Return how to open the run of a file or folder, at its step if it belongs to one; None outside of a run."""
    above = path.parents[:MAX_LEVELS_UP] if path.exists() else ()
    for folder in reversed(above):  # a sub-folder of a run can be opened too, but shows only a part of it
        try:
            run = Run.open(folder)
        except DumpError:
            continue
        key = _step_of(run, path)
        if key is not None:
            return (
                f"to open {key}: dumptui {shlex.quote(str(folder))} --{'eval' if key.evaluation else 'step'} {key.step}"
            )
        if is_run(_names(folder)):
            return f"to open its run: dumptui {shlex.quote(str(folder))}"
    return None


def _step_of(run: Run, path: Path) -> StepKey | None:
    steps = run.steps.values()
    return next((files.key for files in steps if any(entry.path == path for entry in files.entries())), None)


def _inside(path: Path) -> str | None:
    """Return which runs are in a folder; None without any."""
    for depth in range(1, MAX_LEVELS_DOWN + 1):
        folders = islice(_folders(path, depth), MOST_FOLDERS)
        runs = [folder for folder in folders if is_run(_names(folder))]
        if len(runs) == 1:
            return f"it contains a run: dumptui {shlex.quote(str(runs[0]))}"
        if runs:
            return f"it contains {len(runs)} runs: open one of {listed([str(run.relative_to(path)) for run in runs])}"
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

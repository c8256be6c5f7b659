"""A growing run that is polled: the only place that lists, reads and remembers, under a single lock.

Listing, stat, offset, read, parse and append are one transaction: two readers that start from one stale offset would
append the same records twice. The screen never takes this lock; only its reader thread calls this module.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, TypeVar

from dumptui.core.errors import BeingWritten, DumpError, NoDump, unexpected
from dumptui.core.files.listing import list_names
from dumptui.core.files.step_files import Entry, StepKey
from dumptui.core.ptfile.file import OnRead
from dumptui.core.run.polling import Folders
from dumptui.core.run.run import Run
from dumptui.core.step.load import load
from dumptui.core.step.step import Step
from dumptui.core.telemetry.logs import signature
from dumptui.core.telemetry.telemetry import Telemetry

T = TypeVar("T")

# Seconds between two tries to read a file that the file system refused, other than for its permissions.
RETRY_SECONDS = 30.0
# An unreadable file counts as being written for this many seconds, by our own clock, after it last changed.
PATIENCE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class PollResult:
    """The changes that a poll found.

    `changed` are the steps whose files are new, changed, or readable again; `waiting` those that were being written
    when they were last tried; `gone` have no files any more. `streams` names the telemetry that has grown. `problem` is
    why a folder can't be listed, whose earlier listing is used.
    """

    run: Run
    changed: tuple[StepKey, ...] = ()
    waiting: tuple[StepKey, ...] = ()
    gone: tuple[StepKey, ...] = ()
    streams: frozenset[str] = frozenset()
    problem: DumpError | None = None

    @property
    def anything(self) -> bool:
        return bool(self.changed or self.waiting or self.gone or self.streams or self.problem)


class Refusal(NamedTuple):
    """The files of a step that the file system refused, with their access at that time, and when to try again."""

    files: dict[str, object]
    due: float

    def differs(self) -> bool:
        return any(access_of(path) != before for path, before in self.files.items())


def access_of(path: str | Path) -> object:
    """Return a value that changes with the permissions of a file and of its parent folders."""
    try:
        status = os.stat(path)
    except OSError as error:
        return error.errno
    return status.st_mode, status.st_ctime_ns, os.access(path, os.R_OK)


def file_state(path: str | Path) -> object:
    """Return a value that changes when a file is written, appears, goes, or can or can't be opened any more."""
    return access_of(path), signature(Path(path))


class Follow:
    """A polled run. Every method may be called from any thread, and holds the lock while it reads."""

    def __init__(self, root: str | Path, now: Callable[[], float] = time.monotonic, *, run: Run | None = None) -> None:
        """`run` is an earlier listing of the folder: the first poll reports only what differs from it."""
        self._lock = threading.Lock()
        self._now = now
        self._run = Run(Path(root))
        self._folders = Folders(now)
        self._names: set[str] = set()
        self._listed: Run | None = None
        self._newest = self._newest_record = 0.0
        self._seen: dict[StepKey, tuple[Entry, ...]] = {}
        self._changed_at: dict[StepKey, float] = {}
        self._grown: set[StepKey] = set()
        self._unfinished: set[StepKey] = set()
        self._refused: dict[StepKey, Refusal] = {}
        self._telemetry = Telemetry(root)
        if run is not None:
            self._compare(run)
            self._run = run

    def look(self) -> PollResult:
        """List the run and its streams again. Never raises, whatever happens to the folder."""
        with self._lock:
            streams, problem = self._poll()
            try:
                run = self._list()
            except DumpError as error:
                return PollResult(self._run, streams=streams, problem=error)
            changed, gone = self._compare(run) if run is not self._run else ((), ())
            changed = (*changed, *self._healed(run, frozenset(changed)))
            self._run = run
            waiting = tuple(key for key in sorted(self._unfinished) if key not in changed)
            return PollResult(run, changed, waiting, gone, streams, self._folders.problem or problem)

    def _poll(self) -> tuple[frozenset[str], DumpError | None]:
        """Poll telemetry; an unexpected error is returned as a problem, so that the steps are still followed."""
        try:
            streams = frozenset(self._telemetry.poll())
            self._newest_record = self._telemetry.newest() or 0.0
            return streams, None
        except Exception as error:
            return frozenset(), DumpError(self._run.root / "dashboard", f"can't be followed: {unexpected(error)}")

    def load(self, key: StepKey, on_read: OnRead | None = None) -> Step:
        """Load a step of the last poll.

        An unreadable file is BeingWritten until PATIENCE_SECONDS after the last change of the step's files, then a
        plain DumpError. Raises either if it is the file with the samples.
        """
        with self._lock:
            files = self._run.steps.get(key)
            if files is None:
                raise DumpError(self._run.root, f"{key} no longer exists")
            self._unfinished.discard(key)
            try:
                step = load(files, on_read)
            except DumpError as error:
                self._remember_refused(key, [error])
                raise self._of_its_age(key, error) from error
            self._remember_refused(key, [*step.broken, *([step.rollout_problem] if step.rollout_problem else [])])
            return replace(step, broken=tuple(self._of_its_age(key, error) for error in step.broken))

    def newest(self) -> float:
        """Return the time of the newest file or record that a poll found, in seconds since the epoch."""
        with self._lock:
            return max(self._newest, self._newest_record)

    def with_telemetry(self, ask: Callable[[Telemetry], T]) -> T:
        """Return `ask(streams)`; `ask` must not keep the streams."""
        with self._lock:
            return ask(self._telemetry)

    def _list(self) -> Run:
        """Return the present listing of the run, the same object as long as nothing changed. Raises DumpError."""
        names = list_names(self._run.root)
        if self._folders.look() or names != self._names:
            self._listed = None
        self._names = names
        if self._listed is None:
            self._listed = Run.open(self._run.root, self._folders.list)
            self._listed.problems = list(self._folders.problems())
        return self._listed

    def _compare(self, run: Run) -> tuple[tuple[StepKey, ...], tuple[StepKey, ...]]:
        now = self._now()
        seen = {key: tuple(files.entries()) for key, files in run.steps.items()}
        self._newest = max((entry.mtime for entries in seen.values() for entry in entries), default=0.0)
        changed = tuple(key for key, entries in seen.items() if self._seen.get(key) != entries)
        if self._seen:
            self._grown.update(changed)
        gone = tuple(key for key in self._seen if key not in seen)
        self._changed_at.update(dict.fromkeys(changed, now))
        for key in gone:
            del self._changed_at[key]
        self._unfinished -= set(gone)
        self._seen = seen
        return changed, gone

    def _remember_refused(self, key: StepKey, errors: Iterable[DumpError]) -> None:
        """Remember files that the file system refused: a permission or server may recover without a file change."""
        refused = [error for error in errors if isinstance(error.__cause__, OSError)]
        self._refused.pop(key, None)
        if refused:
            denied = all(isinstance(error.__cause__, (PermissionError, FileNotFoundError)) for error in refused)
            due = math.inf if denied else self._now() + RETRY_SECONDS
            self._refused[key] = Refusal({error.path: access_of(error.path) for error in refused}, due)

    def _healed(self, run: Run, changed: frozenset[StepKey]) -> list[StepKey]:
        """Return the steps with a refused file that is worth another try, and forget the refusals."""
        now = self._now()
        healed = [key for key, refusal in self._refused.items() if now >= refusal.due or refusal.differs()]
        for key in healed:
            del self._refused[key]
        return [key for key in healed if key in run.steps and key not in changed]

    def _of_its_age(self, key: StepKey, error: DumpError) -> DumpError:
        """Return the error, as BeingWritten while the step may still be changing, by our clock, not the writer's.

        What the file system refuses is not being written: the reason is stated at once.
        """
        if isinstance(error, NoDump) or isinstance(error.__cause__, OSError):
            return error
        unfinished = isinstance(error, BeingWritten)
        if self._now() - self._changed_at[key] < PATIENCE_SECONDS and (unfinished or key in self._grown):
            self._unfinished.add(key)
            return error if unfinished else BeingWritten(error.path)
        return DumpError(error.path, "is incomplete and no longer being written") if unfinished else error

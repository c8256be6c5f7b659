"""Reading a file that may be replaced or still be written."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from dumptui.core.errors import BeingWritten, DumpError, NoDump

T = TypeVar("T")

# The trainer writes files in place, so an unreadable file may be half written until it is this many seconds old.
YOUNG_SECONDS = 60.0
# A file server's clock may be ahead of ours, but not by more than the 5 minutes that Kerberos allows.
CLOCK_SKEW_SECONDS = 300.0


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

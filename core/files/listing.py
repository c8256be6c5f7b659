"""Listing a folder, also on a network file system whose files are replaced meanwhile."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from dumptui.core.errors import DumpError, NothingYet
from dumptui.core.files.step_files import READ_BITS, Entry

T = TypeVar("T")


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

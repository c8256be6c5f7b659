"""A cache of summaries between starts, outside the run: results computed from files that have not changed since."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dumptui.core.files.step_files import Entry
from dumptui.core.ptfile.snapshot import read_bounded
from dumptui.core.store.code_stamp import code_stamp
from dumptui.core.store.xdg import inside, own_folder, replace_file, xdg_folder

MAX_FILE_BYTES = 64 << 20  # bytes of one file that is read
MAX_CACHE_BYTES = 256 << 20  # bytes of all files; those unused for longest are deleted first


def cache_folder() -> Path | None:
    """Return $XDG_CACHE_HOME/dumptui, by default ~/.cache/dumptui; None for a user without a home."""
    return xdg_folder("XDG_CACHE_HOME", ".cache")


def fingerprint(entries: Iterable[Entry], *more: object) -> str:
    """Return a text that changes with name, size, time, inode or read bits of a source file, the code and `more`."""
    sources = "\n".join(f"{e.name} {e.size} {e.mtime} {e.inode} {e.readable}" for e in entries)
    return hashlib.blake2b(
        f"{code_stamp()} {more}\n{sources}".encode("utf-8", "surrogateescape"), digest_size=16
    ).hexdigest()


class Cache:
    """Cached JSON documents of one run by name, each with the fingerprint of its source files.

    If its folder can't be written, or is in the run, nothing is cached and nothing is reported: summaries are computed
    again. So are those in a damaged file, by its checksum. Files are replaced as a whole by rename, so two dumptui at
    once at worst lose each other's newest summaries.
    """

    def __init__(self, root: Path, folder: Path | None) -> None:
        """`folder` holds the caches of all runs; None to cache nothing."""
        name = hashlib.blake2b(os.fsencode(root.resolve()), digest_size=12).hexdigest()
        if folder is not None and inside(folder, root):  # dumptui never writes into a run
            folder = None
        self._all = folder
        self._folder = None if folder is None else folder / name

    def load(self, name: str) -> dict[str, Any]:
        """Return the document cached under `name`; empty when there is none that can be read."""
        if self._folder is None:
            return {}
        path = self._folder / f"{name}.json"
        try:
            checksum, _, text = read_bounded(path, MAX_FILE_BYTES).partition(b"\n")
            document = json.loads(text) if int(checksum) == zlib.crc32(text) else None
        except (OSError, ValueError, RecursionError):
            return {}
        with contextlib.suppress(OSError):
            os.utime(path)  # used now, so trimmed last
        return document if isinstance(document, dict) else {}

    def store(self, name: str, document: dict[str, Any]) -> None:
        if self._all is None or self._folder is None:
            return
        with contextlib.suppress(OSError):
            for folder in (self._all, self._folder):
                own_folder(folder)
            text = json.dumps(document, separators=(",", ":"))  # in C; dump() takes three times as long
            replace_file(self._folder / f"{name}.json", f"{zlib.crc32(text.encode())}\n{text}")
            self._trim()

    def _trim(self) -> None:
        assert self._all is not None
        files = []
        for path in self._all.glob("*/*"):
            with contextlib.suppress(OSError):
                stat = path.stat()
                files.append((stat.st_mtime, stat.st_size, path))
        excess = sum(size for _, size, _ in files) - MAX_CACHE_BYTES
        for _, size, path in sorted(files):
            if excess <= 0:
                break
            with contextlib.suppress(OSError):
                path.unlink()
                excess -= size

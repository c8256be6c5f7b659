"""Summaries kept between starts, outside the run: what was worked out of files that have not changed since."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dumptui.core.ptfile.snapshot import read_bounded
from dumptui.core.run.run import Entry
from dumptui.core.store.code_stamp import code_stamp
from dumptui.core.store.xdg import inside, own_folder, replace_file, xdg_folder

MAX_FILE_BYTES = 64 << 20  # bytes of one file that is read
MAX_CACHE_BYTES = 256 << 20  # bytes of all that is kept; the longest unused goes first


def cache_folder() -> Path | None:
    """$XDG_CACHE_HOME/dumptui, by default ~/.cache/dumptui."""
    return xdg_folder("XDG_CACHE_HOME", ".cache")


def fingerprint(entries: Iterable[Entry], *more: object) -> str:
    """Changes with the name, size, time or inode of any source, with the code, and with `more` that the summary depends
    on.
    """
    said = "\n".join(f"{e.name} {e.size} {e.mtime} {e.inode}" for e in entries)
    return hashlib.blake2b(
        f"{code_stamp()} {more}\n{said}".encode("utf-8", "surrogateescape"), digest_size=16
    ).hexdigest()


class Cache:
    """JSON documents of one run by name, each with the fingerprint of what it was made from.

    A folder that can't be written, or lies in the run, keeps nothing and says nothing: a summary that is not kept is
    worked out again. So is one in a file that is damaged or another's, which its checksum tells. Files are replaced
    whole by rename, so two dumptui at once at worst lose each other's newest summaries.
    """

    def __init__(self, root: Path, folder: Path | None) -> None:
        """`folder` is where all runs are kept, None to keep nothing."""
        name = hashlib.blake2b(os.fsencode(root.resolve()), digest_size=12).hexdigest()
        if folder is not None and inside(folder, root):  # which is never written into
            folder = None
        self._all = folder
        self._folder = None if folder is None else folder / name

    def load(self, name: str) -> dict[str, Any]:
        """What was kept under `name`; empty when there is nothing that can be read."""
        if self._folder is None:
            return {}
        path = self._folder / f"{name}.json"
        try:
            checksum, _, text = read_bounded(path, MAX_FILE_BYTES).partition(b"\n")
            kept = json.loads(text) if int(checksum) == zlib.crc32(text) else None
        except (OSError, ValueError, RecursionError):
            return {}
        with contextlib.suppress(OSError):
            os.utime(path)  # used now: trimmed last
        return kept if isinstance(kept, dict) else {}

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

"""A file as it was when it was opened: reads either give bytes of that state or say that it is gone.

Never mapped: a run that resumes truncates files under a reader, and touching a mapped page that is gone kills
the process (SIGBUS), while `pread` just comes back short.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from dumptui.core.errors import DumpError

Stamp = tuple[int, int, int]
"""Inode, size in bytes, mtime in nanoseconds."""

_SMALL = 256 << 10  # kept in memory: one read for all of it instead of two a tensor


class Truncated(DumpError):
    """The file ends too early: it is empty, cut, or still being written."""


class Snapshot:
    """Raises DumpError when the file can't be opened, and from any method when it has changed since."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._lock = threading.Lock()
        self._readers = 0
        self._descriptor, self.stamp = _open(self.path)
        self._bytes: bytes | None = None
        try:
            if self.size <= _SMALL:
                self._bytes = self.read(0, self.size)
        finally:
            os.close(self._descriptor)

    @property
    def size(self) -> int:
        return self.stamp[1]

    @property
    def resident(self) -> bytes | None:
        """The whole of a small file."""
        return self._bytes

    @contextmanager
    def reading(self) -> Iterator[None]:
        """One descriptor for all reads inside; may be nested, and entered by several threads."""
        if self._bytes is not None:
            yield
            return
        with self._lock:
            if self._readers == 0:
                self._descriptor = self._reopened()
            self._readers += 1
        try:
            yield
        finally:
            with self._lock:
                self._readers -= 1
                if self._readers == 0:
                    os.close(self._descriptor)

    def read(self, start: int, length: int) -> bytes:
        """Exactly these bytes; only inside `reading()`. Raises Truncated past the end."""
        if self._bytes is not None:
            data = self._bytes[start : start + length]
        else:
            try:
                data = self._pread(start, length)
            except OSError as error:
                raise DumpError(self.path, f"can't be read: {_reason(error)}") from error
            if _stamp(os.fstat(self._descriptor)) != self.stamp:
                raise self._changed()
        if len(data) < length:
            raise Truncated(self.path, f"ends {length - len(data)} bytes before it should")
        return data

    def _pread(self, start: int, length: int) -> bytes:
        data = os.pread(self._descriptor, length, start)
        if len(data) == length:
            return data
        pieces = [data]  # the kernel gives at most 2 GiB a call
        while data and (missing := length - sum(map(len, pieces))):
            data = os.pread(self._descriptor, missing, start + length - missing)
            pieces.append(data)
        return b"".join(pieces)

    def _reopened(self) -> int:
        descriptor, stamp = _open(self.path)
        if stamp != self.stamp:
            os.close(descriptor)
            raise self._changed()
        return descriptor

    def _changed(self) -> DumpError:
        return DumpError(self.path, "changed while it was being read")


def read_bounded(path: str | os.PathLike[str], limit: int) -> bytes:
    """A whole file of at most `limit` bytes. Raises DumpError, also for what is no file: a pipe is not waited for."""
    descriptor, (_, size, _) = _open(os.fspath(path))
    with open(descriptor, "rb") as file:
        if size > limit:
            raise DumpError(path, f"can't be read: it has {size:,} bytes, more than {limit >> 20} MiB")
        try:
            return file.read(limit)
        except OSError as error:
            raise DumpError(path, f"can't be read: {_reason(error)}") from error


def _open(path: str) -> tuple[int, Stamp]:
    try:
        # Without O_NONBLOCK, opening a named pipe waits for a writer for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise DumpError(path, f"can't be opened: {_reason(error)}") from error
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise DumpError(path, "is not a file")
    return descriptor, _stamp(status)


def _stamp(status: os.stat_result) -> Stamp:
    return status.st_ino, status.st_size, status.st_mtime_ns


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__

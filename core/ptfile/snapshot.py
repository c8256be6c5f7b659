"""A file as it was when it was opened: a read returns bytes of that state, or raises if the file has changed.

Files are never mapped: a resumed run truncates files during a read, and touching a mapped page that is gone kills the
process (SIGBUS), while `pread` only returns fewer bytes.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from dumptui.core.errors import DumpError

Stamp = tuple[int, int, int]
"""Inode, size in bytes, mtime in nanoseconds."""

_WORTH_LOOKING = 64 << 20
_MOST_HOLLOW = 64  # a file system that compresses makes holes of zeros
_MOST_EXTENTS = 64
_SMALL_FILE_BYTES = 256 << 10  # a smaller file is kept in memory: one read instead of two per tensor


class Truncated(DumpError):
    """A file that ends too early: it is empty, truncated, or still being written."""


class NotAFile(OSError):
    """A folder, named pipe or device in place of a file."""


class TooLarge(OSError):
    """A file that is larger than the limit for reading all of it."""


class Snapshot:
    """A file in the state in which it was opened.

    Raises DumpError when it can't be opened, and from any method when it has changed since.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._lock = threading.Lock()
        self._readers = 0
        self._descriptor, self.stamp = _open(self.path)
        self._bytes: bytes | None = None
        try:
            if self.size <= _SMALL_FILE_BYTES:
                self._bytes = self.read(0, self.size)
        finally:
            os.close(self._descriptor)

    @property
    def size(self) -> int:
        return self.stamp[1]

    @property
    def resident(self) -> bytes | None:
        """All bytes of a small file; None of a larger one."""
        return self._bytes

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Keep one descriptor open for all reads inside; may be nested, and entered by several threads."""
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
        """Return exactly these bytes; call it inside `reading()`. Raises Truncated past the end of the file."""
        if self._bytes is not None:
            data = self._bytes[start : start + length]
        else:
            self.check_written(start, length)
            try:
                data = self._pread(start, length)
            except OSError as error:
                raise DumpError(self.path, f"can't be read: {_reason(error)}") from error
            if _stamp(os.fstat(self._descriptor)) != self.stamp:
                raise self._changed()
        if len(data) < length:
            raise Truncated(self.path, f"ends {length - len(data)} bytes too early")
        return data

    def check_written(self, start: int, length: int) -> None:
        """Raises DumpError for a long piece that is a hole: it takes no room on the disk, but as much memory."""
        if length >= _WORTH_LOOKING and written(self._descriptor, start, start + length) < length // _MOST_HOLLOW:
            raise DumpError(self.path, f"is hollow: of {length:,} bytes hardly any were ever written")

    def _pread(self, start: int, length: int) -> bytes:
        data = os.pread(self._descriptor, length, start)
        if len(data) == length:
            return data
        pieces = [data]  # the kernel returns at most 2 GiB per call
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


def open_file(path: str | os.PathLike[str], buffering: int = -1) -> BinaryIO:
    """Open a file for reading bytes. Raises OSError, and NotAFile for a pipe or device without waiting for it."""
    return open(open_descriptor(path), "rb", buffering)


def open_descriptor(path: str | os.PathLike[str]) -> int:
    # Without O_NONBLOCK, opening a named pipe waits for a writer for ever.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotAFile(errno.EINVAL, "is not a file")
    return descriptor


def read_bounded(path: str | os.PathLike[str], limit: int) -> bytes:
    """Return all bytes of a file. Raises OSError, and TooLarge for more than `limit` bytes."""
    with open_file(path) as file:
        if os.fstat(file.fileno()).st_size > limit:
            raise TooLarge(errno.EFBIG, f"it has more than {limit >> 20} MiB")
        return file.read(limit)


def skip_hole(file: BinaryIO, start: int) -> int:
    """Return the position of the next written bytes from `start` on, or the end of the file.

    Reading the holes of a sparse file of a terabyte would take minutes.
    """
    try:
        return os.lseek(file.fileno(), start, os.SEEK_DATA)
    except OSError as error:
        return os.fstat(file.fileno()).st_size if error.errno == errno.ENXIO else start


def written(descriptor: int, at: int, end: int) -> int:
    """How many bytes of a piece of a file are no holes: all where the file system doesn't say, or has many pieces."""
    whole, found = end - at, 0
    try:
        for _ in range(_MOST_EXTENTS):
            start = min(end, os.lseek(descriptor, at, os.SEEK_DATA))
            at = os.lseek(descriptor, start, os.SEEK_HOLE)
            found += min(end, at) - start
            if at >= end:
                return found
    except OSError as error:
        return found if error.errno == errno.ENXIO else whole  # no data behind `at`
    return whole


def _open(path: str) -> tuple[int, Stamp]:
    try:
        descriptor = open_descriptor(path)
    except NotAFile as error:
        raise DumpError(path, _reason(error)) from error
    except OSError as error:
        raise DumpError(path, f"can't be opened: {_reason(error)}") from error
    return descriptor, _stamp(os.fstat(descriptor))


def _stamp(status: os.stat_result) -> Stamp:
    return status.st_ino, status.st_size, status.st_mtime_ns


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__

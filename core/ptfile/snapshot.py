"""A file as it was when it was opened: reads either give bytes of that state or say that it is gone.

Never mapped: a run that resumes truncates files under a reader, and touching a mapped page that is gone kills
the process (SIGBUS), while `pread` just comes back short.
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
_SMALL_FILE_BYTES = 256 << 10  # kept in memory: one read for all of it instead of two a tensor


class Truncated(DumpError):
    """The file ends too early: it is empty, cut, or still being written."""


class NotAFile(OSError):
    """A folder, a named pipe or a device."""


class TooLarge(OSError):
    """A file that is not what its name says, or not to be read whole."""


class Snapshot:
    """Raises DumpError when the file can't be opened, and from any method when it has changed since."""

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


def open_file(path: str | os.PathLike[str], buffering: int = -1) -> BinaryIO:
    """For reading bytes. Raises OSError, NotAFile of it for a pipe or a device: neither is waited for."""
    return open(open_descriptor(path), "rb", buffering)


def open_descriptor(path: str | os.PathLike[str]) -> int:
    # Without O_NONBLOCK, opening a named pipe waits for a writer for ever.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotAFile(errno.EINVAL, "is not a file")
    return descriptor


def read_bounded(path: str | os.PathLike[str], limit: int) -> bytes:
    """A whole file of at most `limit` bytes. Raises OSError, TooLarge of it for a larger one."""
    with open_file(path) as file:
        if os.fstat(file.fileno()).st_size > limit:
            raise TooLarge(errno.EFBIG, f"it has more than {limit >> 20} MiB")
        return file.read(limit)


def skip_hole(file: BinaryIO, at: int) -> int:
    """Where the next bytes after `at` lie that were written, the end of the file where none do: a sparse file of a
    terabyte takes minutes to read.
    """
    try:
        return os.lseek(file.fileno(), at, os.SEEK_DATA)
    except OSError as error:
        return os.fstat(file.fileno()).st_size if error.errno == errno.ENXIO else at


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

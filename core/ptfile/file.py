"""A .pt file, read without torch: its structure at once, the values of a tensor when they are needed."""

from __future__ import annotations

import os
import pickle
import zlib
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dumptui.core.errors import DumpError, TooLittleMemory
from dumptui.core.process.isolated_reader import read_isolated
from dumptui.core.process.memory_limit import may_grow, memory_ceiling
from dumptui.core.process.resources import WORTH_ASKING, can_hold, memory_left
from dumptui.core.ptfile.legacy_format import is_legacy, load_with_torch
from dumptui.core.ptfile.number_lists import cut_number_runs
from dumptui.core.ptfile.pickle_stream import OnRead, PickleFeed, feed_bytes
from dumptui.core.ptfile.placeholder import Placeholder
from dumptui.core.ptfile.snapshot import Snapshot, Stamp, Truncated
from dumptui.core.ptfile.storages import Storages
from dumptui.core.ptfile.tensor import Array, Tensor, most_values
from dumptui.core.ptfile.unpickler import Unpickler
from dumptui.core.ptfile.zip_directory import LOCAL_SIGNATURE, Directory, read_directory

__all__ = ["Array", "OnRead", "Placeholder", "PtFile", "Tensor", "Truncated", "read_all"]

# An honest pickle grows to 30 times its size at most (empty lists of 3 bytes); the rest is for other threads.
_GROWTH, _HEADROOM = 64, 512 << 20
_SLACK_BYTES = 32 << 20  # with so much memory left, the pickle is at fault if it runs out of memory
_PIECE_BYTES = 1 << 20
_WORTH_CUTTING = 1 << 20  # a smaller pickle is not cut: that costs as much as it saves
_LONGEST_REASON = 120

_BROKEN_PICKLE = (
    pickle.UnpicklingError, EOFError, AttributeError, TypeError, ValueError, LookupError, ArithmeticError,
    BufferError, RecursionError, MemoryError,
)  # fmt: skip


class PtFile:
    """A file of torch.save, or a bare pickle. `root` is what was saved, with a Tensor for each tensor.

    Raises DumpError; for a file that ends too early its subclass Truncated. A tensor read after the file has changed
    raises DumpError too. `claimed` is how many values all its tensors have. `on_read(done, total)`, in bytes of the
    pickle, is called for every 128 KiB of it; what it raises is passed on unchanged.
    """

    def __init__(self, path: str | os.PathLike[str], on_read: OnRead | None = None) -> None:
        self._snapshot = Snapshot(path)
        self.claimed = 0
        with self.reading():
            self.root = self._load(on_read)

    @property
    def path(self) -> str:
        return self._snapshot.path

    @property
    def size(self) -> int:
        return self._snapshot.size

    @property
    def stamp(self) -> Stamp:
        """Inode, size and mtime in nanoseconds when it was opened."""
        return self._snapshot.stamp

    def reading(self) -> AbstractContextManager[None]:
        """Keep one descriptor open for several tensor reads; may be nested, and used by several threads."""
        return self._snapshot.reading()

    def _load(self, on_read: OnRead | None) -> Any:
        if self.size == 0:
            raise Truncated(self.path, "is empty (0 bytes)")
        head = self._snapshot.read(0, min(self.size, 64))
        if LOCAL_SIGNATURE.startswith(head[:4]):
            return self._load_zip(on_read)
        if is_legacy(head):
            return read_isolated(load_with_torch, self.path)
        if head[0] == 0x80 and head[1:2] <= b"\5":
            return self._load_bare(on_read)
        raise DumpError(self.path, "is not a torch file")

    def _load_zip(self, on_read: OnRead | None) -> Any:
        directory = read_directory(self.path, self.size, self._snapshot.read)
        if "data.pkl" not in directory.entries:
            raise DumpError(self.path, "is a zip without a data.pkl, so not a torch file")
        storages = Storages(self._snapshot, directory)
        root = self._load_pickle(storages, directory, on_read)
        self.claimed = storages.claimed
        if storages.claimed > most_values(self.size):
            raise DumpError(self.path, f"its tensors claim {storages.claimed:,} values, more than it can hold")
        return root

    def _load_pickle(self, storages: Storages, directory: Directory, on_read: OnRead | None) -> Any:
        start, size = storages.extent("data.pkl")
        self._snapshot.check_written(start, size)
        if not can_hold(size):
            raise TooLittleMemory(self.path)
        pickled = self._read_pickle(start, size, directory.entries["data.pkl"].crc, on_read)
        if size < _WORTH_CUTTING:
            return self._unpickle(feed_bytes(bytes(pickled), on_read, size), storages)
        cut = cut_number_runs(pickled, on_read and (lambda done: on_read(done, size)))
        del pickled  # a third of its size is left
        feed = feed_bytes(cut.pickle, on_read, size)
        try:
            return self._unpickle(feed, storages, cut.arrays)
        except DumpError:
            if feed.interruption is not None:
                raise
            # Perhaps a text looked like a list of numbers.
            return self._unpickle(PickleFeed(self._snapshot.read, start, size, on_read), storages)

    def _read_pickle(self, start: int, size: int, checksum: int, on_read: OnRead | None) -> memoryview:
        pickled, computed = np.empty(size, np.uint8).data, 0  # clearing a bytearray blocks other threads for 40 ms
        for offset in range(0, size, _PIECE_BYTES):  # joining pieces at the end would take twice the memory
            if on_read is not None:
                on_read(0, size)
            piece = self._snapshot.read(start + offset, min(_PIECE_BYTES, size - offset))
            pickled[offset : offset + len(piece)] = piece
            computed = zlib.crc32(piece, computed)
        if checksum not in (0, computed):
            raise DumpError(self.path, "its data.pkl is damaged: the checksum does not match")
        return pickled

    def _load_bare(self, on_read: OnRead | None) -> Any:
        feed = PickleFeed(self._snapshot.read, 0, self.size, on_read)
        try:
            return self._unpickle(feed, Storages(self._snapshot, Directory({}, 0)))
        except DumpError as error:
            if feed.ran_out:
                raise Truncated(self.path, "is truncated in the middle of its pickle") from error
            raise

    def _unpickle(self, feed: PickleFeed, storages: Storages, arrays: Sequence[NDArray[Any]] = ()) -> Any:
        needed = _GROWTH * feed.size + _SLACK_BYTES
        allowance = _GROWTH * feed.size + _HEADROOM
        left = memory_left() if needed >= WORTH_ASKING else None  # the system would end whoever takes more
        try:
            with memory_ceiling(allowance if left is None else min(allowance, left)):
                return Unpickler(feed, storages, arrays).load()
        except _BROKEN_PICKLE as error:
            if error is feed.interruption:
                raise
            if isinstance(error, MemoryError) and not (may_grow(needed) and (left is None or needed <= left)):
                raise TooLittleMemory(self.path) from error
            if isinstance(error, MemoryError):
                problem = "its pickle asks for more memory than its size allows"
            else:
                problem = f"not a readable pickle: {ascii(str(error))[1:-1][:_LONGEST_REASON]}"
            raise DumpError(self.path, problem) from error


def read_all(tensors: Sequence[Tensor | Array]) -> list[NDArray[Any]]:
    """Return the values of tensors, with few reads if they are in one file; do not write to or keep them.

    Raises DumpError.
    """
    stored = [tensor for tensor in tensors if isinstance(tensor, Tensor)]
    files = {tensor.source for tensor in stored}
    if len(stored) == len(tensors) and len(files) == 1 and isinstance(file := files.pop(), Storages):
        return file.read_column(stored)
    return [tensor.numpy() for tensor in tensors]

"""One .pt file, read without torch: its structure at once, the values of a tensor when asked."""

from __future__ import annotations

import os
import pickle
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from numpy.typing import NDArray

from dumptui.core.errors import DumpError
from dumptui.core.legacy_torch import is_legacy, load_with_torch
from dumptui.core.memory_ceiling import memory_ceiling
from dumptui.core.pickle_feed import OnRead, PickleFeed
from dumptui.core.placeholder import Placeholder
from dumptui.core.snapshot import Snapshot, Stamp, Truncated
from dumptui.core.tensor import Array, Tensor, itemsize
from dumptui.core.unpickle import Unpickler
from dumptui.core.zip_directory import LOCAL_HEADER, LOCAL_SIGNATURE, Entry, read_directory

__all__ = ["Array", "OnRead", "Placeholder", "PtFile", "Tensor", "Truncated", "read_all"]

# An honest pickle grows to 30 times its size at most (empty lists of 3 bytes); the rest is for other threads.
_GROWTH, _HEADROOM = 64, 512 << 20

_PIECE = 1 << 20
_WIDEST_GAP = 64 << 10  # reading 64 KiB in vain costs less than one more call
_LARGEST_BLOCK = 2 << 20
_LONGEST_PADDING = 4608  # a name, and padding to torch's widest storage alignment
_LONGEST_REASON = 120

_BROKEN_PICKLE = (
    pickle.UnpicklingError, EOFError, AttributeError, TypeError, ValueError, LookupError, ArithmeticError,
    BufferError, RecursionError,
)  # fmt: skip


class PtFile:
    """A file of torch.save, or a bare pickle. `root` is what was saved, with a Tensor for each tensor.

    Raises DumpError; Truncated of it for a file that ends too early. A tensor read after the file has changed
    raises DumpError too. `on_read(done, total)`, in bytes of the pickle, is called every 128 KiB of it; what
    it raises comes out unchanged.
    """

    def __init__(self, path: str | os.PathLike[str], on_read: OnRead | None = None) -> None:
        self._snapshot = Snapshot(path)
        self._entries: dict[str, Entry] = {}
        self._data_end = 0
        self.byteorder = "little"
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
        """Inode, size and mtime in nanoseconds at the opening."""
        return self._snapshot.stamp

    def reading(self) -> AbstractContextManager[None]:
        """Keeps one descriptor open for a burst of tensor reads; may be nested."""
        return self._snapshot.reading()

    def storage(self, key: str, dtype: str, count: int) -> Tensor:
        """All `count` elements of a storage; raises DumpError when the file does not hold them."""
        entry = self._entry(f"data/{key}")
        claimed = count * itemsize(dtype)
        if claimed > entry.size:
            raise DumpError(self.path, f"storage {key} claims {claimed} bytes, but holds {entry.size}")
        return Tensor(self, key, dtype, 0, (count,), (1,))

    def read(self, storage: str, start: int, length: int) -> bytes:
        with self.reading():
            return self._snapshot.read(self._data_start(self._entry(f"data/{storage}")) + start, length)

    def read_column(self, tensors: Sequence[Tensor]) -> list[NDArray[Any]]:
        """`numpy()` of tensors of this file; neighbours are read in blocks of up to 16 MiB."""
        arrays: dict[int, NDArray[Any]] = {}
        with self.reading():
            for block in _blocks(self._places(tensors)):
                start, end = block[0].start, block[-1].end
                data = memoryview(self._snapshot.read(start, min(end, self._data_end) - start))
                for place in block:
                    arrays[place.row] = self._from_block(tensors[place.row], data, start)
            return [arrays[row] if row in arrays else tensor.numpy() for row, tensor in enumerate(tensors)]

    def _places(self, tensors: Sequence[Tensor]) -> list[_Place]:
        """Where the tensors' storages lie, in file order; without those of which less than half is used."""
        used: dict[str, int] = defaultdict(int)
        for tensor in tensors:
            start, end = tensor.span()
            used[tensor.storage] += end - start
        places = []
        for row, tensor in enumerate(tensors):
            header, size, _, _ = self._entry(f"data/{tensor.storage}")
            if 2 * used[tensor.storage] >= size:
                places.append(_Place(header, header + LOCAL_HEADER.size + _LONGEST_PADDING + size, row))
        return sorted(places)

    def _from_block(self, tensor: Tensor, data: memoryview, start: int) -> NDArray[Any]:
        entry = self._entry(f"data/{tensor.storage}")
        at = entry.header - start
        signature, n_name, n_extra = LOCAL_HEADER.unpack_from(data, at)
        at += LOCAL_HEADER.size + n_name + n_extra
        if signature != LOCAL_SIGNATURE or at + entry.size > len(data):
            return tensor.numpy()
        return tensor.from_bytes(data[at:], 0)

    def _load(self, on_read: OnRead | None) -> Any:
        if self.size == 0:
            raise Truncated(self.path, "is empty (0 bytes)")
        head = self._snapshot.read(0, min(self.size, 64))
        if LOCAL_SIGNATURE.startswith(head[:4]):
            return self._load_zip(on_read)
        if is_legacy(head):
            return load_with_torch(self.path)
        if head[0] == 0x80 and head[1:2] <= b"\5":
            return self._unpickle(0, self.size, on_read)
        raise DumpError(self.path, "is not a torch file")

    def _load_zip(self, on_read: OnRead | None) -> Any:
        self._entries, self._data_end = read_directory(self.path, self.size, self._snapshot.read)
        if "data.pkl" not in self._entries:
            raise DumpError(self.path, "is a zip without a data.pkl, so not a torch file")
        if "byteorder" in self._entries:
            entry = self._entry("byteorder")
            self.byteorder = self._snapshot.read(self._data_start(entry), entry.size).decode(errors="replace")
        entry = self._entry("data.pkl")
        start = self._data_start(entry)
        if entry.crc and entry.crc != self._checksum(start, entry.size):
            raise DumpError(self.path, "its data.pkl is damaged: the checksum does not match")
        return self._unpickle(start, entry.size, on_read)

    def _unpickle(self, start: int, size: int, on_read: OnRead | None) -> Any:
        feed = PickleFeed(self._snapshot.read, start, size, on_read)
        try:
            with memory_ceiling(_GROWTH * size + _HEADROOM):
                return Unpickler(feed, self).load()
        except (*_BROKEN_PICKLE, MemoryError) as error:
            if error is feed.interruption:
                raise
            raise self._broken_pickle(error, feed.ran_out) from error

    def _broken_pickle(self, error: Exception, ran_out: bool) -> DumpError:
        if isinstance(error, MemoryError):
            return DumpError(self.path, "its pickle claims more memory than its size allows")
        if ran_out and not self._entries:
            return Truncated(self.path, "is cut short in the middle of its pickle")
        return DumpError(self.path, f"not a readable pickle: {ascii(str(error))[1:-1][:_LONGEST_REASON]}")

    def _entry(self, name: str) -> Entry:
        entry = self._entries.get(name)
        if entry is None:
            raise DumpError(self.path, f"its entry {name[:40]!a} is missing")
        if not entry.stored:
            raise DumpError(self.path, f"its entry {name[:40]!a} is compressed, which torch.save never does")
        return entry

    def _data_start(self, entry: Entry) -> int:
        signature, n_name, n_extra = LOCAL_HEADER.unpack(self._snapshot.read(entry.header, LOCAL_HEADER.size))
        if signature != LOCAL_SIGNATURE:
            raise DumpError(self.path, "its zip directory is damaged: it points at no entry")
        return entry.header + LOCAL_HEADER.size + int(n_name) + int(n_extra)

    def _checksum(self, start: int, size: int) -> int:
        checksum = 0
        for at in range(start, start + size, _PIECE):
            checksum = zlib.crc32(self._snapshot.read(at, min(_PIECE, start + size - at)), checksum)
        return checksum


class _Place(NamedTuple):
    start: int
    end: int
    row: int


def _blocks(places: Iterable[_Place]) -> Iterator[list[_Place]]:
    """Runs of neighbours, each short enough to be read at once."""
    block: list[_Place] = []
    for place in places:
        if block and (
            place.start - block[-1].end > _WIDEST_GAP or place.end - block[0].start > _LARGEST_BLOCK
        ):
            yield block
            block = []
        block.append(place)
    if block:
        yield block


def read_all(tensors: Sequence[Tensor | Array]) -> list[NDArray[Any]]:
    """`numpy()` of each, with as few reads as the files allow. Raises DumpError."""
    by_file: dict[PtFile, dict[int, Tensor]] = defaultdict(dict)
    arrays: dict[int, NDArray[Any]] = {}
    for row, tensor in enumerate(tensors):
        if isinstance(tensor, Tensor) and isinstance(tensor.source, PtFile):
            by_file[tensor.source][row] = tensor
        else:
            arrays[row] = tensor.numpy()
    for file, column in by_file.items():
        arrays.update(zip(column, file.read_column(list(column.values())), strict=True))
    return [arrays[row] for row in range(len(tensors))]

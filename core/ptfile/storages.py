"""The storages of a .pt file: the positions of its tensors, and reads of single tensors or whole columns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from numpy.typing import NDArray

from dumptui.core.errors import DumpError
from dumptui.core.ptfile.snapshot import Snapshot
from dumptui.core.ptfile.tensor import ITEMSIZE, Tensor
from dumptui.core.ptfile.zip_directory import LOCAL_HEADER, Directory, Entry, data_distance

_WIDEST_GAP = 64 << 10  # reading 64 KiB of unneeded bytes costs less than another call
_LARGEST_BLOCK = 2 << 20  # larger blocks are not faster
_LONGEST_PADDING = 4608  # a name, and padding to torch's widest storage alignment
_ALIGNMENT_BYTES = 64  # of the data in the file, and so in memory: numpy is slower on unaligned data


class Storages:
    """The storages of a file. They do not refer to their tensors, so that a dropped file is freed at once."""

    def __init__(self, snapshot: Snapshot, directory: Directory) -> None:
        self._snapshot = snapshot
        self.claimed = 0
        self._entries, self._end = directory
        self.byteorder = "little"
        if "byteorder" in self._entries:
            self.byteorder = snapshot.read(*self.extent("byteorder")).decode("latin-1")
            if self.byteorder not in ("little", "big"):
                raise DumpError(self.path, f"its byte order is damaged: {self.byteorder[:10]!a}")

    @property
    def path(self) -> str:
        return self._snapshot.path

    @property
    def size(self) -> int:
        return self._snapshot.size

    def reading(self) -> AbstractContextManager[None]:
        return self._snapshot.reading()

    def storage(self, key: str, dtype: str, count: int) -> Tensor:
        """Return all `count` elements of a storage; raises DumpError when the file does not hold them."""
        entry = self._entries.get("data/" + key)
        if entry is None or not entry.stored:
            entry = self.entry("data/" + key)
        claimed = count * ITEMSIZE[dtype]
        if claimed > entry.size:
            raise DumpError(self.path, f"storage {key} claims {claimed} bytes, but holds {entry.size}")
        return Tensor(self, entry, dtype, 0, (count,), (1,))

    def read(self, storage: Entry, start: int, length: int) -> bytes:
        with self.reading():
            return self._snapshot.read(self._start(storage) + start, length)

    def read_column(self, tensors: Sequence[Tensor]) -> list[NDArray[Any]]:
        """Return the values of tensors, neighbours read in blocks: 1.5 times as fast from the page cache."""
        content = self._snapshot.resident
        if content is not None:
            return [tensor.from_bytes(content, -self._start(tensor.storage)) for tensor in tensors]
        arrays: dict[int, NDArray[Any]] = {}
        with self.reading():
            for block in _blocks(self._places(tensors)):
                start, end = block[0].start & -_ALIGNMENT_BYTES, min(block[-1].end, self._end)
                data = self._snapshot.read(start, end - start)
                for place in block:
                    arrays[place.row] = self._from_block(tensors[place.row], data, start)
            return [arrays[row] if row in arrays else tensor.numpy() for row, tensor in enumerate(tensors)]

    def entry(self, name: str) -> Entry:
        entry = self._entries.get(name)
        if entry is None:
            raise DumpError(self.path, f"its entry {name[:40]!a} is missing")
        if not entry.stored:
            raise DumpError(self.path, f"its entry {name[:40]!a} is compressed, which torch.save never does")
        return entry

    def extent(self, name: str) -> tuple[int, int]:
        """Return offset and size of an entry's data."""
        entry = self.entry(name)
        return self._start(entry), entry.size

    def _start(self, entry: Entry) -> int:
        content = self._snapshot.resident
        if content is not None:
            distance = data_distance(content, entry.header, entry.name)
        else:
            longest = LOCAL_HEADER.size + len(entry.name) + _LONGEST_PADDING
            header = self._snapshot.read(entry.header, min(longest, self._end - entry.header))
            distance = data_distance(header, 0, entry.name)
        if distance is None:
            raise DumpError(self.path, "its zip directory is damaged: it lists no entry")
        return entry.header + distance

    def _places(self, tensors: Sequence[Tensor]) -> list[_Place]:
        """Return the places of the tensors' storages in file order, without storages that are less than half used."""
        used: dict[int, int] = defaultdict(int)
        for tensor in tensors:
            start, end = tensor.span()
            used[tensor.storage.header] += end - start
        places = []
        for row, tensor in enumerate(tensors):
            entry = tensor.storage
            if 2 * used[entry.header] >= entry.size:
                places.append(_Place(entry.header, entry.header + _LONGEST_PADDING + entry.size, row))
        return sorted(places)

    def _from_block(self, tensor: Tensor, data: bytes, start: int) -> NDArray[Any]:
        entry = tensor.storage
        header = entry.header - start
        distance = data_distance(data, header, entry.name)
        if distance is None or header + distance + entry.size > len(data):
            return tensor.numpy()
        return tensor.from_bytes(data, -(header + distance))


class _Place(NamedTuple):
    start: int
    end: int
    row: int


def _blocks(places: list[_Place]) -> Iterator[list[_Place]]:
    """Yield runs of neighbouring places, each short enough to be read at once."""
    block: list[_Place] = []
    for place in places:
        if block and (place.start - block[-1].end > _WIDEST_GAP or place.end - block[0].start > _LARGEST_BLOCK):
            yield block
            block = []
        block.append(place)
    if block:
        yield block

"""The file object from which the C unpickler reads a pickle."""

from __future__ import annotations

from collections.abc import Callable

from dumptui.core.ptfile.zip_directory import Read

OnRead = Callable[[int, int], None]

_WINDOW_BYTES = 1 << 20


class PickleFeed:
    """A file object over one part of a file.

    `ran_out` is set when the pickle asks for more bytes than there are; `interruption` holds what `on_read` raised,
    which is not a fault of the pickle. Because there is `peek`, CPython prefetches 128 KiB per call instead of one item
    (3 times as fast), and each call lets other threads run.
    """

    def __init__(self, read: Read, start: int, size: int, on_read: OnRead | None) -> None:
        self._read, self._start, self.size, self._on_read = read, start, size, on_read
        self._position = 0
        self._window, self._window_start = b"", 0
        self.ran_out = False
        self.interruption: BaseException | None = None

    def peek(self, n: int, /) -> bytes:
        if self._on_read is not None:
            try:
                self._on_read(self._position, self.size)
            except BaseException as interruption:
                self.interruption = interruption
                raise
        return self._ahead(n)

    def read(self, n: int, /) -> bytes:
        piece = self._ahead(n)
        self._position += len(piece)
        self.ran_out |= len(piece) < n
        return piece

    def readinto(self, buffer: memoryview, /) -> int:
        piece = self.read(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    def readline(self) -> bytes:
        """Called only when a line crosses the end of the prefetched bytes."""
        piece = self._ahead(_WINDOW_BYTES)
        line = piece[: piece.find(b"\n") + 1] or piece
        self._position += len(line)
        self.ran_out |= not line.endswith(b"\n")
        return line

    def _ahead(self, n: int) -> bytes:
        n = min(n, self.size - self._position)
        offset = self._position - self._window_start
        if offset + n > len(self._window):
            self._window = self._read(
                self._start + self._position, min(max(n, _WINDOW_BYTES), self.size - self._position)
            )
            self._window_start, offset = self._position, 0
        return self._window[offset : offset + n]


def feed_bytes(data: bytes, on_read: OnRead | None, total: int) -> PickleFeed:
    """Return a feed over a pickle in memory. It was cut down from `total` bytes; those cut count as already read."""
    before = total - len(data)
    on_feed = on_read and (lambda done, _: on_read(before + done, total))
    return PickleFeed(lambda start, length: data[start : start + length], 0, len(data), on_feed)

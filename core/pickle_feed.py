"""What the C unpickler reads a pickle from."""

from __future__ import annotations

from collections.abc import Callable

from dumptui.core.zip_directory import Read

OnRead = Callable[[int, int], None]

_WINDOW = 1 << 20


class PickleFeed:
    """A file object over one piece of a file.

    Because it has `peek`, CPython prefetches 128 KiB a call instead of asking for every item (3 times as
    fast), and each call lets other threads run.
    """

    def __init__(self, read: Read, start: int, size: int, on_read: OnRead | None) -> None:
        self._read, self._start, self.size, self._on_read = read, start, size, on_read
        self._at = 0
        self._window, self._window_at = b"", 0
        self.ran_out = False
        """The pickle asked for more than there is."""
        self.interruption: BaseException | None = None
        """What `on_read` raised: not a fault of the pickle."""

    def peek(self, n: int, /) -> bytes:
        if self._on_read is not None:
            try:
                self._on_read(self._at, self.size)
            except BaseException as interruption:
                self.interruption = interruption
                raise
        return self._ahead(n)

    def read(self, n: int, /) -> bytes:
        piece = self._ahead(n)
        self._at += len(piece)
        self.ran_out |= len(piece) < n
        return piece

    def readinto(self, buffer: memoryview, /) -> int:
        piece = self.read(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    def readline(self) -> bytes:
        """Asked for only when a line crosses the end of what was prefetched."""
        piece = self._ahead(_WINDOW)
        line = piece[: piece.find(b"\n") + 1] or piece
        self._at += len(line)
        self.ran_out |= not line.endswith(b"\n")
        return line

    def _ahead(self, n: int) -> bytes:
        n = min(n, self.size - self._at)
        at = self._at - self._window_at
        if at + n > len(self._window):
            self._window = self._read(self._start + self._at, min(max(n, _WINDOW), self.size - self._at))
            self._window_at, at = self._at, 0
        return self._window[at : at + n]


def feed_bytes(data: bytes, on_read: OnRead | None, total: int) -> PickleFeed:
    """A pickle that is in memory: what is left of one of `total` bytes, the rest of which counts as done."""
    before = total - len(data)
    said = on_read and (lambda done, _: on_read(before + done, total))
    return PickleFeed(lambda start, length: data[start : start + length], 0, len(data), said)

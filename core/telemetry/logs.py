"""Single files of a run's telemetry: logs that are read when needed, documents, and the times near a file's ends."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Generic, TypeVar

from dumptui.core.errors import DumpError
from dumptui.core.ptfile.snapshot import open_file, read_bounded
from dumptui.core.telemetry.jsonl_tail import MISFIT_ERRORS, Chunk, Record, Tail

MAX_TIME = 253_402_300_799.0  # the end of the year 9999: a later time has no date
T = TypeVar("T")
Signature = tuple[int, int, int]

MAX_DOCUMENT_BYTES = 64 << 20
"""Longer documents are not read; all arguments and lanes of a large run take 100 KB."""
EDGE_BYTES = (16 << 10, 1 << 20)
"""Bytes read at each end of a file for its first and last times; the second number if the first has no record."""


class Glance:
    """A file that is not parsed: whether it changed, and the times near its ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen: Signature | None = None
        self._ends: list[float] = []
        self._ends_of: Signature | None = None

    def changed(self) -> bool:
        """Whether the file changed since the last call."""
        before, self._seen = self._seen, signature(self.path)
        return before != self._seen

    def ends(self) -> list[float]:
        now = signature(self.path)
        if now != self._ends_of:
            self._ends_of, self._ends = now, list(end_times(self.path))
        return self._ends


class Log(Generic[T]):
    """A file whose items are all kept in memory; it is read when they are first needed.

    `read` returns the item of a record, None for a record of another kind, and raises one of MISFIT_ERRORS.
    """

    def __init__(self, path: Path, read: Callable[[Record], T | None], only: re.Pattern[bytes] | None = None) -> None:
        self.tail = Tail(path, only)
        self._read = read
        self._items: list[T] | None = None
        self.glance = Glance(path)
        self.glance.changed()

    def items(self) -> list[T]:
        if self._items is None:
            self._items = []
            self.poll()
        return self._items

    def poll(self) -> bool:
        """Read what was appended; return whether anything changed. An unread file is not read, only compared."""
        if self._items is None:
            return self.glance.changed()
        changed, more = False, True
        while more:
            records, start, restarted, more = self.tail.poll()
            if restarted:
                self._items.clear()
            for record in records:
                self._take(record, start, self._items)
            changed |= restarted or bool(records)
        return changed

    def _take(self, record: Record, start: int, items: list[T]) -> None:
        try:
            item = self._read(record)
        except MISFIT_ERRORS:
            self.tail.count_misfit(start)
            return
        if item is not None:
            items.append(item)


class Document:
    """A small JSON file that is rewritten as a whole; while it is being written, the last good `value` stays."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.value: Record = {}
        self.problem: DumpError | None = None
        self._signature: Signature | None = None
        self.poll()

    def poll(self) -> bool:
        """Read the file again if it changed or couldn't be read; return whether there is a new value."""
        before, self._signature = self._signature, signature(self.path)
        if self._signature is None or (before == self._signature and self.problem is None):
            return False
        try:
            value = json.loads(read_bounded(self.path, MAX_DOCUMENT_BYTES))
        except (ValueError, RecursionError) as error:
            self.problem = DumpError(self.path, f"is not a JSON document: {error}")
        except OSError as error:
            self.problem = DumpError(self.path, f"can't be read: {error.strerror or error}")
        else:
            self.problem = None if isinstance(value, dict) else DumpError(self.path, "is not a JSON object")
            self.value = value if isinstance(value, dict) else self.value
        return self.problem is None


def signature(path: Path) -> Signature | None:
    try:
        stat = os.stat(path)
    except OSError:
        return None
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


def end_times(path: Path) -> Iterator[float]:
    """Yield the times of the complete records near both ends of a file, without the -1 of an open phase."""
    try:
        with open_file(path) as file:
            size = os.fstat(file.fileno()).st_size
            for from_end in (False, True):
                yield from _times_at_an_end(file, size, from_end)
    except OSError:
        return


def _times_at_an_end(file: BinaryIO, size: int, from_end: bool) -> list[float]:
    times: list[float] = []
    for length in EDGE_BYTES:
        start = max(size - length, 0) if from_end else 0
        file.seek(start)
        block = file.read(length)
        lines = block[block.find(b"\n") + 1 if start else 0 : block.rfind(b"\n") + 1]
        times = [time for record in Tail("").parse(Chunk(lines)) for time in _times(record)]
        if times or length >= size:
            break
    return times


def _times(record: Record) -> Iterator[float]:
    for name in ("ts", "t0", "t1"):
        value = record.get(name)
        if value != -1 and (time := time_of(value)) is not None:
            yield time


def time_of(value: object) -> float | None:
    """Return seconds since the epoch as a float; None if it is not a number or after the year 9999."""
    return float(value) if isinstance(value, (int, float)) and abs(value) <= MAX_TIME else None

"""Single files of a run's telemetry: logs, read when asked for, documents, and what a glance at a file tells."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Generic, TypeVar

from dumptui.core.errors import DumpError
from dumptui.core.jsonl import MISFIT, Chunk, Record, Tail
from dumptui.core.snapshot import open_file, read_bounded

T = TypeVar("T")
Signature = tuple[int, int, int]

LARGEST = 64 << 20
"""Bytes of a document that is read: one of all arguments and lanes of a large run has 100 KB."""
EDGES = (16 << 10, 1 << 20)
"""Bytes looked at, at each end of a file, for its first and last times; the second if the first holds no record."""


class Glance:
    """What is known of a file without parsing it: whether it changed, and the times near its ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen: Signature | None = None
        self._ends: list[float] = []
        self._ends_of: Signature | None = None

    def changed(self) -> bool:
        """Since the last time this was asked."""
        before, self._seen = self._seen, signature(self.path)
        return before != self._seen

    def ends(self) -> list[float]:
        now = signature(self.path)
        if now != self._ends_of:
            self._ends_of, self._ends = now, list(end_times(self.path))
        return self._ends


class Log(Generic[T]):
    """A single file, small enough to be held in full; read when first asked for.

    `read` makes an item of a record, None of one that is none of these, and raises one of MISFIT.
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
        """Take in what was appended; whether anything changed. A file not asked for yet is only looked at."""
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
        except MISFIT:
            self.tail.count_misfit(start)
            return
        if item is not None:
            items.append(item)


class Document:
    """A small JSON file that is rewritten as a whole, perhaps while we look: then the last good one holds."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.value: Record = {}
        self.problem: DumpError | None = None
        self._signature: Signature | None = None
        self.poll()

    def poll(self) -> bool:
        """Read it again if it changed or couldn't be read; whether there is anything new."""
        before, self._signature = self._signature, signature(self.path)
        if self._signature is None or (before == self._signature and self.problem is None):
            return False
        try:
            value = json.loads(read_bounded(self.path, LARGEST))
        except (ValueError, RecursionError) as error:
            self.problem = DumpError(self.path, f"is no JSON document: {error}")
        except OSError as error:
            self.problem = DumpError(self.path, f"can't be read: {error.strerror or error}")
        else:
            self.problem = None if isinstance(value, dict) else DumpError(self.path, "is no JSON object")
            self.value = value if isinstance(value, dict) else self.value
        return self.problem is None


def signature(path: Path) -> Signature | None:
    try:
        stat = os.stat(path)
    except OSError:
        return None
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


def end_times(path: Path) -> Iterator[float]:
    """The times of the complete records near both ends of a file; the -1 of an open phase is none."""
    try:
        with open_file(path) as file:
            size = os.fstat(file.fileno()).st_size
            for from_end in (False, True):
                yield from _times_at_an_end(file, size, from_end)
    except OSError:
        return


def _times_at_an_end(file: BinaryIO, size: int, from_end: bool) -> list[float]:
    times: list[float] = []
    for length in EDGES:
        start = max(size - length, 0) if from_end else 0
        file.seek(start)
        block = file.read(length)
        whole = block[block.find(b"\n") + 1 if start else 0 : block.rfind(b"\n") + 1]
        times = [time for record in Tail("").parse(Chunk(whole)) for time in _times(record)]
        if times or length >= size:
            break
    return times


def _times(record: Record) -> Iterator[float]:
    for name in ("ts", "t0", "t1"):
        value = as_time(record.get(name))
        if value is not None and value != -1:
            yield value


def as_time(value: object) -> float | None:
    """A finite number; a file may hold one of 400 digits."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None

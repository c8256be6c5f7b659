"""Telemetry streams in hourly files, which are parsed when needed and dropped when they take too much memory."""

from __future__ import annotations

import calendar
import os
import re
import time
from collections import OrderedDict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from dumptui.core.errors import DumpError
from dumptui.core.telemetry.column_store import Columns, Schema
from dumptui.core.telemetry.jsonl_tail import Chunk, Tail
from dumptui.core.telemetry.logs import Glance

HOUR_SECONDS = 3600.0
MEMORY_BYTES = 256 << 20
"""Bytes of parsed hours in memory; an hour of 64 GPUs at 1 Hz is 6.5 MB, of 8 engines 8 MB."""
WORTH_POLARS = 256 << 10
"""From this many bytes on, polars saves more time than its import and set-up take; less is parsed by json."""
_HOUR_NAME = re.compile(r"\d{8}_\d{2}")


class Part:
    """One file of a stream: an hour, named by its UTC start in seconds, or the flat file of old runs (hour None)."""

    def __init__(self, path: Path, hour: float | None, schema: Schema) -> None:
        self.path = path
        self.hour = hour
        self.tail = Tail(path)
        self.glance = Glance(path)
        self.columns: list[Columns] | None = None
        self._schema = schema

    @property
    def nbytes(self) -> int:
        return sum(columns.nbytes for columns in self.columns or ())

    def load(self) -> Columns:
        if self.columns is None:
            self.tail, self.columns = Tail(self.path), []
            self.poll()
        self.columns = [self._schema.concat(self.columns)]
        return self.columns[0]

    def may_have_grown(self) -> bool:
        """Whether a parsed file is worth opening: four days of streams are 500 files, and only the last hours grow."""
        return self.columns is not None and (self.glance.changed() or self.tail.problem is not None)

    def drop(self) -> None:
        """Forget the records, but not their problems."""
        self.columns = None

    def poll(self) -> bool:
        """Read what was appended; return whether anything changed. An unparsed file is not parsed, only compared."""
        if self.columns is None:
            return self.glance.changed()
        changed, more = False, True
        while more:
            chunk = self.tail.read()
            if chunk.restarted:
                self.columns.clear()
            if chunk.lines:
                self.columns.append(self._parse(chunk))
            changed |= chunk.restarted or bool(chunk.lines)
            more = chunk.more
        return changed

    def _parse(self, chunk: Chunk) -> Columns:
        if len(chunk.lines) >= WORTH_POLARS and (columns := self._schema.parse(chunk.lines)) is not None:
            return columns
        columns, misfits = self._schema.columns_and_misfits(self.tail.parse(chunk))
        for _ in range(misfits):
            self.tail.count_misfit(chunk.start)
        return columns


class Memory:
    """The parsed parts; those unused for longest are dropped when all take more than `limit` bytes."""

    def __init__(self, limit: int = MEMORY_BYTES) -> None:
        self.limit = limit
        self._parts: OrderedDict[Path, Part] = OrderedDict()

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self._parts.values())

    def load(self, part: Part) -> Columns:
        columns = part.load()
        self._parts[part.path] = part
        self._parts.move_to_end(part.path)
        self.trim()
        return columns

    def trim(self) -> None:
        """Drop parts until the limit holds; the part used last stays, whatever its size."""
        over = self.nbytes - self.limit
        while over > 0 and len(self._parts) > 1:
            _, part = self._parts.popitem(last=False)
            over -= part.nbytes
            part.drop()


class Stream:
    """A stream of `name/YYYYMMDD_HH.jsonl` files, and of an old run's `name.jsonl`; `parts` has the oldest first."""

    def __init__(self, dashboard: Path, name: str, schema: Schema, memory: Memory) -> None:
        self.name = name
        self.schema = schema
        self.folder = dashboard / name
        self.problem: DumpError | None = None
        self.parts: list[Part] = []
        self._memory = memory
        self.poll()

    def poll(self) -> bool:
        """Find new hours and read what was appended to parsed ones; return whether anything changed."""
        changed = self._list()
        for part in self.parts:
            if part is self.parts[-1] or part.may_have_grown():
                changed |= part.poll()
        self._memory.trim()
        return changed

    def between(self, start: float | None, stop: float | None) -> list[Part]:
        """Return the parts that may have times in the window."""
        return [
            part
            for part in self.parts
            if part.hour is None
            or ((start is None or part.hour + HOUR_SECONDS > start) and (stop is None or part.hour <= stop))
        ]

    def load(self, parts: list[Part]) -> Iterator[Columns]:
        """Yield the columns of one part at a time, so that a caller who needs little of each never holds them all."""
        return map(self._memory.load, parts)

    def ends(self) -> list[float]:
        """Return the times near the beginning of the first file with any, and near the end of the last."""
        first: list[float] = next((ends for part in self.parts if (ends := part.glance.ends())), [])
        last: list[float] = next((ends for part in reversed(self.parts) if (ends := part.glance.ends())), [])
        return first + last

    def _list(self) -> bool:
        try:
            files = self._files()
        except OSError as error:
            self.problem = DumpError(self.folder, f"can't be listed: {error.strerror or error}")
            return False
        self.problem = None
        if [part.path for part in self.parts] == [path for path, _ in files]:
            return False
        before, known = self.parts, {part.path: part for part in self.parts}
        self.parts = [known.get(path) or Part(path, hour, self.schema) for path, hour in files]
        return self.parts != before

    def _files(self) -> list[tuple[Path, float | None]]:
        """Return the files, oldest first; the flat file of old runs is older than all hours."""
        try:
            names = sorted(os.listdir(self.folder))
        except (FileNotFoundError, NotADirectoryError):
            names = []
        flat = self.folder.with_name(f"{self.name}.jsonl")
        hours = [(self.folder / name, hour) for name in names if (hour := hour_of(name)) is not None]
        return [*([(flat, None)] if flat.exists() else []), *hours]


@cache
def hour_of(name: str) -> float | None:
    """Return the start of the UTC hour in a file name; None for any other name."""
    stem, _, suffix = name.partition(".")
    if suffix != "jsonl" or not _HOUR_NAME.fullmatch(stem):
        return None
    try:
        return float(calendar.timegm(time.strptime(stem, "%Y%m%d_%H")))
    except ValueError:
        return None

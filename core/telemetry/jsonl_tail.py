"""A reader that follows a growing JSON-lines file by byte offset.

A `Tail` is not locked: only one thread at a time may use it, which core/live.py ensures for the whole reader.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from dumptui.core.errors import DumpError
from dumptui.core.ptfile.snapshot import open_file, skip_hole

Record = dict[str, Any]

BLOCK_BYTES = 8 << 20
"""Bytes read per poll: about 95,000 GPU samples, 60 MB as dicts."""
MAX_LINE_BYTES = 64 << 20
"""Longer lines are skipped. Weight checksums come near this length; the records that are shown stay below 1 MB."""
MISFIT_ERRORS = (KeyError, TypeError, ValueError, OverflowError, AttributeError)
"""The exceptions raised by reading a record when a field is missing or of another type."""
FINGERPRINT_BYTES = 128
"""Bytes before the offset that must be unchanged at the next poll; they include the time of a record of any stream."""

_decode = json.JSONDecoder().raw_decode
_RECORD_OPENING = re.compile(r'\{\s*"[^"\\]*"\s*:')


class Chunk(NamedTuple):
    """Complete lines from byte `start` on. `restarted`: drop all earlier lines; `more`: read again now."""

    lines: bytes
    start: int = 0
    restarted: bool = False
    more: bool = False


class Poll(NamedTuple):
    """New records after byte `start`. `restarted`: the file was replaced, drop earlier records; `more`: poll now."""

    records: list[Record]
    start: int
    restarted: bool
    more: bool


class Tail:
    """The records of a JSON-lines file, each returned once.

    An incomplete last line waits; `pending` is its number of bytes. `bad` counts the complete lines that are not a JSON
    object; `first_problem` says where the first was and why. A file that was truncated, replaced or rewritten is read
    again from its start, and `restarts` counts that. A missing file has no records; `problem` is set while a file can't
    be read.

    With `only`, lines without a match are skipped unparsed.
    """

    def __init__(self, path: str | os.PathLike[str], only: re.Pattern[bytes] | None = None) -> None:
        self.path = Path(path)
        self.only = only
        self.problem: DumpError | None = None
        self.restarts = 0
        self._restarted = False
        self._identity: tuple[int, int] | None = None
        self._begin()

    def _begin(self) -> None:
        self.bad = 0
        self.first_problem: str | None = None
        self.pending = 0
        self._offset = 0
        self._before = b""
        self._inside_long_line = False
        self._good_line = ""

    def poll(self) -> Poll:
        chunk = self.read()
        return Poll(self.parse(chunk), chunk.start, chunk.restarted, chunk.more)

    def read(self) -> Chunk:
        """Return the new complete lines, at most BLOCK_BYTES unless one line is longer. Never raises."""
        # Opened for each read: no descriptor goes stale, and NFS reports the true size only on opening.
        try:
            with open_file(self.path, buffering=0) as file:
                chunk = self._read(file)
        except FileNotFoundError:
            return Chunk(b"")
        except OSError as error:
            self.problem = DumpError(self.path, f"can't be read: {error.strerror or error}")
            return Chunk(b"")
        self.problem = None
        self._restarted = False
        return chunk

    def parse(self, chunk: Chunk) -> list[Record]:
        records: list[Record] = []
        position = chunk.start
        for line in chunk.lines.split(b"\n"):
            if self.only is None or self.only.search(line):
                self._parse_line(line, position, records)
            position += len(line) + 1
        return records

    def count_misfit(self, start: int) -> None:
        """Count a JSON record with other fields than the file should have; it was read at or after byte `start`."""
        self.count_bad(f"after byte {start}: a record lacks a field or has it of another type")

    def count_bad(self, problem: str) -> None:
        self.bad += 1
        self.first_problem = self.first_problem or problem

    def _read(self, file: BinaryIO) -> Chunk:
        if self._is_another(file):
            self._begin()
            self.restarts += 1
            self._restarted = True  # reported by the first read that succeeds, not lost to an error below
        if self._inside_long_line:
            self._skip_hole(file)
        limit = BLOCK_BYTES
        while True:
            block = _read_at(file, self._offset, limit)
            end = block.rfind(b"\n") + 1
            if end or len(block) < limit or self._inside_long_line:
                break
            if limit >= MAX_LINE_BYTES:
                self._inside_long_line = True
                if self.only is None:
                    self.count_bad(f"byte {self._offset}: a line of more than {MAX_LINE_BYTES >> 20} MiB")
                break
            limit *= 2
        more = len(block) == limit
        self.pending = 0 if more else len(block) - end
        start = self._offset
        if self._inside_long_line:
            lines, skipped = self._leave_long_line(block)
        else:
            lines, skipped = block[:end], 0
        self._advance(block[: skipped + len(lines)])
        return Chunk(lines, start + skipped, self._restarted, more)

    def _leave_long_line(self, block: bytes) -> tuple[bytes, int]:
        """Return the complete lines after the long one, if it ends in the block, and the number of bytes to skip."""
        first = block.find(b"\n") + 1
        if not first:
            return b"", len(block)
        self._inside_long_line = False
        return block[first : block.rfind(b"\n") + 1], first

    def _skip_hole(self, file: BinaryIO) -> None:
        """Skip a hole, a part of the file that was never written: it reads as zeros, none of which ends a line."""
        written = skip_hole(file, self._offset)
        if written > self._offset:
            self._before = bytes(min(FINGERPRINT_BYTES, written - self._offset))
            self._offset = written

    def _advance(self, consumed: bytes) -> None:
        self._offset += len(consumed)
        self._before = (self._before + consumed[-FINGERPRINT_BYTES:])[-FINGERPRINT_BYTES:]

    def _is_another(self, file: BinaryIO) -> bool:
        stat = os.fstat(file.fileno())
        before, self._identity = self._identity, (stat.st_dev, stat.st_ino)
        if before not in (None, self._identity):
            return True
        fingerprint = _read_at(file, self._offset - len(self._before), len(self._before))
        return fingerprint != self._before

    def _parse_line(self, line: bytes, start: int, records: list[Record]) -> None:
        try:
            text = line.decode("utf-8", "surrogatepass").strip(" \t\r")
        except UnicodeDecodeError:
            self.count_bad(f"byte {start}: not UTF-8")
            records += salvage(line.decode("utf-8", "replace").strip(" \t\r"), self._good_line)
            return
        if not text:
            return
        try:
            value, end = _decode(text)
        except (ValueError, RecursionError) as error:
            problem = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        else:
            if end == len(text) and isinstance(value, dict):
                self._good_line = text
                records.append(value)
                return
            problem = "more than one value" if end < len(text) else "not an object"
        self.count_bad(f"byte {start}: {problem}")
        records += salvage(text, self._good_line)


def salvage(line: str, good_line: str = "") -> list[Record]:
    """Return the complete objects at the start of a malformed line and, after an incomplete one, the one at its end.

    Records of one file begin with the same key ('{"ts":'). With a good line to compare, an object within an incomplete
    record is not taken for a record.
    """
    records, position = [], 0
    while (parsed := _object_at(line, position)) is not None:
        record, position = parsed
        records.append(record)
    match = _RECORD_OPENING.match(good_line)
    opening = match[0] if match else "{"
    start = len(line)
    while (start := line.rfind(opening, position, start)) >= 0:
        parsed = _object_at(line, start)
        if parsed is not None and parsed[1] == len(line):
            return [*records, parsed[0]]
    return records


def _object_at(line: str, start: int) -> tuple[Record, int] | None:
    """Return the object that begins at `start`, and where the next may begin; None if none begins there."""
    try:
        value, end = _decode(line, start)
    except (ValueError, RecursionError):
        return None
    while end < len(line) and line[end] in " \t\r":
        end += 1
    return (value, end) if isinstance(value, dict) else None


def _read_at(file: BinaryIO, start: int, length: int) -> bytes:
    """Return `length` bytes, fewer only at the end of the file: a single raw read may return less."""
    file.seek(start)
    parts = []
    while length and (part := file.read(length)):
        parts.append(part)
        length -= len(part)
    return b"".join(parts)

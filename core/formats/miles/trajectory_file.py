"""The trajectory sidecar of a step: a JSON line for each sample that has a conversation, looked up by sample index.

The scan reads only the index of each line, and one line is parsed at a time: a sidecar with images can be a hundred
times as large as a conversation.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from dumptui.core.errors import DumpError
from dumptui.core.formats.sidecar import Row
from dumptui.core.formats.values import as_int
from dumptui.core.ptfile.snapshot import open_file, skip_hole

MAX_LINE_BYTES = 256 << 20
"""Longer lines are skipped; a conversation with images in it has about 10 MB."""
_INDEX_PATTERN = rb'"sample_index"\s*:\s*(null|-?\d+)'
_LEADING_INDEX = re.compile(
    rb"\s*\{\s*" + _INDEX_PATTERN
)  # where the framework writes it: the rest of the line need not be searched
_ANY_INDEX = re.compile(_INDEX_PATTERN)


_LONGEST_NUMBER = 4_000  # digits; Python refuses to read a number of more than 4,300


class Place(NamedTuple):
    """The bytes of a line in the file; `line` counts from 1."""

    start: int
    length: int
    line: int


@dataclass(frozen=True)
class Trajectories:
    """The lines of a sidecar by the sample index that they may hold. `cut` if the file ends within a line."""

    path: Path
    places: Mapping[int | None, Sequence[Place]] = field(default_factory=dict)
    cut: bool = False

    @classmethod
    def scan(cls, path: Path) -> Trajectories:
        """Find the lines of a file by sample index. Raises DumpError when the file can't be read."""
        places: dict[int | None, list[Place]] = {}
        ends = True
        try:
            with open_file(path) as file:
                for number, (start, line) in enumerate(lines_of(file), 1):
                    for index in indices_in(line):
                        places.setdefault(index, []).append(Place(start, len(line), number))
                    ends = line.endswith(b"\n")
        except OSError as error:
            raise DumpError(path, f"can't be read: {error.strerror or error}") from error
        return cls(path, places, not ends)

    @property
    def last_line(self) -> int:
        return max((place.line for places in self.places.values() for place in places), default=0)

    def rows(self, index: int | None) -> list[Row]:
        """Return the rows of all samples of an index, in file order; lines that are not a JSON object are skipped.

        Raises DumpError when the file can't be read.
        """
        rows = [row for _, row in self._parsed(index)]
        return [row for row in rows if row is not None and as_int(row.get("sample_index")) == index]

    def unreadable(self, index: int | None) -> list[int]:
        """Return the line numbers, from 1, that seem to hold a sample of an index and are not a JSON object.

        Raises DumpError when the file can't be read.
        """
        return [place.line for place, row in self._parsed(index) if row is None]

    def _parsed(self, index: int | None) -> list[tuple[Place, Row | None]]:
        try:
            with open_file(self.path) as file:
                return [(place, parse(read_at(file, place))) for place in self.places.get(index, ())]
        except OSError as error:
            raise DumpError(self.path, f"can't be read: {error.strerror or error}") from error


def lines_of(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield each line and its offset. A line of MAX_LINE_BYTES or more is skipped: it is not a conversation."""
    start = 0
    while line := file.readline(MAX_LINE_BYTES):
        if len(line) < MAX_LINE_BYTES or line.endswith(b"\n"):
            yield start, line
        while line and not line.endswith(b"\n"):
            file.seek(skip_hole(file, file.tell()))
            line = file.readline(MAX_LINE_BYTES)
        start = file.tell()


def indices_in(line: bytes) -> set[int | None]:
    first = _LEADING_INDEX.match(line)
    indices = [first[1]] if first else _ANY_INDEX.findall(line)
    return {None if number == b"null" else int(number) for number in indices}


def read_at(file: Any, place: Place) -> bytes:
    file.seek(place.start)
    line: bytes = file.read(place.length)
    return line


def parse(line: bytes) -> Row | None:
    """Return the JSON object of a line; None of anything else, also of one nested more than a thousand levels deep."""
    for read in (json.loads, partial(json.loads, parse_int=whole_number)):  # the second takes twice as long
        try:
            row = read(line.decode("utf-8", "surrogatepass"))
        except (ValueError, RecursionError):
            continue
        return row if isinstance(row, dict) else None
    return None


def whole_number(digits: str) -> int | str:
    return int(digits) if len(digits) <= _LONGEST_NUMBER else f"<a number of {len(digits):,} digits>"


def sidecar_faults(path: Path) -> list[str]:
    """Return what is wrong with a trajectory file as a whole. Raises DumpError when it can't be read."""
    try:
        with open_file(path) as file:
            names_sample = any(indices_in(line) for _, line in lines_of(file))  # in the first line, nearly always
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - 1, 0))
            is_torn = file.read(1) not in (b"\n", b"")
    except OSError as error:
        raise DumpError(path, f"can't be read: {error.strerror or error}") from error
    unnamed = bool(size) and not names_sample
    return [
        *(["last line truncated"] if is_torn else []),
        *(["none of its lines names a sample: no conversation is read from it"] if unnamed else []),
    ]

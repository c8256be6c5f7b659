"""The trajectory sidecar of a step: a JSON line for each sample that has a conversation, found by the sample's index.

Lines are found by their bytes and parsed one at a time, so that a conversation costs its own size only: a sidecar with
images in it can be a hundred times as large.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from dumptui.core.errors import DumpError
from dumptui.core.formats.sample import Sample
from dumptui.core.formats.values import as_int, as_text
from dumptui.core.ptfile.snapshot import open_file, skip_hole

Row = Mapping[str, Any]

MAX_LINE_BYTES = 256 << 20
"""Bytes of a line; a conversation with images in it has some 10 MB."""
_INDEX_PATTERN = rb'"sample_index"\s*:\s*(null|-?\d+)'
_LEADING_INDEX = re.compile(
    rb"\s*\{\s*" + _INDEX_PATTERN
)  # where the framework writes it: the rest of the line need not be searched
_ANY_INDEX = re.compile(_INDEX_PATTERN)


_LONGEST_NUMBER = 4_000  # digits; Python refuses to read a number of more than 4,300


class Place(NamedTuple):
    """`line` counts from 1."""

    start: int
    length: int
    line: int


@dataclass(frozen=True)
class Sidecar:
    """Which lines may hold a sample of which index. `cut` says that the file ends within a line."""

    path: Path
    places: Mapping[int | None, Sequence[Place]] = field(default_factory=dict)
    cut: bool = False

    @classmethod
    def scan(cls, path: Path) -> Sidecar:
        """Raises DumpError when the file can't be read."""
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

    def rows(self, index: int | None) -> list[Row]:
        """The rows of all samples of that index, in file order; lines that are no JSON object are left out.

        Raises DumpError when the file can't be read.
        """
        found = [row for _, row in self._parsed(index)]
        return [row for row in found if row is not None and as_int(row.get("sample_index")) == index]

    def unreadable(self, index: int | None) -> list[int]:
        """The lines that seem to be of a sample of that index and are no JSON object, counted from 1.

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
    """Each line and where it starts. One of more than LONGEST bytes is passed over: it is no conversation."""
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
    found = [first[1]] if first else _ANY_INDEX.findall(line)
    return {None if number == b"null" else int(number) for number in found}


def read_at(file: Any, place: Place) -> bytes:
    file.seek(place.start)
    line: bytes = file.read(place.length)
    return line


def parse(line: bytes) -> Row | None:
    """The JSON object of a line; None of anything else, also of one that is nested more than a thousand levels deep."""
    for read in (json.loads, partial(json.loads, parse_int=whole_number)):  # the second takes twice as long
        try:
            row = read(line.decode("utf-8", "surrogatepass"))
        except (ValueError, RecursionError):
            continue
        return row if isinstance(row, dict) else None
    return None


def whole_number(digits: str) -> int | str:
    return int(digits) if len(digits) <= _LONGEST_NUMBER else f"<a number of {len(digits):,} digits>"


# Siblings -------------------------------------------------------------------------------------------------------


def choose(rows: Sequence[Row], siblings: Sequence[Sample], sample: Sample) -> tuple[Row | None, str | None]:
    """The row of one of the samples that share an index, and what has to be known of the choice.

    Rows that don't tell the occurrence are in the order of the samples, some of which have none: each goes to the next
    sample that it fits.
    """
    told = {at: row for row in rows if (at := as_int(row.get("sample_occurrence"))) is not None}
    if sample.occurrence in told:
        return told[sample.occurrence], None
    untold = [row for row in rows if as_int(row.get("sample_occurrence")) is None]
    free = [one for one in siblings if one.occurrence not in told]
    row = paired(untold, free).get(sample.occurrence)
    if row is None or len(siblings) == 1:
        return row, None
    number = len(siblings)
    return row, f"matched by order: the trajectory file does not distinguish the {number} samples with this index"


def paired(rows: Sequence[Row], samples: Sequence[Sample]) -> dict[int, Row]:
    """Rows by the occurrence of their sample, in the order of both."""
    found: dict[int, Row] = {}
    at = 0
    for left, row in zip(range(len(rows), 0, -1), rows, strict=True):
        room = range(at, len(samples) - left + 1)  # as many samples as rows have to be left
        at = next((one for one in room if fits(row, samples[one])), at)
        if at < len(samples):
            found[samples[at].occurrence] = row
        at += 1
    return found


def fits(row: Row, sample: Sample) -> bool:
    """Whether what the row repeats of its sample is true of this one, and the response holds the last words."""
    words = last_words(row)
    return as_text(row.get("status")) == sample.status and (words is None or words in sample.response)


def last_words(row: Row) -> str | None:
    messages = row.get("messages")
    for message in reversed(messages if isinstance(messages, list) else []):
        if isinstance(message, dict) and message.get("role") == "assistant":
            content = message.get("content")
            return content if isinstance(content, str) else None
    return None

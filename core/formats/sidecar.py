"""The recorded conversations of a step, and which of them belongs to which sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from dumptui.core.formats.sample import Sample
from dumptui.core.formats.values import as_int, as_text

Row: TypeAlias = Mapping[str, Any]
"""One conversation: `messages`, and where recorded `status` and `sample_occurrence`."""


class Sidecar(Protocol):
    """A file of conversations, looked up by the index of a sample. `rows` and `unreadable` raise DumpError."""

    @property
    def path(self) -> Path: ...

    @property
    def cut(self) -> bool:
        """Whether the file ends within a line."""

    @property
    def last_line(self) -> int:
        """The number of the last line with a sample, from 1; 0 without any."""

    def rows(self, index: int | None) -> list[Row]:
        """Return the rows of all samples of an index, in file order."""

    def unreadable(self, index: int | None) -> list[int]:
        """Return the line numbers, from 1, that seem to hold a sample of an index and can't be read."""


def choose(rows: Sequence[Row], siblings: Sequence[Sample], sample: Sample) -> tuple[Row | None, str | None]:
    """Return the row of one of the samples that share an index, and a note where the match is uncertain.

    Rows without an occurrence are in the order of the samples, but some samples have no row: each row goes to the next
    sample that it fits.
    """
    by_occurrence = {number: row for row in rows if (number := as_int(row.get("sample_occurrence"))) is not None}
    if sample.occurrence in by_occurrence:
        return by_occurrence[sample.occurrence], None
    unnumbered = [row for row in rows if as_int(row.get("sample_occurrence")) is None]
    free = [sibling for sibling in siblings if sibling.occurrence not in by_occurrence]
    row = paired(unnumbered, free).get(sample.occurrence)
    if row is None or len(siblings) == 1:
        return row, None
    count = len(siblings)
    return row, f"matched by order: the trajectory file does not distinguish the {count} samples with this index"


def paired(rows: Sequence[Row], samples: Sequence[Sample]) -> dict[int, Row]:
    """Return rows by the occurrence of their sample; rows and samples are in the same order."""
    by_occurrence: dict[int, Row] = {}
    start = 0
    for rows_left, row in zip(range(len(rows), 0, -1), rows, strict=True):
        room = range(start, len(samples) - rows_left + 1)  # every later row needs a sample too
        start = next((position for position in room if fits(row, samples[position])), start)
        if start < len(samples):
            by_occurrence[samples[start].occurrence] = row
        start += 1
    return by_occurrence


def fits(row: Row, sample: Sample) -> bool:
    """Whether a row has the status of a sample, and its last assistant message is part of the response."""
    words = last_words(row)
    return as_text(row.get("status")) == sample.status and (words is None or words in sample.response)


def last_words(row: Row) -> str | None:
    messages = row.get("messages")
    for message in reversed(messages if isinstance(messages, list) else []):
        if isinstance(message, dict) and message.get("role") == "assistant":
            content = message.get("content")
            return content if isinstance(content, str) else None
    return None

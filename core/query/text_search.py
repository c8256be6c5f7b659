"""Search in the texts of samples - prompts, responses and messages - by a regular expression.

Patterns are Rust's, through polars: any pattern takes time proportional to the text, and other threads run meanwhile.
Python's `re` offers neither. The price is that look-around and back-references are not supported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from dumptui.core.errors import DumpError
from dumptui.core.files.retry import read_file
from dumptui.core.files.step_files import StepFiles
from dumptui.core.formats.format import readers_of
from dumptui.core.formats.sample import Sample
from dumptui.core.formats.sidecar import choose
from dumptui.core.process.resources import need_polars
from dumptui.core.ptfile.file import OnRead
from dumptui.core.query.filter_lexer import encodable

CONTEXT_BYTES = 300  # bytes of text kept on each side of a hit
MAX_NESTING = 20  # levels of nesting that are searched for texts
SKIPPED_KEYS = {"role", "type", "id", "tool_call_id"}
"""Entries of messages that hold identifiers, not text."""


class Passage(NamedTuple):
    """A text of a sample. `part` says where it comes from: prompt, response or messages."""

    part: str
    text: str


class Hit(NamedTuple):
    """The first match of a pattern in a sample, with up to AROUND bytes of the text on each side."""

    part: str
    before: str
    match: str
    after: str


def check_pattern(pattern: str) -> None:
    """Raise DumpError, with the reason, for a pattern that can't be compiled."""
    need_polars("search")
    import polars as pl

    try:
        pl.Series([""]).str.contains(encodable(pattern))
    except pl.exceptions.PolarsError as error:
        raise DumpError("search", f"the pattern can't be parsed: {reason(str(error))}") from None


def reason(problem: str) -> str:
    """Return the regex engine's own explanation."""
    if "size limit" in problem:
        return "its repetitions expand to more than 10 MB"
    return problem.split("error: ")[-1].split("\n")[0]


# Texts ----------------------------------------------------------------------------------------------------------


def read_passages(files: StepFiles, on_read: OnRead | None = None) -> list[list[Passage]]:
    """Return the texts of each sample of a step; reads the rollout and trajectory files only. Raises DumpError."""
    if files.rollout is None:
        raise DumpError(str(files.key), "has no rollout file")
    key = files.key
    read = partial(readers_of(files).read_rollout, step=key.step, evaluation=key.evaluation, on_read=on_read)
    return passages_of(files, read_file(files.rollout.path, read).samples)


def passages_of(files: StepFiles, samples: Sequence[Sample]) -> list[list[Passage]]:
    """Return the texts of each of `samples`, with the messages that the step's trajectory file has for them."""
    messages = [sample.metadata.get("messages") for sample in samples]
    recorded = read_recorded(files, samples)
    return [passages(sample, both) for sample, *both in zip(samples, messages, recorded, strict=True)]


def read_recorded(files: StepFiles, samples: Sequence[Sample]) -> list[object]:
    """Return the messages of each sample in the trajectory file, None where it has none."""
    if files.trajectory is None:
        return [None] * len(samples)
    siblings: dict[int | None, list[Sample]] = {}
    for sample in samples:
        siblings.setdefault(sample.index, []).append(sample)
    try:
        sidecar = readers_of(files).open_sidecar(files.trajectory.path)
        rows = {index: sidecar.rows(index) for index in siblings}
    except DumpError:  # Health reports it; the rollout file repeats most of the text
        return [None] * len(samples)
    chosen = [choose(rows[sample.index], siblings[sample.index], sample)[0] for sample in samples]
    return [None if row is None else row.get("messages") for row in chosen]


def passages(sample: Sample, messages: object) -> list[Passage]:
    """Return each text once, under the first part that has it."""
    parts: dict[str, str] = {}
    for part, value in (("prompt", sample.prompt), ("response", sample.response), ("messages", messages)):
        for text in texts(value):
            parts.setdefault(text, part)
    return [Passage(part, text) for text, part in parts.items()]


def texts(value: object, depth: int = 0) -> Iterator[str]:
    """Yield every text in nested lists and mappings, except roles, identifiers and encoded media."""
    if isinstance(value, str):
        if value and not value.startswith("data:"):
            yield value
    elif isinstance(value, Mapping) and depth < MAX_NESTING:
        for key, entry in value.items():
            if key not in SKIPPED_KEYS:
                yield from texts(entry, depth + 1)
    elif isinstance(value, (list, tuple)) and depth < MAX_NESTING:
        for entry in value:
            yield from texts(entry, depth + 1)


# Finding --------------------------------------------------------------------------------------------------------


def first_hit(passages: Sequence[Passage], pattern: str) -> Hit | None:
    """Return the first match in the first passage that has one. `pattern` must have passed `check_pattern`."""
    import polars as pl

    if not passages:
        return None
    series = pl.Series([encodable(passage.text) for passage in passages], dtype=pl.String)
    matching = series.str.contains(encodable(pattern)).arg_true()
    if not len(matching):
        return None
    position = int(matching[0])
    text = series[position : position + 1]
    start, match = text.str.find(encodable(pattern))[0], text.str.extract(encodable(pattern), 0)[0]
    return cut_out(passages[position].part, text[0].encode(), start, match)


def cut_out(part: str, text: bytes, start: int, match: str) -> Hit:
    end = start + len(match.encode())
    before, after = text[max(0, start - CONTEXT_BYTES) : start], text[end : end + CONTEXT_BYTES]
    return Hit(part, before.decode("utf-8", "ignore"), match, after.decode("utf-8", "ignore"))

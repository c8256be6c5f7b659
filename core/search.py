"""Searching what samples say by a regular expression: prompts, responses and messages.

Patterns are Rust's, by way of polars: whatever they are, they take time in proportion to the text, and other threads
run meanwhile. Python's `re` does neither. The price is that there is no look-around and no back-reference.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

from dumptui.core.errors import DumpError
from dumptui.core.filter_words import encodable
from dumptui.core.run import StepFiles, read_file
from dumptui.core.sample import OnRead, Sample, read_rollout
from dumptui.core.values import as_int

Messages: TypeAlias = Mapping[tuple[int | None, int], object]
"""The messages of the trajectory file by index and occurrence of their sample."""

AROUND = 300  # bytes of text kept on each side of a hit
DEEPEST = 20  # levels of nesting in which texts are looked for
UNSAID = {"role", "type", "id", "tool_call_id"}
"""Entries of messages that name things and say nothing."""


class Passage(NamedTuple):
    """`part` says where a text stands: prompt, response or messages."""

    part: str
    text: str


class Hit(NamedTuple):
    """The first place of a sample where the pattern is found."""

    part: str
    before: str
    found: str
    after: str


def check_pattern(pattern: str) -> None:
    """Raises DumpError for what is no pattern, saying why."""
    import polars as pl

    try:
        pl.Series([""]).str.contains(encodable(pattern))
    except pl.exceptions.PolarsError as error:
        raise DumpError("search", f"the pattern can't be read: {reason(str(error))}") from None


def reason(problem: str) -> str:
    """The regex engine's own sentence."""
    if "size limit" in problem:
        return "its repetitions unfold to more than 10 MB"
    return problem.split("error: ")[-1].split("\n")[0]


# Texts ----------------------------------------------------------------------------------------------------------


def read_passages(files: StepFiles, on_read: OnRead | None = None) -> list[list[Passage]]:
    """The texts of each sample of a step, of which only the rollout file is read. Raises DumpError."""
    if files.rollout is None:
        raise DumpError(str(files.key), "has no rollout file")
    key = files.key
    read = partial(read_rollout, step=key.step, evaluation=key.evaluation, on_read=on_read)
    messages = read_messages(files)
    return [passages(sample, messages) for sample in read_file(files.rollout.path, read).samples]


def read_messages(files: StepFiles) -> Messages:
    """Of the trajectory file of a step, if there is one; a line that is no JSON object is left out."""
    found: dict[tuple[int | None, int], object] = {}
    if files.trajectory is None:
        return found
    seen: Counter[int | None] = Counter()
    try:
        with open(files.trajectory.path, "rb") as lines:
            for row in filter(None, map(read_row, lines)):
                index, occurrence = as_int(row.get("sample_index")), as_int(row.get("sample_occurrence"))
                found[index, seen[index] if occurrence is None else occurrence] = row.get("messages")
                seen[index] += 1
    except OSError:  # which the Health pane tells; the rollout file says most of it again
        pass
    return found


def read_row(line: bytes) -> dict[str, object] | None:
    try:
        row = json.loads(line.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def passages(sample: Sample, messages: Messages) -> list[Passage]:
    """Each text once, under the first part that has it."""
    parts = {
        "prompt": sample.prompt,
        "response": sample.response,
        "messages": [sample.metadata.get("messages"), messages.get((sample.index, sample.occurrence))],
    }
    found: dict[str, str] = {}
    for part, value in parts.items():
        for text in texts(value):
            found.setdefault(text, part)
    return [Passage(part, text) for text, part in found.items()]


def texts(value: object, depth: int = 0) -> Iterator[str]:
    """Every text in lists and mappings, but for roles, identities and encoded media."""
    if isinstance(value, str):
        if value and not value.startswith("data:"):
            yield value
    elif isinstance(value, Mapping) and depth < DEEPEST:
        for key, one in value.items():
            if key not in UNSAID:
                yield from texts(one, depth + 1)
    elif isinstance(value, (list, tuple)) and depth < DEEPEST:
        for one in value:
            yield from texts(one, depth + 1)


# Finding --------------------------------------------------------------------------------------------------------


def first_hit(passages: Sequence[Passage], pattern: str) -> Hit | None:
    """`pattern` is one that `check_pattern` lets through."""
    import polars as pl

    if not passages:
        return None
    series = pl.Series([encodable(passage.text) for passage in passages], dtype=pl.String)
    there = series.str.contains(encodable(pattern)).arg_true()
    if not len(there):
        return None
    at = int(there[0])
    one = series[at : at + 1]
    start, found = one.str.find(encodable(pattern))[0], one.str.extract(encodable(pattern), 0)[0]
    return cut_out(passages[at].part, one[0].encode(), start, found)


def cut_out(part: str, text: bytes, start: int, found: str) -> Hit:
    end = start + len(found.encode())
    before, after = text[max(0, start - AROUND) : start], text[end : end + AROUND]
    return Hit(part, before.decode("utf-8", "ignore"), found, after.decode("utf-8", "ignore"))

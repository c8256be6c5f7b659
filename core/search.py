"""Searching what samples say by a regular expression: prompts, responses and messages.

Patterns are Rust's, by way of polars: whatever they are, they take time in proportion to the text, and other threads
run meanwhile. Python's `re` does neither. The price is that there is no look-around and no back-reference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from dumptui.core.errors import DumpError
from dumptui.core.filter_words import encodable
from dumptui.core.run import StepFiles, read_file
from dumptui.core.sample import OnRead, Sample, read_rollout
from dumptui.core.sidecar import Sidecar, choose

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
        return "its repetitions expand to more than 10 MB"
    return problem.split("error: ")[-1].split("\n")[0]


# Texts ----------------------------------------------------------------------------------------------------------


def read_passages(files: StepFiles, on_read: OnRead | None = None) -> list[list[Passage]]:
    """The texts of each sample of a step, of which only the rollout file is read. Raises DumpError."""
    if files.rollout is None:
        raise DumpError(str(files.key), "has no rollout file")
    key = files.key
    read = partial(read_rollout, step=key.step, evaluation=key.evaluation, on_read=on_read)
    return passages_of(files, read_file(files.rollout.path, read).samples)


def passages_of(files: StepFiles, samples: Sequence[Sample]) -> list[list[Passage]]:
    """`samples` are those of the step, to which its trajectory file has messages."""
    messages = [sample.metadata.get("messages") for sample in samples]
    recorded = read_recorded(files, samples)
    return [passages(sample, both) for sample, *both in zip(samples, messages, recorded, strict=True)]


def read_recorded(files: StepFiles, samples: Sequence[Sample]) -> list[object]:
    """The messages of each sample in the trajectory file, None where it has none."""
    if files.trajectory is None:
        return [None] * len(samples)
    siblings: dict[int | None, list[Sample]] = {}
    for sample in samples:
        siblings.setdefault(sample.index, []).append(sample)
    try:
        sidecar = Sidecar.scan(files.trajectory.path)
        rows = {index: sidecar.rows(index) for index in siblings}
    except DumpError:  # which the Health pane tells; the rollout file says most of it again
        return [None] * len(samples)
    found = [choose(rows[sample.index], siblings[sample.index], sample)[0] for sample in samples]
    return [None if row is None else row.get("messages") for row in found]


def passages(sample: Sample, messages: object) -> list[Passage]:
    """Each text once, under the first part that has it."""
    found: dict[str, str] = {}
    for part, value in (("prompt", sample.prompt), ("response", sample.response), ("messages", messages)):
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

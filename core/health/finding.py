"""A problem of a run, and the row of the Health table that reports it."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from dumptui.core.files.step_files import StepKey
from dumptui.core.text import plural
from dumptui.core.types import Record

Level: TypeAlias = Literal["error", "warning", "info"]


class Finding(NamedTuple):
    """One problem; without `key` it concerns the whole run, without `file` no single file.

    `sample` is the first that has it, by index and occurrence, and `token` the position in it.
    """

    level: Level
    problem: str
    key: StepKey | None = None
    file: Path | None = None
    sample: tuple[int | None, int] | None = None
    token: int | None = None


def record_of(root: Path, finding: Finding) -> Record:
    """Return the row of the Health table; its `file` is relative to `root`."""
    key, file = finding.key, finding.file
    name = None if file is None else os.path.relpath(file, root)
    index, occurrence = finding.sample or (None, None)
    return {
        "step": None if key is None else key.step,
        "evaluation": None if key is None else key.evaluation,
        "file": None if name is None else printable(name),
        "level": finding.level,
        "problem": printable(finding.problem),
        "sample_index": index,
        "occurrence": occurrence,
        "token": finding.token,
    }


def count_words(rows: Iterable[Record]) -> list[str]:
    """Return how many errors and warnings there are, such as "6 errors" and "9 warnings"; empty without any."""
    levels = Counter(str(row["level"]) for row in rows)
    return [plural(levels[level], level) for level in ("error", "warning") if levels[level]]


def printable(text: str) -> str:
    """Return a file name as valid Unicode: bytes of it that are not UTF-8 become replacement characters."""
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


def size_of(size: float) -> str:
    for unit in ("B", "KB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"

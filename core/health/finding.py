"""What is found to be wrong with a run, and how it is told."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from dumptui.core.run.run import StepKey
from dumptui.core.types import Record

Level: TypeAlias = Literal["error", "warning", "info"]


class Finding(NamedTuple):
    level: Level
    problem: str
    key: StepKey | None = None
    file: Path | None = None


def record_of(root: Path, finding: Finding) -> Record:
    key, file = finding.key, finding.file
    name = None if file is None else os.path.relpath(file, root)
    return {
        "step": None if key is None else key.step,
        "evaluation": None if key is None else key.evaluation,
        "file": None if name is None else printable(name),
        "level": finding.level,
        "problem": printable(finding.problem),
    }


def printable(text: str) -> str:
    """A file name need not be text: bytes of it that are none become replacement marks."""
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


def size_of(size: float) -> str:
    for unit in ("B", "KB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"

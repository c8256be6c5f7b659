"""A defect of dumptui itself, in the words that a report of it needs."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import NamedTuple

from dumptui import __version__
from dumptui.core.text import visible

ROOT = Path(__file__).parents[1]
GUARD = "tui/terminal/defects.py"  # its frames only pass the exception on


class Defect(NamedTuple):
    """What to report of an exception: its type and text, where it was raised, and the version."""

    what: str
    where: str

    def __str__(self) -> str:
        return f"{self.what} at {self.where}, dumptui {__version__}"


def defect_of(error: BaseException) -> Defect:
    """Return what to report of an exception; `where` is the innermost line of dumptui itself, else of the library."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if ROOT in Path(frame.filename).parents and not frame.filename.endswith(GUARD)]
    last = (own or frames)[-1:]
    where = f"{Path(last[0].filename).name}:{last[0].lineno}" if last else "an unknown line"
    return Defect(visible(f"{type(error).__name__}: {error}".removesuffix(": ")), where)

"""What is on screen, written to a file that was not there before and is not in the run."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path

from dumptui.core.errors import DumpError
from dumptui.core.record import Record
from dumptui.core.run import Run
from dumptui.core.state import inside
from dumptui.tui.output import cell, columns, to_csv, to_json
from dumptui.tui.sheets import Sheet

MARKUP = re.compile(r"([\\`*\[\]<>|~&#])")  # what Markdown would obey; an underscore within a word it leaves alone


def to_markdown(rows: Sequence[Record]) -> str:
    names = columns(rows)
    lines = [names, ["---"] * len(names)]
    lines += [[escaped(cell(row.get(name))) for name in names] for row in rows]
    lines[0] = [escaped(cell(name)) for name in names]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def escaped(text: str) -> str:
    return MARKUP.sub(r"\\\1", text)


FORMS: dict[str, Callable[[Sheet], str]] = {
    "csv": lambda sheet: to_csv(sheet.rows()),
    "json": lambda sheet: to_json(sheet.document()) + "\n",
    "md": lambda sheet: to_markdown(sheet.rows()),
}
LABELS = {"csv": "CSV", "json": "JSON", "md": "Markdown"}


def folder_for(run: Run) -> Path:
    """The working directory, or where that belongs to the run, the home directory. Raises DumpError for neither."""
    for folder in (Path.cwd(), Path(os.path.expanduser("~"))):
        if folder.is_absolute() and not any(inside(folder, own) for own in folders(run)):
            return folder
    raise DumpError(Path.cwd(), "is inside the run, where dumptui never writes; start it in another folder")


def folders(run: Run) -> set[Path]:
    """The run, and where its dumps are if links lead out of it."""
    return {run.root, *(entry.path.parent for files in run.steps.values() for entry in files.entries())}


def write_new(folder: Path, stem: str, suffix: str, text: str) -> Path:
    """Write `stem.suffix`, or `stem-2.suffix` and so on where that is taken. Raises OSError."""
    for number in count(1):
        path = folder / f"{stem}{f'-{number}' if number > 1 else ''}.{suffix}"
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            continue
        with open(descriptor, "w", encoding="utf-8", errors="backslashreplace", newline="") as file:
            file.write(text)
        return path
    raise AssertionError

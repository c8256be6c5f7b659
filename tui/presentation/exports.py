"""What is on screen, written to a file that was not there before and is not in the run."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path

from dumptui.core.errors import DumpError
from dumptui.core.run.run import Run
from dumptui.core.store.xdg import inside
from dumptui.core.types import Record
from dumptui.tui.cell_formats.tables import cell, columns, to_csv, to_json
from dumptui.tui.presentation.sheets import Sheet

FOLDER = 48  # characters of a folder in a message
MARKDOWN_MARKUP = re.compile(
    r"([\\`*\[\]<>|~&#])"
)  # what Markdown would obey; an underscore within a word it leaves alone


def to_markdown(rows: Sequence[Record]) -> str:
    names = columns(rows)
    lines = [names, ["---"] * len(names)]
    lines += [[escaped(cell(row.get(name))) for name in names] for row in rows]
    lines[0] = [escaped(cell(name)) for name in names]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def escaped(text: str) -> str:
    return MARKDOWN_MARKUP.sub(r"\\\1", text)


EXPORT_FORMATS: dict[str, Callable[[Sheet], str]] = {
    "csv": lambda sheet: to_csv(sheet.rows()),
    "json": lambda sheet: to_json(sheet.document()) + "\n",
    "md": lambda sheet: to_markdown(sheet.rows()),
}
FORMAT_LABELS = {"csv": "CSV", "json": "JSON", "md": "Markdown"}


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
    """Write `stem.suffix`, or `stem-2.suffix` and so on where that is taken. Raises DumpError.

    The name is given to a file that is whole: a full disk, or an end of the program, leaves no part of one under it.
    """
    new = folder / f".{stem}.{suffix}.new-{os.getpid()}"
    try:
        try:
            write_whole(new, text.encode("utf-8", "backslashreplace"))
            return next(path for path in names(folder, stem, suffix) if take_name(new, path))
        finally:
            new.unlink(missing_ok=True)
    except OSError as error:
        raise DumpError(in_folder(folder / f"{stem}.{suffix}"), error.strerror or str(error)) from error


def write_whole(path: Path, data: bytes) -> None:
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    with open(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(descriptor)  # only here do some file systems report that they are full


def names(folder: Path, stem: str, suffix: str) -> Iterator[Path]:
    return (folder / f"{stem}{f'-{number}' if number > 1 else ''}.{suffix}" for number in count(1))


def take_name(new: Path, path: Path) -> bool:
    """Whether the file has that name now; it is nobody else's. Raises OSError."""
    try:
        os.link(new, path)
    except FileExistsError:
        return False
    except OSError:  # a file system without links
        if os.path.lexists(path):
            return False
        new.rename(path)
    return True


def in_folder(path: Path) -> str:
    """The whole name of a file, and as much of the folder as there is room for."""
    folder, home = str(path.parent), os.path.expanduser("~")
    if os.path.isabs(home) and path.parent.is_relative_to(home):
        folder = str(Path("~") / path.parent.relative_to(home))
    return f"{path.name} in {folder if len(folder) <= FOLDER else '…' + folder[1 - FOLDER :]}"

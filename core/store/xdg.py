"""The user's folders for a program's files, by the XDG base directory specification."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from pathlib import Path

TEMPORARY_PREFIX = ".new-"
LEFTOVER_SECONDS = 60.0  # age from which a temporary file is nobody's: it is written within a moment


def own_folder(folder: Path) -> None:
    """Make a folder and its parents, readable by the user alone, as it may hold prompts. Raises OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_mode & 0o077:
        folder.chmod(0o700)


def inside(path: Path, folder: Path) -> bool:
    """Whether `path` is, or would be, in `folder` or below, after following links."""
    return path.resolve().is_relative_to(folder.resolve())


def replace_file(path: Path, text: str) -> None:
    """Replace a file as a whole, or leave the old one unchanged. Raises OSError."""
    remove_leftovers(path.parent)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=TEMPORARY_PREFIX)
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def remove_leftovers(folder: Path) -> None:
    """Remove the temporary files of processes that were killed while they wrote one."""
    for path in folder.glob(f"{TEMPORARY_PREFIX}*"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > LEFTOVER_SECONDS:
                path.unlink()


def xdg_folder(variable: str, default: str) -> Path | None:
    """Return dumptui's folder in that of an environment variable, else in `default` of the home; None without one."""
    folder = os.environ.get(variable, "")
    if os.path.isabs(folder):  # the XDG specification says to ignore relative paths
        return Path(folder) / "dumptui"
    home = os.path.expanduser("~")
    return Path(home, default, "dumptui") if os.path.isabs(home) else None

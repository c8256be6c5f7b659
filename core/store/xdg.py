"""Where a program keeps what is the user's: the folders of the XDG base directory specification."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def own_folder(folder: Path) -> None:
    """Make a folder, and those above it, that nobody else can look into: prompts may be in there. Raises OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_mode & 0o077:
        folder.chmod(0o700)


def inside(path: Path, folder: Path) -> bool:
    """Whether `path` is, or would be, in `folder` or below, wherever links lead."""
    return path.resolve().is_relative_to(folder.resolve())


def replace_file(path: Path, text: str) -> None:
    """Write a file whole, or leave what was there and nothing else. Raises OSError."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def xdg_folder(variable: str, default: str) -> Path | None:
    """dumptui's folder in that of a variable, by default in `default` of the home; None for a user without one."""
    given = os.environ.get(variable, "")
    if os.path.isabs(given):  # others are to be ignored, by the XDG specification
        return Path(given) / "dumptui"
    home = os.path.expanduser("~")
    return Path(home, default, "dumptui") if os.path.isabs(home) else None

"""The user's folders for a program's files, by the XDG base directory specification."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


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
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def xdg_folder(variable: str, default: str) -> Path | None:
    """Return dumptui's folder in that of an environment variable, else in `default` of the home; None without one."""
    folder = os.environ.get(variable, "")
    if os.path.isabs(folder):  # the XDG specification says to ignore relative paths
        return Path(folder) / "dumptui"
    home = os.path.expanduser("~")
    return Path(home, default, "dumptui") if os.path.isabs(home) else None

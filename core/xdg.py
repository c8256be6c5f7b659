"""Where a program keeps what is the user's: the folders of the XDG base directory specification."""

from __future__ import annotations

import os
from pathlib import Path


def xdg_folder(variable: str, default: str) -> Path | None:
    """dumptui's folder in that of a variable, by default in `default` of the home; None for a user without one."""
    given = os.environ.get(variable, "")
    if os.path.isabs(given):  # others are to be ignored, by the XDG specification
        return Path(given) / "dumptui"
    home = os.path.expanduser("~")
    return Path(home, default, "dumptui") if os.path.isabs(home) else None

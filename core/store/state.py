"""The settings that a user chose for a run, saved between starts and outside the run."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from pathlib import Path
from typing import Any

from dumptui.core.ptfile.snapshot import NotAFile, TooLarge, read_bounded
from dumptui.core.store.xdg import inside, own_folder, replace_file, xdg_folder
from dumptui.core.text import visible

MAX_FILE_BYTES = 16 << 20  # larger files are not read; settings take a few KB

REWARD_KEY = "reward.entry"


def state_folder() -> Path | None:
    """Return $XDG_STATE_HOME/dumptui, by default ~/.local/state/dumptui; None for a user without a home."""
    return xdg_folder("XDG_STATE_HOME", ".local/state")


class State:
    """JSON values by name, in one file per run: `{"run": its path, "chosen": {name: value}}`.

    A file that can't be read or written raises nothing: `problem` says why in one sentence, and new values last as long
    as this object. The file is read again and replaced as a whole by rename, so two dumptui at once keep each other's
    names, and the last value of a name stays. A broken file is renamed, not deleted.
    """

    def __init__(self, root: Path | None, folder: Path | None) -> None:
        """`root` is the run, None for settings of all runs; `folder` is where to save them, None to save nothing."""
        self.problem: str | None = None
        self._run = "" if root is None else os.fspath(root.resolve())
        self._unsaved: dict[str, Any] = {}
        self._path = None if folder is None else folder / f"{self._name()}.json"
        if root is not None and self._path is not None and inside(self._path, root):
            self._path = None
            self.problem = "settings not saved: XDG_STATE_HOME is inside the run, and dumptui never writes there"

    @classmethod
    def of(cls, root: Path | None) -> State:
        return cls(root, state_folder())

    def _name(self) -> str:
        return hashlib.blake2b(os.fsencode(self._run), digest_size=12).hexdigest() if self._run else "all-runs"

    def get(self, name: str, default: Any = None) -> Any:
        """Return the last value of a name, also if another dumptui put it. It comes from a file: check its type."""
        return self._unsaved[name] if name in self._unsaved else self._load().get(name, default)

    def put(self, name: str, value: Any) -> None:
        """Save a JSON value; None removes the name."""
        self._unsaved[name] = value
        if self._path is None:
            return
        chosen = self._load() | self._unsaved
        try:
            self._store({name: choice for name, choice in chosen.items() if choice is not None})
            self._unsaved.clear()
        except OSError as error:
            self.problem = f"settings not saved: {visible(str(self._path))}: {error.strerror or error}"

    def _load(self) -> dict[str, Any]:
        if self._path is None:
            return {}
        try:
            return read_choices(self._path)
        except FileNotFoundError:
            return {}
        except (ValueError, RecursionError, NotAFile, TooLarge):
            self.problem = f"settings can't be read: {visible(str(self._path))} is damaged and was renamed"
            with contextlib.suppress(OSError):
                os.replace(self._path, self._path.with_suffix(".broken"))
        except OSError as error:
            self.problem = f"settings can't be read: {visible(str(self._path))}: {error.strerror or error}"
        return {}

    def _store(self, chosen: dict[str, Any]) -> None:
        assert self._path is not None
        own_folder(self._path.parent)
        replace_file(self._path, json.dumps({"run": self._run, "chosen": chosen}, indent=1))


def read_choices(path: Path) -> dict[str, Any]:
    """Return the values of a settings file. Raises OSError, or ValueError if it is not one."""
    document = json.loads(read_bounded(path, MAX_FILE_BYTES))
    chosen = document.get("chosen") if isinstance(document, dict) else None
    if not isinstance(chosen, dict):
        raise ValueError("it holds no settings")
    return chosen


def kept_reward_key(state: State) -> str | None:
    """Return the entry that was last chosen as the reward of a run whose rewards are dicts; None for the default."""
    value = state.get(REWARD_KEY)
    return value if isinstance(value, str) else None

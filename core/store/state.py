"""What a person chose for a run, kept between starts and outside the run."""

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

MAX_FILE_BYTES = 16 << 20  # bytes of a file that is read; what people choose comes to a few KB


def state_folder() -> Path | None:
    """$XDG_STATE_HOME/dumptui, by default ~/.local/state/dumptui."""
    return xdg_folder("XDG_STATE_HOME", ".local/state")


class State:
    """JSON values by name, in one file a run: `{"run": its path, "chosen": {name: value}}`.

    Nothing here raises for a file that can't be read or written: `problem` then says why in one sentence, and what was
    put lasts as long as this object. The file is replaced whole by rename and read again before, so of two dumptui at
    once each keeps the names that it puts, and of one name the last value stays. A broken file is set aside, not lost.
    """

    def __init__(self, root: Path | None, folder: Path | None) -> None:
        """`root` is the run, None for what holds for all runs; `folder` is where to keep it, None to keep nothing."""
        self.problem: str | None = None
        self._run = "" if root is None else os.fspath(root.resolve())
        self._unkept: dict[str, Any] = {}
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
        """The value last put, also by another dumptui. It comes from a file: check its type before use."""
        return self._unkept[name] if name in self._unkept else self._load().get(name, default)

    def put(self, name: str, value: Any) -> None:
        """Keep a JSON value; None forgets the name."""
        self._unkept[name] = value
        if self._path is None:
            return
        chosen = self._load() | self._unkept
        try:
            self._store({name: one for name, one in chosen.items() if one is not None})
            self._unkept.clear()
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
    """Raises OSError, or ValueError for what is not such a file."""
    document = json.loads(read_bounded(path, MAX_FILE_BYTES))
    chosen = document.get("chosen") if isinstance(document, dict) else None
    if not isinstance(chosen, dict):
        raise ValueError("it holds no settings")
    return chosen

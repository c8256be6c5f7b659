"""Files that a file system refuses, and files of other programs."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

FOREIGN = ["latest.pt", "0.pt.tmp", "notes.txt", "5_bak.pt", ".nfs0001", "0 (copy).pt", "eval_x.pt", "07.pt", "٣.pt"]


def once(error: OSError, call: Callable[..., Any]) -> Callable[..., Any]:
    """The real thing cannot be made: `call` that fails the first time, as on a file that a server has replaced."""
    errors = [error]

    def failing(*args: Any, **kwargs: Any) -> Any:
        if errors:
            raise errors.pop()
        return call(*args, **kwargs)

    return failing


def stale_handle() -> OSError:
    return OSError(errno.ESTALE, os.strerror(errno.ESTALE))


class Refusals:
    """Paths that the file system refuses, they and all below them: a mode does not stop root, so the calls do."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._paths: set[Path] = set()
        for name in ("open", "listdir", "scandir"):
            patch.setattr(os, name, self._refusing(getattr(os, name)))

    def refuse(self, path: Path) -> None:
        self._paths.add(path)
        path.chmod(0)

    def heal(self, path: Path) -> None:
        self._paths.remove(path)
        path.chmod(0o750 if path.is_dir() else 0o640)

    def _refusing(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def refusing(path: Any = ".", *args: Any, **kwargs: Any) -> Any:
            if self._paths and not isinstance(path, int) and not self._paths.isdisjoint(self._above(path)):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), os.fspath(path))
            return call(path, *args, **kwargs)

        return refusing

    def _above(self, path: Any) -> tuple[Path, ...]:
        here = Path(os.fsdecode(path))
        return here, *here.parents

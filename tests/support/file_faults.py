"""Files that a file system refuses, and files of other programs."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Any

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

"""One thing worked out in a process of its own while this one does another."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from typing import TypeVar

from dumptui.core.process import isolated_reader

Answer = TypeVar("Answer")


def beside(work: Callable[[], Answer]) -> Callable[[], Answer | None]:
    """Begin `work` in a fork of this process, which may have no threads yet; what is given back waits for the answer,
    None where that process died of its work.
    """
    ours, theirs = os.pipe()
    try:
        child = os.fork()
    except OSError:  # the user may have no more processes
        os.close(ours)
        os.close(theirs)
        return work
    if child == 0:
        try:
            isolated_reader.may_die()
            with open(theirs, "wb") as pipe:
                pickle.dump(work(), pipe)
        finally:
            os._exit(0)  # nothing of this process is to be done a second time in that one
    os.close(theirs)

    def answer() -> Answer | None:
        with open(ours, "rb") as pipe:
            said = pipe.read()
        os.waitpid(child, 0)
        return pickle.loads(said) if said else None

    return answer

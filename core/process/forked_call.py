"""A function call in a forked process, while this process continues."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from typing import TypeVar

from dumptui.core.process import isolated_reader

Answer = TypeVar("Answer")


def start_forked(work: Callable[[], Answer]) -> Callable[[], Answer | None]:
    """Start `work` in a fork of this process, which must not have threads yet.

    The returned function waits for the answer, which is None if the fork died. Without a fork, it is `work` itself.
    """
    read_end, write_end = os.pipe()
    try:
        child = os.fork()
    except OSError:  # the user may have no more processes
        os.close(read_end)
        os.close(write_end)
        return work
    if child == 0:
        try:
            isolated_reader.may_die()
            with open(write_end, "wb") as pipe:
                pickle.dump(work(), pipe)
        finally:
            os._exit(0)  # the fork must not run the clean-up of this process
    os.close(write_end)

    def answer() -> Answer | None:
        with open(read_end, "rb") as pipe:
            pickled = pipe.read()
        os.waitpid(child, 0)
        return pickle.loads(pickled) if pickled else None

    return answer

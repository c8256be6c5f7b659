"""A temporary folder that is removed when this process ends, however it ends."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
TRIES, TRY_SECONDS = 40, 0.05
"""How often removal is tried, as a fork of this process may still be writing into the folder."""


@contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """Make a temporary folder; call this before any thread is started.

    A separate process removes it after this one ends. A signal handler can't: not every signal can be handled, and what
    a handler raises is lost in `__del__`.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING_SIGNALS)
    try:
        folder = Path(tempfile.mkdtemp(prefix=prefix))
        pipe, child = start_cleaner(folder)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    try:
        yield folder
    finally:
        os.close(pipe)
        if child is None:
            remove(folder)
        else:
            os.waitpid(child, 0)


def start_cleaner(folder: Path) -> tuple[int, int | None]:
    """Return the end of a pipe that this process must keep open, and the process that waits for it to close."""
    read_end, write_end = os.pipe()
    try:
        child = os.fork()
    except OSError:  # the user may have no more processes
        os.close(read_end)
        return write_end, None
    if child:
        os.close(read_end)
        return write_end, child
    try:
        os.setsid()  # signals to the processes of the terminal do not end this one
        os.close(write_end)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):  # a reader of this process's output need not wait for the cleaner
            os.dup2(nowhere, descriptor)
        os.read(read_end, 1)
        remove(folder)
    finally:
        os._exit(0)


def remove(folder: Path) -> None:
    for _ in range(TRIES):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(TRY_SECONDS)

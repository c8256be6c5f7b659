"""A temporary folder that goes away with this process, however that ends."""

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
"""How often it is removed: of this process, a fork may still be writing into it."""


@contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """To be begun before there are threads.

    A process of its own removes it once this one is gone: a handler of a signal can't do that for each of them, nor
    wherever they come, as what it raises is lost in `__del__`.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING_SIGNALS)
    try:
        folder = Path(tempfile.mkdtemp(prefix=prefix))
        ours, child = start_cleaner(folder)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    try:
        yield folder
    finally:
        os.close(ours)
        if child is None:
            remove(folder)
        else:
            os.waitpid(child, 0)


def start_cleaner(folder: Path) -> tuple[int, int | None]:
    """The end of a pipe that this process has to keep open, and the process that waits for its closing."""
    theirs, ours = os.pipe()
    try:
        child = os.fork()
    except OSError:  # the user may have no more processes
        os.close(theirs)
        return ours, None
    if child:
        os.close(theirs)
        return ours, child
    try:
        os.setsid()  # what ends the terminal's processes does not end this one
        os.close(ours)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):  # nobody who reads what this process wrote has to wait for that one
            os.dup2(nowhere, descriptor)
        os.read(theirs, 1)
        remove(folder)
    finally:
        os._exit(0)


def remove(folder: Path) -> None:
    for _ in range(TRIES):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(TRY_SECONDS)

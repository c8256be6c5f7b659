"""Whether this process may have what polars takes: without it, that panics or waits for ever in place of saying so."""

from __future__ import annotations

import mmap
import os
import sys
import threading

from dumptui.core.errors import NotHere

POLARS_THREADS = min(4, os.cpu_count() or 1)
"""A login node has 128 cores, and polars a thread for each unless it is asked for fewer."""
OTHER_THREADS = 12  # of polars: 10 of allocator, clean-up, input and output were counted
ADDRESS_SPACE = 1 << 30
"""Bytes that polars reserves: 0.9 GB with 2 threads, of which it touches 50 MB."""


def cap_polars() -> None:
    """To be called before polars is imported."""
    os.environ.setdefault("POLARS_MAX_THREADS", str(POLARS_THREADS))


def need_polars(path: str | os.PathLike[str]) -> None:
    """Raises NotHere of `path` where polars is not loaded and this process may not have what it takes: 1 ms."""
    if "polars" in sys.modules:
        return
    cap_polars()
    if not can_have_threads(POLARS_THREADS + OTHER_THREADS):
        raise NotHere(path, "no more threads may be started (ulimit -u, -v)")
    if not can_have_bytes(ADDRESS_SPACE):
        raise NotHere(path, f"polars needs {ADDRESS_SPACE >> 30} GiB of address space (ulimit -v)")


def can_have_threads(count: int) -> bool:
    """Whether so many may run at once: they are started, and ended again."""
    over = threading.Event()
    started: list[threading.Thread] = []
    try:
        for _ in range(count):
            thread = threading.Thread(target=over.wait, daemon=True)
            thread.start()
            started.append(thread)
    except RuntimeError:  # can't start new thread
        return False
    finally:
        over.set()
        for thread in started:
            thread.join()
    return True


def can_have_bytes(count: int) -> bool:
    """Whether so many may be mapped; none is touched."""
    try:
        mmap.mmap(-1, count, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=0).close()
    except (OSError, MemoryError):
        return False
    return True

"""Checks of the threads and memory that polars needs: without them it panics or waits for ever instead of raising."""

from __future__ import annotations

import mmap
import os
import resource
import sys
import threading

from dumptui.core.errors import NotHere

M_ARENA_MAX = -8
"""From glibc's malloc.h."""
POLARS_THREADS = min(4, os.cpu_count() or 1)
"""Polars starts a thread per core by default; a login node has 128."""
OTHER_THREADS = 12  # other threads of polars: 10 were counted, for allocation, clean-up, input and output
WORTH_ASKING = 256 << 20
"""Bytes from which dumptui asks how much memory is left, which takes 0.1 ms."""
ADDRESS_SPACE = 1 << 30
"""Bytes that polars reserves: 0.9 GB with 2 threads, of which it touches 50 MB."""


def spare_address_space() -> None:
    """Let all threads allocate in one place where address space is limited (ulimit -v).

    glibc reserves 64 MiB and more for each thread: 1,130 MiB for the screen, 180 MiB of them with a single arena.
    """
    if resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
        return
    import ctypes

    os.environ.setdefault("MALLOC_ARENA_MAX", "1")  # for the workers
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # other C libraries have none
    if mallopt is not None:
        mallopt(M_ARENA_MAX, 1)


def cap_polars() -> None:
    """Limit the threads of polars; call this before it is imported."""
    os.environ.setdefault("POLARS_MAX_THREADS", str(POLARS_THREADS))


def need_polars(path: str | os.PathLike[str]) -> None:
    """Raise NotHere for `path` if polars is not loaded and this process lacks the resources for it. Takes 1 ms."""
    if "polars" in sys.modules:
        return
    cap_polars()
    if not can_have_threads(POLARS_THREADS + OTHER_THREADS):
        raise NotHere(path, "no more threads can be started (ulimit -u, -v)")
    if not can_have_bytes(ADDRESS_SPACE):
        raise NotHere(path, f"polars needs {ADDRESS_SPACE >> 30} GiB of address space (ulimit -v)")


def can_have_threads(count: int) -> bool:
    """Whether `count` threads can run at once: they are started, and ended again."""
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


def can_hold(count: int) -> bool:
    """Whether so many bytes fit in the memory that is left, as far as is known; few always do."""
    if count < WORTH_ASKING:
        return True
    left = memory_left()
    return left is None or count <= left


def memory_left() -> int | None:
    """In bytes, that of a batch job's cgroup where it has one; None where the system doesn't say."""
    left = []
    try:
        with open("/proc/meminfo", "rb") as meminfo:
            fields = dict(line.split(b":", 1) for line in meminfo)
        left.append(int(fields[b"MemAvailable"].split()[0]) << 10)
        with open("/sys/fs/cgroup/memory.max", "rb") as most, open("/sys/fs/cgroup/memory.stat", "rb") as stat:
            used = dict(line.split() for line in stat)[b"anon"]  # what is kept of files gives way
            left.append(int(most.read()) - int(used))  # "max" is no number
    except (OSError, ValueError, LookupError):
        pass
    return min(left, default=None)


def can_have_bytes(count: int) -> bool:
    """Whether `count` bytes can be mapped; none is touched."""
    try:
        mmap.mmap(-1, count, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=0).close()
    except (OSError, MemoryError):
        return False
    return True

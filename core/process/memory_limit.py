"""A ceiling on this process's memory while a file is unpickled.

One opcode of a hostile pickle of 20 bytes (LONG_BINPUT with index 2**32 - 1) makes the C unpickler allocate,
and touch, 64 GB. That can't be turned off, but a soft RLIMIT_AS makes it raise a MemoryError.
"""

from __future__ import annotations

import os
import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_holders = 0
_before = (0, 0)


@contextmanager
def memory_ceiling(allowance: int) -> Iterator[None]:
    """Limit the growth of the process to `allowance` bytes of address space; beyond it, MemoryError is raised inside.

    The limit holds for the whole process: overlapping ceilings add up, never fall below the memory in use, and
    the last to end restores the old limit. Without /proc the size of the process is unknown: no ceiling.
    """
    held = _raise_ceiling(allowance)
    try:
        yield
    finally:
        if held:
            _restore_ceiling()


def _raise_ceiling(allowance: int) -> bool:
    global _holders, _before
    used = _address_space()
    if used is None:
        return False
    with _lock:
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        if _holders == 0:
            _before = (soft, hard)
            ceiling = used + allowance
        else:
            ceiling = max(used, soft) + allowance
        original = _before[0]
        if original != resource.RLIM_INFINITY:
            ceiling = min(ceiling, original)
        try:
            resource.setrlimit(resource.RLIMIT_AS, (ceiling, hard))
        except (ValueError, OSError):
            return False
        _holders += 1
        return True


def may_grow(growth: int) -> bool:
    """Whether the permanent limit of the process allows it to grow by so many bytes, as far as is known."""
    used = _address_space()
    with _lock:
        limit = _before[0] if _holders else resource.getrlimit(resource.RLIMIT_AS)[0]
    return used is None or limit == resource.RLIM_INFINITY or used + growth <= limit


def _restore_ceiling() -> None:
    global _holders
    with _lock:
        _holders -= 1
        if _holders == 0:
            resource.setrlimit(resource.RLIMIT_AS, _before)


def _address_space() -> int | None:
    try:
        with open("/proc/self/statm", "rb", buffering=0) as statm:
            return int(statm.read(64).split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return None

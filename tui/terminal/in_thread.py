"""A call in a thread beside the event loop, which goes on painting meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def in_thread(call: Callable[..., T], *args: object) -> T:
    """Return `call(*args)` from a thread beside the event loop; from the loop itself if no more threads may start."""
    begun = False

    def begin() -> T:
        nonlocal begun
        begun = True
        return call(*args)

    try:
        return await asyncio.to_thread(begin)
    except RuntimeError:
        if begun:
            raise
        return call(*args)

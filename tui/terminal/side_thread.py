"""A call in a thread beside the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def aside(call: Callable[..., T], *args: object) -> T:
    """`call(*args)` in a thread beside the event loop; in the loop where there may be no more threads."""
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

"""A few processes for independent steps, so that scanning a long run uses every core and keeps none from the screen."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from multiprocessing.connection import wait
from typing import Any, TypeVar

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")

MOST = 4  # a login node is shared
ENDING_SECONDS = 1.0
_TOGETHER = 4  # items a task: handing one out takes as long as a tenth of a small step
_AHEAD = 4  # tasks handed out for each process: enough to keep it busy, few enough to stop at once


class Workers:
    """Forked from this process, so to be made before it has threads. They end with it, however it ends."""

    def __init__(self) -> None:
        self._count = max(1, min(MOST, os.cpu_count() or 1))
        context = multiprocessing.get_context("fork")
        self._pool = ProcessPoolExecutor(self._count, mp_context=context, initializer=end_with_parent)
        self._pool.submit(os.getpid).result()  # all are forked at the first task

    def map(self, function: Callable[[Asked], Answer], items: Iterable[Asked]) -> Iterator[Answer]:
        """What `function` makes of each item, in order. Raises BrokenProcessPool when a process dies."""
        waiting: deque[Future[list[Answer]]] = deque()
        coming = iter(items)
        while some := list(islice(coming, _TOGETHER)):
            waiting.append(self._pool.submit(make_each, function, some))
            if len(waiting) >= self._count * _AHEAD:
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()

    def submit(self, function: Callable[[], Answer]) -> Future[Answer]:
        """One task, beside all others."""
        return self._pool.submit(function)

    def close(self) -> None:
        """Do not wait for what is being worked out; but for the pool's own thread, which at the exit of Python would
        find its pipe closed and say so on the terminal.
        """
        processes = list((self._pool._processes or {}).values())
        manager: Any = self._pool._executor_manager_thread
        self._pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.kill()
        if manager is not None:
            manager.join(ENDING_SECONDS)  # a process that reads from a file system that is gone can't be killed


def make_each(function: Callable[[Asked], Answer], items: Sequence[Asked]) -> list[Answer]:
    return [function(item) for item in items]


def end_with_parent() -> None:
    """In a worker: a parent that was killed leaves no one to say that the work is over."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def end() -> None:
        wait([parent.sentinel])
        os._exit(0)

    threading.Thread(target=end, daemon=True).start()


__all__ = ["BrokenProcessPool", "Workers"]

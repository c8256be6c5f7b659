"""A few processes that read steps, so that scanning a long run uses every core and does not slow the screen."""

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

from dumptui.core.process.resources import can_have_threads

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")

MAX_PROCESSES = 4  # a login node is shared
PROCESS_COUNT = max(1, min(MAX_PROCESSES, os.cpu_count() or 1))
ENDING_SECONDS = 1.0
_ITEMS_PER_TASK = 4  # items per task: submitting a task takes a tenth of the time of a small step
_OTHER_THREADS = 12  # of the pool, the screen and the reader; each worker is a process and a thread
_TASKS_AHEAD = 4  # tasks submitted per process: enough to keep it busy, few enough to stop at once


class Workers:
    """Worker processes, forked before this process has threads. They end with it, however it ends."""

    @classmethod
    def begin(cls) -> Workers | None:
        """Start the workers; return None if processes, threads or semaphores for them are lacking."""
        if not can_have_threads(
            2 * PROCESS_COUNT + _OTHER_THREADS
        ):  # without a thread of its own the pool waits for ever
            return None
        try:
            return cls()
        except (OSError, RuntimeError, ImportError, BrokenProcessPool):  # such as a /dev/shm that is full or missing
            return None

    def __init__(self) -> None:
        context = multiprocessing.get_context("fork")
        self._pool = ProcessPoolExecutor(PROCESS_COUNT, mp_context=context, initializer=end_with_parent)
        try:
            self._pool.submit(os.getpid).result()  # all are forked at the first task
        except BaseException:
            self.close()
            raise

    def map(self, function: Callable[[Asked], Answer], items: Iterable[Asked]) -> Iterator[Answer]:
        """Yield `function(item)` of each item, in order. Raises BrokenProcessPool when a process dies."""
        waiting: deque[Future[list[Answer]]] = deque()
        coming = iter(items)
        while some := list(islice(coming, _ITEMS_PER_TASK)):
            waiting.append(self._pool.submit(make_each, function, some))
            if len(waiting) >= PROCESS_COUNT * _TASKS_AHEAD:
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()

    def submit(self, function: Callable[[], Answer]) -> Future[Answer]:
        """Start a single task in the pool."""
        return self._pool.submit(function)

    def close(self) -> None:
        """Kill the workers without waiting for their tasks, but wait for the pool's own thread: at the exit of Python
        it would find its pipe closed and print a traceback.
        """
        processes = list((self._pool._processes or {}).values())
        manager: Any = self._pool._executor_manager_thread
        self._pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.kill()
        if manager is not None and manager.is_alive():
            manager.join(ENDING_SECONDS)  # a process can't be killed while it reads from a lost file system


def make_each(function: Callable[[Asked], Answer], items: Sequence[Asked]) -> list[Answer]:
    return [function(item) for item in items]


def end_with_parent() -> None:
    """Make this worker end when its parent is killed, which then can't end it."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def end() -> None:
        wait([parent.sentinel])
        os._exit(0)

    try:
        threading.Thread(target=end, daemon=True).start()
    except RuntimeError:  # without that thread the worker might outlive its parent
        os._exit(1)


__all__ = ["BrokenProcessPool", "Workers"]

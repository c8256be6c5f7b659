"""The thread that everything is read in: one thing at a time, and a newer wish goes before an older one."""

from __future__ import annotations

import asyncio
import contextlib
import math
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Timer
from typing import TypeVar

T = TypeVar("T")
REST_SECONDS = 0.05
"""Seconds at most that one key keeps waiting what is read: with two threads at work a key takes twice its time."""
NAP_SECONDS = 0.002
# Seconds until this thread lets the screen's go on: with Python's own 5 ms, a wake-up waits 2 ms in place of 0.2.
SWITCH_SECONDS = 0.0005


class Abandoned(BaseException):
    """What was being read is no longer wanted. It passes what catches an Exception, as that would be a defect."""


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


class ReaderThread:
    """Calls wait in a queue; a wish is a call that is left undone when another one is made before it has begun."""

    def __init__(self, name: str, failed: Callable[[BaseException], object] = lambda error: None) -> None:
        """`failed` is told, in the thread, of what a call raised that nobody waits for."""
        sys.setswitchinterval(SWITCH_SECONDS)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._failed = failed
        self._wish = 0  # counts the wishes
        self._served = 0  # the one that was begun last; of the thread alone
        self._held_until = 0.0
        self._rests_until = -math.inf
        self.closed = False

    def wish(self, answer: Callable[..., None], *args: object) -> None:
        self._wish += 1
        self.go_on()  # this is what somebody waits for
        self.soon(self._serve, self._wish, answer, *args)

    def abandon(self) -> None:
        self.wish(lambda: None)

    def soon(self, call: Callable[..., None], *args: object) -> None:
        """When all that was asked before is done."""
        with contextlib.suppress(RuntimeError):  # closed meanwhile
            self._pool.submit(self._call, call, *args)

    def _call(self, call: Callable[..., None], *args: object) -> None:
        try:
            call(*args)
        except Abandoned:
            pass
        except BaseException as error:  # a panic of a library in Rust is no Exception
            if not self.closed:
                self._failed(error)

    def hold(self, seconds: float) -> None:
        """What can wait does so, as somebody goes on asking: the next wish would have to wait until it can be left."""
        self._held_until = time.monotonic() + seconds

    @property
    def held(self) -> float:
        """Seconds that it still is; none below 0."""
        return max(0.0, self._held_until - time.monotonic())

    def rest(self) -> None:
        """Let what can wait do so until the screen has answered somebody: `go_on` says so, as does a wish.

        A key that is held down and changes nothing keeps it half of the time.
        """
        now = time.monotonic()
        if now > self._rests_until + REST_SECONDS:
            self._rests_until = now + REST_SECONDS

    def go_on(self) -> None:
        self._rests_until = -math.inf

    def breathe(self) -> None:
        """In the thread, some ten times a second: wait while it is to rest."""
        while time.monotonic() < self._rests_until:
            time.sleep(NAP_SECONDS)

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        timer = Timer(seconds, self.soon, (call,))
        timer.daemon = True
        try:
            timer.start()
        except RuntimeError:  # there may be no more threads: this one waits
            time.sleep(min(seconds, REST_SECONDS))
            self.soon(call)

    def submit(self, call: Callable[[], T]) -> Future[T]:
        return self._pool.submit(call)

    def check(self) -> None:
        """In the thread: raises Abandoned when there is a wish that is not begun yet."""
        self.breathe()
        if self._served != self._wish:
            raise Abandoned

    def close(self) -> None:
        self.closed = True
        self._wish += 1
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _serve(self, wish: int, answer: Callable[..., None], *args: object) -> None:
        self._served = wish
        if wish == self._wish:
            answer(*args)

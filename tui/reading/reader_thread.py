"""The thread that reads everything: one call at a time; of the calls by `submit_latest`, only the newest."""

from __future__ import annotations

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


class ReaderThread:
    """A thread with a queue of calls; `submit_latest` drops one before it that has not begun, or ends it."""

    def __init__(self, name: str, failed: Callable[[BaseException], object] = lambda error: None) -> None:
        """`failed` is called, in the thread, with what a call raised that nobody waits for."""
        sys.setswitchinterval(SWITCH_SECONDS)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._failed = failed
        self._latest = 0  # counts the calls by `submit_latest`
        self._served = 0  # the one that was begun last; of the thread alone
        self._held_until = 0.0
        self._rests_until = -math.inf
        self.closed = False

    def submit_latest(self, answer: Callable[..., None], *args: object) -> None:
        self._latest += 1
        self.go_on()  # this is what somebody waits for
        self.submit(self._serve, self._latest, answer, *args)

    def abandon(self) -> None:
        self.submit_latest(lambda: None)

    def submit(self, call: Callable[..., None], *args: object) -> None:
        """Run a call after everything submitted before; what it raises goes to `failed`."""
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

    def defer(self, seconds: float) -> None:
        """Let background work wait this long: somebody goes on asking, and could not interrupt it at once."""
        self._held_until = time.monotonic() + seconds

    @property
    def held(self) -> float:
        """Seconds that it still is; none below 0."""
        return max(0.0, self._held_until - time.monotonic())

    def yield_to_ui(self) -> None:
        """Let the thread wait until the screen has answered a key: until `go_on`, or the next `submit_latest`.

        A key that is held down and changes nothing keeps it half of the time.
        """
        now = time.monotonic()
        if now > self._rests_until + REST_SECONDS:
            self._rests_until = now + REST_SECONDS

    def go_on(self) -> None:
        self._rests_until = -math.inf

    def checkpoint(self) -> None:
        """In the thread, some ten times a second: wait while `yield_to_ui` asks for it."""
        while time.monotonic() < self._rests_until:
            time.sleep(NAP_SECONDS)

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        timer = Timer(seconds, self.submit, (call,))
        timer.daemon = True
        try:
            timer.start()
        except RuntimeError:  # there may be no more threads: this one waits
            time.sleep(min(seconds, REST_SECONDS))
            self.submit(call)

    def compute(self, call: Callable[[], T]) -> Future[T]:
        """Return the future of a call, which runs after everything submitted before."""
        return self._pool.submit(call)

    def check(self) -> None:
        """In the thread: raise Abandoned if a newer call by `submit_latest` waits."""
        self.checkpoint()
        if self._served != self._latest:
            raise Abandoned

    def close(self) -> None:
        self.closed = True
        self._latest += 1
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _serve(self, number: int, answer: Callable[..., None], *args: object) -> None:
        self._served = number
        if number == self._latest:
            answer(*args)

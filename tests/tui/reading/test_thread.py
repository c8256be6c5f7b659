"""The thread that reads: it lets the screen answer a key first, and never for good."""

from __future__ import annotations

from concurrent.futures import Future
from threading import Event

import pytest

from dumptui.tui.reading import reader_thread as module
from dumptui.tui.reading.reader_thread import Abandoned, ReaderThread
from tests.support.screen import DEADLINE


@pytest.fixture
def thread() -> ReaderThread:
    return ReaderThread("reader")


def test_what_is_read_waits_while_a_key_is_answered(thread: ReaderThread, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REST_SECONDS", 1e6)
    thread.yield_to_ui()
    reading = thread.compute(thread.check)
    with pytest.raises(TimeoutError):
        reading.result(0.1)
    thread.go_on()
    assert reading.result(DEADLINE) is None
    thread.close()


def test_a_key_that_changes_nothing_is_not_waited_for(thread: ReaderThread) -> None:
    thread.yield_to_ui()
    assert thread.compute(thread.check).result(DEADLINE) is None
    thread.close()


def test_a_newer_call_ends_what_waits_for_the_screen(thread: ReaderThread, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REST_SECONDS", 1e6)
    begun, ended, answer = Event(), Event(), Future[str]()

    def read() -> None:
        try:
            while True:
                begun.set()
                thread.check()
        except Abandoned:
            ended.set()

    thread.submit_latest(read)
    assert begun.wait(DEADLINE)
    thread.yield_to_ui()
    thread.submit_latest(answer.set_result, "read")
    assert ended.wait(DEADLINE) and answer.result(DEADLINE) == "read"
    thread.close()


def test_a_key_held_down_lets_what_is_read_go_on_now_and_then(thread: ReaderThread) -> None:
    thread.yield_to_ui()
    reading = thread.compute(thread.check)
    while not reading.done():
        thread.yield_to_ui()
    assert reading.result(0) is None
    thread.close()

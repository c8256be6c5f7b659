"""Searching steps in a thread of its own: reading is left to the reader thread, which must not wait for a pattern."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from threading import Thread
from typing import TYPE_CHECKING

from textual.message import Message

from dumptui.core.errors import DumpError
from dumptui.tui.reading.reader_thread import Abandoned
from dumptui.tui.widgets.message import FrozenMessage

if TYPE_CHECKING:
    from dumptui.core.files.step_files import StepKey
    from dumptui.core.query.text_search import Hit, Passage
    from dumptui.tui.reading.reader import Reader

PROGRESS_SECONDS = 0.1  # seconds between two messages of how far a search is


class Searched(FrozenMessage):
    """The hits in a step so far, by the position of their sample; `problem` is why there are none."""

    key: StepKey
    pattern: str
    hits: dict[int, Hit]
    done: int
    total: int
    problem: str | None = None

    @property
    def finished(self) -> bool:
        return self.done == self.total


Post = Callable[[Message], object]


class Finder:
    """One search at a time: the next one, or `stop`, abandons it.

    A pattern may need a minute for one text. That thread is then left to itself: it ends with the text, or the program.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._wanted = 0

    def find(self, keys: Sequence[StepKey], pattern: str, post: Post) -> None:
        """Tell the hits of each of these steps in turn, in messages of type Searched. The pattern has to be checked."""
        self._wanted += 1
        search = Search(self._reader, pattern, post, lambda number=self._wanted: number == self._wanted)  # type: ignore[misc]
        try:
            Thread(target=search.run, args=(list(keys),), name="finder", daemon=True).start()
        except RuntimeError:
            problem = "nothing is searched here: no more threads may be started (ulimit -u)"
            post(Searched(keys[0], pattern, {}, 0, 0, problem))

    def stop(self) -> None:
        self._wanted += 1


@dataclass(frozen=True)
class Search:
    reader: Reader
    pattern: str
    post: Post
    wanted: Callable[[], bool]

    def run(self, keys: list[StepKey]) -> None:
        for key in keys:
            if not self.wanted():
                return
            try:
                self._step(key, self._read(key))
            except DumpError as error:
                self._tell(Searched(key, self.pattern, {}, 0, 0, error.problem))
            except (CancelledError, RuntimeError):  # the app is closed
                return

    def _read(self, key: StepKey) -> list[list[Passage]]:
        while True:
            try:
                return self.reader.passages(key).result()
            except Abandoned:  # something else was asked of the reader, which does that first
                if not self.wanted():
                    return []

    def _step(self, key: StepKey, samples: list[list[Passage]]) -> None:
        from dumptui.core.query.text_search import first_hit

        hits: dict[int, Hit] = {}
        reported_at = time.monotonic()
        for at, passages in enumerate(samples):
            if not self.wanted():
                return
            if time.monotonic() > reported_at + PROGRESS_SECONDS:
                reported_at = time.monotonic()
                self._tell(Searched(key, self.pattern, dict(hits), at, len(samples)))
            if hit := first_hit(passages, self.pattern):
                hits[at] = hit
        self._tell(Searched(key, self.pattern, hits, len(samples), len(samples)))

    def _tell(self, message: Searched) -> None:
        if self.wanted():
            self.post(message)

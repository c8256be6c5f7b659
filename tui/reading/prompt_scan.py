"""The prompts of all steps, read one step at a time while nothing else is asked."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from textual.message import Message

from dumptui.core.files.step_files import StepKey
from dumptui.core.store.prompts import PromptSummaries
from dumptui.core.store.summaries import Summaries
from dumptui.core.tables.prompts import PromptHistory, StepPrompts
from dumptui.tui.reading.messages import PromptRows
from dumptui.tui.reading.reader_thread import Abandoned, ReaderThread

POST_SECONDS = 0.5
"""Seconds between two answers while steps are being read."""
SAVE_SECONDS = 30.0


class PromptScan:
    """All of it runs in the thread."""

    def __init__(self, thread: ReaderThread, summaries: Summaries, post: Callable[[Message], object]) -> None:
        self._thread = thread
        self._summaries = summaries
        self._post = post
        self._history = PromptHistory()
        self._stored: PromptSummaries | None = None
        self._waiting: deque[StepKey] = deque()
        self._read_of: dict[StepKey, str] = {}  # the stamp of the files that a step was read from
        self._due = self._saved = 0.0
        self._total = 0

    def forget(self) -> None:
        """What counts as the reward is another entry."""
        self._history, self._read_of = PromptHistory(), {}
        if self._waiting:
            self.begin()

    def begin(self) -> None:
        """Read the steps whose files are not those that were read, the newest first."""
        idle, run = not self._waiting, self._summaries.run
        self._stored = self._summaries.prompts()
        stamps = {key: self._stored.stamp(key) for key in run.newest_first}
        for key in [key for key in self._read_of if key not in stamps]:
            self._history.forget(key)
            del self._read_of[key]
        self._waiting = deque(key for key, stamp in stamps.items() if self._read_of.get(key) != stamp)
        self._total, self._due, self._saved = len(stamps), 0.0, time.monotonic()
        if not self._waiting:
            self._tell()
        elif idle:
            self._thread.submit(self._next)

    def _next(self) -> None:
        """Read one step, then go to the back of the queue: whatever was asked meanwhile comes first."""
        stored = self._stored
        if self._thread.closed or stored is None or not self._waiting:
            return
        if self._thread.held:
            return self._thread.later(self._thread.held, self._next)
        key = self._waiting.popleft()
        try:
            if key in self._summaries.run.steps:
                stamp = stored.stamp(key)
                self._history.add(key, self._read(stored, key))
                self._read_of[key] = stamp
        except Abandoned:
            self._waiting.appendleft(key)
        self._tell()
        self._save(stored)
        self._thread.submit(self._next)

    def _read(self, stored: PromptSummaries, key: StepKey) -> StepPrompts:
        return stored.read(key, lambda done, total: self._thread.check())

    def _tell(self) -> None:
        """Tell what is known now; while steps are being read, this takes at most a tenth of the time."""
        begun = time.monotonic()
        if not self._waiting or begun > self._due:
            rows, counts = self._history.rows()
            self._post(PromptRows(rows, counts, self._total - len(self._waiting), self._total))
            ended = time.monotonic()
            self._due = ended + max(POST_SECONDS, 10 * (ended - begun))

    def _save(self, stored: PromptSummaries) -> None:
        if not self._waiting or time.monotonic() > self._saved + SAVE_SECONDS:
            stored.save()
            self._saved = time.monotonic()
        if not self._waiting:
            self._stored = None  # its blocks of the cache take as much room as the history

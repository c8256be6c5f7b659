"""The rows of the steps table, worked out while nothing else is asked, or by workers beside."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial

from textual.message import Message

from dumptui.core.errors import BeingWritten, DumpError, unexpected
from dumptui.core.files.step_files import StepKey
from dumptui.core.process.workers import Workers
from dumptui.core.store.summaries import WORTH_WORKERS
from dumptui.core.tables.step_summary import summarise
from dumptui.core.types import Record
from dumptui.tui.reading.messages import StepSummaries
from dumptui.tui.reading.reader_thread import Abandoned, ReaderThread
from dumptui.tui.reading.step_reader import StepReader


class Scan:
    """All of it runs in the thread."""

    def __init__(
        self, thread: ReaderThread, steps: StepReader, post: Callable[[Message], object], workers: Workers | None
    ) -> None:
        self._thread = thread
        self._steps = steps
        self._post = post
        self._workers = workers
        self._waiting: deque[StepKey] = deque()
        self._rows: dict[StepKey, Record] = {}  # as they are kept
        self._told: dict[StepKey, Record] = {}  # with their staleness
        self._left: set[StepKey] = set()  # steps whose rows are not known yet

    @property
    def is_busy(self) -> bool:
        """Whether there are steps whose rows are not known yet."""
        return bool(self._left)

    def begin(self, keys: Sequence[StepKey]) -> None:
        """Give the rows of these steps in this order: the known ones at once."""
        summaries = self._steps.summaries
        known = {key: row for key in keys if (row := summaries.known(key)) is not None}
        for key, row in known.items():
            summaries.staleness.learn(key, row)
        unknown = [key for key in keys if key not in known]
        run = self._steps.run.steps
        self._rows = {key: row for key, row in self._rows.items() if key in run and key not in unknown} | known
        self._left = set(unknown)
        self._tell(known)
        if not unknown:
            self._tell_again()
        if self._workers is not None and len(unknown) >= WORTH_WORKERS:
            self._hand_out(self._workers, unknown)
        else:
            self._wait(*unknown)

    def _hand_out(self, workers: Workers, keys: Sequence[StepKey]) -> None:
        reward_key = self._steps.summaries.reward_key
        for key in keys:
            answer = workers.submit(partial(summarise, self._steps.files(key), reward_key))
            answer.add_done_callback(
                lambda done, key=key: self._thread.submit(self._take, key, done, reward_key)  # type: ignore[misc]
            )

    def _take(self, key: StepKey, answer: Future[tuple[Record, bool]], reward_key: str | None) -> None:
        """A row that a worker made; of a worker that died, this thread makes it."""
        if self._thread.closed:
            return
        died = answer.cancelled() or answer.exception() is not None
        failed = (BeingWritten.state, DumpError.state)
        if died or (self._steps.follow is not None and answer.result()[0]["state"] in failed):
            return self._wait(key)  # for this thread, whose Follow knows how long a file may take, and what may heal
        self._give(key, *answer.result(), reward_key)

    def _give(self, key: StepKey, row: Record, whole: bool, reward_key: str | None) -> None:
        """A row with another reward than the one chosen meanwhile is late: the scan was begun again."""
        if key not in self._steps.run.steps or reward_key != self._steps.summaries.reward_key:
            return
        if whole:
            self._steps.summaries.keep(key, row)
        self._rows[key] = row
        self._left.discard(key)
        self._tell({key: row})
        if not self._left:
            self._tell_again()

    def opened(self, key: StepKey, row: Record) -> None:
        """A step that was read whole has its row too."""
        self._rows[key] = self._told[key] = row

    def forget(self) -> None:
        """Of rows whose reward is another by now."""
        self._rows, self._told = {}, {}

    def _tell(self, rows: Mapping[StepKey, Record]) -> None:
        dated = {key: self._dated(key, row) for key, row in rows.items()}
        self._told.update(dated)
        self._post(StepSummaries(dated))

    def _tell_again(self) -> None:
        """Give the rows whose staleness is another one, now that all of the run is known."""
        dated = {key: self._dated(key, row) for key, row in self._rows.items()}
        others = {key: row for key, row in dated.items() if staleness_of(row) != staleness_of(self._told.get(key, {}))}
        self._told.update(others)
        if others:
            self._post(StepSummaries(others))

    def _dated(self, key: StepKey, row: Record) -> Record:
        """With its staleness, which may take other steps: those that are left are not read a second time for it."""
        return self._steps.summaries.staleness.of_step(key, row, reading=not self._left)

    def _wait(self, *keys: StepKey) -> None:
        self._waiting.extend(keys)
        self._thread.submit(self._next)

    def _next(self) -> None:
        """One step, then to the back of the queue: whatever was asked meanwhile comes first."""
        if not self._waiting or self._thread.closed:
            return
        if self._thread.held:
            return self._thread.later(self._thread.held, self._next)
        key, reward_key = self._waiting.popleft(), self._steps.summaries.reward_key
        try:
            self._give(key, *self._steps.row(key), reward_key)
        except Abandoned:  # something was asked: this step is read again after it
            self._waiting.appendleft(key)
        except Exception as error:  # a defect or no memory: it costs the row
            self._give(key, self._steps.unreadable(key, DumpError(str(key), unexpected(error))), False, reward_key)
        self._thread.submit(self._next)


def staleness_of(row: Mapping[str, object]) -> tuple[object, object]:
    return row.get("staleness_mean"), row.get("staleness_reason")

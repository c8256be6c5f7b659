"""The one thread that reads the run. Panes ask, and get an immutable answer in one message."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from textual.message import Message

from dumptui.core import tables
from dumptui.core.errors import DumpError
from dumptui.core.join import Step, load
from dumptui.core.run import Run, StepKey
from dumptui.core.tables import Record
from dumptui.core.tokens import Vocabulary
from dumptui.core.view import SampleView, field_scale, view_sample


@dataclass
class Loaded(Message):
    """A step joined, with its samples and groups tables and its own row in the steps table."""

    key: StepKey
    step: Step
    samples: list[Record]
    groups: list[Record]
    row: Record


@dataclass
class Failed(Message):
    key: StepKey
    problem: str
    row: Record


@dataclass
class Summary(Message):
    """The row of a step that was scanned, not opened."""

    key: StepKey
    row: Record


@dataclass
class Opened(Message):
    """A sample ready to look at, and the range of each field over its step."""

    key: StepKey
    position: int
    view: SampleView
    scales: dict[str, tuple[float, float]]


@dataclass
class Unopened(Message):
    """A sample that can't be looked at."""

    problem: str


@dataclass
class Progress(Message):
    key: StepKey
    done: int
    total: int

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, Progress)


class Abandoned(Exception):
    """What was being read is no longer wanted."""


class Reader:
    """Reads for the screen, one thing at a time; a newer wish abandons what an older one, or the scan, is reading."""

    def __init__(self, run: Run, post: Callable[[Message], object], reward_key: str | None) -> None:
        self.run = run
        self.reward_key = reward_key
        self._post = post
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="reader")
        self._wish = 0
        self._closed = False
        self._scan: deque[StepKey] = deque()
        self._step: Step | None = None
        self._scales: dict[str, tuple[float, float]] = {}
        self._vocabulary: Vocabulary | DumpError | None = None

    def open_step(self, key: StepKey) -> None:
        self._wish += 1
        self._pool.submit(self._open_step, key, self._wish)

    def open_sample(self, step: Step, position: int) -> None:
        self._wish += 1
        self._pool.submit(self._open_sample, step, position, self._wish)

    def scan(self, keys: list[StepKey]) -> None:
        """Work out the rows of the steps table in this order, whenever nothing else is asked."""
        self._scan.extend(keys)
        self._pool.submit(self._scan_next)

    def abandon(self) -> None:
        self._wish += 1

    def close(self) -> None:
        self._closed = True
        self._wish += 1
        self._pool.shutdown(wait=False, cancel_futures=True)

    # In the reader thread --------------------------------------------------------------------------------------

    def _open_step(self, key: StepKey, wish: int) -> None:
        try:
            step, samples = self._read(key, wish, lambda done, total: self._post(Progress(key, done, total)))
        except Abandoned:
            return
        except DumpError as error:
            problem = f"{Path(error.path).name}: {error.problem}"  # a whole path would leave no room for the reason
            self._post(Failed(key, problem, tables.unreadable_step(self.run.steps[key], error)))
            return
        groups = tables.groups(samples, evaluation=key.evaluation)
        self._post(Loaded(key, step, samples, groups, tables.step_row(step, samples)))

    def _read(self, key: StepKey, wish: int, report: Callable[[int, int], object]) -> tuple[Step, list[Record]]:
        """A step and its samples table. Raises Abandoned, and DumpError also for a defect: it costs the step only."""

        def on_read(done: int, total: int) -> None:
            self._check(wish)
            report(done, total)

        self._check(wish)
        try:
            step = load(self.run.steps[key], on_read)
            return step, tables.samples(step, self.reward_key)
        except (Abandoned, DumpError):
            raise
        except Exception as error:
            raise DumpError(str(key), f"can't be shown: {type(error).__name__}: {error}") from error

    def _check(self, wish: int) -> None:
        if wish != self._wish:
            raise Abandoned

    def _open_sample(self, step: Step, position: int, wish: int) -> None:
        if wish != self._wish:
            return
        if step is not self._step:
            self._step, self._scales = step, {}
        try:
            view = view_sample(step, position, self._words())
            for name in view.fields.keys() - self._scales.keys():
                self._scales[name] = field_scale(step, name)
        except Exception as error:  # a file that changed meanwhile, or a defect: it costs the sample only
            problem = str(error) if isinstance(error, DumpError) else f"{type(error).__name__}: {error}"
            self._post(Unopened(f"the sample can't be shown: {problem}"))
            return
        self._post(Opened(step.files.key, position, view, self._scales))

    def _words(self) -> Vocabulary | None:
        if self._vocabulary is None:
            try:
                self._vocabulary = Vocabulary.load(self.run.tokenizer)
            except DumpError as error:
                self._vocabulary = error
        return self._vocabulary if isinstance(self._vocabulary, Vocabulary) else None

    def _scan_next(self) -> None:
        """One step, then to the back of the queue: whatever was asked meanwhile comes first."""
        if not self._scan or self._closed:
            return
        key = self._scan.popleft()
        try:
            self._post(Summary(key, self._row(key)))
        except Abandoned:  # something was asked: this step is read again after it
            self._scan.appendleft(key)
        try:
            self._pool.submit(self._scan_next)
        except RuntimeError:  # closed between the check and here
            return

    def _row(self, key: StepKey) -> Record:
        try:
            return tables.step_row(*self._read(key, self._wish, lambda done, total: None))
        except DumpError as error:
            return tables.unreadable_step(self.run.steps[key], error)

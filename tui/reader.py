"""The one thread that reads the run. Panes ask, and get an immutable answer in one message."""

from __future__ import annotations

import contextlib
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event
from typing import TypeAlias, TypeVar

import numpy as np
from textual.message import Message

from dumptui.core import tables
from dumptui.core.distribution import Distribution, distributions
from dumptui.core.errors import BeingWritten, DumpError
from dumptui.core.follow import Follow, Look
from dumptui.core.groups import Group, ranked
from dumptui.core.health import health, stream_problems
from dumptui.core.join import Step, load
from dumptui.core.packing import LeftOut, Load, left_out, loads
from dumptui.core.pairs import Pair, pair
from dumptui.core.run import Run, StepFiles, StepKey
from dumptui.core.search import Passage, passages_of, read_passages
from dumptui.core.step_summary import is_whole, summarise
from dumptui.core.summaries import WORTH_WORKERS, Summaries
from dumptui.core.survey import Survey, surveying
from dumptui.core.tables import Record
from dumptui.core.token_search import find
from dumptui.core.tokens import Vocabulary
from dumptui.core.view import SampleView, view_sample
from dumptui.core.workers import Workers
from dumptui.tui.widgets.flow import Flow
from dumptui.tui.widgets.frame import FINE_MARK, MARK

Answer: TypeAlias = Callable[[Vocabulary | None], Message]
"""What the reader thread is asked to work out, given the tokenizer of the run."""

T = TypeVar("T")
MOMENT = 0.05  # seconds that a search may keep the next question waiting


@dataclass
class Loaded(Message):
    """A step joined, with its samples and groups tables, its own row in the steps table, and its groups by reward."""

    key: StepKey
    step: Step
    samples: list[Record]
    groups: list[Record]
    row: Record
    ranked: list[Group]


@dataclass
class Failed(Message):
    key: StepKey
    problem: str
    row: Record


@dataclass
class Summary(Message):
    """Rows of steps that were scanned, not opened."""

    rows: dict[StepKey, Record]


@dataclass
class Found(Message):
    """More rows of the health view; `done` with the last of them."""

    rows: list[Record]
    done: bool


@dataclass
class Opened(Message):
    """A sample ready to look at, and what is known of fields over its whole step: more of that comes as Surveyed."""

    key: StepKey
    position: int
    view: SampleView
    flow: Flow
    surveys: dict[str, Survey]


@dataclass
class Compared(Message):
    """Two samples of a step, by their positions in the rollout file, beside each other."""

    key: StepKey
    left: int
    right: int
    pair: Pair


@dataclass
class Packed(Message):
    """How a step was packed for training, and what its per-token columns hold."""

    step: Step
    loads: list[Load]
    left_out: list[LeftOut]
    columns: list[Distribution]


@dataclass
class Unopened(Message):
    """A sample that can't be looked at."""

    problem: str


@dataclass
class Surveyed(Message):
    """A field over a whole step; without a survey, why there is none."""

    key: StepKey
    name: str
    survey: Survey | None
    problem: str = ""


@dataclass
class Hits(Message):
    """Where a pattern was found in the text of a sample, or what is wrong with the pattern."""

    view: SampleView
    pattern: str
    hits: list[range]
    problem: str = ""


@dataclass
class Grew(Message):
    """What a look at a live run found; `newest` is the time of its newest data, in seconds since the epoch."""

    look: Look
    newest: float


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

    def __init__(
        self,
        summaries: Summaries,
        post: Callable[[Message], object],
        workers: Workers | None = None,
        follow: Follow | None = None,
    ) -> None:
        """`workers`, made before there were threads, scan a long run beside this thread; `follow` reads a live run."""
        self.run = summaries.run
        self._summaries = summaries
        self._post = post
        self._workers = workers
        self._follow = follow
        self._looking = False
        self._told: str | None = None  # the problem of the look told last, "" for none
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="reader")
        self._begun = Event()
        self._pool.submit(self._begun.wait)
        self._wish = 0  # counts what was asked
        self._served = 0  # the wish that was begun last; of the reader thread alone
        self._closed = False
        self._scan: deque[StepKey] = deque()
        self._recent = Recent()
        self._step: Step | None = None
        self._packing: Loaded | None = None
        self._surveys: dict[str, Survey] = {}
        self._vocabulary: Vocabulary | DumpError | None = None

    def begin(self) -> None:
        """Until now it only takes down what is asked: a first screen takes twice as long beside a thread that reads."""
        self._begun.set()

    def open_step(self, key: StepKey) -> None:
        self._ask(self._open_step, key)

    def open_sample(self, step: Step, position: int) -> None:
        self._ask(self._open_sample, step, position)

    def compare(self, step: Step, left: int, right: int) -> None:
        self._ask(self._compare, step, left, right)

    def pack(self, loaded: Loaded) -> None:
        """Work out a step's packing, a column at a time, whenever nothing else is asked; another step ends it."""
        self._packing = loaded
        self._soon(self._pack_next, loaded, distributions(loaded.step), [])

    def survey(self, step: Step, name: str) -> None:
        """Look at a field over the whole step of the sample opened last: some 0.3 s for 4.5 million tokens."""
        self._soon(self._survey, step, name)

    def search(self, view: SampleView, pattern: str) -> None:
        """Look for a regular expression in the text of a sample."""
        self._soon(self._search, view, pattern)

    def ask(self, answer: Answer) -> None:
        """Have a question about a sample answered by a message, unless something else is asked before."""
        self._ask(self._answer, answer)

    def scan(self, keys: list[StepKey]) -> None:
        """Give the rows of the steps table in this order: the known ones at once, the others when nothing is asked."""
        self._pool.submit(self._begin_scan, keys)

    def find_health(self) -> None:
        """Look for what is wrong with the run, from the start, whenever nothing else is asked."""
        self._pool.submit(self._health_next, findings(self.run))

    def look(self) -> None:
        """Look at a live run again, unless that is still to be done."""
        if not self._looking:
            self._looking = True
            self._soon(self._look)

    def passages(self, key: StepKey) -> Future[list[list[Passage]]]:
        """What the samples of a step say; the answer is Abandoned when something else is asked meanwhile."""
        return self._pool.submit(self._passages, key)

    def take_reward(self, name: str) -> None:
        """From now on this entry of rewards that are dicts is the reward: all rows have to be worked out again."""
        self._summaries.reward_key = name
        self._recent = Recent()

    def submit(self, call: Callable[[], T]) -> Future[T]:
        """Do something between two reads."""
        return self._pool.submit(call)

    @property
    def reward_key(self) -> str | None:
        return self._summaries.reward_key

    def abandon(self) -> None:
        self._ask(lambda: None)

    def close(self) -> None:
        self._closed = True
        self._wish += 1
        self.begin()
        if self._workers is not None:
            self._workers.close()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _ask(self, answer: Callable[..., None], *args: object) -> None:
        self._wish += 1
        self._soon(self._serve, self._wish, answer, *args)

    # In the reader thread --------------------------------------------------------------------------------------

    def _serve(self, wish: int, answer: Callable[..., None], *args: object) -> None:
        self._served = wish
        if wish == self._wish:
            answer(*args)

    def _open_step(self, key: StepKey) -> None:
        files = self._files(key)
        recent = self._recent.get(files)
        if recent is not None:
            self._post(recent)
            return
        try:
            step, samples = self._read(key, lambda done, total: self._post(Progress(key, done, total)))
        except Abandoned:
            return
        except DumpError as error:
            problem = f"{Path(error.path).name}: {error.problem}"  # a whole path would leave no room for the reason
            self._post(Failed(key, problem, tables.unreadable_step(files, error)))
            return
        groups = tables.groups(samples, evaluation=key.evaluation)
        row = tables.step_row(step, samples)
        loaded = Loaded(key, step, samples, groups, row, ranked(samples, groups, key.evaluation))
        self._recent.keep(loaded)
        self._post(loaded)

    def _read(
        self, key: StepKey, report: Callable[[int, int], object], *, brief: bool = False
    ) -> tuple[Step, list[Record]]:
        """A step and its samples table. Raises Abandoned, and DumpError also for a defect: it costs the step only."""

        def on_read(done: int, total: int) -> None:
            self._check()
            report(done, total)

        self._check()
        try:
            step = load(self._files(key), on_read) if self._follow is None else self._follow.load(key, on_read)
            files = step.files

            def on_field(share: float) -> None:
                on_read(files.rollout_bytes + int(files.train_bytes * share), files.rollout_bytes + files.train_bytes)

            return step, tables.samples(step, self._summaries.reward_key, brief=brief, on_field=on_field)
        except (Abandoned, DumpError):
            raise
        except Exception as error:
            raise DumpError(str(key), f"can't be shown: {type(error).__name__}: {error}") from error

    def _files(self, key: StepKey) -> StepFiles:
        """None of a step that is gone from a live run."""
        return self.run.steps.get(key) or StepFiles(key)

    def _check(self) -> None:
        """Whether something was asked that is not begun yet, be it submitted or not."""
        if self._served != self._wish:
            raise Abandoned

    def _open_sample(self, step: Step, position: int) -> None:
        if step is not self._step:
            self._step, self._surveys = step, {}
        try:
            view = view_sample(step, position, self.words())
            flow = flow_of(view)
        except Exception as error:  # a file that changed meanwhile, or a defect: it costs the sample only
            problem = str(error) if isinstance(error, DumpError) else f"{type(error).__name__}: {error}"
            self._post(Unopened(f"the sample can't be shown: {problem}"))
            return
        self._post(Opened(step.files.key, position, view, flow, dict(self._surveys)))

    def _survey(self, step: Step, name: str) -> None:
        if step is self._step and name in self._surveys:
            self._post(Surveyed(step.files.key, name, self._surveys[name]))
        else:
            self._survey_next(step, name, surveying(step, name))

    def _survey_next(self, step: Step, name: str, parts: Iterator[Survey | None]) -> None:
        """A part of the step, then to the back of the queue: the next sample comes first."""
        if step is not self._step or self._closed:
            return
        try:
            found = next(parts)
        except Exception as error:  # as with a sample: it costs the scale only
            problem = str(error) if isinstance(error, DumpError) else f"{type(error).__name__}: {error}"
            self._post(Surveyed(step.files.key, name, None, problem))
            return
        if found is None:
            return self._soon(self._survey_next, step, name, parts)
        self._surveys[name] = found
        self._post(Surveyed(step.files.key, name, found))

    def _search(self, view: SampleView, pattern: str) -> None:
        try:
            self._post(Hits(view, pattern, find(view.texts, pattern)))
        except DumpError as error:
            self._post(Hits(view, pattern, [], error.problem))

    def _passages(self, key: StepKey) -> list[list[Passage]]:
        files = self._files(key)
        recent = self._recent.get(files)
        try:
            if recent is not None:
                return passages_of(files, recent.step.samples)
            return read_passages(files, lambda done, total: self._check())
        except (Abandoned, DumpError):
            raise
        except Exception as error:  # a defect: it costs the step only
            raise DumpError(str(key), f"can't be searched: {type(error).__name__}: {error}") from error

    def _answer(self, answer: Answer) -> None:
        try:
            self._post(answer(self.words()))
        except Exception as error:  # as for a sample that is opened
            problem = str(error) if isinstance(error, DumpError) else f"{type(error).__name__}: {error}"
            self._post(Unopened(f"the sample can't be shown: {problem}"))

    def _compare(self, step: Step, left: int, right: int) -> None:
        try:
            found = pair(step, left, right, self.words())
        except Exception as error:  # as for a single sample
            problem = str(error) if isinstance(error, DumpError) else f"{type(error).__name__}: {error}"
            self._post(Unopened(f"the samples can't be compared: {problem}"))
            return
        self._post(Compared(step.files.key, left, right, found))

    def _pack_next(self, loaded: Loaded, coming: Iterator[Distribution], found: list[Distribution]) -> None:
        if loaded is not self._packing or self._closed:
            return
        step = loaded.step
        try:
            found.append(next(coming))
            self._soon(self._pack_next, loaded, coming, found)
        except StopIteration:
            self._post(Packed(step, loads(step), left_out(step, loaded.samples), found))
        except Exception as error:  # a file that changed meanwhile, or a defect: what was found is shown
            self._post(Packed(step, loads(step), left_out(step, loaded.samples), found))
            self._post(Unopened(f"the columns of the step can't all be read: {type(error).__name__}: {error}"))

    def words(self) -> Vocabulary | None:
        """What token ids mean, read at the first call."""
        if self._vocabulary is None:
            try:
                self._vocabulary = Vocabulary.load(self.run.tokenizer)
            except DumpError as error:
                self._vocabulary = error
        return self._vocabulary if isinstance(self._vocabulary, Vocabulary) else None

    def _look(self) -> None:
        assert self._follow is not None
        self._looking = False
        look = self._follow.look()
        problem = "" if look.problem is None else str(look.problem)
        if not look.anything and problem == self._told:
            return
        self._told = problem
        self.run = self._summaries.run = look.run
        self._post(Grew(look, self._follow.newest()))
        self._begin_scan(sorted((*look.changed, *look.waiting), reverse=True))

    def _begin_scan(self, keys: list[StepKey]) -> None:
        known = {key: row for key in keys if (row := self._summaries.known(key)) is not None}
        self._post(Summary(known))
        unknown = [key for key in keys if key not in known]
        if self._workers is not None and len(unknown) >= WORTH_WORKERS:
            self._hand_out(unknown)
        else:
            self._scan.extend(unknown)
            self._soon(self._scan_next)

    def _hand_out(self, keys: list[StepKey]) -> None:
        assert self._workers is not None
        for key in keys:
            answer = self._workers.submit(partial(summarise, self.run.steps[key], self._summaries.reward_key))
            answer.add_done_callback(lambda done, key=key: self._soon(self._take, key, done))  # type: ignore[misc]

    def _take(self, key: StepKey, answer: Future[tuple[Record, bool]]) -> None:
        """A row that a worker made; of a worker that died, this thread makes it."""
        if self._closed:
            return
        died = answer.cancelled() or answer.exception() is not None
        if died or (self._follow is not None and answer.result()[0]["state"] == BeingWritten.state):
            self._scan.append(key)  # in this thread, whose Follow knows how long a file may take
            return self._soon(self._scan_next)
        self._give(key, *answer.result())

    def _give(self, key: StepKey, row: Record, whole: bool) -> None:
        if key not in self.run.steps:
            return
        if whole:
            self._summaries.keep(key, row)
        self._post(Summary({key: row}))

    def _scan_next(self) -> None:
        """One step, then to the back of the queue: whatever was asked meanwhile comes first."""
        if not self._scan or self._closed:
            return
        key = self._scan.popleft()
        try:
            self._give(key, *self._row(key))
        except Abandoned:  # something was asked: this step is read again after it
            self._scan.appendleft(key)
        self._soon(self._scan_next)

    def _row(self, key: StepKey) -> tuple[Record, bool]:
        recent = self._recent.get(self._files(key))
        if recent is not None:
            return recent.row, True
        try:
            step, samples = self._read(key, lambda done, total: None, brief=True)
            return tables.step_row(step, samples), is_whole(step)
        except DumpError as error:
            return tables.unreadable_step(self._files(key), error), False

    def _health_next(self, rows: Iterator[Record]) -> None:
        """What is found in a moment, then to the back of the queue."""
        found, end = [], time.monotonic() + MOMENT
        for row in rows:
            found.append(row)
            if time.monotonic() > end or self._closed:
                self._post(Found(found, False))
                return self._soon(self._health_next, rows)
        self._post(Found(found, True))

    def _soon(self, call: Callable[..., None], *args: object) -> None:
        with contextlib.suppress(RuntimeError):  # closed meanwhile
            self._pool.submit(call, *args)


def flow_of(view: SampleView) -> Flow:
    """The text of a sample as it is shown, with its turns and chunks."""
    turns, edges = view.borders
    signs = dict.fromkeys(edges, FINE_MARK) | dict.fromkeys(turns, MARK)
    borders = {at: sign for at, sign in signs.items() if at < len(view.texts)}
    return Flow(view.texts, frozenset(np.flatnonzero(view.special).tolist()), borders)


class Recent:
    """The steps opened last, by how much memory they hold: going back and forth between them reads nothing."""

    def __init__(self, limit: int = 256 << 20) -> None:
        self._limit = limit
        self._kept: OrderedDict[StepKey, Loaded] = OrderedDict()

    def get(self, files: StepFiles) -> Loaded | None:
        """The step as it was read, if its files are still the same ones."""
        kept = self._kept.get(files.key)
        if kept is None or list(kept.step.files.entries()) != list(files.entries()):
            return None
        self._kept.move_to_end(files.key)
        return kept

    def keep(self, loaded: Loaded) -> None:
        if not is_whole(loaded.step):
            return
        self._kept[loaded.key] = loaded
        self._kept.move_to_end(loaded.key)
        while len(self._kept) > 1 and sum(map(held, self._kept.values())) > self._limit:
            self._kept.popitem(last=False)


def held(loaded: Loaded) -> int:
    """Bytes that a loaded step keeps, near enough: the arrays and texts of its samples, and 500 a dumped tensor."""
    arrays = sum(
        sample.tokens.nbytes + sample.response_length * 5 + len(sample.response) for sample in loaded.step.samples
    )
    return arrays + sum(500 * shard.rows * len(shard.columns) for shard in loaded.step.shards)


def findings(run: Run) -> Iterator[Record]:
    yield from health(run)
    yield from stream_problems(run.root)

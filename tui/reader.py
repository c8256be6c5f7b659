"""What is read and worked out for the screen. Panes ask, and get an immutable answer in one message."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import TypeAlias

import numpy as np
from textual.message import Message

from dumptui.core.distribution import Distribution, distributions
from dumptui.core.errors import DumpError
from dumptui.core.follow import Follow
from dumptui.core.health import health, stream_problems
from dumptui.core.join import Step
from dumptui.core.packing import left_out, loads
from dumptui.core.pairs import pair
from dumptui.core.record import Record
from dumptui.core.run import Run, StepKey
from dumptui.core.search import Passage, passages_of, read_passages
from dumptui.core.summaries import Summaries
from dumptui.core.survey import Survey, surveying
from dumptui.core.token_search import find
from dumptui.core.tokens import Vocabulary
from dumptui.core.view import SampleView, view_sample
from dumptui.core.workers import Workers
from dumptui.tui.answers import (
    Compared,
    Failed,
    Found,
    Grew,
    Hits,
    Loaded,
    Opened,
    Packed,
    Progress,
    Surveyed,
    Unopened,
)
from dumptui.tui.scan import Scan
from dumptui.tui.step_reader import StepReader
from dumptui.tui.thread import Abandoned, Thread
from dumptui.tui.widgets.flow import Flow
from dumptui.tui.widgets.frame import FINE_MARK, MARK

Answer: TypeAlias = Callable[[Vocabulary | None], Message]
"""What the reader thread is asked to work out, given the tokenizer of the run."""

MOMENT = 0.05  # seconds that a search may keep the next question waiting


class Reader(Thread):
    """Reads for the screen; a newer wish abandons what an older one, or the scan, is reading."""

    def __init__(
        self,
        summaries: Summaries,
        post: Callable[[Message], object],
        workers: Workers | None = None,
        follow: Follow | None = None,
    ) -> None:
        """`workers`, made before there were threads, scan a long run beside this thread; `follow` reads a live run."""
        super().__init__("reader")
        self._steps = StepReader(summaries, follow, self.check)
        self._scan = Scan(self, self._steps, post, workers)
        self._post = post
        self._workers = workers
        self._follow = follow
        self._looking = False
        self._told: str | None = None  # the problem of the look told last, "" for none
        self._step: Step | None = None
        self._packing: Loaded | None = None
        self._surveys: dict[str, Survey] = {}
        self._vocabulary: Vocabulary | DumpError | None = None

    @property
    def run(self) -> Run:
        return self._steps.run

    @property
    def reward_key(self) -> str | None:
        return self._steps.summaries.reward_key

    def close(self) -> None:
        super().close()
        if self._workers is not None:
            self._workers.close()

    # Asked by the screen ---------------------------------------------------------------------------------------

    def open_step(self, key: StepKey) -> None:
        self.wish(self._open_step, key)

    def open_sample(self, step: Step, position: int) -> None:
        self._scan.hold()
        self.wish(self._open_sample, step, position)

    def compare(self, step: Step, left: int, right: int) -> None:
        self.wish(self._compare, step, left, right)

    def pack(self, loaded: Loaded) -> None:
        """Work out a step's packing, a column at a time, whenever nothing else is asked; another step ends it."""
        self._packing = loaded
        self.soon(self._pack_next, loaded, distributions(loaded.step), [])

    def survey(self, step: Step, name: str) -> None:
        """Look at a field over the whole step of the sample opened last: some 0.3 s for 4.5 million tokens."""
        self.soon(self._survey, step, name)

    def search(self, view: SampleView, pattern: str) -> None:
        """Look for a regular expression in the text of a sample."""
        self.soon(self._search, view, pattern)

    def ask(self, answer: Answer) -> None:
        """Have a question about a sample answered by a message, unless something else is asked before."""
        self.wish(self._answer, answer)

    def scan(self, keys: list[StepKey]) -> None:
        """Give the rows of the steps table in this order: the known ones at once, the others when nothing is asked."""
        self.soon(self._scan.begin, keys)

    def find_health(self) -> None:
        """Look for what is wrong with the run, from the start, whenever nothing else is asked."""
        self.soon(self._health_next, findings(self.run))

    def look(self) -> None:
        """Look at a live run again, unless that is still to be done."""
        if not self._looking:
            self._looking = True
            self.soon(self._look)

    def passages(self, key: StepKey) -> Future[list[list[Passage]]]:
        """What the samples of a step say; the answer is Abandoned when something else is asked meanwhile."""
        return self.submit(lambda: self._passages(key))

    def take_reward(self, name: str) -> None:
        """From now on this entry of rewards that are dicts is the reward: all rows have to be worked out again."""
        self._steps.take_reward(name)

    # In the thread ---------------------------------------------------------------------------------------------

    def _open_step(self, key: StepKey) -> None:
        try:
            self._post(self._steps.open(key, lambda done, total: self._post(Progress(key, done, total))))
        except Abandoned:
            return
        except DumpError as error:
            problem = f"{Path(error.path).name}: {error.problem}"  # a whole path would leave no room for the reason
            self._post(Failed(key, problem, self._steps.unreadable(key, error)))

    def _open_sample(self, step: Step, position: int) -> None:
        if step is not self._step:
            self._step, self._surveys = step, {}
        try:
            view = view_sample(step, position, self.words())
            flow = flow_of(view)
        except Exception as error:  # a file that changed meanwhile, or a defect: it costs the sample only
            self._post(Unopened(f"the sample can't be shown: {told(error)}"))
            return
        self._post(Opened(step.files.key, position, view, flow, dict(self._surveys)))

    def _survey(self, step: Step, name: str) -> None:
        if step is self._step and name in self._surveys:
            self._post(Surveyed(step.files.key, name, self._surveys[name]))
        else:
            self._survey_next(step, name, surveying(step, name))

    def _survey_next(self, step: Step, name: str, parts: Iterator[Survey | None]) -> None:
        """A part of the step, then to the back of the queue: the next sample comes first."""
        if step is not self._step or self.closed:
            return
        try:
            found = next(parts)
        except Exception as error:  # as with a sample: it costs the scale only
            self._post(Surveyed(step.files.key, name, None, told(error)))
            return
        if found is None:
            return self.soon(self._survey_next, step, name, parts)
        self._surveys[name] = found
        self._post(Surveyed(step.files.key, name, found))

    def _search(self, view: SampleView, pattern: str) -> None:
        try:
            self._post(Hits(view, pattern, find(view.texts, pattern)))
        except DumpError as error:
            self._post(Hits(view, pattern, [], error.problem))

    def _passages(self, key: StepKey) -> list[list[Passage]]:
        files = self._steps.files(key)
        recent = self._steps.recent.get(files)
        try:
            if recent is not None:
                return passages_of(files, recent.step.samples)
            return read_passages(files, lambda done, total: self.check())
        except (Abandoned, DumpError):
            raise
        except Exception as error:  # a defect: it costs the step only
            raise DumpError(str(key), f"can't be searched: {type(error).__name__}: {error}") from error

    def _answer(self, answer: Answer) -> None:
        try:
            self._post(answer(self.words()))
        except Exception as error:  # as for a sample that is opened
            self._post(Unopened(f"the sample can't be shown: {told(error)}"))

    def _compare(self, step: Step, left: int, right: int) -> None:
        try:
            found = pair(step, left, right, self.words())
        except Exception as error:  # as for a single sample
            self._post(Unopened(f"the samples can't be compared: {told(error)}"))
            return
        self._post(Compared(step.files.key, left, right, found))

    def _pack_next(self, loaded: Loaded, coming: Iterator[Distribution], found: list[Distribution]) -> None:
        if loaded is not self._packing or self.closed:
            return
        step = loaded.step
        try:
            found.append(next(coming))
            self.soon(self._pack_next, loaded, coming, found)
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
        self._steps.summaries.run = look.run
        self._post(Grew(look, self._follow.newest()))
        self._scan.begin(sorted((*look.changed, *look.waiting), reverse=True))

    def _health_next(self, rows: Iterator[Record]) -> None:
        """What is found in a moment, then to the back of the queue."""
        found, end = [], time.monotonic() + MOMENT
        for row in rows:
            found.append(row)
            if time.monotonic() > end or self.closed:
                self._post(Found(found, False))
                return self.soon(self._health_next, rows)
        self._post(Found(found, True))


def told(error: Exception) -> str:
    """A DumpError says all there is to say; of a defect its type is the first thing to know."""
    return str(error) if isinstance(error, DumpError) else f"{type(error).__name__}: {error}"


def flow_of(view: SampleView) -> Flow:
    """The text of a sample as it is shown, with its turns and chunks."""
    turns, edges = view.borders
    signs = dict.fromkeys(edges, FINE_MARK) | dict.fromkeys(turns, MARK)
    borders = {at: sign for at, sign in signs.items() if at < len(view.texts)}
    return Flow(view.texts, frozenset(np.flatnonzero(view.special).tolist()), borders)


def findings(run: Run) -> Iterator[Record]:
    yield from health(run)
    yield from stream_problems(run.root)

"""The work of the reader thread: what is read and worked out for the screen, and answered in one message each."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import numpy as np
from textual.message import Message

from dumptui.core.distribution import Distribution, distributions
from dumptui.core.errors import DumpError
from dumptui.core.follow import Follow
from dumptui.core.health import parts, stream_problems
from dumptui.core.join import Step
from dumptui.core.lifecycle import Lifecycle, read_lifecycle
from dumptui.core.packing import left_out, loads
from dumptui.core.pairs import pair
from dumptui.core.record import Record
from dumptui.core.run import StepKey
from dumptui.core.search import Passage, passages_of, read_passages
from dumptui.core.summaries import Summaries
from dumptui.core.survey import Survey, surveying
from dumptui.core.telemetry import Telemetry
from dumptui.core.token_search import find
from dumptui.core.tokens import Vocabulary
from dumptui.core.view import MASKED, PROMPT, SampleView, view_sample
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
from dumptui.tui.facts import read_facts
from dumptui.tui.markdown import draw
from dumptui.tui.scan import Scan
from dumptui.tui.step_reader import StepReader
from dumptui.tui.talk import Talk, Talks
from dumptui.tui.thread import Abandoned, Thread
from dumptui.tui.widgets.flow import Flow
from dumptui.tui.widgets.frame import FINE_MARK, MARK

MOMENT = 0.05  # seconds that a search may keep the next question waiting
SHORTEST_FOLD = 16  # tokens; the shortest run, written out, takes some lines
PAINTING = 0.1  # seconds in which the screen paints an answer: twice as long beside a thread that works


class Work:
    """All of it runs in `thread`."""

    def __init__(
        self,
        thread: Thread,
        summaries: Summaries,
        post: Callable[[Message], object],
        workers: Workers | None,
        follow: bool,
    ) -> None:
        self._thread = thread
        self._follow = Follow(summaries.run.root, run=summaries.run) if follow else None
        self._steps = StepReader(summaries, self._follow, thread.check)
        self.scan = Scan(thread, self._steps, post, workers)
        self._post = post
        self._told: str | None = None  # the problem of the look told last, "" for none
        self._answered = 0.0  # when the last answer about a sample was given
        self._step: Step | None = None
        self._packing: Loaded | None = None
        self._findings: deque[Callable[[], list[Record]]] = deque()
        self._surveys: dict[str, Survey] = {}
        self._surveying: set[str] = set()
        self._talks = Talks()
        self._telemetry: Telemetry | None = None
        self._vocabulary: Vocabulary | DumpError | None = None

    def open_step(self, key: StepKey) -> None:
        try:
            self._post(self._steps.open(key, lambda done, total: self._post(Progress(key, done, total))))
            self._thread.hold(PAINTING)
        except Abandoned:
            return
        except DumpError as error:
            problem = f"{Path(error.path).name}: {error.problem}"  # a whole path would leave no room for the reason
            self._post(Failed(key, problem, self._steps.unreadable(key, error)))

    def forget(self) -> None:
        """Of the steps that were read: what counts as the reward is another entry."""
        self._steps.recent.clear()

    def passages(self, key: StepKey) -> list[list[Passage]]:
        files = self._steps.files(key)
        recent = self._steps.recent.get(files)
        try:
            if recent is not None:
                return passages_of(files, recent.step.samples)
            return read_passages(files, lambda done, total: self._thread.check())
        except (Abandoned, DumpError):
            raise
        except Exception as error:  # a defect: it costs the step only
            raise DumpError(str(key), f"can't be searched: {type(error).__name__}: {error}") from error

    # Samples ---------------------------------------------------------------------------------------------------

    def _answer(self, answer: Callable[[], Message], failed: str = "the sample can't be shown") -> None:
        """A file that changed meanwhile, or a defect, costs the answer only."""
        try:
            message = answer()
        except Abandoned:
            return
        except Exception as error:
            message = Unopened(f"{failed}: {told(error)}")
        self._post(message)
        self._answered = time.monotonic()

    def _go_on(self, call: Callable[..., None], *args: object) -> None:
        """At the back of the queue, once an answer is painted: what was asked meanwhile comes first."""
        wait = self._answered + PAINTING - time.monotonic()
        if wait > 0:
            self._thread.later(wait, partial(call, *args))
        else:
            self._thread.soon(call, *args)

    def open_sample(self, step: Step, position: int, columns: int) -> None:
        if step is not self._step:
            self._step, self._surveys, self._surveying = step, {}, set()
        self._answer(lambda: self._opened(step, position, columns))

    def _opened(self, step: Step, position: int, columns: int) -> Opened:
        view = view_sample(step, position, self.words())
        flow = flow_of(view)
        flow.wrap(columns)
        return Opened(step.files.key, position, view, flow, dict(self._surveys))

    def open_talk(self, step: Step, position: int) -> None:
        self._answer(lambda: self._talks.open(step, position, self.words()))

    def open_facts(self, step: Step, position: int) -> None:
        self._answer(lambda: read_facts(step, position, self._lifecycle(step, position)))

    def _lifecycle(self, step: Step, position: int) -> Lifecycle | None:
        """By telemetry that is kept: an hour of 500,000 events takes a second to read."""

        def ask(telemetry: Telemetry) -> Lifecycle | None:
            return read_lifecycle(telemetry, step.files.key, step.samples[position].index)

        if self._follow is not None:
            return self._follow.with_telemetry(ask)
        if self._telemetry is None:
            self._telemetry = Telemetry(self._steps.run.root)
        self._telemetry.poll()
        return ask(self._telemetry)

    def compare(self, step: Step, left: int, right: int) -> None:
        self._answer(
            lambda: Compared(step.files.key, left, right, pair(step, left, right, self.words(), self._thread.check)),
            "the samples can't be compared",
        )

    def draw(self, talk: Talk, message: int, width: int) -> None:
        self._answer(lambda: draw(talk, message, width))

    def search(self, view: SampleView, pattern: str) -> None:
        try:
            self._post(Hits(view, pattern, find(view.texts, pattern)))
        except DumpError as error:
            self._post(Hits(view, pattern, [], error.problem))

    def words(self) -> Vocabulary | None:
        """What token ids mean, read at the first call."""
        if self._vocabulary is None:
            try:
                self._vocabulary = Vocabulary.load(self._steps.run.tokenizer)
            except DumpError as error:
                self._vocabulary = error
        return self._vocabulary if isinstance(self._vocabulary, Vocabulary) else None

    # A column over a whole step --------------------------------------------------------------------------------

    def survey(self, step: Step, name: str) -> None:
        if step is self._step and name in self._surveys:
            self._post(Surveyed(step.files.key, name, self._surveys[name]))
        elif step is self._step and name not in self._surveying:  # each sample that is opened meanwhile asks again
            self._surveying.add(name)
            self._go_on(self._survey_next, step, name, surveying(step, name))

    def _survey_next(self, step: Step, name: str, parts: Iterator[Survey | None]) -> None:
        """A part of the step at a time."""
        if step is not self._step or self._thread.closed:
            return
        self._thread.breathe()
        try:
            found = next(parts)
        except Exception as error:  # as with a sample: it costs the scale only
            self._surveying.remove(name)
            self._post(Surveyed(step.files.key, name, None, told(error)))
            return
        if found is None:
            return self._go_on(self._survey_next, step, name, parts)
        self._surveys[name] = found
        self._post(Surveyed(step.files.key, name, found))

    def pack(self, loaded: Loaded) -> None:
        self._packing = loaded
        self._pack_next(loaded, distributions(loaded.step), [])

    def _pack_next(self, loaded: Loaded, coming: Iterator[Distribution | None], found: list[Distribution]) -> None:
        if loaded is not self._packing or self._thread.closed:
            return
        step = loaded.step
        self._thread.breathe()
        try:
            if (one := next(coming)) is not None:
                found.append(one)
            self._go_on(self._pack_next, loaded, coming, found)
        except StopIteration:
            self._post(Packed(step, loads(step), left_out(step, loaded.samples), found))
        except Exception as error:  # a file that changed meanwhile, or a defect: what was found is shown
            self._post(Packed(step, loads(step), left_out(step, loaded.samples), found))
            self._post(Unopened(f"the columns of the step can't all be read: {type(error).__name__}: {error}"))

    # The whole run ---------------------------------------------------------------------------------------------

    def look(self) -> None:
        assert self._follow is not None
        look = self._follow.look()
        problem = "" if look.problem is None else str(look.problem)
        if not look.anything and problem == self._told:
            return
        self._told = problem
        self._steps.summaries.run = look.run
        self._post(Grew(look, self._follow.newest()))
        self.scan.begin(sorted((*look.changed, *look.waiting), reverse=True))

    def find_health(self) -> None:
        run = self._steps.run
        self._findings = deque([*parts(run, self._thread.check), partial(stream_problems, run.root)])
        self._health_next(self._findings)

    def _health_next(self, waiting: deque[Callable[[], list[Record]]]) -> None:
        """What is found in a moment at a time; what a wish leaves half done is begun again."""
        if waiting is not self._findings or self._thread.closed:
            return
        found, end = [], time.monotonic() + MOMENT
        with contextlib.suppress(Abandoned):
            while waiting and time.monotonic() < end:
                found += waiting[0]()
                waiting.popleft()
        if found or not waiting:
            self._post(Found(found, not waiting))
        if waiting:
            self._go_on(self._health_next, waiting)


def told(error: Exception) -> str:
    """A DumpError says all there is to say; of a defect its type is the first thing to know."""
    return str(error) if isinstance(error, DumpError) else f"{type(error).__name__}: {error}"


def flow_of(view: SampleView) -> Flow:
    """The text of a sample as it is shown, with its turns and chunks."""
    turns, edges = view.borders
    signs = dict.fromkeys(edges, FINE_MARK) | dict.fromkeys(turns, MARK)
    borders = {at: sign for at, sign in signs.items() if at < len(view.texts)}
    return Flow(view.texts, frozenset(np.flatnonzero(view.special).tolist()), borders, folds_of(view, borders))


def folds_of(view: SampleView, borders: Mapping[int, str]) -> dict[int, int]:
    """The long runs of one special token that was not trained on, such as those that stand for a picture."""
    count = len(view.texts)
    alike = np.zeros(count + 1, bool)
    kinds, ids = view.kinds(None), view.sample.tokens[:count]
    still = view.special & ((kinds == PROMPT) | (kinds == MASKED))
    alike[1:count] = (ids[1:] == ids[:-1]) & still[1:] & still[:-1]
    alike[list(borders)] = False
    firsts = np.flatnonzero(~alike)
    found = zip(firsts.tolist(), firsts[1:].tolist(), strict=False)
    return {at: end for at, end in found if end - at >= SHORTEST_FOLD and "\n" not in view.texts[at]}

"""The work of the reader thread: what is read and worked out for the screen, and answered in one message each."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TypeVar

import numpy as np
from textual.message import Message

from dumptui.core.errors import DumpError, unexpected
from dumptui.core.files.step_files import StepKey
from dumptui.core.health.incremental_health import Checkup
from dumptui.core.health.kept_findings import KeptFindings
from dumptui.core.live import Follow, PollResult, file_state
from dumptui.core.process.workers import Workers
from dumptui.core.query.text_search import Passage, passages_of, read_passages
from dumptui.core.query.token_search import find
from dumptui.core.sample.comparison import pair
from dumptui.core.sample.view import MASKED, PROMPT, SampleView, view_sample
from dumptui.core.step.distribution import Distribution, distributions
from dumptui.core.step.field_survey import FieldSurvey, surveying
from dumptui.core.step.load import load
from dumptui.core.step.step import Step
from dumptui.core.store.cache import fingerprint
from dumptui.core.store.summaries import Summaries
from dumptui.core.tables.packing import left_out, loads
from dumptui.core.tables.tools import by_sample, by_tool, tool_uses
from dumptui.core.tables.worst_tokens import RunSearch, of_step, worst_of_run
from dumptui.core.telemetry.lifecycle import Lifecycle, read_lifecycle, read_lifecycles
from dumptui.core.telemetry.telemetry import Telemetry
from dumptui.core.types import Record
from dumptui.core.vocabulary import Vocabulary
from dumptui.tui.presentation.conversation import ConversationView, ConversationViews
from dumptui.tui.presentation.facts import read_facts
from dumptui.tui.reading.markdown import draw
from dumptui.tui.reading.messages import (
    BatchAnalysed,
    Broken,
    FieldSurveyed,
    HealthRows,
    ReadProgress,
    RunPolled,
    SampleFailed,
    SampleOpened,
    SamplesCompared,
    StepFailed,
    StepLoaded,
    TokenHits,
    ToolsRead,
    Unseen,
    WorstTokens,
)
from dumptui.tui.reading.prompt_scan import PromptScan
from dumptui.tui.reading.reader_thread import Abandoned, ReaderThread
from dumptui.tui.reading.step_reader import StepReader
from dumptui.tui.reading.summary_scan import Scan
from dumptui.tui.widgets.heatmap.token_flow import Flow
from dumptui.tui.widgets.plot.frame import FINE_MARK, MARK

MOMENT_SECONDS = 0.05  # seconds that a search may keep the next question waiting
SHORTEST_FOLD = 16  # tokens; the shortest run, written out, takes some lines
SCAN_SECONDS = 0.2  # seconds after which it is seen again whether the scan is done
PAINTING_SECONDS = 0.1  # seconds in which the screen paints an answer: twice as long beside a thread that works

T = TypeVar("T")


class ReaderTasks:
    """All of it runs in `thread`."""

    def __init__(
        self,
        thread: ReaderThread,
        summaries: Summaries,
        post: Callable[[Message], object],
        workers: Workers | None,
        follow: bool,
    ) -> None:
        self._thread = thread
        self._follow = Follow(summaries.run.root, run=summaries.run) if follow else None
        self._steps = StepReader(summaries, self._follow, thread.check)
        self.scan = Scan(thread, self._steps, post, workers)
        self.prompts = PromptScan(thread, summaries, post)
        self._post = post
        self._reported: str | None = None  # the problem of the last poll, "" for none
        self._answered = 0.0  # when the last answer about a sample was given
        self._step: Step | None = None
        self._reloading: StepKey | None = None
        self._packing: StepLoaded | None = None
        self._checkup: Checkup | None = None
        self._findings: deque[Callable[[], list[Record]]] = deque()
        self._health: list[Record] | None = None  # the rows that were sent last, once all were found
        self._health_waits = False  # for the scan
        self._surveys: dict[str, FieldSurvey] = {}
        self._surveying: set[str] = set()
        self._talks = ConversationViews()
        self._telemetry: Telemetry | None = None
        self._vocabulary: Vocabulary | DumpError | None = None
        self._vocabulary_of: object = None

    def open_step(self, key: StepKey) -> None:
        self._reloading = None
        self._read_for_screen(key)

    def reload_step(self, key: StepKey) -> None:
        self._reloading = key
        self._reload_next(key)

    def _reload_next(self, key: StepKey) -> None:
        """Read a step again, unless another one was opened; if a question ends that, begin again after it."""
        if self._reloading != key or self._thread.closed:
            return
        if self._read_for_screen(key):
            self._reloading = None
        else:
            self._thread.submit(self._reload_next, key)

    def _read_for_screen(self, key: StepKey) -> bool:
        """Give a step, or why it can't be read; return False if something else is wanted first."""
        try:
            loaded = self._steps.open(key, lambda done, total: self._post(ReadProgress(key, done, total)))
            self.scan.opened(key, loaded.row)
            self._post(loaded)
            self._thread.defer(PAINTING_SECONDS)
        except Abandoned:
            return False
        except DumpError as error:
            self._post(StepFailed(key, error.short, self._steps.unreadable(key, error)))
        except BaseException as error:  # a defect, no memory, or a panic of a library: it costs the step
            problem = problem_text(error)
            self._post(StepFailed(key, problem, self._steps.unreadable(key, DumpError(str(key), problem))))
        return True

    def forget(self) -> None:
        """Of the steps that were read: what counts as the reward is another entry."""
        self._steps.recent.clear()
        self.scan.forget()
        self.prompts.forget()

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
        except BaseException as error:
            message = SampleFailed(f"{failed}: {problem_text(error)}")
        self._post(message)
        self._answered = time.monotonic()

    def _go_on(self, call: Callable[..., None], *args: object) -> None:
        """At the back of the queue, once an answer is painted: what was asked meanwhile comes first."""
        wait = self._answered + PAINTING_SECONDS - time.monotonic()
        if wait > 0:
            self._thread.later(wait, partial(call, *args))
        else:
            self._thread.submit(call, *args)

    def open_sample(self, step: Step, position: int, columns: int) -> None:
        if step is not self._step:
            self._step, self._surveys, self._surveying = step, {}, set()
        self._answer(lambda: self._opened(step, position, columns))

    def _opened(self, step: Step, position: int, columns: int) -> SampleOpened:
        view = view_sample(step, position, self.words())
        flow = flow_of(view)
        flow.wrap(columns)
        return SampleOpened(step.files.key, position, view, flow, dict(self._surveys))

    def open_talk(self, step: Step, position: int) -> None:
        self._answer(lambda: self._talks.open(step, position, self.words()))

    def open_facts(self, step: Step, position: int) -> None:
        self._answer(lambda: read_facts(step, position, self._lifecycle(step, position)))

    def _lifecycle(self, step: Step, position: int) -> Lifecycle | None:
        """By telemetry that is kept: an hour of 500,000 events takes a second to read."""

        index = step.samples[position].index
        return self._ask_telemetry(lambda telemetry: read_lifecycle(telemetry, step.files.key, index))

    def _ask_telemetry(self, ask: Callable[[Telemetry], T]) -> T:
        if self._follow is not None:
            return self._follow.with_telemetry(ask)
        if self._telemetry is None:
            self._telemetry = Telemetry(self._steps.run.root)
        self._telemetry.poll()
        return ask(self._telemetry)

    def read_tools(self, loaded: StepLoaded) -> None:
        self._answer(lambda: self._tools_read(loaded), "the tools can't be shown")

    def _tools_read(self, loaded: StepLoaded) -> ToolsRead:
        step, key = loaded.step, loaded.key
        indices = [sample.index for sample in step.samples if sample.index is not None]
        lives = self._ask_telemetry(lambda telemetry: read_lifecycles(telemetry, key, indices))
        uses = tool_uses(step, loaded.samples, lives)
        by_position = {at: use.life for at, use in enumerate(uses) if use.life is not None}
        return ToolsRead(step, by_tool(uses), by_sample(uses), by_position)

    def compare(self, step: Step, left: int, right: int) -> None:
        self._answer(
            lambda: SamplesCompared(
                step.files.key, left, right, pair(step, left, right, self.words(), self._thread.check)
            ),
            "the samples can't be compared",
        )

    def draw(self, talk: ConversationView, message: int, width: int) -> None:
        self._answer(lambda: draw(talk, message, width))

    def find_worst_of_step(self, step: Step, post: Callable[[WorstTokens], object]) -> None:
        self._give_worst(of_step(step, self.words()), post)

    def find_worst_of_run(self, rows: Mapping[StepKey, Record], post: Callable[[WorstTokens], object]) -> None:
        self._give_worst(worst_of_run(rows, self._read_step, self.words()), post)

    def _read_step(self, key: StepKey) -> Step:
        files = self._steps.files(key)
        recent = self._steps.recent.get(files)
        return load(files) if recent is None else recent.step

    def _give_worst(self, found: Iterator[RunSearch], post: Callable[[WorstTokens], object]) -> None:
        """Give what the next step brings, unless nobody waits for it any more; then go on at the back of the queue."""
        try:
            known = next(found, None)
            wanted = known is not None and post(WorstTokens(known))
        except Exception as error:  # a defect costs the list only
            wanted = post(WorstTokens(RunSearch([], 0, 0), problem_text(error))) and False
        if wanted:
            self._thread.submit(self._give_worst, found, post)

    def search(self, view: SampleView, pattern: str) -> None:
        try:
            self._post(TokenHits(view, pattern, find(view.texts, pattern)))
        except DumpError as error:
            self._post(TokenHits(view, pattern, [], error.problem))
        except Exception as error:
            self._post(TokenHits(view, pattern, [], problem_text(error)))

    def words(self) -> Vocabulary | None:
        """What token ids mean: read at the first call, and again when the file is another one, or there at last."""
        path = self._steps.run.tokenizer
        state = file_state(path)
        if self._vocabulary is None or state != self._vocabulary_of:
            self._vocabulary_of = state
            try:
                self._vocabulary = Vocabulary.load(path)
            except DumpError as error:
                self._vocabulary = error
        return self._vocabulary if isinstance(self._vocabulary, Vocabulary) else None

    def _words_changed(self) -> bool:
        """Whether what was shown with other words, or with none, is to be shown again."""
        before = self._vocabulary
        if before is None:  # nothing was
            return False
        words = self.words()
        return words is not before and (words is not None or isinstance(before, Vocabulary))

    # A column over a whole step --------------------------------------------------------------------------------

    def survey(self, step: Step, name: str) -> None:
        if step is self._step and name in self._surveys:
            self._post(FieldSurveyed(step.files.key, name, self._surveys[name]))
        elif step is self._step and name not in self._surveying:  # each sample that is opened meanwhile asks again
            self._surveying.add(name)
            self._go_on(self._survey_next, step, name, surveying(step, name))

    def _survey_next(self, step: Step, name: str, parts: Iterator[FieldSurvey | None]) -> None:
        """A part of the step at a time."""
        if step is not self._step or self._thread.closed:
            return
        self._thread.checkpoint()
        try:
            found = next(parts)
        except Exception as error:  # as with a sample: it costs the scale only
            self._surveying.remove(name)
            self._post(FieldSurveyed(step.files.key, name, None, problem_text(error)))
            return
        if found is None:
            return self._go_on(self._survey_next, step, name, parts)
        self._surveys[name] = found
        self._post(FieldSurveyed(step.files.key, name, found))

    def pack(self, loaded: StepLoaded) -> None:
        self._packing = loaded
        self._pack_next(loaded, distributions(loaded.step), [])

    def _pack_next(self, loaded: StepLoaded, coming: Iterator[Distribution | None], found: list[Distribution]) -> None:
        if loaded is not self._packing or self._thread.closed:
            return
        step = loaded.step
        self._thread.checkpoint()
        try:
            if (one := next(coming)) is not None:
                found.append(one)
            self._go_on(self._pack_next, loaded, coming, found)
        except StopIteration:
            self._post(BatchAnalysed(step, loads(step), left_out(step, loaded.samples), found))
        except Exception as error:  # a file that changed meanwhile, or a defect: what was found is shown
            self._post(Broken(error))
            self._post(BatchAnalysed(step, loads(step), left_out(step, loaded.samples), found))

    # The whole run ---------------------------------------------------------------------------------------------

    def look(self) -> None:
        assert self._follow is not None
        try:
            look, newest = self._follow.look(), self._follow.newest()
        except Exception as error:
            self._reported = None  # the next poll that succeeds is reported
            self._post(Unseen(problem_text(error)))
            return
        self._follow_health(look)
        problem = "" if look.problem is None else str(look.problem)
        words = self._words_changed()
        if not look.anything and problem == self._reported and not words:
            return
        self._reported = problem
        self._steps.summaries.run = look.run
        self._steps.summaries.staleness.forget((*look.changed, *look.gone))
        self._post(RunPolled(look, newest, words))
        self.scan.begin(sorted((*look.changed, *look.waiting), reverse=True))

    def find_health(self, *, at_start: bool = False) -> None:
        """Check the run from the start: `at_start` after the scan, and without the steps that were checked before."""
        run, cache = self._steps.run, self._steps.summaries.cache
        self._kept_findings = KeptFindings(cache, fingerprint, fresh=not at_start)
        self._checkup, self._health = Checkup(run.root, self._thread.check, kept=self._kept_findings), None
        self._health_waits = at_start
        self._post(HealthRows([], False, whole=True))
        self._findings = deque(self._checkup.parts(run))
        self._health_next(self._findings)

    def hurry_health(self) -> None:
        self._health_waits = False

    def _follow_health(self, look: PollResult) -> None:
        """Once somebody asked for it, it stays as fresh as the run; while that can't be seen, it stands."""
        unseen = look.problem is not None and look.problem.path == str(look.run.root)
        if self._checkup is None or unseen:
            return
        self._checkup.forget((*look.changed, *look.waiting), bool(look.streams))
        if not self._findings:  # else the next look goes on
            self._findings = deque(self._checkup.parts(look.run))
            if self._findings:
                self._health_next(self._findings)

    def _health_next(self, waiting: deque[Callable[[], list[Record]]]) -> None:
        """What is found in a moment at a time; what a newer request leaves half done is begun again."""
        if waiting is not self._findings or self._thread.closed:
            return
        if self._health_waits and self._checkup is not None and self._checkup.is_listed and self.scan.is_busy:
            return self._thread.later(SCAN_SECONDS, partial(self._health_next, waiting))
        found, end = [], time.monotonic() + MOMENT_SECONDS
        while waiting and time.monotonic() < end:
            part = waiting.popleft()
            try:
                found += part()
            except Abandoned:
                waiting.appendleft(part)
                break
            except BaseException:  # a defect: it costs the part
                self._go_on(self._health_next, waiting)
                raise
        self._tell_health(found, not waiting)
        if waiting:
            self._go_on(self._health_next, waiting)

    def _tell_health(self, found: list[Record], done: bool) -> None:
        """At first what is found as it is; of a run that is followed then all rows, where they are other ones."""
        assert self._checkup is not None
        before = self._health
        if done:
            self._health = self._checkup.rows()
            self._kept_findings.write()
        if before is None and (found or done):
            self._post(HealthRows(found, done))
        elif done and before != self._health:
            self._post(HealthRows(self._checkup.rows(), done, whole=True))


def problem_text(error: BaseException) -> str:
    """A DumpError says all there is to say; of a defect its type is the first thing to know."""
    return error.short if isinstance(error, DumpError) else unexpected(error)


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

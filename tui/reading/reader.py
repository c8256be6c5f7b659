"""What the screen asks of the thread that reads; it gets an immutable answer to each in one message."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from textual.message import Message

from dumptui.tui.reading.messages import Broken
from dumptui.tui.reading.reader_thread import ReaderThread

if TYPE_CHECKING:
    from concurrent.futures import Future

    from dumptui.core.files.step_files import StepKey
    from dumptui.core.process.workers import Workers
    from dumptui.core.query.text_search import Passage
    from dumptui.core.sample.view import SampleView
    from dumptui.core.step.step import Step
    from dumptui.core.store.summaries import Summaries
    from dumptui.core.types import Record
    from dumptui.core.vocabulary import Vocabulary
    from dumptui.tui.presentation.conversation import ConversationView
    from dumptui.tui.reading.messages import StepLoaded, WorstTokens
    from dumptui.tui.reading.tasks import ReaderTasks

NOTICE_SECONDS = 0.5  # seconds between two samples of somebody who goes through them


class Reader(ReaderThread):
    """Reads for the screen; a newer request abandons what an older one, or the scan, is reading."""

    def __init__(
        self,
        summaries: Summaries,
        post: Callable[[Message], object],
        workers: Workers | None = None,
        follow: bool = False,
    ) -> None:
        """`workers`, made before there were threads, scan a long run beside this thread; `follow` a live run."""
        super().__init__("reader", lambda error: post(Broken(error)))
        self._summaries = summaries
        self._post = post
        self._workers = workers
        self._follow = follow
        self._looking = False
        self._tools_of: StepLoaded | None = None

    @cached_property
    def _work(self) -> ReaderTasks:
        """Of the thread alone: what reads takes 0.2 s to import, which the first screen must not wait for."""
        from dumptui.tui.reading.tasks import ReaderTasks

        return ReaderTasks(self, self._summaries, self._post, self._workers, self._follow)

    @property
    def reward_key(self) -> str | None:
        return self._summaries.reward_key

    def close(self) -> None:
        super().close()
        if self._workers is not None:
            self._workers.close()

    # Steps -----------------------------------------------------------------------------------------------------

    def open_step(self, key: StepKey) -> None:
        self.submit_latest(lambda: self._work.open_step(key))

    def reload_step(self, key: StepKey) -> None:
        """Read the step on screen again, as its files changed, after what is asked meanwhile."""
        self.submit(lambda: self._work.reload_step(key))

    def take_reward(self, name: str | None) -> None:
        """Use this entry of rewards that are dicts from now on, None for the default: all rows are computed again."""
        self._summaries.reward_key = name
        self.submit(lambda: self._work.forget())

    def scan(self, keys: list[StepKey]) -> None:
        """Give the rows of the steps table in this order: the known ones at once, the others when nothing is asked."""
        self.submit(lambda: self._work.scan.begin(keys))

    def pack(self, loaded: StepLoaded) -> None:
        """Work out a step's packing, a part at a time, whenever nothing else is asked; another step ends it."""
        self.submit(lambda: self._work.pack(loaded))

    def find_prompts(self) -> None:
        """Read the prompts of all steps, the newest first, whenever nothing else is asked."""
        self.submit(lambda: self._work.prompts.begin())

    def read_tools(self, loaded: StepLoaded) -> None:
        """Read the tool calls and lifecycles of a step, unless another step's are asked for first. The pane asks once:
        nothing else that is asked later ends this.
        """
        self._tools_of = loaded
        self.submit(self._read_tools, loaded)

    def _read_tools(self, loaded: StepLoaded) -> None:
        if loaded is self._tools_of:
            self._work.read_tools(loaded)

    def find_health(self) -> None:
        """Look for what is wrong with the run, from the start, whenever nothing else is asked."""
        self.submit(lambda: self._work.find_health())

    def begin_health(self) -> None:
        """The same, but after the scan, and steps that were checked before are not read again."""
        self.submit(lambda: self._work.find_health(at_start=True))

    def hurry_health(self) -> None:
        """Check the steps now, beside the scan: somebody waits for it."""
        self.submit(lambda: self._work.hurry_health())

    def look(self) -> None:
        """Look at a live run again, unless that is still to be done."""
        if not self._looking:
            self._looking = True
            self.submit(self._look)

    def _look(self) -> None:
        self._looking = False
        self._work.look()

    def passages(self, key: StepKey) -> Future[list[list[Passage]]]:
        """What the samples of a step say; the answer is Abandoned when something else is asked meanwhile."""
        return self.compute(lambda: self._work.passages(key))

    # Samples ---------------------------------------------------------------------------------------------------

    def open_sample(self, step: Step, position: int, columns: int) -> None:
        """Its text is wrapped to so many cells a line: 10 ms for 100,000 tokens, which the screen must not wait for."""
        self.defer(NOTICE_SECONDS)
        self.submit_latest(lambda: self._work.open_sample(step, position, columns))

    def open_talk(self, step: Step, position: int) -> None:
        self.submit_latest(lambda: self._work.open_talk(step, position))

    def open_facts(self, step: Step, position: int) -> None:
        self.submit_latest(lambda: self._work.open_facts(step, position))

    def compare(self, step: Step, left: int, right: int) -> None:
        self.submit_latest(lambda: self._work.compare(step, left, right))

    def draw(self, talk: ConversationView, message: int, width: int) -> None:
        """Draw a message of a conversation as Markdown."""
        self.submit(lambda: self._work.draw(talk, message, width))

    def survey(self, step: Step, name: str) -> None:
        """Look at a field over the whole step of the sample opened last: some 0.3 s for 4.5 million tokens."""
        self.submit(lambda: self._work.survey(step, name))

    def find_worst_of_step(self, step: Step, post: Callable[[WorstTokens], object]) -> None:
        """Give the worst tokens of a step that was read."""
        self.submit(lambda: self._work.find_worst_of_step(step, post))

    def find_worst_of_run(self, rows: Mapping[StepKey, Record], post: Callable[[WorstTokens], object]) -> None:
        """Give the worst tokens of the steps with these rows, after each step that is read."""
        self.submit(lambda: self._work.find_worst_of_run(rows, post))

    def search(self, view: SampleView, pattern: str) -> None:
        """Look for a regular expression in the text of a sample."""
        self.submit(lambda: self._work.search(view, pattern))

    def words(self) -> Vocabulary | None:
        """In the thread: what token ids mean."""
        return self._work.words()

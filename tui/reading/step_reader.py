"""Reading a step of the run, whole or for its row only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dumptui.core.errors import DumpError, NotHere, unexpected
from dumptui.core.files.step_files import StepFiles, StepKey
from dumptui.core.live import Follow
from dumptui.core.run.run import Run
from dumptui.core.step.load import load
from dumptui.core.step.step import Step
from dumptui.core.store.summaries import Summaries
from dumptui.core.tables import steps
from dumptui.core.tables.group_members import ranked
from dumptui.core.tables.step_summary import is_whole
from dumptui.core.types import Record
from dumptui.tui.reading.messages import StepLoaded
from dumptui.tui.reading.reader_thread import Abandoned
from dumptui.tui.reading.step_cache import Recent

Report = Callable[[int, int], object]
"""Told how many bytes of how many are read."""


class StepReader:
    def __init__(self, summaries: Summaries, follow: Follow | None, check: Callable[[], None]) -> None:
        """`check` raises Abandoned when what is being read is no longer wanted."""
        self.summaries = summaries
        self.follow = follow
        self.recent = Recent()
        self._check = check

    @property
    def run(self) -> Run:
        return self.summaries.run

    def files(self, key: StepKey) -> StepFiles:
        """None of a step that is gone from a live run."""
        return self.run.steps.get(key) or StepFiles(key, self.run.format)

    def open(self, key: StepKey, report: Report) -> StepLoaded:
        """Raises Abandoned and DumpError."""
        recent = self.recent.get(self.files(key))
        if recent is None:
            step, samples = self._read(key, report)
        else:  # its staleness may follow from other steps now
            step, samples = recent.step, self.summaries.staleness.of_samples(key, recent.samples, self._check)
            if samples == recent.samples:
                return recent
        groups = steps.groups(samples, evaluation=key.evaluation)
        row = self.summaries.staleness.of_step(key, steps.step_row(step, samples))
        loaded = StepLoaded(key, step, samples, groups, row, ranked(samples, groups, key.evaluation))
        self.recent.keep(loaded)
        return loaded

    def row(self, key: StepKey) -> tuple[Record, bool]:
        """A step's row in the steps table, and whether it stays true. Raises Abandoned."""
        recent = self.recent.get(self.files(key))
        if recent is not None:
            return recent.row, True
        try:
            step, samples = self._read(key, brief=True)
            return steps.step_row(step, samples), is_whole(step)
        except DumpError as error:
            return self.unreadable(key, error), False

    def unreadable(self, key: StepKey, error: DumpError) -> Record:
        return steps.unreadable_step(self.files(key), error)

    def _read(self, key: StepKey, report: Report | None = None, *, brief: bool = False) -> tuple[Step, list[Record]]:
        """A step and its samples table. Raises Abandoned, and DumpError also for a defect: it costs the step only."""

        def on_read(done: int, total: int) -> None:
            self._check()
            if report is not None:
                report(done, total)

        def on_field(share: float) -> None:
            files = step.files
            on_read(files.rollout_bytes + int(files.train_bytes * share), files.rollout_bytes + files.train_bytes)

        self._check()
        try:
            step = load(self.files(key), on_read) if self.follow is None else self.follow.load(key, on_read)
            pausing = replace(step, pause=self._check)
            samples = steps.samples(pausing, self.summaries.reward_key, brief=brief, on_field=on_field)
            return step, samples if brief else self.summaries.staleness.of_samples(key, samples, self._check)
        except (Abandoned, DumpError):
            raise
        except MemoryError as error:  # which says nothing about the step
            raise NotHere(str(key), "too little memory is allowed") from error
        except Exception as error:
            raise DumpError(str(key), f"can't be shown: {unexpected(error)}") from error

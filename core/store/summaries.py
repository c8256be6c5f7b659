"""The rows of the steps and samples tables, computed once for files that do not change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from dumptui.core.files.step_files import StepFiles, StepKey
from dumptui.core.run.run import Run
from dumptui.core.staleness import Staleness
from dumptui.core.store.cache import Cache, fingerprint

if TYPE_CHECKING:
    from dumptui.core.process.workers import Workers
    from dumptui.core.store.prompts import PromptSummaries
    from dumptui.core.types import Record

# Modules that read a step import numpy; they are imported only for a step to read, as cached rows need none.


WORTH_WORKERS = 24  # steps; for fewer, forking and pickling take longer than they save
_STEPS_TABLE = "steps"


class Summaries:
    """The rows of a run's steps. A row is cached only if all files of its step are complete."""

    def __init__(self, run: Run, cache: Cache, reward_key: str | None = None) -> None:
        self.run = run
        self.reward_key = reward_key
        self.cache = cache
        self._cached = cache.load(_STEPS_TABLE)
        self._new = False
        self.staleness = Staleness(self)

    def samples(self, key: StepKey) -> list[Record]:
        """Return the samples table of a step. Raises DumpError."""
        files = self.run.files(key)
        name, stamp = f"samples-{key}", self._stamp(files)
        cached = self.cache.load(name)
        if cached.get("stamp") == stamp:
            rows: list[Record] = cached["rows"]
            return self.staleness.of_samples(key, rows)
        from dumptui.core.step.load import load
        from dumptui.core.tables import steps
        from dumptui.core.tables.step_summary import is_whole

        step = load(files)
        rows = steps.samples(step, self.reward_key)
        if is_whole(step):
            self.cache.store(name, {"stamp": stamp, "rows": rows})
        return self.staleness.of_samples(key, rows)

    def prompts(self) -> PromptSummaries:
        """Return the prompts of the run's steps, with the rewards as chosen now."""
        from dumptui.core.store.prompts import PromptSummaries

        return PromptSummaries(self.run, self.cache, self.reward_key)

    def known(self, key: StepKey) -> Record | None:
        """Return a step's cached row, without staleness; None when it has to be computed."""
        cached = self._cached.get(str(key))
        if cached is None or cached["stamp"] != self._stamp(self.run.steps[key]):
            return None
        row: Record = cached["row"]
        return row

    def rows(self, keys: Iterable[StepKey], workers: Workers | None = None) -> Iterator[tuple[StepKey, Record]]:
        """Yield the rows of steps in the order of `keys`, without staleness, from the cache or computed."""
        ordered = list(keys)
        known = {key: row for key in ordered if (row := self.known(key)) is not None}
        unknown = [key for key in ordered if key not in known]
        computed = self._work_out(unknown, workers)
        for key in ordered:
            if key in known:
                yield key, known[key]
                continue
            row, complete = next(computed)
            if complete:
                self.keep(key, row)
            yield key, row
        self.save()

    def keep(self, key: StepKey, row: Record) -> None:
        self._cached[str(key)] = {"stamp": self._stamp(self.run.steps[key]), "row": row}
        self._new = True

    def save(self) -> None:
        """Write the new rows, without those of steps that are gone."""
        if self._new:
            names = {str(key) for key in self.run.steps}
            self._cached = {name: cached for name, cached in self._cached.items() if name in names}
            self.cache.store(_STEPS_TABLE, self._cached)
            self._new = False

    def _work_out(self, keys: list[StepKey], workers: Workers | None) -> Iterator[tuple[Record, bool]]:
        from dumptui.core.process.workers import BrokenProcessPool
        from dumptui.core.tables.step_summary import summarise

        work = partial(summarise, reward_key=self.reward_key)
        files = [self.run.steps[key] for key in keys]
        done = 0
        if workers is not None and len(keys) >= WORTH_WORKERS:
            try:
                for answer in workers.map(work, files):
                    yield answer
                    done += 1
            except BrokenProcessPool:  # a worker was killed, perhaps for its memory: continue in this process
                pass
        yield from map(work, files[done:])

    def _stamp(self, files: StepFiles) -> str:
        return fingerprint(files.entries(), self.reward_key)

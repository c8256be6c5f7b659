"""The rows of the steps and samples tables, worked out once for files that do not change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from dumptui.core.run.run import Run, StepFiles, StepKey
from dumptui.core.staleness import Staleness
from dumptui.core.store.cache import Cache, fingerprint

if TYPE_CHECKING:
    from dumptui.core.process.workers import Workers
    from dumptui.core.types import Record

# What reads a step brings numpy, and is imported when there is one to read: rows that are known are shown without.


WORTH_WORKERS = 24  # steps: below, forking and pickling cost more than they save
_STEPS_TABLE = "steps"


class Summaries:
    """What is known of a run's steps. A row is kept only of a step whose files are all whole."""

    def __init__(self, run: Run, cache: Cache, reward_key: str | None = None) -> None:
        self.run = run
        self.reward_key = reward_key
        self._cache = cache
        self._kept = cache.load(_STEPS_TABLE)
        self._new = False
        self.staleness = Staleness(self)

    def samples(self, key: StepKey) -> list[Record]:
        """The samples table of a step. Raises DumpError."""
        files = self.run.files(key)
        name, stamp = f"samples-{key}", self._stamp(files)
        kept = self._cache.load(name)
        if kept.get("stamp") == stamp:
            rows: list[Record] = kept["rows"]
            return self.staleness.of_samples(key, rows)
        from dumptui.core.step.load import load
        from dumptui.core.tables import steps
        from dumptui.core.tables.step_summary import is_whole

        step = load(files)
        rows = steps.samples(step, self.reward_key)
        if is_whole(step):
            self._cache.store(name, {"stamp": stamp, "rows": rows})
        return self.staleness.of_samples(key, rows)

    def known(self, key: StepKey) -> Record | None:
        """A step's row without reading anything of it, and without staleness; None when it has to be worked out."""
        kept = self._kept.get(str(key))
        if kept is None or kept["stamp"] != self._stamp(self.run.steps[key]):
            return None
        row: Record = kept["row"]
        return row

    def rows(self, keys: Iterable[StepKey], workers: Workers | None = None) -> Iterator[tuple[StepKey, Record]]:
        """The rows of steps in the order asked for, without staleness: known ones as they come, others worked out."""
        wanted = list(keys)
        known = {key: row for key in wanted if (row := self.known(key)) is not None}
        unknown = [key for key in wanted if key not in known]
        worked_out = self._work_out(unknown, workers)
        for key in wanted:
            if key in known:
                yield key, known[key]
                continue
            row, whole = next(worked_out)
            if whole:
                self.keep(key, row)
            yield key, row
        self.save()

    def keep(self, key: StepKey, row: Record) -> None:
        self._kept[str(key)] = {"stamp": self._stamp(self.run.steps[key]), "row": row}
        self._new = True

    def save(self) -> None:
        """Write what is new, and forget what is kept of steps that are gone."""
        if self._new:
            names = {str(key) for key in self.run.steps}
            self._kept = {name: kept for name, kept in self._kept.items() if name in names}
            self._cache.store(_STEPS_TABLE, self._kept)
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
            except BrokenProcessPool:  # a worker was killed, for its memory perhaps: go on here
                pass
        yield from map(work, files[done:])

    def _stamp(self, files: StepFiles) -> str:
        return fingerprint(files.entries(), self.reward_key)

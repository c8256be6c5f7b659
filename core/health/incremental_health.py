"""The Health rows of a growing run: stored by step, so that only the steps that changed are checked again.

The rows equal those that core/health/run_health.py yields for the run at that moment.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from dumptui.core.files.retry import CLOCK_SKEW_SECONDS, YOUNG_SECONDS
from dumptui.core.files.step_files import StepFiles, StepKey
from dumptui.core.health.finding import record_of
from dumptui.core.health.kept_findings import KeptFindings
from dumptui.core.health.run_health import (
    StepRow,
    listing_findings,
    new_rows,
    step_rows,
    stream_problems,
    tokenizer_problems,
)
from dumptui.core.live import file_state
from dumptui.core.run.run import Run, tokenizer_of
from dumptui.core.step.ranks import Ranks, missing_ranks
from dumptui.core.types import Record

TIME_SHARE = 20  # checking telemetry reads all of it: it may take at most 1/20 of the time


class Checked(NamedTuple):
    """The rows of a step, valid until the time `until` and while the ranks without a train file are `missing`."""

    missing: Ranks
    rows: list[StepRow]
    until: float


class Checkup:
    """The health check of a growing run, in parts that a caller runs one by one."""

    def __init__(
        self,
        root: Path,
        pause: Callable[[], object],
        now: Callable[[], float] = time.time,
        kept: KeptFindings | None = None,
    ) -> None:
        """`pause` is called about ten times a second. When it raises, the interrupted part can be called again. Steps
        whose rows are `kept` are not read.
        """
        self._kept = kept
        self._root = root
        self._pause = pause
        self._now = now
        self._run: Run | None = None
        self._missing: dict[StepKey, Ranks] = {}
        self._steps: dict[StepKey, Checked] = {}
        self._forgotten: set[StepKey] = set()
        self._due = -math.inf  # when a step has to be checked again although the run is the same
        self._listed: list[Record] = []
        self._has_listed = False
        self._streams: list[Record] = []
        self._streams_changed = True
        self._streams_due = -math.inf
        self._tokenizer: list[Record] = []
        self._tokenizer_state: object = None

    @property
    def is_listed(self) -> bool:
        """Whether the first part is done, which reads no file."""
        return self._has_listed

    def forget(self, keys: Iterable[StepKey], streams: bool) -> None:
        """Check these steps again in the next parts, and telemetry too if `streams` have grown."""
        self._forgotten.update(keys)
        self._streams_changed |= streams

    def parts(self, run: Run) -> list[Callable[[], list[Record]]]:
        """Return the calls that are needed, in order, before `rows` describes this run; each returns its own rows."""
        now = self._now()
        parts: list[Callable[[], list[Record]]] = []
        if run is not self._run or now >= self._due or self._forgotten:
            parts = self._parts_of_steps(run, now)
        if self._streams_changed and now >= self._streams_due:
            parts.append(self._look_at_streams)
        if file_state(tokenizer_of(self._root)) != self._tokenizer_state:
            parts.append(self._look_at_tokenizer)
        return parts

    def rows(self) -> list[Record]:
        """Return the rows known so far, in the order of `run_health.health`."""
        seen: set[str] = set()
        steps = [] if self._run is None else [self._steps[key] for key in self._run.steps if key in self._steps]
        return [
            *self._listed,
            *(row for step in steps for row in new_rows(step.rows, seen)),
            *self._streams,
            *self._tokenizer,
        ]

    def _parts_of_steps(self, run: Run, now: float) -> list[Callable[[], list[Record]]]:
        if run is not self._run:
            self._run, self._missing = run, missing_ranks(run)
            self._steps = {key: checked for key, checked in self._steps.items() if key in run.steps}
        known, seen = self._steps.keys() - self._forgotten, set[str]()
        self._forgotten.clear()
        stale = [files for files in run.steps.values() if files.key not in known or self._is_stale(files, now)]
        young = [until(files, now) for key, files in run.steps.items() if key in self._missing]
        self._due = min([*young, *(checked.until for checked in self._steps.values())], default=math.inf)
        return [partial(self._look_at_listing, run), *(partial(self._look_at_step, files, seen) for files in stale)]

    def _is_stale(self, files: StepFiles, now: float) -> bool:
        checked = self._steps[files.key]
        return now >= checked.until or checked.missing != self._missing_of(files)

    def _missing_of(self, files: StepFiles) -> Ranks:
        return self._missing.get(files.key, frozenset())

    # The parts ------------------------------------------------------------------------------------------------------

    def _look_at_listing(self, run: Run) -> list[Record]:
        self._listed = [record_of(self._root, finding) for finding in listing_findings(run, self._missing)]
        self._has_listed = True
        return self._listed

    def _look_at_step(self, files: StepFiles, seen: set[str]) -> list[Record]:
        began = self._now()
        missing = self._missing_of(files)
        rows = None if self._kept is None else self._kept.rows(files, missing)
        if rows is None:
            rows = step_rows(self._root, files, missing, self._pause)
            if self._kept is not None and until(files, began) == math.inf:
                self._kept.keep(files, missing, rows)
        # An older file gets stricter findings: a truncated line, or a shard that is missing for good.
        may_change = files.trajectory is not None or any(not once for _, once in rows)
        checked = Checked(self._missing_of(files), rows, until(files, began) if may_change else math.inf)
        self._steps[files.key] = checked
        self._due = min(self._due, checked.until)
        return new_rows(rows, seen)

    def _look_at_streams(self) -> list[Record]:
        began = self._now()
        self._streams_changed = False
        self._streams = stream_problems(self._root)
        self._streams_due = self._now() + TIME_SHARE * (self._now() - began)
        return self._streams

    def _look_at_tokenizer(self) -> list[Record]:
        self._tokenizer_state = file_state(tokenizer_of(self._root))
        self._tokenizer = tokenizer_problems(self._root)
        return self._tokenizer


def until(files: StepFiles, now: float) -> float:
    """Return when the next file of a step stops being young, which changes the findings; infinity if none is young."""
    return min(
        (e.mtime + YOUNG_SECONDS for e in files.entries() if -CLOCK_SKEW_SECONDS <= now - e.mtime < YOUNG_SECONDS),
        default=math.inf,
    )

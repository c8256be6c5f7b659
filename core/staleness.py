"""How stale the samples of a step are, which depends on other steps of the run; rows are kept without it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from dumptui.core.files.step_files import StepKey
from dumptui.core.types import Record
from dumptui.core.weight_counter import NOT_RECORDED, Versions, WeightCounter, versions_of

if TYPE_CHECKING:
    from dumptui.core.store.summaries import Summaries

MOST_ROLLOUTS = 8  # files that are read for their versions alone: of train files one takes 3 ms
UNREAD = "other steps have to be read first"


class Staleness:
    """What is known of the weight versions of a run's train steps, and what follows for one of them."""

    def __init__(self, summaries: Summaries) -> None:
        self._summaries = summaries
        self._versions: dict[int, Versions | None] = {}
        self._rollouts_read = 0
        self._check: Callable[[], object] = lambda: None
        self._counter: WeightCounter | None = None

    def forget(self, keys: Iterable[StepKey]) -> None:
        """Of steps whose files are other ones now."""
        for key in keys:
            self._versions.pop(key.step, None)
        self._counter = None

    def learn(self, key: StepKey, row: Record) -> None:
        """Take the versions of a step's row."""
        if not key.evaluation and row["samples"]:
            self._learn(key.step, recorded(row))

    def of_samples(self, key: StepKey, rows: list[Record], check: Callable[[], object] | None = None) -> list[Record]:
        """The rows of a step's samples table; `check`, called before each file that is read, may raise to leave it."""
        if key.evaluation or not rows:
            return rows
        self._learn(key.step, versions_of(rows))
        before, self._check = self._check, check or self._check
        try:
            current = self._counted().current(key.step)
        finally:
            self._check = before
        return [{**row, **staleness(row["weight_version_min"], current, "staleness")} for row in rows]

    def of_step(self, key: StepKey, row: Record, *, reading: bool = True) -> Record:
        """A step's row; without `reading`, as far as it follows from what is known of other steps."""
        if key.evaluation or not row["samples"]:
            return row
        self.learn(key, row)
        if reading:
            current = self._counted().current(key.step)
        else:
            simple = WeightCounter(self._steps(), self._versions.get).at_an_update_a_step(key.step)
            current = simple if simple is not None else NOT_RECORDED if recorded(row) is None else UNREAD
        return {**row, **staleness(row["weight_version_min_mean"], current, "staleness_mean")}

    def _learn(self, step: int, versions: Versions | None) -> None:
        if self._versions.get(step, 0) != versions:
            self._versions[step], self._counter = versions, None

    def _counted(self) -> WeightCounter:
        """The same as long as nothing else is known: it splits the run into attempts but once."""
        if self._counter is None:
            self._counter = WeightCounter(self._steps(), self._at)
        return self._counter

    def _steps(self) -> set[int]:
        return {key.step for key in self._summaries.run.steps if not key.evaluation} | self._versions.keys()

    def _at(self, step: int) -> Versions | None:
        if step not in self._versions:
            self._versions[step] = self._read(StepKey(step))
        return self._versions[step]

    def _read(self, key: StepKey) -> Versions | None:
        """By the row that is kept of a step, its first train file or, where few are read for it, its rollout file."""
        self._check()
        kept = self._summaries.known(key)
        if kept is not None:
            return recorded(kept)
        from dumptui.core.file_versions import rollout_versions, train_versions

        files = self._summaries.run.steps[key]
        found = train_versions(files)
        if found is None and self._rollouts_read < MOST_ROLLOUTS:
            self._rollouts_read += 1
            found = rollout_versions(files)
        return found


def recorded(row: Record) -> Versions | None:
    """The versions in a row of the steps table."""
    begun, newest = row.get("weight_version_begun"), row.get("weight_version_max")
    return Versions(begun, newest) if isinstance(begun, int) and isinstance(newest, int) else None


def staleness(oldest: object, current: int | str, name: str) -> Record:
    """How far an oldest version is behind the current one, or why that can't be said."""
    if not isinstance(oldest, (int, float)):
        return {name: None, "staleness_reason": None}
    if isinstance(current, str):
        return {name: None, "staleness_reason": current}
    return {name: current - oldest, "staleness_reason": None}

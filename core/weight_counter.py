"""Which weight version the trainer had at each step, worked out for the run: staleness is counted from it.

The engines' counter is raised before the first rollout, after every k-th step, and restarts with a resumed attempt.
None of that is recorded, but the versions of the samples show it: an attempt's first step was written before anything
was trained, no sample was written by a version that was not there yet, and a drop is a restart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from dumptui.core.types import Record

PERIODS = 3  # of an update interval that have to be seen before it is believed
MOST_BEHIND = 16  # versions; hardly a sample waits longer to be trained on


NOT_RECORDED = "no weight version is recorded"


class Versions(NamedTuple):
    """Of a step's samples: the newest version that any begins with, and the newest of all."""

    begun: int
    newest: int


@dataclass
class Attempt:
    """`base` is the version at `start`, a reason where it can't be known; `seen` are the versions by step."""

    start: int
    base: int | str
    seen: dict[int, int]

    @cached_property
    def intervals(self) -> list[int]:
        """The steps from one update of the weights to the next, as far as the versions allow: several if they can't
        tell.
        """
        base = self.base
        assert isinstance(base, int)
        longest = 1
        while longest <= max(self.seen) - self.start and min(lags(self, base, longest + 1)) >= 0:
            longest += 1
        if follows(self, base, longest):
            return [longest]
        possible = range(1, longest + 1)
        return [one for one in possible if max(lags(self, base, one)) <= MOST_BEHIND] or list(possible)


def versions_of(rows: Iterable[Record]) -> Versions | None:
    """By the rows of the samples table; None where no sample has a version."""
    begun = [one for row in rows if isinstance(one := row["weight_version_min"], int)]
    newest = [one for row in rows if isinstance(one := row["weight_version_max"], int)]
    return Versions(max(begun), max(newest)) if begun and newest else None


class WeightCounter:
    """`versions` gives those of a step; asked as seldom as can be, as it may read a file."""

    def __init__(self, steps: Iterable[int], versions: Callable[[int], Versions | None]) -> None:
        self._steps = sorted(steps)
        self._at = versions

    def current(self, step: int) -> int | str:
        """The version that the trainer has when it trains on a step, or why that can't be said."""
        simple = self.at_an_update_a_step(step)
        if simple is not None:
            return simple
        attempt = self._attempts.get(step)
        if attempt is None:
            return NOT_RECORDED
        return attempt.base if isinstance(attempt.base, str) else current_in(attempt, attempt.base, step)

    def at_an_update_a_step(self, step: int) -> int | None:
        """That of a step whose newest sample has it, by the first step alone: weights are updated at each step."""
        first, own = self._steps[0], self._at(step)
        began = self._at(first)
        found = None if began is None else base_of(first, began) + step - first
        return found if own is not None and own.begun == found else None

    @cached_property
    def _attempts(self) -> dict[int, Attempt]:
        """The attempt that each step is of."""
        return {step: attempt for attempt in self._split() for step in attempt.seen}

    def _split(self) -> list[Attempt]:
        found: list[Attempt] = []
        before: Versions | None = None
        unknown = False  # steps of which no version is known lie before
        for step in self._steps:
            versions = self._at(step)
            if versions is None:
                unknown = True
                continue
            last = found[-1] if found else None
            if last is None or before is None:
                found.append(Attempt(step, base_of(step, versions), {step: versions.begun}))
            elif versions.newest < before.newest:
                base = "a restart lies in steps whose versions are not known" if unknown else versions.begun
                found.append(Attempt(step, base, {step: versions.begun}))
            elif isinstance(last.base, int) and versions.begun > last.base + step - last.start:
                found.append(Attempt(step, versions.newest, {step: versions.begun}))  # of an attempt before that one
            else:
                last.seen[step] = versions.begun
            before, unknown = versions, False
        return found


def base_of(step: int, versions: Versions) -> int:
    """The version at the first step seen: before step 0 nothing was trained, later that is all that is known."""
    return versions.newest if step else versions.begun


def current_in(attempt: Attempt, base: int, step: int) -> int | str:
    found = {base + updates(attempt.start, step, interval) for interval in attempt.intervals}
    if len(found) == 1:
        return found.pop()
    shortest, longest = attempt.intervals[0], attempt.intervals[-1]
    return f"weights may be updated every {shortest} to {longest} steps: known once there are more steps"


def updates(start: int, step: int, interval: int) -> int:
    """How often weights were updated between the rollouts of two steps."""
    return step // interval - start // interval


def lags(attempt: Attempt, base: int, interval: int) -> list[int]:
    """How far the newest sample of each step is behind, were weights updated at this interval."""
    return [base + updates(attempt.start, step, interval) - begun for step, begun in attempt.seen.items()]


def follows(attempt: Attempt, base: int, interval: int) -> bool:
    """Whether every step's newest sample is of the version of that step or, in asynchronous training, of the step
    before, over enough periods.
    """
    start = attempt.start
    return len(attempt.seen) >= PERIODS * interval and any(
        all(begun == base + updates(start, max(start, step - late), interval) for step, begun in attempt.seen.items())
        for late in (0, 1)
    )

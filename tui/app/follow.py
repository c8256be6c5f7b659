"""A run that is followed: whether the selection goes along with it, and what is said of it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from dumptui.core.tables.alarms import alarms
from dumptui.core.telemetry.logs import MAX_TIME
from dumptui.core.text import plural, visible

if TYPE_CHECKING:
    from dumptui.core.files.step_files import StepKey
    from dumptui.core.live import PollResult
    from dumptui.core.types import Record
    from dumptui.tui.reading.messages import RunPolled

POLL_SECONDS = 2.0  # seconds between two looks at a live run
SILENCE_SECONDS = 600.0
"""Seconds without data from which its age is shown. It doubles from one text to the next, so that a screen that nothing
happens on writes a few dozen bytes in the first hours and then none; seconds would be written all day long."""
DAY_SECONDS = 86_400.0


class Live:
    """`following` is whether the selection goes to each newest step; it does until the user moves it."""

    def __init__(self, on: bool, following: bool, ring: bool) -> None:
        """A run that is not followed has one too, that is not `on` and says nothing."""
        self.on = on
        self.following = on and following
        self._ring = ring
        self._look: PollResult | None = None
        self._unseen = ""  # why the run can't be looked at
        self._newest = 0.0
        self._written: set[StepKey] = set()  # since the run is followed
        self._rung: set[StepKey] = set()

    def grew(self, event: RunPolled) -> None:
        self._look, self._newest, self._unseen = event.look, event.newest, ""
        self._written.update(event.look.changed)

    def unseen(self, problem: str) -> None:
        self._unseen = problem

    def moved(self, newest: bool) -> None:
        """The user chose a step, the newest or another one, or something in it."""
        self.following = self.on and newest

    def rings(self, rows: Mapping[StepKey, Record]) -> bool:
        """Whether a step turned bad: once for each, and for none that was there before and not touched since."""
        bad = {key for key, row in rows.items() if key in self._written - self._rung and alarms(row)}
        self._rung |= bad
        return self._ring and bool(bad)

    def step_to_open(
        self, rows: Mapping[StepKey, Record], current: StepKey, ages: Mapping[StepKey, int]
    ) -> StepKey | None:
        """The newest of these steps that has samples to show and is newer than the one on screen."""
        if not self.following:
            return None
        newer = (key for key, row in rows.items() if row["samples"] and is_newer(key, current, ages))
        return min(newer, key=lambda key: ages[key], default=None)

    @property
    def problem(self) -> str:
        """Why the run, or a part of it, can't be followed at the moment; "" while it can."""
        if self._unseen:
            return f"not followed: {visible(self._unseen)}"
        problem = self._look.problem if self._look is not None else None
        return "" if problem is None else f"{visible(Path(problem.path).name)}: {visible(problem.problem)}"

    def line(self, newer: int) -> Text:
        """What stands at the end of the top line; `newer` steps are newer than the one on screen."""
        line = Text()
        if not self.on:
            return line
        line.append(f"  +{plural(newer, 'step')}" * bool(newer), "bold")
        if self.problem:
            return line.append(f"  {self.problem}", "bold")
        return line.append(f"  live{data_line(self._newest, time.time())}")


def is_newer(key: StepKey, other: StepKey, ages: Mapping[StepKey, int]) -> bool:
    """Of two train steps or two evals; a step whose files are gone is older than those beyond its number."""
    if key.evaluation != other.evaluation or key not in ages:
        return False
    return ages[key] < ages[other] if other in ages else key > other


def data_line(newest: float, now: float) -> str:
    """When the newest data came and, from SILENCE on, since how long there is none; "" while none is known."""
    if not newest:
        return ""
    age = now - newest
    form = "%H:%M:%S" if age < DAY_SECONDS / 2 else "%Y-%m-%d %H:%M"
    text = f", data {time.strftime(form, time.gmtime(min(newest, MAX_TIME)))} UTC"  # as all times of the run
    if age < SILENCE_SECONDS:
        return text
    minutes = int(SILENCE_SECONDS / 60) << int(age / SILENCE_SECONDS).bit_length() - 1
    return f"{text}, over {in_words(minutes)} ago"


def in_words(minutes: int) -> str:
    if minutes < 120:
        return f"{minutes} min"
    return f"{minutes // 60} h" if minutes < 2880 else f"{minutes // 1440} days"

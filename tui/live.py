"""A run that is followed: whether the selection goes along with it, and what is said of it."""

from __future__ import annotations

from collections.abc import Mapping

from rich.text import Text

from dumptui.core.run import StepKey
from dumptui.core.tables import Record
from dumptui.tui.headline import alarms, live_line
from dumptui.tui.panes.samples import count
from dumptui.tui.reader import Grew

POLL = 2.0  # seconds between two looks at a live run


class Live:
    """`following` is whether the selection goes to each newest step; it does until the user moves it."""

    def __init__(self, on: bool, following: bool, ring: bool) -> None:
        """A run that is not followed has one too, that is not `on` and says nothing."""
        self.on = on
        self.following = on and following
        self._ring = ring
        self._line = "live"

    def grew(self, event: Grew) -> None:
        self._line = live_line(event.look, event.newest)

    def moved(self, newest: bool) -> None:
        """The user chose a step, the newest or another one."""
        self.following = self.on and newest

    def rings(self, rows: Mapping[StepKey, Record]) -> bool:
        return self.on and self._ring and any(map(alarms, rows.values()))

    def step_to_open(self, rows: Mapping[StepKey, Record], current: StepKey) -> StepKey | None:
        """The newest of these steps, where it has samples to show and is newer than the one on screen."""
        readable = [key for key, row in rows.items() if row["samples"] and key.evaluation == current.evaluation]
        newest = max(readable, default=current)
        return newest if self.following and newest > current else None

    def line(self, newer: int) -> Text:
        """What stands at the end of the top line; `newer` steps are newer than the one on screen."""
        line = Text()
        if self.on:
            line.append(f"  +{count(newer, 'step')}" * bool(newer), "bold").append(f"  {self._line}")
        return line

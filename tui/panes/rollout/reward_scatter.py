"""Reward against response length: every sample of a step a point, which can be walked and opened."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical

from dumptui.core.text import visible
from dumptui.tui.panes.requests import SampleChosen, SampleMoved
from dumptui.tui.presentation import columns
from dumptui.tui.presentation.sample_rows import entry_text
from dumptui.tui.widgets.line import Line

if TYPE_CHECKING:
    from dumptui.core.types import Record
    from dumptui.tui.reading.messages import StepLoaded

TRUNCATED, OTHER = 0, 1


class Picture(Vertical):
    """The plot and, above it, what the point under the cursor is; it comes with `fill`, as that of the trend does."""

    def __init__(self) -> None:
        super().__init__(id="picture")
        self._records: list[Record] = []
        self._without = 0

    def compose(self) -> ComposeResult:
        yield Line(id="picture-title")
        yield Line(id="picture-point")

    async def fill(self) -> None:
        from dumptui.tui.widgets.plot.scatter import Scatter

        self.scatter = Scatter(id="scatter")
        await self.mount(self.scatter)

    def show_samples(
        self, loaded: StepLoaded, records: list[Record], order: Sequence[int], current: int | None
    ) -> None:
        """`records` are the rows of the step's samples as the screen has them, `order` has the positions of those to
        show, `current` is under the cursor of the table.
        """
        from dumptui.tui.widgets.plot.scatter import Kind, Point

        self._records = records
        rewards = {at: value for one in loaded.ranked for at, value in zip(one.members, one.rewards, strict=True)}
        points = [
            Point(at, length, reward, TRUNCATED if row["truncated"] else OTHER)
            for at in order
            for row, reward in [(records[at], rewards[at])]
            if reward is not None and math.isfinite(reward) and isinstance(length := row["response_length"], int)
        ]
        self._without = len(order) - len(points)
        self.scatter.show_points(
            points,
            [Kind("truncated", "x", "second"), Kind("not", "•", "first")],
            x_label="response length",
            empty="no sample has a reward",
        )
        self.select(current)

    def clear(self) -> None:
        self._records, self._without = [], 0
        self.scatter.show_points([], [], x_label="", empty="")
        for line in self.query(Line):
            line.say("")

    def select(self, position: int | None) -> None:
        """The cursor of the table went to another sample."""
        self.scatter.select(position)
        self._say()

    def _say(self) -> None:
        text = Text("reward against length", "bold")
        text.append("  • sample  x truncated", "dim")
        if entry := entry_text(self._records):
            text.append(f"  {entry}", "dim")
        if self._without:
            text.append(f"  {self._without} without reward", "dim")
        self.query_one("#picture-title", Line).say(text)
        key = self.scatter.key
        self.query_one("#picture-point", Line).say("" if key is None else point_text(self._records[key]))

    def on_scatter_moved(self) -> None:
        self._say()
        if (key := self.scatter.key) is not None:
            self.post_message(SampleMoved(key))

    def on_scatter_selected(self) -> None:
        if (key := self.scatter.key) is not None:
            self.post_message(SampleChosen(key))


def point_text(row: Record) -> Text:
    text = Text(f"sample {visible(str(row['label']))}", "bold")
    text.append(f"  reward {columns.reward(row['compared_reward'])}  len {row['response_length']}")
    return text.append(f"  |Δ| {columns.fixed(4)(row['mean_abs_lp_diff'])}  {row['flags']}".rstrip())

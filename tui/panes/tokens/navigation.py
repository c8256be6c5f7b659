"""Going from one worst token to the next, and from one hit of a search to the next."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from rich.text import Text

from dumptui.core.arrays import Ints
from dumptui.core.sample.view import SampleView
from dumptui.core.step.field_survey import FieldSurvey
from dumptui.core.text import visible


class WorstTokenCursor:
    """Where the walk along the worst tokens stands: in the order of the sample, and in that of its step."""

    def __init__(self) -> None:
        self._view: SampleView | None = None
        self._name = ""
        self._at = self._step_at = -1

    def along(self, view: SampleView, name: str) -> None:
        """From now on the worst tokens are these; the place is kept where they are the same."""
        if name != self._name:
            self._step_at = -1
        if view is not self._view or name != self._name:
            self._view, self._name, self._at = view, name, -1
            self.__dict__.pop("_order", None)

    @cached_property
    def _order(self) -> Ints:
        """The positions with a value, the worst first; 10 ms for 100,000, so only once somebody walks."""
        return np.empty(0, np.int64) if self._view is None else self._view.worst(self._name)

    def stand_on(self, token: int) -> None:
        """The walk came here in another way."""
        found = np.flatnonzero(self._order == token)
        self._at = int(found[0]) if len(found) else -1

    def next(self, by: int) -> int | None:
        """The next position; None after the last."""
        if self._at + by >= len(self._order):
            return None
        self._at = max(self._at + by, 0)
        return int(self._order[self._at])

    def next_of_step(self, survey: FieldSurvey, by: int) -> tuple[int, int]:
        """The next sample and position; those at the ends stay."""
        self._step_at = min(max(self._step_at + by, 0), len(survey.tokens) - 1)
        return int(survey.positions[self._step_at]), int(survey.tokens[self._step_at])


@dataclass
class Search:
    """What is searched for in the sample on show, and where it is."""

    pattern: str = ""
    hits: list[range] = field(default_factory=list)
    sought: bool = False
    """The hits of this pattern are known."""
    goes: bool = False
    """The cursor goes to a hit once they are."""

    def begin(self, pattern: str) -> None:
        self.pattern, self.hits, self.sought = pattern, [], False

    def found(self, hits: list[range]) -> None:
        self.hits, self.sought = hits, True

    @property
    def tokens(self) -> frozenset[int]:
        return frozenset(token for hit in self.hits for token in hit)

    def first(self, cursor: int) -> int | None:
        """Where the first hit at or after the cursor begins, else the first of all."""
        starts = [hit.start for hit in self.hits if hit.stop > cursor] or [hit.start for hit in self.hits]
        return starts[0] if starts else None

    def next(self, cursor: int, by: int) -> int | None:
        """Where the next hit begins, or with a `by` of -1 the one before, round the ends."""
        starts = [hit.start for hit in self.hits]
        if not starts:
            return None
        at = int(np.searchsorted(starts, cursor, "right" if by > 0 else "left"))
        return starts[(at if by > 0 else at - 1) % len(starts)]

    def text(self, cursor: int) -> Text:
        """How many hits, and the number of the one under the cursor."""
        if not self.pattern:
            return Text()
        at = next((f"{at} of " for at, hit in enumerate(self.hits, 1) if cursor in hit), "")
        count = f"{at}{len(self.hits)} hit{'s' * (len(self.hits) != 1)}" if self.sought else "searching"
        return Text(f"/{visible(self.pattern)}/ {count} · ", "bold")

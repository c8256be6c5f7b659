"""What panes report to the app, and ask of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dumptui.tui.widgets.message import FrozenMessage

if TYPE_CHECKING:
    from dumptui.core.files.step_files import StepKey
    from dumptui.core.types import Record
    from dumptui.tui.reading.reader import Reader
    from dumptui.tui.session.location import Location


class Request(FrozenMessage):
    """A message from a pane to the app."""


class ReadWanted(Request):
    """Ask the reader; its answer goes to all panes."""

    ask: Callable[[Reader], None]


class StepChosen(Request):
    """The cursor went to a step: open it."""

    key: StepKey


class StepWanted(Request):
    """Open a step in the Rollout pane."""

    key: StepKey


class PlaceWanted(Request):
    """Go to a place: a step, a sample of it, a token."""

    place: Location


class FindingWanted(Request):
    """Show a row of Health."""

    finding: Record


class RewardKeyChosen(Request):
    """Use this entry of rewards that are dicts as the reward; None means the default one."""

    name: str | None


class SampleChosen(Request):
    """Open the tokens of a sample, given by its position in the rollout file."""

    position: int


class SampleMoved(Request):
    """The cursor of a table of samples went to another sample."""

    position: int


class SampleRowMoved(Request):
    """The cursor of the Rollout pane's samples is in another row."""

    row: int


class TokensWanted(Request):
    """Open the tokens of a sample at one of them."""

    position: int
    token: int


class PairWanted(Request):
    """Compare two samples, given by their positions in the rollout file."""

    left: int
    right: int


class SurveyWanted(Request):
    """Read the range and the worst tokens of a field over the step on screen."""

    name: str


class SamplesArranged(Request):
    """The samples are in another order."""


class SortWanted(Request):
    """Sort the samples by one of these columns, or by `key`; `more`: as the secondary key."""

    columns: list[str]
    key: str | None = None
    more: bool = False


class ReverseWanted(Request):
    """Reverse the order of the samples."""

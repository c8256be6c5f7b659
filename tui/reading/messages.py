"""What the reader thread answers: messages that hold what was asked for, whole and never changed again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

from dumptui.tui.widgets.message import Answer, FrozenMessage

# What it is of is imported by the thread, not for the first screen.
if TYPE_CHECKING:
    from dumptui.core.files.step_files import StepKey
    from dumptui.core.live import PollResult
    from dumptui.core.sample.comparison import Pair
    from dumptui.core.sample.view import SampleView
    from dumptui.core.step.distribution import Distribution
    from dumptui.core.step.field_survey import FieldSurvey
    from dumptui.core.step.step import Step
    from dumptui.core.tables.group_members import Group
    from dumptui.core.tables.packing import LeftOut, Load
    from dumptui.core.tables.worst_tokens import RunSearch
    from dumptui.core.telemetry.lifecycle import Lifecycle
    from dumptui.core.types import Record
    from dumptui.tui.widgets.heatmap.token_flow import Flow


class StepLoaded(Answer):
    """A step joined, with its samples and groups tables, its own row in the steps table, and its groups by reward."""

    key: StepKey
    step: Step
    samples: list[Record]
    groups: list[Record]
    row: Record
    ranked: list[Group]


class StepFailed(Answer):
    key: StepKey
    problem: str
    row: Record


class StepSummaries(Answer):
    """Rows of steps that were scanned, not opened."""

    rows: dict[StepKey, Record]


class HealthRows(Answer):
    """More rows of the health view, or the `whole` of them; `done` with the last of them."""

    rows: list[Record]
    done: bool
    whole: bool = False


class SampleOpened(Answer):
    """A sample ready to look at, and what is known of fields over its whole step: more of that comes as Surveyed."""

    key: StepKey
    position: int
    view: SampleView
    flow: Flow
    surveys: dict[str, FieldSurvey]


class SamplesCompared(Answer):
    """Two samples of a step, by their positions in the rollout file, beside each other."""

    key: StepKey
    left: int
    right: int
    pair: Pair


class BatchAnalysed(Answer):
    """How a step was packed for training, and what its per-token columns hold."""

    step: Step
    loads: list[Load]
    left_out: list[LeftOut]
    columns: list[Distribution]


class PromptRows(Answer):
    """The prompts of the steps that were read so far, and how many there are of each kind."""

    rows: list[Record]
    counts: dict[str, int]
    done: int
    total: int

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, PromptRows)


class ToolsRead(Answer):
    """The tools of a step by name, what each sample did with them, the last to end first, and the lifecycles by sample
    position.
    """

    step: Step
    tools: list[Record]
    samples: list[Record]
    lives: dict[int, Lifecycle]


class Unseen(Answer):
    """A live run that can't be looked at, and why; it is tried again."""

    problem: str


class Broken(Answer):
    """Something that was worked out in the background ended with this, and without an answer."""

    error: BaseException


class SampleFailed(Answer):
    """A sample that can't be looked at."""

    problem: str


class FieldSurveyed(Answer):
    """A field over a whole step; without a survey, why there is none."""

    key: StepKey
    name: str
    survey: FieldSurvey | None
    problem: str = ""


class TokenHits(Answer):
    """Where a pattern was found in the text of a sample, or what is wrong with the pattern."""

    view: SampleView
    pattern: str
    hits: list[range]
    problem: str = ""


class RunPolled(Answer):
    """What a look at a live run found; `newest` is the time of its newest data, in seconds since the epoch.

    `words` says that token ids mean something else than before, as when the tokenizer is written late.
    """

    look: PollResult
    newest: float
    words: bool = False


class ReadProgress(Answer):
    key: StepKey
    done: int
    total: int

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, ReadProgress)


class WorstTokens(FrozenMessage):
    """What is known of the worst tokens; `problem` is why nothing is."""

    found: RunSearch
    problem: str | None = None

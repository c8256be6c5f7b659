"""When a sample waited, generated and called tools: its events in the trajectories stream, paired to spans."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from dumptui.core.run.run import StepKey
from dumptui.core.telemetry.jsonl_tail import Record

if TYPE_CHECKING:
    from dumptui.core.telemetry.column_store import Columns
    from dumptui.core.telemetry.metrics import StepTime
    from dumptui.core.telemetry.streams import Stream
    from dumptui.core.telemetry.telemetry import Telemetry

ATTEMPT, GEN, TOOL = "attempt", "gen", "tool"
MAX_SPAN_SECONDS = 4 * 3600.0
"""How long before its step was logged the events of a sample are looked for, as in the dashboard of miles."""
# Of events at one time: a span of no length begins before it ends, and within the attempt that ends then.
EVENT_ORDER = {f"{ATTEMPT}_end": 2, f"{ATTEMPT}_start": 3}


class Span(NamedTuple):
    """From `t0` to `t1`, in seconds since the epoch; `unknown` says which of them ("start", "end") nobody recorded.

    `kind` is as dumped, without its `_start` or `_end`. `turn` counts from 1, and is -1 for what is of no turn.
    """

    kind: str
    turn: int
    t0: float
    t1: float
    version: str = ""
    detail: str = ""
    unknown: str = ""

    @property
    def seconds(self) -> float:
        return self.t1 - self.t0


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """The spans of a sample by their start. `logged` is when its step was, None where that is not known."""

    spans: tuple[Span, ...]
    logged: float | None = None

    @property
    def t0(self) -> float:
        return min(span.t0 for span in self.spans)

    @property
    def t1(self) -> float:
        return max(span.t1 for span in self.spans)

    def of(self, *kinds: str) -> list[Span]:
        return [span for span in self.spans if span.kind in kinds]

    @property
    def inner(self) -> list[Span]:
        """All but the attempts."""
        return [span for span in self.spans if span.kind != ATTEMPT]

    def waiting(self) -> float:
        """Seconds of its attempts, or without one of its whole life, in which nothing else went on."""
        whole = self.of(ATTEMPT) or [Span(ATTEMPT, -1, self.t0, self.t1)]
        return covered([*whole, *self.inner]) - covered(self.inner)

    def queued(self) -> float:
        """Seconds from its first attempt's start to the first other thing."""
        return max(0.0, min((span.t0 for span in self.inner), default=self.t1) - self.t0)


def covered(spans: Iterable[Span]) -> float:
    """Seconds in which at least one of them goes on."""
    seconds, end = 0.0, float("-inf")
    for span in sorted(spans, key=lambda one: one.t0):
        seconds += max(0.0, span.t1 - max(end, span.t0))
        end = max(end, span.t1)
    return seconds


def read_lifecycle(telemetry: Telemetry, key: StepKey, index: int | None) -> Lifecycle | None:
    """That of the samples of an index at a step; None where no event is dumped, as of an eval.

    Events tell no occurrence: samples that share an index share a life.
    """
    stream = telemetry.streams["trajectories"]
    if key.evaluation or index is None or index < 0 or not stream.parts:
        return None
    logged = step_logged(telemetry.step_times.items(), key.step)
    since = telemetry.started if telemetry.started is not None and telemetry.started <= (logged or 0.0) else 0.0
    events = [] if logged is None else events_between(stream, index, max(logged - MAX_SPAN_SECONDS, since), logged)
    if not events:  # the step axis of metrics may be another one, and not all runs log them
        events, logged = newest_events(stream, index), None
    spans = paired(events)
    return Lifecycle(tuple(spans), logged) if spans else None


def step_logged(times: Sequence[StepTime], step: int) -> float | None:
    """When a step was logged as trained, else at all; of a step that was run again, the last time."""
    found = {one.trained: one.ts for one in times if one.step == step}
    return found.get(True, found.get(False))


def events_between(stream: Stream, index: int, start: float, stop: float) -> list[Record]:
    parts = stream.load(stream.between(start, stop))
    return [event for part in parts for event in of_sample(part.within(start, stop), index).rows()]


def of_sample(part: Columns, index: int) -> Columns:
    return part.where(part["sample_index"] == index)


def newest_events(stream: Stream, index: int) -> list[Record]:
    """From the newest hour that has any, and what there is within LONGEST before them."""
    for part in reversed(stream.parts):
        (columns,) = stream.load([part])
        times = of_sample(columns, index)["ts"]
        if len(times):
            newest = float(times.max())
            return events_between(stream, index, newest - MAX_SPAN_SECONDS, newest)
    return []


# Pairing --------------------------------------------------------------------------------------------------------


def paired(events: Sequence[Record]) -> list[Span]:
    """Starts and ends of one kind and turn together. An attempt's end also ends what still generates or calls in it;
    anything else, such as scoring by a reward model, may end later.

    What has no end lasts to where the same begins again, to the end of its attempt or, as the last one, to the last
    event. What has no start begins where the span before it ends, else at the first event of its attempt. A span of
    generating as a whole gives way to those of its turns.
    """
    pairing = Pairing(sorted(events, key=lambda event: (event["ts"], order(event["kind"]))))
    turns = [span for span in pairing.spans if span.kind == GEN and span.turn >= 0]
    kept = [span for span in pairing.spans if not (span.kind == GEN and span.turn < 0 and overlaps(span, turns))]
    return sorted(kept, key=lambda span: (span.t0, span.kind != ATTEMPT, span.t1))


def order(kind: str) -> int:
    return EVENT_ORDER.get(kind, int(kind.endswith("_end")))


def overlaps(span: Span, others: Iterable[Span]) -> bool:
    return any(one.t0 < span.t1 and span.t0 < one.t1 for one in others)


class Pairing:
    """Takes events by time; `spans` are what they make."""

    def __init__(self, events: Sequence[Record]) -> None:
        self.spans: list[Span] = []
        self._open: dict[tuple[str, int], Record] = {}
        self._over: dict[tuple[str, int], Record] = {}  # the end of the attempt in which something open began
        self._first: float | None = None  # event of the attempt
        self._ended: list[float] = []  # the spans of the attempt, when, in order
        for event in events:
            self._take(event)
        for start in list(self._open.values()):
            self._lose(start, events[-1])

    def _take(self, event: Record) -> None:
        if self._first is None:
            self._first = event["ts"]
        kind, _, what = event["kind"].rpartition("_")
        if what == "start":
            self._begin(kind, event)
        elif what == "end":
            self._end(kind, event)
        else:
            self._add(span_of(event["kind"], event, event))

    def _begin(self, kind: str, event: Record) -> None:
        again = list(self._open) if kind == ATTEMPT else [(kind, event["turn"])]
        for key in again:
            if key in self._open and self._open[key]["ts"] < event["ts"]:
                self._lose(self._open[key], event)
        if kind == ATTEMPT:
            self._first, self._ended = event["ts"], []
        self._open[kind, event["turn"]] = event

    def _end(self, kind: str, event: Record) -> None:
        start = self._open.get((kind, event["turn"]))
        if start is None:
            self._add(span_of(kind, {**event, "ts": self._unrecorded(kind, event["ts"])}, event, "start"))
        else:
            self._close(start, event)
        if kind == ATTEMPT:
            self._end_attempt(event)

    def _end_attempt(self, event: Record) -> None:
        for (kind, turn), left in list(self._open.items()):
            if left["ts"] < event["ts"]:
                if kind in (GEN, TOOL):
                    self._close(left, {"ts": event["ts"]})
                else:
                    self._over[kind, turn] = event
        self._first, self._ended = None, []

    def _unrecorded(self, kind: str, end: float) -> float:
        """Where what ends now has begun: where the last thing before it ended, an attempt with its first event."""
        first = end if self._first is None else self._first
        before = bisect_left(self._ended, end)
        return max(first, self._ended[before - 1]) if before and kind != ATTEMPT else first

    def _lose(self, start: Record, until: Record) -> None:
        """Close what nobody said the end of: with its attempt if that has ended, at the latest at `until`."""
        key = (start["kind"].rpartition("_")[0], start["turn"])
        self._close(start, {"ts": self._over.get(key, until)["ts"]}, "end")

    def _close(self, start: Record, end: Record, unknown: str = "") -> None:
        kind = start["kind"].rpartition("_")[0]
        del self._open[kind, start["turn"]]
        self._over.pop((kind, start["turn"]), None)
        self._add(span_of(kind, start, end, unknown))

    def _add(self, span: Span) -> None:
        self.spans.append(span)
        insort(self._ended, span.t1)


def span_of(kind: str, start: Record, end: Record, unknown: str = "") -> Span:
    """What its end says goes before what its start says."""
    version, detail = (end.get(name) or start[name] for name in ("weight_version", "detail"))
    return Span(kind, start["turn"], start["ts"], end["ts"], version, detail, unknown)

"""The lifecycle of a sample: when it waited, generated and called tools, by the events of the trajectories stream."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from dumptui.core.files.step_files import StepKey
from dumptui.core.telemetry.jsonl_tail import Record

if TYPE_CHECKING:
    from dumptui.core.telemetry.column_store import Columns
    from dumptui.core.telemetry.metrics import StepTime
    from dumptui.core.telemetry.streams import Stream
    from dumptui.core.telemetry.telemetry import Telemetry

ATTEMPT, GEN, TOOL = "attempt", "gen", "tool"
MAX_SPAN_SECONDS = 4 * 3600.0
"""Events of a sample are searched this long before its step was logged, as in the dashboard of miles."""
# The order of events at the same time: an empty span starts before it ends, and within the attempt that ends then.
EVENT_ORDER = {f"{ATTEMPT}_end": 2, f"{ATTEMPT}_start": 3}


class Span(NamedTuple):
    """A time from `t0` to `t1`, in seconds since the epoch; `unknown` is "start" or "end" if that is not recorded.

    `kind` is as dumped, without its `_start` or `_end`. `turn` counts from 1, and is -1 outside of turns.
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
    """The spans of a sample by their start. `logged` is when its step was logged, None if unknown."""

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
        """The spans other than attempts."""
        return [span for span in self.spans if span.kind != ATTEMPT]

    def waiting(self) -> float:
        """Return the seconds of its attempts (of the whole lifecycle without any) outside of all other spans."""
        attempts = self.of(ATTEMPT) or [Span(ATTEMPT, -1, self.t0, self.t1)]
        return covered([*attempts, *self.inner]) - covered(self.inner)

    def queued(self) -> float:
        """Return the seconds from the start of the first attempt to the first other span."""
        return max(0.0, min((span.t0 for span in self.inner), default=self.t1) - self.t0)


def covered(spans: Iterable[Span]) -> float:
    """Return the seconds that are in at least one span."""
    seconds, end = 0.0, float("-inf")
    for span in sorted(spans, key=lambda span: span.t0):
        seconds += max(0.0, span.t1 - max(end, span.t0))
        end = max(end, span.t1)
    return seconds


def read_lifecycle(telemetry: Telemetry, key: StepKey, index: int | None) -> Lifecycle | None:
    """Return the lifecycle of the samples with an index at a step; None without events, as in an eval.

    Events do not name the occurrence: samples that share an index share a lifecycle.
    """
    if index is None:
        return None
    return read_lifecycles(telemetry, key, [index]).get(index)


def read_lifecycles(telemetry: Telemetry, key: StepKey, indices: Iterable[int]) -> dict[int, Lifecycle]:
    """Return the lifecycles of a step's samples by index, without those that have no events."""
    stream = telemetry.streams["trajectories"]
    wanted = sorted({index for index in indices if index >= 0})
    if key.evaluation or not wanted or not stream.parts:
        return {}
    logged = step_logged(telemetry.step_times.items(), key.step)
    since = telemetry.started if telemetry.started is not None and telemetry.started <= (logged or 0.0) else 0.0
    found = {} if logged is None else events_between(stream, wanted, max(logged - MAX_SPAN_SECONDS, since), logged)
    lives = {}
    for index in wanted:
        events, at = found.get(index, []), logged
        if not events:  # metrics may have another step axis, or be missing
            events, at = newest_events(stream, index), None
        if spans := paired(events):
            lives[index] = Lifecycle(tuple(spans), at)
    return lives


def step_logged(times: Sequence[StepTime], step: int) -> float | None:
    """Return when a step was last logged as trained, else when it was last logged at all; None if never."""
    last = {time.trained: time.ts for time in times if time.step == step}
    return last.get(True, last.get(False))


def events_between(stream: Stream, indices: Sequence[int], start: float, stop: float) -> dict[int, list[Record]]:
    """Return the events of samples by their index."""
    found: dict[int, list[Record]] = {}
    for part in stream.load(stream.between(start, stop)):
        for event in of_samples(part.within(start, stop), indices).rows():
            found.setdefault(event["sample_index"], []).append(event)
    return found


def of_samples(part: Columns, indices: Sequence[int]) -> Columns:
    from numpy import isin  # this module is imported where a run may have no telemetry at all

    return part.where(isin(part["sample_index"], indices))


def newest_events(stream: Stream, index: int) -> list[Record]:
    """Return the events of an index within MAX_SPAN_SECONDS before its newest one."""
    for part in reversed(stream.parts):
        (columns,) = stream.load([part])
        times = of_samples(columns, [index])["ts"]
        if len(times):
            newest = float(times.max())
            return events_between(stream, [index], newest - MAX_SPAN_SECONDS, newest).get(index, [])
    return []


# Pairing --------------------------------------------------------------------------------------------------------


def paired(events: Sequence[Record]) -> list[Span]:
    """Pair the starts and ends of each kind and turn to spans. An attempt's end also ends its open generation and tool
    calls; anything else, such as scoring by a reward model, may end later.

    A span without an end lasts until the next start of its kind and turn, or to the end of its attempt; without either,
    to the last event. A span without a start begins at the end of the span before it, else at the first event of its
    attempt. A generation span without a turn is dropped if it overlaps those of turns.
    """
    pairing = Pairing(sorted(events, key=lambda event: (event["ts"], order(event["kind"]))))
    turns = [span for span in pairing.spans if span.kind == GEN and span.turn >= 0]
    spans = [span for span in pairing.spans if not (span.kind == GEN and span.turn < 0 and overlaps(span, turns))]
    return sorted(spans, key=lambda span: (span.t0, span.kind != ATTEMPT, span.t1))


def order(kind: str) -> int:
    return EVENT_ORDER.get(kind, int(kind.endswith("_end")))


def overlaps(span: Span, turns: Iterable[Span]) -> bool:
    return any(turn.t0 < span.t1 and span.t0 < turn.t1 for turn in turns)


class Pairing:
    """The pairing of events, which are given by time, to `spans`."""

    def __init__(self, events: Sequence[Record]) -> None:
        self.spans: list[Span] = []
        self._open: dict[tuple[str, int], Record] = {}
        self._over: dict[tuple[str, int], Record] = {}  # the end of the attempt in which an open span began
        self._first: float | None = None  # event of the attempt
        self._ended: list[float] = []  # the end times of the attempt's spans, sorted
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
        for (kind, turn), start in list(self._open.items()):
            if start["ts"] < event["ts"]:
                if kind in (GEN, TOOL):
                    self._close(start, {"ts": event["ts"]})
                else:
                    self._over[kind, turn] = event
        self._first, self._ended = None, []

    def _unrecorded(self, kind: str, end: float) -> float:
        """Return the start of a span that ends now: the end of the one before it, or the first event for an attempt."""
        first = end if self._first is None else self._first
        before = bisect_left(self._ended, end)
        return max(first, self._ended[before - 1]) if before and kind != ATTEMPT else first

    def _lose(self, start: Record, until: Record) -> None:
        """Close a span without a recorded end: with its attempt if that has ended, else at `until`."""
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
    """Return a span; version and detail of its end take precedence over those of its start."""
    version, detail = (end.get(name) or start[name] for name in ("weight_version", "detail"))
    return Span(kind, start["turn"], start["ts"], end["ts"], version, detail, unknown)

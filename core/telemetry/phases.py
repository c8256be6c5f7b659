"""Phases of training and generation, assigned to lanes: one lane per GPU."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from dumptui.core.telemetry.column_store import Array, Columns, Field
from dumptui.core.telemetry.jsonl_tail import Record

STILL_OPEN = -1.0
"""The `t1` of a phase that was still running when the record was written."""
MANAGER, DERIVED, INITIALIZE = "rollout_manager", "derived", "initialize"
PHASE_FIELDS = (
    Field("name", "text"),
    Field("t0"),
    Field("t1"),
    Field("node", "text"),
    Field("gpus", "gpus", []),
    Field("rank", "i4", -1),
    Field("role", "text"),
)


class Lane(NamedTuple):
    """A GPU of a node."""

    node: str
    gpu: int


class Interval(NamedTuple):
    """A phase on one lane, in seconds since the epoch. If `open`, no end was recorded and `t1` is an estimate."""

    node: str
    gpu: int
    rank: int
    role: str
    name: str
    t0: float
    t1: float
    open: bool = False


class Engine(NamedTuple):
    """An inference engine; `lanes` is empty for an engine outside the job's own GPUs."""

    addr: str
    worker_type: str
    rank: int
    lanes: tuple[Lane, ...]

    @property
    def host(self) -> str:
        address = self.addr.rpartition("://")[2].partition("/")[0]
        host = address.rpartition(":")[0] if not address.endswith("]") else address
        return (host or address).strip("[]")


class Topology(NamedTuple):
    """The engines from `ts` until the next topology."""

    ts: float
    engines: tuple[Engine, ...]

    def lanes(self, known: Iterable[Lane]) -> set[Lane]:
        """Return every lane of the engines; an engine without lanes counts as using all `known` lanes of its host."""
        hosts = {engine.host for engine in self.engines if not engine.lanes}
        recorded = {lane for engine in self.engines for lane in engine.lanes}
        return recorded | {lane for lane in known if lane.node in hosts}


def topology(record: Record) -> Topology:
    """Return the topology of a record. Raises one of MISFIT_ERRORS for any other record."""
    return Topology(float(record["ts"]), tuple(_engine(engine) for engine in record["engines"]))


def _engine(record: Record) -> Engine:
    lanes = tuple(Lane(str(node), int(gpu)) for node, gpu in record.get("gpus") or ())
    return Engine(str(record["addr"]), str(record.get("worker_type", "")), int(record.get("engine_rank", -1)), lanes)


class Window(NamedTuple):
    """An open time interval: a phase that only touches one of its ends is outside."""

    start: float = -np.inf
    stop: float = np.inf

    def touches(self, t0: Any, t1: Any) -> Any:
        """Whether [t0, t1] overlaps the window; takes numbers or arrays."""
        return (t0 < self.stop) & (t1 > self.start)


class Attempt(NamedTuple):
    """The latest start of the run, and the time of its newest data."""

    start: float | None
    newest: float


ALL_TIME = Window()


def lanes(
    phases: Columns,
    topologies: Sequence[Topology],
    known: Collection[Lane],
    attempt: Attempt,
    window: Window = ALL_TIME,
    initialize: bool = True,
) -> list[Interval]:
    """Return the phases (of PHASE_FIELDS) in a window, ordered by lane and start.

    With `initialize`, each lane also gets a phase of that name from the attempt's start to its first phase; `phases`
    must then hold all phases since the attempt's start.

    A training phase runs on the GPUs that it names. A phase of the rollout manager names none: it is shown on the GPUs
    of all engines of the topology at that time.
    """
    intervals: list[Interval] = []
    windows = list(_windows(topologies, known))
    for phase in settled(phases, attempt, ALL_TIME if initialize else window):
        if phase["role"] == MANAGER:
            intervals.extend(_on_engines(phase, windows))
        else:
            intervals.extend(
                _interval(phase, Lane(phase["node"], gpu), phase["t0"], phase["t1"]) for gpu in phase["gpus"]
            )
    if initialize and attempt.start is not None:
        intervals += _initialize(intervals, attempt.start)
    touching = (interval for interval in intervals if window.touches(interval.t0, interval.t1))
    return sorted(touching, key=lambda interval: (interval.node, interval.gpu, interval.t0))


def settled(phases: Columns, attempt: Attempt, window: Window) -> Iterator[Record]:
    """Yield each phase that overlaps the window once, in the order written, with an end.

    The record of a phase's end replaces that of its start. A phase without a recorded end is `open`: it ends with the
    newest data, or, if it began before the attempt, when the attempt starts. In both cases it ends earlier if its rank
    begins a phase of the same name again.
    """
    if not len(phases):
        return
    is_open = phases["t1"] == STILL_OPEN
    kinds = [phases[name] for name in ("name", "gpus", "rank", "node")]
    order = np.lexsort((is_open, phases["t0"], *kinds))  # among equals, the open record sorts after the ended one
    order = order[~(is_open[order] & _same_as_last(order, phases["t0"], *kinds))]
    ends = np.maximum(np.where(is_open, _latest_ends(phases, order, kinds, attempt), phases["t1"]), phases["t0"])
    rows = np.sort(order[window.touches(phases["t0"], ends)[order]])
    records = phases.where(rows).rows()
    for row, end, still_open in zip(records, ends[rows].tolist(), is_open[rows].tolist(), strict=True):
        yield row | {"t1": end, "open": still_open}


def _latest_ends(phases: Columns, order: Array, kinds: list[Array], attempt: Attempt) -> Array:
    """Return the latest possible end of each phase; `order` sorts by node, rank, GPUs, name and start."""
    ends = np.full(len(phases), attempt.newest)
    if attempt.start is not None:
        ends[phases["t0"] < attempt.start] = attempt.start
    repeats = _same_as_last(order, *kinds)[1:]
    earlier, later = order[:-1][repeats], order[1:][repeats]
    ends[earlier] = np.minimum(ends[earlier], phases["t0"][later])
    return ends


def _same_as_last(order: Array, *columns: Array) -> Array:
    """Return, for each row in that order, whether all columns equal those of the row before."""
    same = np.zeros(len(order), bool)
    same[1:] = np.logical_and.reduce([column[order][1:] == column[order][:-1] for column in columns])
    return same


def _windows(topologies: Sequence[Topology], known: Collection[Lane]) -> Iterator[tuple[float, float, list[Lane]]]:
    ordered = sorted(topologies, key=lambda topology: topology.ts)
    stops = [topology.ts for topology in ordered[1:]] + [np.inf]
    for topology, stop in zip(ordered, stops, strict=False):
        yield topology.ts, stop, sorted(topology.lanes(known))


def _on_engines(phase: Record, windows: Iterable[tuple[float, float, list[Lane]]]) -> Iterator[Interval]:
    for start, stop, engine_lanes in windows:
        t0, t1 = max(phase["t0"], start), min(phase["t1"], stop)
        if t0 < t1:
            yield from (_interval(phase, lane, t0, t1) for lane in engine_lanes)


def _interval(phase: Record, lane: Lane, t0: float, t1: float) -> Interval:
    still_open = phase["open"] and t1 == phase["t1"]
    return Interval(*lane, phase["rank"], phase["role"], phase["name"], t0, t1, still_open)


def _initialize(intervals: Iterable[Interval], start: float) -> list[Interval]:
    """Return each lane's phase before its first recorded one: no record times the loading of models and engines."""
    first: dict[Lane, float] = {}
    for interval in intervals:
        if interval.t0 >= start:
            lane = Lane(interval.node, interval.gpu)
            first[lane] = min(interval.t0, first.get(lane, interval.t0))
    return [Interval(*lane, -1, DERIVED, INITIALIZE, start, t0) for lane, t0 in first.items() if t0 > start]

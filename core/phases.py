"""What ran on which GPU when: phases of training and generation, resolved to lanes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from dumptui.core.columns import Array, Columns, Field
from dumptui.core.jsonl import Record

STILL_OPEN = -1.0
"""The `t1` of a phase that was running when it was written."""
MANAGER, DERIVED, INITIALIZE = "rollout_manager", "derived", "initialize"
FIELDS = (
    Field("name", "text"),
    Field("t0"),
    Field("t1"),
    Field("node", "text"),
    Field("gpus", "gpus", []),
    Field("rank", "i4", -1),
    Field("role", "text"),
)


class Lane(NamedTuple):
    node: str
    gpu: int


class Interval(NamedTuple):
    """A phase on one lane, in seconds since the epoch. `open`: no end was written, `t1` is as far as it is known."""

    node: str
    gpu: int
    rank: int
    role: str
    name: str
    t0: float
    t1: float
    open: bool = False


class Engine(NamedTuple):
    """An inference engine; `lanes` is empty for one that runs outside of the job's own GPUs."""

    addr: str
    worker_type: str
    rank: int
    lanes: tuple[Lane, ...]

    @property
    def host(self) -> str:
        place = self.addr.rpartition("://")[2].partition("/")[0]
        host = place.rpartition(":")[0] if not place.endswith("]") else place
        return (host or place).strip("[]")


class Topology(NamedTuple):
    """The engines from `ts` until the next topology is written."""

    ts: float
    engines: tuple[Engine, ...]

    def lanes(self, known: Iterable[Lane]) -> set[Lane]:
        """Every lane an engine runs on; one that doesn't say has all `known` lanes of its host."""
        hosts = {engine.host for engine in self.engines if not engine.lanes}
        told = {lane for engine in self.engines for lane in engine.lanes}
        return told | {lane for lane in known if lane.node in hosts}


def topology(record: Record) -> Topology:
    """Raises one of MISFIT for a record that is none."""
    return Topology(float(record["ts"]), tuple(_engine(engine) for engine in record["engines"]))


def _engine(record: Record) -> Engine:
    lanes = tuple(Lane(str(node), int(gpu)) for node, gpu in record.get("gpus") or ())
    return Engine(str(record["addr"]), str(record.get("worker_type", "")), int(record.get("engine_rank", -1)), lanes)


class Window(NamedTuple):
    """A stretch of time; what only meets it at an end is outside."""

    start: float = -np.inf
    stop: float = np.inf

    def touches(self, t0: Any, t1: Any) -> Any:
        """Of times or of arrays of times."""
        return (t0 < self.stop) & (t1 > self.start)


class Attempt(NamedTuple):
    """The run as it was started last, and the time of its newest data."""

    start: float | None
    newest: float


EVER = Window()


def lanes(
    phases: Columns,
    topologies: Sequence[Topology],
    known: Collection[Lane],
    attempt: Attempt,
    window: Window = EVER,
    initialize: bool = True,
) -> list[Interval]:
    """Phases (of FIELDS) in a window by lane and start.

    With `initialize`, each lane has a phase of that name from the attempt's start to its first phase, for which all
    phases from then on must be given.

    A phase of training is on the GPUs it names; one of the rollout manager, which has none, on those of every engine
    while its topology holds.
    """
    found: list[Interval] = []
    windows = list(_windows(topologies, known))
    for phase in settled(phases, attempt, EVER if initialize else window):
        if phase["role"] == MANAGER:
            found.extend(_on_engines(phase, windows))
        else:
            found.extend(_interval(phase, Lane(phase["node"], gpu), phase["t0"], phase["t1"]) for gpu in phase["gpus"])
    if initialize and attempt.start is not None:
        found += _initialize(found, attempt.start)
    touching = (one for one in found if window.touches(one.t0, one.t1))
    return sorted(touching, key=lambda one: (one.node, one.gpu, one.t0))


def settled(phases: Columns, attempt: Attempt, window: Window) -> Iterator[Record]:
    """Each phase that touches the window, once, in the order written, with an end.

    The mark of an open phase gives way to the record of its end. One that has none runs to the newest data; if it
    began before the attempt it died with its process: it ends when the attempt starts, or when its rank begins a
    phase of that name again, whichever is first. Both are `open`.
    """
    if not len(phases):
        return
    is_open = phases["t1"] == STILL_OPEN
    kinds = [phases[name] for name in ("name", "gpus", "rank", "node")]
    order = np.lexsort((is_open, phases["t0"], *kinds))  # of equal ones, the mark comes behind the end
    order = order[~(is_open[order] & _same_as_last(order, phases["t0"], *kinds))]
    ends = np.maximum(np.where(is_open, _latest_ends(phases, order, kinds, attempt), phases["t1"]), phases["t0"])
    kept = np.sort(order[window.touches(phases["t0"], ends)[order]])
    rows = phases.where(kept).rows()
    for row, end, still_open in zip(rows, ends[kept].tolist(), is_open[kept].tolist(), strict=True):
        yield row | {"t1": end, "open": still_open}


def _latest_ends(phases: Columns, order: Array, kinds: list[Array], attempt: Attempt) -> Array:
    """When each phase has ended at the latest; `order` is by rank, name and start."""
    ends = np.full(len(phases), attempt.newest)
    if attempt.start is not None:
        ends[phases["t0"] < attempt.start] = attempt.start
    again = _same_as_last(order, *kinds)[1:]
    before, after = order[:-1][again], order[1:][again]
    ends[before] = np.minimum(ends[before], phases["t0"][after])
    return ends


def _same_as_last(order: Array, *columns: Array) -> Array:
    """Of each row in that order, whether all columns are as in the row before it."""
    same = np.zeros(len(order), bool)
    same[1:] = np.logical_and.reduce([column[order][1:] == column[order][:-1] for column in columns])
    return same


def _windows(topologies: Sequence[Topology], known: Collection[Lane]) -> Iterator[tuple[float, float, list[Lane]]]:
    ordered = sorted(topologies, key=lambda one: one.ts)
    stops = [one.ts for one in ordered[1:]] + [np.inf]
    for one, stop in zip(ordered, stops, strict=False):
        yield one.ts, stop, sorted(one.lanes(known))


def _on_engines(phase: Record, windows: Iterable[tuple[float, float, list[Lane]]]) -> Iterator[Interval]:
    for start, stop, covered in windows:
        t0, t1 = max(phase["t0"], start), min(phase["t1"], stop)
        if t0 < t1:
            yield from (_interval(phase, lane, t0, t1) for lane in covered)


def _interval(phase: Record, lane: Lane, t0: float, t1: float) -> Interval:
    still_open = phase["open"] and t1 == phase["t1"]
    return Interval(*lane, phase["rank"], phase["role"], phase["name"], t0, t1, still_open)


def _initialize(intervals: Iterable[Interval], start: float) -> list[Interval]:
    """Loading models and starting engines is timed by nobody; phases of an earlier attempt are not of this one."""
    first: dict[Lane, float] = {}
    for one in intervals:
        if one.t0 >= start:
            lane = Lane(one.node, one.gpu)
            first[lane] = min(one.t0, first.get(lane, one.t0))
    return [Interval(*lane, -1, DERIVED, INITIALIZE, start, t0) for lane, t0 in first.items() if t0 > start]

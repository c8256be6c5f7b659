"""The telemetry of a run: logged metrics, phases, GPU and engine samples, sample lifecycles.

A `Telemetry` is not locked: only one thread at a time may use it, which core/live.py ensures for the whole reader.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dumptui.core.telemetry import phases
from dumptui.core.telemetry.column_store import Array, Columns, Field, Schema
from dumptui.core.telemetry.jsonl_tail import Record, Tail
from dumptui.core.telemetry.logs import Document, Log, time_of
from dumptui.core.telemetry.metrics import History, step_time
from dumptui.core.telemetry.phases import Attempt, Interval, Lane, Topology, Window, topology
from dumptui.core.telemetry.streams import HOUR_SECONDS, MEMORY_BYTES, Memory, Stream

NAN = float("nan")
STREAM_FIELDS: dict[str, tuple[Field, ...]] = {
    "phases": phases.PHASE_FIELDS,
    "gpu_util": (
        Field("ts"),
        Field("node", "text"),
        Field("gpu", "i4"),
        Field("util", "f4", NAN),
        Field("mem_mb", "f4", NAN),
        Field("power_w", "f4", NAN),
    ),
    "gpu_processes": (
        Field("ts"),
        Field("node", "text"),
        Field("gpu", "i4"),
        Field("pid", "i8", -1),
        Field("name", "text", ""),
        Field("mem_mb", "f4", NAN),
    ),
    "engine_series": (
        Field("ts"),
        Field("addr", "text"),
        Field("metric", "text"),
        Field("labels", "labels", {}),
        Field("value", "f8", NAN),
    ),
    "trajectories": (
        Field("ts"),
        Field("kind", "text"),
        Field("sample_index", "i8", -1),
        Field("group_index", "i8", -1),
        Field("turn", "i4", -1),
        Field("weight_version", "text", ""),
        Field("detail", "text", ""),
    ),
}
_MOST_DIGITS = 9  # of the number of a GPU
LONGEST_PHASE = 4 * HOUR_SECONDS
"""A phase is in the file of the hour in which it ended (if open, began): files this far from a window are searched."""


class Buffered(NamedTuple):
    """Groups waiting in the partial-rollout buffer after a rollout."""

    ts: float
    length: int


class LaneInfo(NamedTuple):
    """The uses of a lane over the whole run: training ranks, engine addresses, and the roles "train" and "rollout"."""

    node: str
    gpu: int
    ranks: set[int]
    engines: set[str]
    roles: set[str]


class GpuUtil(NamedTuple):
    """The samples of a GPU by time, in percent, MiB and watts."""

    ts: Array
    util: Array
    mem_mb: Array
    power_w: Array


class EngineSeries(NamedTuple):
    """The samples of a metric of an engine, or of one of its dp ranks, by time."""

    addr: str
    labels: dict[str, str]
    ts: Array
    value: Array


class Telemetry:
    """The `dashboard/` folder of a run or, without one, the metrics in `events/`. Both may be missing.

    Unreadable parts are skipped and reported by `problems`. Records do not change until `poll`.
    """

    def __init__(self, run_root: str | os.PathLike[str], memory: int = MEMORY_BYTES) -> None:
        root = Path(run_root)
        folder = root / "dashboard"
        self.memory = Memory(memory)
        self.streams = {
            name: Stream(folder, name, Schema(fields), self.memory) for name, fields in STREAM_FIELDS.items()
        }
        self.metrics = History(root)
        self.step_times = Log(folder / "metrics.jsonl", step_time)
        self._topologies = Log(folder / "topology.jsonl", topology)
        self._buffer = Log(folder / "data_buffer.jsonl", buffered)
        self._meta = Document(folder / "meta.json")
        self._catalog = Document(folder / "lane_catalog.json")

    def poll(self) -> set[str]:
        """Read what was appended or replaced; return the names of the streams and documents that changed."""
        sources: dict[str, Stream | History | Log[Any] | Document] = {
            **self.streams,
            "metrics": self.metrics,
            "topology": self._topologies,
            "data_buffer": self._buffer,
            "meta": self._meta,
            "lane_catalog": self._catalog,
        }
        self.step_times.poll()
        return {name for name, source in sources.items() if source.poll()}

    # Lanes -----------------------------------------------------------------------------------------------------

    def lanes(self, start: float | None = None, stop: float | None = None) -> list[Interval]:
        """Return the phases on each lane that overlap the window, by lane and start; see `phases.lanes`.

        Near the window's edges, ended phases of more than 4 h may be missing.
        """
        window = Window(-np.inf if start is None else start, np.inf if stop is None else stop)
        since = window.start - LONGEST_PHASE
        written, newest, topologies = self._phases(since, window), self.newest(), self._topologies.items()
        if newest is None:
            return []
        silent = any(not engine.lanes for placement in topologies for engine in placement.engines)
        known = {Lane(lane.node, lane.gpu) for lane in self.lane_index()} if silent else set()
        initialize = self.started is not None and self.started >= since
        return phases.lanes(written, topologies, known, Attempt(self.started, newest), window, initialize)

    def lane_rows(self, start: float | None = None, stop: float | None = None) -> Iterator[Record]:
        return (interval._asdict() for interval in self.lanes(start, stop))

    def lane_index(self) -> list[LaneInfo]:
        """Return every lane and its uses, from the catalogue or, without one, from all streams."""
        lanes = self._catalog.value.get("lanes")
        if not isinstance(lanes, dict) or not lanes:
            return self._scanned_lanes()
        found = {Lane(*name): use for key, use in lanes.items() if (name := _lane(key)) is not None}
        return sorted((_cataloged(*lane, use) for lane, use in found.items()), key=lambda one: (one.node, one.gpu))

    def topologies(self) -> list[Topology]:
        return self._topologies.items()

    def _phases(self, since: float, window: Window) -> Columns:
        stream = self.streams["phases"]
        parts = stream.between(since, window.stop + LONGEST_PHASE)
        # A run that hangs writes no more phases: the phase in which it hangs is in the last file, however old.
        before = [part for part in stream.parts if part.hour is not None and part.hour + HOUR_SECONDS <= since]
        return stream.schema.concat(stream.load([*before[-1:], *parts]))

    def _scanned_lanes(self) -> list[LaneInfo]:
        uses: dict[Lane, LaneInfo] = defaultdict(lambda: LaneInfo("", 0, set(), set(), set()))
        for row in self._distinct("gpu_util", "node", "gpu"):
            uses[Lane(row["node"], row["gpu"])]
        for row in self._distinct("phases", "node", "gpus", "rank", "role"):
            for gpu in row["gpus"] if row["role"] != phases.MANAGER else ():
                use = uses[Lane(row["node"], gpu)]
                use.roles.add("train")
                use.ranks.update([row["rank"]] if row["rank"] >= 0 else [])
        for placement in self.topologies():
            for engine in placement.engines:
                for lane in engine.lanes:
                    uses[lane].roles.add("rollout")
                    uses[lane].engines.add(engine.addr)
        return sorted(use._replace(node=lane.node, gpu=lane.gpu) for lane, use in uses.items())

    def _distinct(self, stream: str, *names: str) -> Iterator[Record]:
        for part in self.streams[stream].load(self.streams[stream].parts):
            codes = np.stack([part[name] for name in names])
            first = np.unique(codes, axis=1, return_index=True)[1]
            yield from Columns({name: part[name][first] for name in names}, part.pools).rows()

    # Samples ---------------------------------------------------------------------------------------------------

    def table(self, stream: str, start: float | None = None, stop: float | None = None) -> Columns:
        """Return the records with `ts` in the window, both ends included, in the order written; not for phases."""
        source = self.streams[stream]
        parts = source.load(source.between(start, stop))
        return source.schema.concat(part.within(start, stop) for part in parts)

    def gpu_util(self, start: float | None = None, stop: float | None = None) -> dict[Lane, GpuUtil]:
        table = self.table("gpu_util", start, stop)
        return {
            Lane(node, gpu): GpuUtil(*(part[name] for name in GpuUtil._fields))
            for (node, gpu), part in table.groups("node", "gpu")
        }

    def engine_metrics(self) -> list[str]:
        """Return the metric names of the newest two hours, and of any other parsed hour."""
        stream = self.streams["engine_series"]
        for _ in stream.load(stream.parts[-2:]):
            pass
        return sorted(stream.schema.pools["metric"].members)

    def engine_series(self, metric: str, start: float | None = None, stop: float | None = None) -> list[EngineSeries]:
        stream = self.streams["engine_series"]
        codes = stream.schema.pools["metric"]
        parts = (part.within(start, stop) for part in stream.load(stream.between(start, stop)))
        table = stream.schema.concat(part.where(part["metric"] == codes.get(metric, -1)) for part in parts)
        return [
            EngineSeries(addr, dict(labels), part["ts"], part["value"])
            for (addr, labels), part in table.groups("addr", "labels")
        ]

    def data_buffer(self) -> list[Buffered]:
        return self._buffer.items()

    # The run ---------------------------------------------------------------------------------------------------

    @property
    def meta(self) -> Record:
        """`run_name`, `start_ts` and `args` of the attempt started last; empty without telemetry."""
        return self._meta.value

    @property
    def started(self) -> float | None:
        return time_of(self.meta.get("start_ts"))

    def time_range(self) -> tuple[float, float] | None:
        """Return the first and the last time in dashboard/, from the ends of its files; None without any."""
        ends = [time for stream in self.streams.values() for time in stream.ends()]
        logs: list[Log[Any]] = [self.metrics.log, self._topologies, self._buffer]
        ends += [time for log in logs for time in log.glance.ends()]
        return (min(ends), max(ends)) if ends else None

    def newest(self) -> float | None:
        span = self.time_range()
        return span[1] if span else None

    def problems(self, *, everything: bool = False) -> list[tuple[Path, str]]:
        """Return the problems of the files read so far, as path and sentence; with `everything`, all are read first."""
        if everything:
            self._read_all()
        tails = [part.tail for stream in self.streams.values() for part in stream.parts]
        tails += [log.tail for log in self._single_files()]
        problems = [(tail.path, sentence) for tail in tails for sentence in sentences(tail)]
        problems += self._strange()
        failed = [*(stream.problem for stream in self.streams.values()), self._meta.problem, self._catalog.problem]
        return sorted(problems + [(Path(error.path), error.problem) for error in failed if error])

    def _strange(self) -> Iterator[tuple[Path, str]]:
        """Documents that hold something else than they should."""
        if self.meta.get("start_ts") is not None and self.started is None:
            yield self._meta.path, "start_ts is not a time and is ignored"
        lanes = self._catalog.value.get("lanes")
        if lanes is not None and not isinstance(lanes, dict):
            yield self._catalog.path, "lanes is not a table and is ignored"
        odd = [
            key
            for key, use in (lanes.items() if isinstance(lanes, dict) else ())
            if _lane(key) is None or not is_use(use)
        ]
        if odd:
            yield self._catalog.path, f"{len(odd)} of its lanes hold unexpected values and are ignored"

    def _read_all(self) -> None:
        self.metrics.calls()
        for log in self._single_files():
            log.items()
        for stream in self.streams.values():
            for _ in stream.load(stream.parts):
                pass

    def _single_files(self) -> list[Log[Any]]:
        return [*self.metrics.logs, self._topologies, self._buffer]


def buffered(record: Record) -> Buffered:
    return Buffered(float(record["ts"]), int(record["length"]))


def _lane(key: str) -> tuple[str, int] | None:
    """Node and GPU of a key such as "node:3"."""
    node, _, gpu = key.rpartition(":")
    return (node, int(gpu)) if gpu.isdecimal() and len(gpu) <= _MOST_DIGITS else None


def _cataloged(node: str, gpu: int, use: Any) -> LaneInfo:
    fields = use if isinstance(use, dict) else {}
    ranks = {one for one in listed(fields, "ranks") if type(one) is int}
    engines, roles = ({one for one in listed(fields, name) if type(one) is str} for name in ("engine_addrs", "roles"))
    return LaneInfo(node, gpu, ranks, engines, roles)


def listed(fields: Record, name: str) -> list[Any]:
    found = fields.get(name)
    return found if isinstance(found, list) else []


def is_use(use: object) -> bool:
    """Whether the catalogue says of a lane what it should."""
    fields = {} if use is None else use
    return isinstance(fields, dict) and all(
        all(type(one) is kind for one in listed(fields, name)) and isinstance(fields.get(name), (list, type(None)))
        for name, kind in (("ranks", int), ("engine_addrs", str), ("roles", str))
    )


def sentences(tail: Tail) -> Iterator[str]:
    if tail.problem:
        yield tail.problem.problem
    if tail.bad:
        lines = "1 malformed line" if tail.bad == 1 else f"{tail.bad} malformed lines, the first"
        yield f"{lines}: {tail.first_problem}"
    if tail.pending:
        yield f"ends in the middle of a record, {tail.pending} bytes after the last complete line"

"""The metrics that a run logged: one record per logging call, with the step axis of that call."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from datetime import datetime, timezone
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

from dumptui.core.errors import DumpError
from dumptui.core.telemetry.jsonl_tail import Record
from dumptui.core.telemetry.logs import Log

TIMED_METRICS = ("perf/step_time", "perf/wait_time_ratio")
"""Metrics that are logged when a step has been trained; its other metrics are logged before."""
METRIC_EVENT = re.compile(rb'"type":\s*"metric"')


class Metrics(NamedTuple):
    """A logging call. `metrics` also holds the step key."""

    ts: float
    step_key: str | None
    step: int | None
    metrics: Record


class StepTime(NamedTuple):
    """The time of a logging call of a step; `trained` if it logs how long the step took."""

    ts: float
    step: int
    trained: bool


class History:
    """The logging calls in `dashboard/metrics.jsonl` or, where there is none, in the metric events of all processes."""

    def __init__(self, run_root: Path) -> None:
        self.log = Log(run_root / "dashboard" / "metrics.jsonl", logged)
        self._folder = run_root / "events"
        self._events: dict[Path, Log[Metrics]] | None = None

    @property
    def logs(self) -> list[Log[Metrics]]:
        return [self.log, *(self._events or {}).values()]

    def calls(self) -> list[Metrics]:
        """Return the calls in the order written, those of events by time."""
        if self.log.tail.path.exists():
            return self.log.items()
        if self._events is None:
            self._events = {}
            self._find_events(self._events)
        return sorted((call for log in self._events.values() for call in log.items()), key=lambda call: call.ts)

    def poll(self) -> bool:
        new_files = self._events is not None and self._find_events(self._events)
        changed = [log.poll() for log in self.logs]
        return new_files or any(changed)

    def keys(self) -> list[str]:
        return sorted({key for call in self.calls() for key in call.metrics})

    def rows(self, key: str | None = None) -> Iterator[Record]:
        """Yield a row per logged value, of one metric or of all."""
        for ts, step_key, step, metrics in self.calls():
            for name in metrics if key is None else metrics.keys() & {key}:
                yield {"key": name, "step_key": step_key, "step": step, "ts": ts, "value": metrics[name]}

    def check(self, key: str) -> None:
        """Check that a metric was logged. Raises DumpError, which names metrics of similar names."""
        keys = self.keys()
        if key not in keys:
            like = get_close_matches(key, keys, cutoff=0.5) or keys[:3]
            known = f"there are {len(keys)}, such as {', '.join(like)}" if like else "none is logged"
            raise DumpError("--key", f"no metric {key}: {known}")

    def _find_events(self, logs: dict[Path, Log[Metrics]]) -> bool:
        new = [path for path in sorted(self._folder.glob("*.jsonl")) if path not in logs]
        logs |= {path: Log(path, logged_event, METRIC_EVENT) for path in new}
        return bool(new)


def logged(record: Record) -> Metrics:
    step_key, metrics = record.get("step_key"), _shared(record["metrics"])
    if not isinstance(step_key, str | None):
        raise TypeError("step_key is not text")
    return Metrics(float(record["ts"]), step_key, record.get("step"), metrics)


def step_time(record: Record) -> StepTime | None:
    """Return only the time of a step: 1/100 of the memory of all its metrics. None for other records."""
    if record.get("step_key") != "rollout/step" or not isinstance(record.get("step"), int):
        return None
    metrics = record["metrics"]
    return StepTime(float(record["ts"]), record["step"], any(name in metrics for name in TIMED_METRICS))


def logged_event(record: Record) -> Metrics | None:
    """Return the metrics of an event. Its step axis is the metric whose name ends in /step."""
    if record.get("type") != "metric":
        return None
    metrics = _shared(record["metrics"])
    step_key = next((key for key in metrics if key.endswith("/step")), None)
    # Python 3.10 doesn't read the Z.
    time = datetime.fromisoformat(record["timestamp"].replace("Z", "+00:00"))
    time = time if time.tzinfo else time.replace(tzinfo=timezone.utc)
    return Metrics(time.timestamp(), step_key, metrics.get(step_key or ""), metrics)


def _shared(metrics: Record) -> Record:
    """Return the metrics with interned keys: 100 keys in each of 10,000 records would take 80 MB. Raises TypeError."""
    if not isinstance(metrics, dict):
        raise TypeError("metrics is not an object")
    return {sys.intern(key): value for key, value in metrics.items()}

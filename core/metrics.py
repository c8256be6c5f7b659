"""The metrics a run logged: one record a logging call, each with the step axis it was logged with."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from datetime import datetime, timezone
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

from dumptui.core.errors import DumpError
from dumptui.core.jsonl import Record
from dumptui.core.logs import Log

TIMED = ("perf/step_time", "perf/wait_time_ratio")
"""What is logged of a step once it was trained; other metrics of it are logged before."""
METRIC_EVENT = re.compile(rb'"type":\s*"metric"')


class Metrics(NamedTuple):
    """One logging call. `metrics` has the step key as well."""

    ts: float
    step_key: str | None
    step: int | None
    metrics: Record


class StepTime(NamedTuple):
    """When something was logged of a step, which is `trained` once that tells how long it took."""

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
        """In the order written; those of events by time."""
        if self.log.tail.path.exists():
            return self.log.items()
        if self._events is None:
            self._events = {}
            self._find_events(self._events)
        return sorted((one for log in self._events.values() for one in log.items()), key=lambda one: one.ts)

    def poll(self) -> bool:
        found = self._events is not None and self._find_events(self._events)
        changed = [log.poll() for log in self.logs]
        return found or any(changed)

    def keys(self) -> list[str]:
        return sorted({key for call in self.calls() for key in call.metrics})

    def rows(self, key: str | None = None) -> Iterator[Record]:
        """A row a logged value, of one metric or all."""
        for ts, step_key, step, metrics in self.calls():
            for name in metrics if key is None else metrics.keys() & {key}:
                yield {"key": name, "step_key": step_key, "step": step, "ts": ts, "value": metrics[name]}

    def check(self, key: str) -> None:
        """Raises DumpError for a metric that was never logged, naming those that look like it."""
        there = self.keys()
        if key not in there:
            like = get_close_matches(key, there, cutoff=0.5) or there[:3]
            known = f"there are {len(there)}, such as {', '.join(like)}" if like else "none is logged"
            raise DumpError("--key", f"no metric {key}: {known}")

    def _find_events(self, logs: dict[Path, Log[Metrics]]) -> bool:
        new = [path for path in sorted(self._folder.glob("*.jsonl")) if path not in logs]
        logs |= {path: Log(path, logged_event, METRIC_EVENT) for path in new}
        return bool(new)


def logged(record: Record) -> Metrics:
    step_key, metrics = record.get("step_key"), _shared(record["metrics"])
    if not isinstance(step_key, str | None):
        raise TypeError("step_key is no text")
    return Metrics(float(record["ts"]), step_key, record.get("step"), metrics)


def step_time(record: Record) -> StepTime | None:
    """All that is needed to place a step in time, in a hundredth of the memory."""
    if record.get("step_key") != "rollout/step" or not isinstance(record.get("step"), int):
        return None
    metrics = record["metrics"]
    return StepTime(float(record["ts"]), record["step"], any(name in metrics for name in TIMED))


def logged_event(record: Record) -> Metrics | None:
    """The step axis of an event is the key among its metrics that ends in /step."""
    if record.get("type") != "metric":
        return None
    metrics = _shared(record["metrics"])
    step_key = next((key for key in metrics if key.endswith("/step")), None)
    # Python 3.10 doesn't read the Z.
    at = datetime.fromisoformat(record["timestamp"].replace("Z", "+00:00"))
    at = at if at.tzinfo else at.replace(tzinfo=timezone.utc)
    return Metrics(at.timestamp(), step_key, metrics.get(step_key or ""), metrics)


def _shared(metrics: Record) -> Record:
    """With keys that all records share: 100 of them in each of 10,000 records would take 80 MB. Raises TypeError."""
    if not isinstance(metrics, dict):
        raise TypeError("metrics is no object")
    return {sys.intern(key): value for key, value in metrics.items()}

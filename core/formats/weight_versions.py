"""The weight versions that wrote a sample, read from every shape that `weight_versions` has had."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dumptui.core.formats.values import Dumped, as_int, as_mapping, as_text, plain

_LONGEST_NUMBER = 18  # digits; a longer version is not a counter


@dataclass(frozen=True, slots=True)
class Span:
    """Tokens [start, stop) of the sequence that one weight version made; without positions, a whole generate call."""

    version: str
    start: int | None = None
    stop: int | None = None

    def holds(self, position: int) -> bool:
        return self.meets(position, position + 1)

    def meets(self, start: int, stop: int) -> bool:
        """Whether the span overlaps the tokens [start, stop)."""
        return self.start is not None and self.stop is not None and max(self.start, start) < min(self.stop, stop)


@dataclass(frozen=True, slots=True)
class Call:
    """One generate call: the versions that wrote its output and, where recorded, made its prompt's KV cache."""

    spans: tuple[Span, ...]
    prefill: tuple[Span, ...] = ()


def read_calls(value: object) -> tuple[Call, ...]:
    """Return the generate calls of `weight_versions`: a list of texts, of lists of spans, or of records or objects
    with spans.
    """
    if isinstance(value, (str, int)):  # the key of a single call, before it became a list
        value = [value]
    if isinstance(value, (Dumped, np.ndarray)):
        value = (value if isinstance(value, np.ndarray) else value.numpy()).reshape(-1).tolist()
    return tuple(read_call(call) for call in value) if isinstance(value, (list, tuple)) else ()


def read_call(value: object) -> Call:
    if isinstance(value, str):
        return call_of(value)
    if isinstance(value, (list, tuple)):
        return Call(read_spans(value))
    fields = as_mapping(value)
    if "version" in fields:
        return Call(read_spans([fields]))
    if fields:
        return Call(read_spans(fields.get("spans")), read_spans(fields.get("prefill_spans")))
    return call_of(as_text(plain(value))) if isinstance(value, (int, float, Dumped)) else Call(())


@lru_cache(maxsize=64)
def call_of(version: str) -> Call:
    """Return a call that one version wrote; cached, so that the samples of a version share it. "" names no version."""
    return Call((Span(version),) if version else ())


def read_spans(value: object) -> tuple[Span, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        return ()
    spans = (read_span(span) for span in value)
    return tuple(span for span in spans if span is not None and span.version)


def read_span(value: object) -> Span | None:
    """Return the span of a record, a bare version, or a version with start and stop; None of anything else."""
    if isinstance(value, str):
        return Span(value)
    if isinstance(value, (list, tuple)) and len(value) == 3 and isinstance(value[0], str):
        return Span(value[0], as_int(value[1]), as_int(value[2]))
    fields = as_mapping(value)
    if fields.get("version") is None:
        return None
    return Span(as_text(plain(fields["version"])), as_int(fields.get("abs_start")), as_int(fields.get("abs_end")))


def version_at(calls: Iterable[Call], position: int) -> str | None:
    """Return the version that wrote the token at `position` (prompt included); None where no span holds it, as in
    dumps with one version per call.
    """
    versions = [span.version for call in calls for span in call.spans if span.holds(position)]
    return versions[-1] if versions else None


def oldest_version(versions: Iterable[str]) -> int | None:
    """Return the smallest of the versions that are counters; None without one."""
    return min(counters(versions), default=None)


def counters(versions: Iterable[str]) -> list[int]:
    return [int(version) for version in versions if is_counter(version)]


def is_counter(version: str) -> bool:
    return version.isdecimal() and len(version) <= _LONGEST_NUMBER


def version_text(version: str) -> str:
    return f"v{version}"


def version_range(versions: Iterable[str]) -> str:
    """Return "v3–v7" of the oldest and the newest version, "v3" of a single one, "" of none.

    Counters are ordered by number. A text, such as "default" before the first update, comes before them; texts keep
    their order.
    """
    distinct = sorted(
        dict.fromkeys(filter(None, versions)),
        key=lambda version: (True, int(version)) if is_counter(version) else (False, 0),
    )
    return "–".join(map(version_text, dict.fromkeys(distinct[:1] + distinct[-1:])))

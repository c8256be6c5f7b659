"""The weight versions that wrote a sample, in every shape `weight_versions` has had."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dumptui.core.values import Dumped, as_int, as_mapping, as_text, plain

_LONGEST_NUMBER = 18  # digits; anything longer is no counter


@dataclass(frozen=True, slots=True)
class Span:
    """Tokens [start, stop) of the sequence made by one weight version; without positions, a whole generate call."""

    version: str
    start: int | None = None
    stop: int | None = None

    def holds(self, position: int) -> bool:
        return self.meets(position, position + 1)

    def meets(self, start: int, stop: int) -> bool:
        """Whether it has one of the tokens [start, stop)."""
        return self.start is not None and self.stop is not None and max(self.start, start) < min(self.stop, stop)


@dataclass(frozen=True, slots=True)
class Call:
    """One generate call: the versions that wrote its output, and those that made its prompt's KV cache where
    recorded.
    """

    spans: tuple[Span, ...]
    prefill: tuple[Span, ...] = ()


def read_calls(value: object) -> tuple[Call, ...]:
    """The generate calls behind `weight_versions`: a list of texts, of lists of spans, of records with spans, or of
    objects with them.
    """
    if isinstance(value, (str, int)):  # the key of a single call, before it became a list
        value = [value]
    if isinstance(value, (Dumped, np.ndarray)):
        value = (value if isinstance(value, np.ndarray) else value.numpy()).reshape(-1).tolist()
    return tuple(read_call(one) for one in value) if isinstance(value, (list, tuple)) else ()


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
    """That of a whole call: one object for all samples of a version."""
    return Call((Span(version),))


def read_spans(value: object) -> tuple[Span, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        return ()
    records = [as_mapping(one) for one in value]
    return tuple(
        Span(as_text(plain(one["version"])), as_int(one.get("abs_start")), as_int(one.get("abs_end")))
        for one in records
        if one.get("version") is not None
    )


def version_at(calls: Iterable[Call], position: int) -> str | None:
    """Which version wrote the token at `position` (prompt included); None where no span says so, as in dumps with a
    version a call.
    """
    found = [span.version for call in calls for span in call.spans if span.holds(position)]
    return found[-1] if found else None


def oldest_version(versions: Iterable[str]) -> int | None:
    """The smallest of the versions that are counters."""
    return min(counters(versions), default=None)


def counters(versions: Iterable[str]) -> list[int]:
    return [int(version) for version in versions if version.isdecimal() and len(version) <= _LONGEST_NUMBER]

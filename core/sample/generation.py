"""The generation of a sample in words: its generate calls, lifecycle, speculative decoding and prefix cache."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timezone
from itertools import zip_longest
from math import isfinite
from typing import Any, NamedTuple

from dumptui.core.formats.sample import Sample
from dumptui.core.formats.values import as_float, as_int, as_mapping, preview
from dumptui.core.formats.weight_versions import Call, version_text
from dumptui.core.formats.weight_versions import Span as Weights
from dumptui.core.sample.turns import Turn
from dumptui.core.telemetry.lifecycle import ATTEMPT, GEN, TOOL, Lifecycle, Span, covered
from dumptui.core.types import Record

FINE_SECONDS = 100.0
"""Times of a lifecycle shorter than this are shown to the millisecond, of a longer one to the tenth of a second."""


def call_facts(sample: Sample, turns: Iterable[Turn]) -> Record:
    """Return one fact per generate call: weight versions, times and, if each call has a trained turn, tokens."""
    trained: list[Turn | None] = [turn for turn in turns if turn.trained]
    places = trained if len(trained) == len(sample.calls) else []
    times = recorded_times(sample.metadata.get("lifecycle"))
    facts: Record = {}
    previous = None
    for number, (call, turn, time) in enumerate(zip_longest(sample.calls, places, times), 1):
        parts = [
            written_by(call),
            "" if turn is None else f"tokens {turn.start}-{turn.stop - 1}",
            "" if time is None else time_text(time, previous),
        ]
        previous = time
        facts[f"call {number}"] = " · ".join(filter(None, parts)) or "nothing recorded"
    if sample.non_generation_time:
        facts["non-generation time"] = f"{sample.non_generation_time:.3f} s"
    return facts


def written_by(call: Call | None) -> str:
    if call is None or not (call.spans or call.prefill):
        return ""
    text = "weights " + ", ".join(map(weights_text, call.spans))
    return text + (f" · prefilled by {', '.join(map(weights_text, call.prefill))}" if call.prefill else "")


def weights_text(span: Weights) -> str:
    place = "" if span.start is None or span.stop is None else f" at tokens {span.start}-{span.stop - 1}"
    return version_text(span.version) + place


class Time(NamedTuple):
    """The times of a turn, in seconds since the epoch; None and the `problem` where they can't be read."""

    start: float | None
    end: float | None
    problem: str = ""


def recorded_times(value: object) -> list[Time]:
    """Return the times of the turns from a sample's metadata, a dict or a list of dicts; others get a problem."""
    listed = value if isinstance(value, (list, tuple)) else [] if value is None else [value]
    return [read_time(turn) for turn in listed]


def read_time(turn: object) -> Time:
    fields = as_mapping(turn)
    dumped = [fields.get("t0"), fields.get("t1")]
    start, end = map(as_float, dumped)
    if start is not None and end is not None and isfinite(end - start) and start <= end:
        return Time(start, end)
    if not fields:
        return Time(None, None, f"times unreadable: {preview(turn)}, not a dict")
    if dumped == [None, None]:
        return Time(None, None)
    return Time(None, None, f"times unreadable: t0 {preview(dumped[0])}, t1 {preview(dumped[1])}")


def time_text(time: Time, before: Time | None) -> str:
    if time.start is None or time.end is None:
        return time.problem
    last = None if before is None else before.end
    return f"{time.end - time.start:.3f} s" + (
        "" if last is None else f", {time.start - last:.3f} s after the previous call"
    )


# Lifecycle ------------------------------------------------------------------------------------------------------


def lifecycle_facts(life: Lifecycle, siblings: int) -> Iterator[tuple[str, str]]:
    """Yield the names and texts of the totals, then of each span; `siblings` is how many samples share the index."""
    yield "total", whole_text(life)
    yield "began", time_of_day(life.t0)
    if life.logged is not None:
        yield "logged", f"{seconds_text(life.logged - life.t1, life)} s after it ended"
    if siblings > 1:
        yield "shared by", f"{siblings} samples with this index: the events do not distinguish them"
    several = len(life.of(ATTEMPT)) > 1
    attempt = 0
    for span in life.spans:
        attempt += span.kind == ATTEMPT
        number = attempt if span.kind == ATTEMPT and several else span.turn
        yield span.kind + (f" {number}" if number >= 0 else ""), span_text(span, life)


def whole_text(life: Lifecycle) -> str:
    """Return the total time and the time in each kind of span; spans at the same time count in each kind."""
    kinds = dict.fromkeys([GEN, TOOL, *(span.kind for span in life.inner)])
    spans_of = {kind: spans for kind in kinds if (spans := life.of(kind))}
    parts = [f"{seconds_text(covered(spans), life)} in {len(spans)} {kind}" for kind, spans in spans_of.items()]
    return f"{seconds_text(life.t1 - life.t0, life)} s: " + ", ".join([*parts, waiting_text(life)])


def waiting_text(life: Lifecycle) -> str:
    waiting, queued = seconds_text(life.waiting(), life), seconds_text(life.queued(), life)
    if not life.inner or not float(queued):
        return f"{waiting} waiting"
    return f"{waiting} waiting, {'all' if queued == waiting else queued} of it queued"


def span_text(span: Span, life: Lifecycle) -> str:
    """Return start and duration of a span in seconds since the lifecycle began, aligned over its spans."""
    width = len(seconds_text(life.t1 - life.t0, life))
    start, seconds = (f"{seconds_text(time, life):>{width}} s" for time in (span.t0 - life.t0, span.seconds))
    when = f"at {start} for {seconds}"
    if span.unknown:
        when += f", {span.unknown} not recorded"
    version = f"weights {version_text(span.version)}" if span.version and span.kind != ATTEMPT else ""
    detail = f"{span.detail} tokens" if span.kind == GEN and span.detail.isdecimal() else span.detail
    return " · ".join(filter(None, [when, version, detail]))


def time_of_day(ts: float) -> str:
    try:
        return f"{datetime.fromtimestamp(ts, timezone.utc):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):  # a year that no calendar has
        return f"{ts} s since 1970"


def seconds_text(seconds: float, life: Lifecycle) -> str:
    return f"{seconds:.{3 if life.t1 - life.t0 < FINE_SECONDS else 1}f}"


# Engine ---------------------------------------------------------------------------------------------------------


def spec_facts(info: Mapping[str, Any]) -> Record:
    """Return the counters and the accepted share; empty where all are 0, as without speculative decoding."""
    if not any(as_float(value) for value in info.values()):
        return {}
    accepted = first_number(info, "spec_accept_token_num", "spec_num_correct_drafts")
    drafted = first_number(info, "spec_draft_token_num", "spec_num_proposed_drafts")
    return {**info, "accepted": share(accepted, drafted)}


def cache_facts(info: Mapping[str, Any]) -> Record:
    if not any(as_float(value) for value in info.values()):
        return {}
    hit = share(first_number(info, "cached_tokens"), first_number(info, "total_prompt_tokens"))
    return {**info, "cached": hit}


def first_number(values: Mapping[str, Any], *names: str) -> int | None:
    return next((number for name in names if (number := as_int(values.get(name))) is not None), None)


def share(part: int | None, total: int | None) -> str | None:
    return None if part is None or not total else f"{part / total:.1%}"

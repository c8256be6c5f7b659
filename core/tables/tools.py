"""The tools of a step: who called them, how often they failed, and the rewards with and without failures."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dumptui.core.fields.statistics import finite, mean
from dumptui.core.formats.values import as_float
from dumptui.core.sample.generation import recorded_times
from dumptui.core.sample.tool_calls import ToolCall, calls_of, read_turns
from dumptui.core.step.step import Step
from dumptui.core.tables.columns import names_of
from dumptui.core.tables.group_members import known_rewards
from dumptui.core.tables.view_columns import TOOL_COLUMNS
from dumptui.core.telemetry.lifecycle import ATTEMPT, GEN, TOOL, Lifecycle, Span, covered
from dumptui.core.types import Record

ANY_TOOL, NO_TOOL, NOT_RECORDED = "any tool", "no tool", "not recorded"
NAMELESS = "(no name)"


@dataclass(frozen=True, slots=True)
class ToolUse:
    """The calls of a sample, None where its messages are not recorded; its row in the samples table, the reward that
    the Groups pane compares, and its lifecycle.

    `shared` if other samples of the step have the same index: the events of a lifecycle do not distinguish them.
    """

    row: Record
    reward: float | None
    calls: Sequence[ToolCall] | None
    life: Lifecycle | None
    shared: bool

    @property
    def failed(self) -> int | None:
        return None if self.calls is None else sum(call.outcome == "failed" for call in self.calls)


def tool_uses(step: Step, table: Sequence[Record], lives: Mapping[int, Lifecycle]) -> list[ToolUse]:
    """Return the tool use of each sample of a step, in file order. `lives` are the lifecycles by sample index."""
    count = Counter(sample.index for sample in step.samples)
    rewards = known_rewards(table, step.files.key.evaluation)
    return [
        ToolUse(
            row,
            reward,
            None if turns is None else calls_of(turns),
            lives.get(-1 if sample.index is None else sample.index) or recorded_life(sample.metadata.get("lifecycle")),
            count[sample.index] > 1 and sample.index in lives,
        )
        for sample, row, reward, turns in zip(step.samples, table, rewards, read_turns(step), strict=True)
    ]


def recorded_life(value: object) -> Lifecycle | None:
    """Return the times of the turns that a sample's metadata has; None without any."""
    spans = [
        Span(GEN, number, time.start, time.end)
        for number, time in enumerate(recorded_times(value), 1)
        if time.start is not None and time.end is not None
    ]
    return Lifecycle(tuple(sorted(spans, key=lambda span: span.t0))) if spans else None


# By tool --------------------------------------------------------------------------------------------------------


def by_tool(uses: Sequence[ToolUse]) -> list[Record]:
    """Return a row for each tool, most failures first, then one for all samples that called any, for those that called
    none, and for those whose messages are not recorded.
    """
    names = sorted({name_of(call) for use in uses for call in use.calls or ()})
    rows = [tool_row(name, "tool", uses, lambda call, name=name: name_of(call) == name) for name in names]  # type: ignore[misc]
    rows.sort(key=lambda row: (-int(row["failed"]), -int(row["calls"])))  # type: ignore[call-overload]
    without = [use for use in uses if use.calls is not None and not use.calls]
    unknown = [use for use in uses if use.calls is None]
    if names:
        rows.append(tool_row(ANY_TOOL, "any", uses, lambda call: True))
    if without:
        rows.append(samples_row(NO_TOOL, "none", without))
    if unknown:
        rows.append(samples_row(NOT_RECORDED, "unknown", unknown))
    return rows


def name_of(call: ToolCall) -> str:
    return call.name or NAMELESS


def tool_row(name: str, scope: str, uses: Sequence[ToolUse], is_of_it: Callable[[ToolCall], bool]) -> Record:
    """Return the row of the calls that are of a tool."""
    chosen = [(use, found) for use in uses if (found := [call for call in use.calls or () if is_of_it(call)])]
    calls = [call for _, found in chosen for call in found]
    failed = [use for use, found in chosen if any(call.outcome == "failed" for call in found)]
    fine = [use for use, found in chosen if all(call.outcome == "ok" for call in found)]
    timed, seconds = time_of(chosen)
    row: Record = {
        **samples_row(name, scope, [use for use, _ in chosen]),
        "calls": len(calls),
        "failed": sum(call.outcome == "failed" for call in calls),
        "no_result": sum(call.outcome == "no result" for call in calls),
        "samples_failed": len(failed),
        "reward_failed": mean_reward(failed),
        "samples_ok": len(fine),
        "reward_ok": mean_reward(fine),
        "timed_calls": timed,
        "seconds_per_call": seconds / timed if timed else None,
    }
    return {column: row[column] for column in names_of(TOOL_COLUMNS)}


def samples_row(name: str, scope: str, uses: Sequence[ToolUse]) -> Record:
    row: Record = {
        **dict.fromkeys(names_of(TOOL_COLUMNS)),
        "tool": name,
        "scope": scope,
        "samples": len(uses),
        "rewarded": len(finite([use.reward for use in uses])),
        "reward_mean": mean_reward(uses),
        "turns_mean": mean([as_float(use.row["turns"]) for use in uses]),
        "aborted": sum(use.row["status"] == "aborted" for use in uses),
        "env_seconds_mean": mean([as_float(use.row["non_generation_time"]) for use in uses]),
    }
    return row


def mean_reward(uses: Sequence[ToolUse]) -> float | None:
    return mean([use.reward for use in uses])


def time_of(chosen: Sequence[tuple[ToolUse, Sequence[ToolCall]]]) -> tuple[int, float]:
    """Return how many of the calls have a recorded time that is theirs alone, and the seconds that they took.

    A span covers all calls of a turn: it counts if all of these are among the calls. A sample that shares its lifecycle
    with others does not count.
    """
    timed, seconds = 0, 0.0
    for use, calls in chosen:
        spans = {} if use.life is None or use.shared else tool_spans(use.life)
        in_turn, wanted = Counter(call.turn for call in use.calls or ()), Counter(call.turn for call in calls)
        for turn, number in wanted.items():
            if turn in spans and in_turn[turn] == number:
                timed, seconds = timed + number, seconds + spans[turn]
    return timed, seconds


def tool_spans(life: Lifecycle) -> dict[int, float]:
    """Return the seconds in tools by turn, of the last attempt: that is the one whose messages were recorded."""
    begun = max((span.t0 for span in life.of(ATTEMPT)), default=life.t0)
    turns: dict[int, list[Span]] = {}
    for span in life.of(TOOL):
        if span.t0 >= begun:
            turns.setdefault(span.turn, []).append(span)
    return {turn: covered(spans) for turn, spans in turns.items()}


def span_calls(life: Lifecycle) -> int | None:
    """Return how many tool calls the spans say that they cover; None if one does not say it."""
    counts = [re.fullmatch(r"(\d{1,9}) calls?", span.detail) for span in life.of(TOOL)]
    return sum(int(count[1]) for count in counts if count) if all(counts) else None


# By sample ------------------------------------------------------------------------------------------------------


def by_sample(uses: Sequence[ToolUse]) -> list[Record]:
    """Return a row for each sample: its calls and where its time went. Those that ended last come first; those without
    recorded times come last.
    """
    begun = min((use.life.t0 for use in uses if use.life is not None), default=0.0)
    rows = [{**sample_row(use, begun), "position": at} for at, use in enumerate(uses)]
    return sorted(rows, key=lateness, reverse=True)


def lateness(row: Record) -> tuple[float, ...]:
    times = as_float(row["ended"]), as_float(row["env_seconds"])
    return tuple(-math.inf if time is None else time for time in times)


def sample_row(use: ToolUse, begun: float) -> Record:
    life, row = use.life, use.row
    return {
        "sample_index": row["sample_index"],
        "occurrence": row["occurrence"],
        "group_index": row["group_index"],
        "status": row["status"],
        "reward": use.reward,
        "turns": row["turns"],
        "tool_calls": None if use.calls is None else len(use.calls),
        "failed": use.failed,
        "span_calls": None if life is None else span_calls(life),
        "tools": None if use.calls is None else sorted({name_of(call) for call in use.calls}),
        "ended": None if life is None else life.t1 - begun,
        "generating": None if life is None else covered(life.of(GEN)),
        "in_tools": None if life is None else covered(life.of(TOOL)),
        "waiting": None if life is None else life.waiting(),
        "env_seconds": row["non_generation_time"],
        "shared": use.shared,
    }

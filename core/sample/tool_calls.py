"""The tool calls of the model in each sample of a step, and what came of them, read from the recorded messages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from dumptui.core.formats.sample import Sample
from dumptui.core.formats.values import as_mapping
from dumptui.core.step.step import Step

# What reads messages is imported where there are some: with it, a short view executes 7 % more instructions.

LARGEST_BYTES = 32 << 20
"""A larger trajectory file is not read for a table column: 10,000 messages in 32 MB take 0.6 s, and pictures may make a
file a hundred times as large.
"""
RESULT_ROLES = ("tool", "function")
Outcome: TypeAlias = Literal["ok", "failed", "no result"]

FAILURE = re.compile(
    r"Traceback \(most recent call last\)|\[?\w*(error|exception)\]?\s*(:|$)|(\w+ ){0,2}(timeout|timed out)\b",
    re.IGNORECASE,
)
"""How the text of a failed result begins."""
ERROR_KEYS = ("error", "errors", "exception", "is_error", "isError", "timed_out")
"""Entries of a result that say that it failed, unless their value is empty, false or 0."""
EXIT_KEYS = ("exit_code", "returncode", "return_code", "exit_status")


class ToolCall(NamedTuple):
    """A call of the model. `turn` counts the model's messages from 1; `name` is "" where it is not recorded."""

    name: str
    turn: int
    outcome: Outcome


# Counting -------------------------------------------------------------------------------------------------------


def tool_calls(step: Step) -> list[int | None]:
    """Return the number of calls by sample; None without recorded messages, as a plain text may also quote calls."""
    return [None if turns is None else sum(map(count, turns)) for turns in read_turns(step)]


def count(turn: Sequence[Mapping[str, Any]]) -> int:
    """Return how many calls a message of the model makes: at least as many as it has results, for calls that are
    written in no known form.
    """
    from dumptui.core.sample.messages import count_calls

    return max(count_calls(turn[0]), len(results_of(turn)))


Turns: TypeAlias = list[list[Mapping[str, Any]]]
"""The messages of the model, each with those that follow it."""


def read_turns(step: Step) -> Iterator[Turns | None]:
    """Yield the turns of each sample; None without recorded messages, or where these are too large for a table."""
    file = step.files.trajectory
    none_recorded = file is None and not any("messages" in sample.metadata for sample in step.samples)
    if none_recorded or (file is not None and file.size > LARGEST_BYTES):
        yield from [None] * len(step.samples)
        return
    from dumptui.core.query.text_search import read_recorded

    for sample, messages in zip(step.samples, read_recorded(step.files, step.samples), strict=True):
        step.pause()
        yield turns_of(sample, messages)


def turns_of(sample: Sample, recorded: object) -> Turns | None:
    from dumptui.core.sample.conversation import prompt_messages
    from dumptui.core.sample.reconstruction import as_messages

    messages = as_messages(recorded) or as_messages(sample.metadata.get("messages"))
    if not messages:
        return None
    turns: Turns = []
    for message in messages[prompt_messages(sample, messages) :]:
        if message.get("role") == "assistant":
            turns.append([message])
        elif turns:
            turns[-1].append(message)
    return turns


def results_of(turn: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [message for message in turn if message.get("role") in RESULT_ROLES]


# Calls and their results ----------------------------------------------------------------------------------------


def calls_of(turns: Turns) -> list[ToolCall]:
    return [call for number, turn in enumerate(turns, 1) for call in calls_of_turn(number, turn)]


def calls_of_turn(number: int, turn: Sequence[Mapping[str, Any]]) -> list[ToolCall]:
    """Return the calls of a message. A result that belongs to none of them is that of the next call without one, or
    of a call that is written in no known form.
    """
    from dumptui.core.sample.conversation import calls_of as calls_in
    from dumptui.core.sample.conversation import pair, read_message
    from dumptui.core.sample.reconstruction import Said

    messages = [read_message(at, Said(dumped, None), False) for at, dumped in enumerate([turn[0], *results_of(turn)])]
    links = {link.number: link.result for link in pair(messages)}
    free = [at for at in range(1, len(messages)) if at not in links.values()]
    found = []
    for call in calls_in(messages[0]):
        at = links.get(call.number) or (free.pop(0) if free else None)
        name = call.name or ("" if at is None else messages[at].name)
        found.append(ToolCall(name, number, "no result" if at is None else outcome(messages[at].dumped)))
    return [*found, *(ToolCall(messages[at].name, number, outcome(messages[at].dumped)) for at in free)]


def outcome(result: Mapping[str, Any]) -> Outcome:
    from dumptui.core.sample.messages import parsed, parts_of

    text = "\n".join(part.text for part in parts_of({"content": result.get("content")})).strip()
    fields = as_mapping(parsed(text)) if text.startswith("{") else {}
    failed = says_failure(result) or (says_failure(fields) if fields else FAILURE.match(text) is not None)
    return "failed" if failed else "ok"


def says_failure(fields: Mapping[str, Any]) -> bool:
    return (
        any(fields.get(key) not in (None, "", False, 0, [], {}) for key in ERROR_KEYS)
        or any(fields.get(key) not in (None, 0, "0", "") for key in EXIT_KEYS)
        or fields.get("success") is False
        or str(fields.get("status")).lower() in ("error", "failed", "failure", "timeout")
    )

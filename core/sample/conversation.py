"""The conversation of a sample: its messages from the best source that the run has, and the links between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, takewhile
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from dumptui.core.arrays import Array
from dumptui.core.errors import DumpError
from dumptui.core.formats.format import readers_of
from dumptui.core.formats.media import named
from dumptui.core.formats.sample import Sample
from dumptui.core.formats.sidecar import Row, Sidecar, choose
from dumptui.core.formats.values import as_mapping, as_text, type_name
from dumptui.core.sample.messages import UNCLOSED_NOTE, Part, as_recorded, identity, parts_of
from dumptui.core.sample.reconstruction import Said, as_messages, split_sample
from dumptui.core.sample.response_text import text_note
from dumptui.core.sample.turns import Where, find_turns, locate
from dumptui.core.step.step import Step
from dumptui.core.types import Record
from dumptui.core.vocabulary import Vocabulary

By: TypeAlias = Literal["id", "name", "order"]


@dataclass(frozen=True, slots=True)
class Link:
    """A tool call, the message with its result, and by what they were matched.

    The call is a `part` of the message `call`, and the `number`-th of its calls, counted from 0.
    """

    call: int
    part: int
    number: int
    result: int
    by: By


@dataclass(frozen=True, slots=True)
class Message:
    """A message as panes and printed views show it.

    `dumped` is the message as recorded, `call_id` the id of the call that it answers. `before` and `after` are the
    delimiters of the chat template around it, if it was split from a text.
    """

    position: int
    role: str
    name: str
    parts: tuple[Part, ...]
    call_id: str | None
    where: Where | None
    dumped: Mapping[str, Any]
    before: str = ""
    after: str = ""
    masked: bool = False
    """Whether it is in the response but none of its tokens was trained on."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """The messages of a sample, a note on their source, and the links between tool calls and results."""

    messages: tuple[Message, ...]
    note: str | None
    links: tuple[Link, ...] = ()

    def at_token(self, position: int) -> Message | None:
        """Return the message that holds a token, else the last one before it, else the first that has a position."""
        positioned = [(message.where, message) for message in self.messages if message.where is not None]
        located = [(where, message) for where, message in positioned if where.how != "prompt"]
        holding = [message for where, message in located if where.start <= position < where.stop]
        before = [message for where, message in located if where.start <= position]
        return next(iter([*holding[-1:], *before[-1:], *(message for _, message in located)]), None)

    def partner(self, message: int) -> int | None:
        """Return the message with the result of a call, or with the call of a result; None without one."""
        for link in self.links:
            if link.call == message:
                return link.result
            if link.result == message:
                return link.call
        return None


def read_conversation(
    step: Step, sample: Sample, sidecar: Sidecar | DumpError | None, vocabulary: Vocabulary | None
) -> Conversation:
    """Read the messages from the trajectory sidecar, else the sample's metadata, else its prompt and response turns."""
    recorded, note = recorded_messages(step, sample, sidecar)
    masks = step.masks(np.array([sample.position], np.int64))
    mask = masks.one(0)[0] if masks.states[0] == "ok" else None
    turns = find_turns(mask, sample.prompt_length, sample.total_length)
    texts = None if vocabulary is None else vocabulary.texts(sample.tokens.tolist())
    if recorded is None:
        raw, how = split_sample(sample, turns, texts)
    else:
        where = locate(recorded, prompt_messages(sample, recorded), turns, texts, sample.prompt_length)
        raw, how = [Said(*pair) for pair in zip(recorded, where, strict=True)], None
    masked = [is_masked(message.where, mask, sample.prompt_length) for message in raw]
    messages = tuple(read_message(number, *pair) for number, pair in enumerate(zip(raw, masked, strict=True)))
    notes = filter(None, [note, how, text_note(sample, vocabulary)])
    return Conversation(messages, "; ".join(notes) or None, tuple(pair(messages)))


def is_masked(where: Where | None, mask: Array | None, prompt: int) -> bool:
    if mask is None or where is None or where.how == "prompt" or where.start < prompt:
        return False
    return not np.any(mask[where.start - prompt : where.stop - prompt])


def read_message(position: int, raw: Said, masked: bool) -> Message:
    dumped = raw.dumped
    return Message(
        position=position,
        role=as_text(dumped.get("role")) or "no role",
        name=as_text(dumped.get("name")),
        parts=parts_of(dumped),
        call_id=identity(dumped.get("tool_call_id")),
        where=raw.where,
        dumped=dumped,
        before=raw.before,
        after=raw.after,
        masked=masked,
    )


def open_sidecar(step: Step) -> Sidecar | DumpError | None:
    """Return the trajectory sidecar of a step, the error if it is unreadable, None if there is none."""
    if step.files.trajectory is None:
        return None
    try:
        return readers_of(step.files).open_sidecar(step.files.trajectory.path)
    except DumpError as error:
        return error


def is_recorded(step: Step, sample: Sample) -> bool:
    """Whether the trajectory sidecar has the conversation, so that nothing else of the sample is needed."""
    sidecar = open_sidecar(step)
    if sidecar is None or isinstance(sidecar, DumpError):
        return False
    return recorded_messages(step, sample, sidecar)[0] is not None


# Where the messages are -----------------------------------------------------------------------------------------


def recorded_messages(
    step: Step, sample: Sample, sidecar: Sidecar | DumpError | None
) -> tuple[list[Mapping[str, Any]] | None, str | None]:
    """Return the recorded messages, None without any, and a note on them or on why there are none."""
    note: str | None = "no conversation was recorded"
    if isinstance(sidecar, DumpError):
        note = str(sidecar)
    elif sidecar is not None:
        row, choice = recorded_row(step, sample, sidecar)
        if row is not None and (messages := as_messages(row.get("messages"))):
            return messages, "; ".join(filter(None, [choice, oddness(row["messages"])])) or None
        note = why_missing(sidecar, sample, row)
    dumped = sample.metadata.get("messages")
    if messages := as_messages(dumped):
        return messages, oddness(dumped)
    if dumped is not None and not isinstance(dumped, (list, tuple)):
        note = f"{note}; {not_a_list('messages in the metadata', dumped)}"
    return None, note


def why_missing(sidecar: Sidecar, sample: Sample, row: Row | None) -> str:
    """Return why a trajectory file has no conversation of a sample, whose row is `row`. Raises DumpError."""
    messages = None if row is None else row.get("messages")
    if messages is not None and not isinstance(messages, list):
        return not_a_list("messages of this sample in the trajectory file", messages)
    if row is None and (lines := sidecar.unreadable(sample.index)) and not is_cut(sidecar, lines):
        return f"line {lines[0]} of the trajectory file, where this sample's conversation should be, can't be read"
    cut = ", and its last line is truncated" if sidecar.cut else ""
    return f"the trajectory file has no conversation of this sample{cut}"


def is_cut(sidecar: Sidecar, lines: Sequence[int]) -> bool:
    """Whether the first of some lines is the truncated last line of the file."""
    return sidecar.cut and lines[0] == sidecar.last_line


def not_a_list(what: str, value: object) -> str:
    return f"the {what} can't be shown: of type {type_name(value)}, not a list"


def oddness(messages: object) -> str | None:
    """Return a note on the entries of a list that are not messages; None without any."""
    assert isinstance(messages, (list, tuple))
    odd = sum(not as_mapping(entry) for entry in messages)
    return f"{odd} of {len(messages)} entries are not messages and are shown as dumped" if odd else None


def recorded_row(step: Step, sample: Sample, sidecar: Sidecar) -> tuple[Row | None, str | None]:
    """Return a sample's row in the trajectory file, and a note where the match is uncertain. Raises DumpError."""
    siblings = [sibling for sibling in step.samples if sibling.index == sample.index]
    return choose(sidecar.rows(sample.index), siblings, sample)


def prompt_messages(sample: Sample, messages: Sequence[Mapping[str, Any]]) -> int:
    """Return how many messages are the prompt: as many as it holds, else all before the first of the assistant."""
    prompt = as_messages(sample.prompt)
    if prompt and [m.get("role") for m in prompt] == [m.get("role") for m in messages[: len(prompt)]]:
        return len(prompt)
    return next((number for number, m in enumerate(messages) if m.get("role") == "assistant"), len(messages))


# Calls and results ----------------------------------------------------------------------------------------------


class Call(NamedTuple):
    """A tool call that has no result yet."""

    message: int
    part: int
    number: int
    id: str | None
    name: str


class Waiting:
    """The calls that have no result yet. Ids may repeat: an id refers to the newest message that uses it."""

    def __init__(self) -> None:
        self._open: set[Call] = set()
        self._by_id: dict[str, list[Call]] = {}
        self._newest: list[Call] = []

    def add(self, calls: Sequence[Call]) -> None:
        self._open.update(calls)
        self._newest = list(calls)
        for call in calls:
            if call.id is not None:
                self._by_id.setdefault(call.id, []).append(call)

    def take(self, call: Call) -> None:
        self._open.remove(call)

    def with_id(self, identity: str | None) -> list[Call]:
        """Return the open calls of an id that are in the last message with any."""
        same = self._by_id.get(identity or "", [])
        while same and same[-1] not in self._open:
            same.pop()
        last = takewhile(lambda call: call.message == same[-1].message, reversed(same))
        return [call for call in last if call in self._open][::-1]

    def newest(self) -> list[Call]:
        """Return the open calls of the last message with calls: results without an id refer to these."""
        return [call for call in self._newest if call in self._open]


def pair(messages: Sequence[Message]) -> list[Link]:
    """Link tool calls to results. Of consecutive results, those with the most specific match choose first."""
    links: list[Link] = []
    waiting = Waiting()
    for are_results, row in groupby(messages, key=is_result):
        if are_results:
            unmatched = list(row)
            for rule in (by_id_and_name, by_id, by_name, by_order):
                matched = [link for result in unmatched if (link := link_of(result, waiting, rule)) is not None]
                taken = {link.result for link in matched}
                unmatched = [result for result in unmatched if result.position not in taken]
                links += matched
            continue
        for message in row:
            if calls := calls_of(message):
                waiting.add(calls)
    return sorted(links, key=lambda link: link.result)


def is_result(message: Message) -> bool:
    return message.role in ("tool", "function")


def calls_of(message: Message) -> list[Call]:
    calls = [(index, part) for index, part in enumerate(message.parts) if part.kind == "call"]
    return [
        Call(message.position, index, number, call.call_id, name_of(call)) for number, (index, call) in enumerate(calls)
    ]


def name_of(call: Part) -> str:
    return "" if call.label == UNCLOSED_NOTE else call.label


def link_of(result: Message, waiting: Waiting, rule: Rule) -> Link | None:
    """Link a result to the first of the calls that a rule finds, which is no longer open then; None without any."""
    by, calls = rule(result, waiting)
    if not calls:
        return None
    waiting.take(calls[0])
    return Link(calls[0].message, calls[0].part, calls[0].number, result.position, by)


def by_id_and_name(result: Message, waiting: Waiting) -> tuple[By, list[Call]]:
    return "id", [call for call in waiting.with_id(result.call_id) if call.name == result.name]


def by_id(result: Message, waiting: Waiting) -> tuple[By, list[Call]]:
    return "id", waiting.with_id(result.call_id)


def by_name(result: Message, waiting: Waiting) -> tuple[By, list[Call]]:
    return "name", [call for call in without_id(result, waiting) if result.name and call.name == result.name]


def by_order(result: Message, waiting: Waiting) -> tuple[By, list[Call]]:
    """Return the calls whose name does not contradict that of the result."""
    return "order", [call for call in without_id(result, waiting) if not (result.name and call.name)]


def without_id(result: Message, waiting: Waiting) -> list[Call]:
    """Return the newest calls that may belong to a result: the result or the call has no id."""
    return [call for call in waiting.newest() if result.call_id is None or call.id is None]


Rule: TypeAlias = Callable[[Message, Waiting], tuple[By, list[Call]]]


# Printing -------------------------------------------------------------------------------------------------------


def document(conversation: Conversation) -> Record:
    """Return the conversation as `--print` writes it: the messages as recorded, with their tokens and delimiters."""
    return {
        "messages": as_recorded([message.dumped for message in conversation.messages]),
        "note": conversation.note,
        "tokens": [where_document(message.where) for message in conversation.messages],
        "delimiters": [
            {"before": message.before, "after": message.after} if message.before or message.after else None
            for message in conversation.messages
        ],
        "links": [
            {"call": link.call, "number": link.number, "result": link.result, "by": link.by}
            for link in conversation.links
        ],
    }


def where_document(where: Where | None) -> Record | None:
    return None if where is None else {"start": where.start, "stop": where.stop, "by": where.how}


def rows(conversation: Conversation) -> list[Record]:
    """Return one row per message."""
    return [
        {
            "position": message.position,
            "role": message.role,
            "name": message.name or None,
            "start": None if message.where is None else message.where.start,
            "stop": None if message.where is None else message.where.stop,
            "tool_call_id": message.call_id,
            "thinking": text_of(message, "thinking"),
            "content": text_of(message, "text", "media", "data", "special"),
            "tool_calls": text_of(message, "call"),
        }
        for message in conversation.messages
    ]


def text_of(message: Message, *kinds: str) -> str | None:
    """Return parts joined by a blank line, but special tokens by the gap with which they were written; None of none."""
    text = ""
    for part in (part for part in message.parts if part.kind in kinds):
        gap = part.gap if part.kind == "special" else "\n\n"
        text += (gap if text else "") + named(f"{part.label} {part.text}".strip())
    return text or None

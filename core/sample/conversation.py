"""The conversation of a sample: its messages from wherever the run has them, and which of them belong together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, takewhile
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from dumptui.core.arrays import Array
from dumptui.core.errors import DumpError
from dumptui.core.formats.media import named
from dumptui.core.formats.miles.trajectory_file import Row, Sidecar, choose
from dumptui.core.formats.sample import Sample
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
    """A tool call and the message with its result, and what tells that they belong together.

    The call is a `part` of the message `call`, and the `number`-th of its calls, counted from 0.
    """

    call: int
    part: int
    number: int
    result: int
    by: By


@dataclass(frozen=True, slots=True)
class Message:
    """`dumped` is the message as it was recorded, `call_id` the id of the call that it answers.

    `before` and `after` are the delimiters of a chat template around it, where it was cut out of a text.
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
    """None of its tokens was trained on, though they are of the response."""


@dataclass(frozen=True, slots=True)
class Conversation:
    messages: tuple[Message, ...]
    note: str | None
    links: tuple[Link, ...] = ()

    def at_token(self, position: int) -> Message | None:
        """The message that holds a token, else the last one before it, else the first; None where no place is known."""
        located = [(one.where, one) for one in self.messages if one.where is not None and one.where.how != "prompt"]
        holding = [one for where, one in located if where.start <= position < where.stop]
        before = [one for where, one in located if where.start <= position]
        return next(iter([*holding[-1:], *before[-1:], *(one for _, one in located)]), None)

    def partner(self, message: int) -> int | None:
        """The message with the result of a call, or with the call of a result."""
        for link in self.links:
            if link.call == message:
                return link.result
            if link.result == message:
                return link.call
        return None


def read_conversation(
    step: Step, sample: Sample, sidecar: Sidecar | DumpError | None, vocabulary: Vocabulary | None
) -> Conversation:
    """From the trajectory sidecar, else the sample's metadata, else its prompt and the turns of its response."""
    recorded, note = recorded_messages(step, sample, sidecar)
    masks = step.masks(np.array([sample.position], np.int64))
    mask = masks.one(0)[0] if masks.states[0] == "ok" else None
    turns = find_turns(mask, sample.prompt_length, sample.total_length)
    texts = None if vocabulary is None else vocabulary.texts(sample.tokens.tolist())
    if recorded is None:
        said, how = split_sample(sample, turns, texts)
    else:
        where = locate(recorded, prompt_messages(sample, recorded), turns, texts, sample.prompt_length)
        said, how = [Said(*one) for one in zip(recorded, where, strict=True)], None
    masked = [is_masked(one.where, mask, sample.prompt_length) for one in said]
    messages = tuple(read_message(at, *one) for at, one in enumerate(zip(said, masked, strict=True)))
    notes = filter(None, [note, how, text_note(sample, vocabulary)])
    return Conversation(messages, "; ".join(notes) or None, tuple(pair(messages)))


def is_masked(where: Where | None, mask: Array | None, prompt: int) -> bool:
    if mask is None or where is None or where.how == "prompt" or where.start < prompt:
        return False
    return not np.any(mask[where.start - prompt : where.stop - prompt])


def read_message(position: int, said: Said, masked: bool) -> Message:
    dumped = said.dumped
    return Message(
        position=position,
        role=as_text(dumped.get("role")) or "no role",
        name=as_text(dumped.get("name")),
        parts=parts_of(dumped),
        call_id=identity(dumped.get("tool_call_id")),
        where=said.where,
        dumped=dumped,
        before=said.before,
        after=said.after,
        masked=masked,
    )


def open_sidecar(step: Step) -> Sidecar | DumpError | None:
    """None where the step has no trajectory file."""
    if step.files.trajectory is None:
        return None
    try:
        return Sidecar.scan(step.files.trajectory.path)
    except DumpError as error:
        return error


def is_recorded(step: Step, sample: Sample) -> bool:
    """Whether the trajectory sidecar has the conversation: nothing else of the sample is needed then."""
    sidecar = open_sidecar(step)
    return isinstance(sidecar, Sidecar) and recorded_messages(step, sample, sidecar)[0] is not None


# Where the messages are -----------------------------------------------------------------------------------------


def recorded_messages(
    step: Step, sample: Sample, sidecar: Sidecar | DumpError | None
) -> tuple[list[Mapping[str, Any]] | None, str | None]:
    """The messages that were recorded, and what has to be known of them or of why there are none."""
    note: str | None = "no conversation was recorded"
    if isinstance(sidecar, DumpError):
        note = str(sidecar)
    elif sidecar is not None:
        row, choice = recorded_row(step, sample, sidecar)
        if row is not None and (messages := as_messages(row.get("messages"))):
            return messages, "; ".join(filter(None, [choice, oddness(row["messages"])])) or None
        note = why_missing(sidecar, sample, row)
    kept = sample.metadata.get("messages")
    if messages := as_messages(kept):
        return messages, oddness(kept)
    if kept is not None and not isinstance(kept, (list, tuple)):
        note = f"{note}; {no_list('messages in the metadata', kept)}"
    return None, note


def why_missing(sidecar: Sidecar, sample: Sample, row: Row | None) -> str:
    """Why a trajectory file has no conversation of a sample, whose row is `row`. Raises DumpError."""
    messages = None if row is None else row.get("messages")
    if messages is not None and not isinstance(messages, list):
        return no_list("messages of this sample in the trajectory file", messages)
    if row is None and (lines := sidecar.unreadable(sample.index)) and not is_cut(sidecar, lines):
        return f"line {lines[0]} of the trajectory file, where this sample's conversation should be, can't be read"
    cut = ", and its last line is cut" if sidecar.cut else ""
    return f"the trajectory file has no conversation of this sample{cut}"


def is_cut(sidecar: Sidecar, lines: Sequence[int]) -> bool:
    """Whether the first of some lines is one that the file ends in the middle of."""
    return sidecar.cut and lines[0] == max(place.line for places in sidecar.places.values() for place in places)


def no_list(what: str, value: object) -> str:
    return f"the {what} can't be shown: not a list but {type_name(value)}"


def oddness(messages: object) -> str | None:
    """What has to be known of entries of a list that are no messages."""
    assert isinstance(messages, (list, tuple))
    odd = sum(not as_mapping(one) for one in messages)
    return f"{odd} of {len(messages)} entries are no messages and stand as they are" if odd else None


def recorded_row(step: Step, sample: Sample, sidecar: Sidecar) -> tuple[Row | None, str | None]:
    """A sample's row in the trajectory file, and what has to be known of the choice. Raises DumpError."""
    siblings = [one for one in step.samples if one.index == sample.index]
    return choose(sidecar.rows(sample.index), siblings, sample)


def prompt_messages(sample: Sample, messages: Sequence[Mapping[str, Any]]) -> int:
    """How many of the messages are the prompt: as many as it has, else all before the model first speaks."""
    prompt = as_messages(sample.prompt)
    if prompt and [one.get("role") for one in prompt] == [one.get("role") for one in messages[: len(prompt)]]:
        return len(prompt)
    return next((at for at, one in enumerate(messages) if one.get("role") == "assistant"), len(messages))


# Calls and results ----------------------------------------------------------------------------------------------


class Call(NamedTuple):
    """A tool call that has no result yet."""

    message: int
    part: int
    number: int
    id: str | None
    name: str


class Waiting:
    """The calls that have no result yet. Ids may repeat: an id means its newest message."""

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
        """Of the last message that has open calls of this id, those calls."""
        same = self._by_id.get(identity or "", [])
        while same and same[-1] not in self._open:
            same.pop()
        last = takewhile(lambda call: call.message == same[-1].message, reversed(same))
        return [call for call in last if call in self._open][::-1]

    def newest(self) -> list[Call]:
        """Of the last message that calls, those that are open: all that names and order speak of."""
        return [call for call in self._newest if call in self._open]


def pair(messages: Sequence[Message]) -> list[Link]:
    """Tool calls with their results. Of several results in a row, those that tell most of their call choose first."""
    links: list[Link] = []
    waiting = Waiting()
    for answers, row in groupby(messages, key=is_result):
        if answers:
            left = list(row)
            for rule in (by_id_and_name, by_id, by_name, by_order):
                found = [link for result in left if (link := link_of(result, waiting, rule)) is not None]
                taken = {link.result for link in found}
                left = [result for result in left if result.position not in taken]
                links += found
            continue
        for message in row:
            if calls := calls_of(message):
                waiting.add(calls)
    return sorted(links, key=lambda link: link.result)


def is_result(message: Message) -> bool:
    return message.role in ("tool", "function")


def calls_of(message: Message) -> list[Call]:
    parts = [(at, part) for at, part in enumerate(message.parts) if part.kind == "call"]
    return [Call(message.position, at, number, part.call_id, name_of(part)) for number, (at, part) in enumerate(parts)]


def name_of(call: Part) -> str:
    return "" if call.label == UNCLOSED_NOTE else call.label


def link_of(result: Message, waiting: Waiting, rule: Rule) -> Link | None:
    """A result with the first of the calls that a rule finds."""
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
    """A result of another name than a call's is not that call's."""
    return "order", [call for call in without_id(result, waiting) if not (result.name and call.name)]


def without_id(result: Message, waiting: Waiting) -> list[Call]:
    """The calls that no id tells from being this result's."""
    return [call for call in waiting.newest() if result.call_id is None or call.id is None]


Rule: TypeAlias = Callable[[Message, Waiting], tuple[By, list[Call]]]


# Printing -------------------------------------------------------------------------------------------------------


def document(conversation: Conversation) -> Record:
    """The conversation as `--print` gives it: the messages as recorded, their tokens and delimiters beside them."""
    return {
        "messages": as_recorded([one.dumped for one in conversation.messages]),
        "note": conversation.note,
        "tokens": [where_document(one.where) for one in conversation.messages],
        "delimiters": [
            {"before": one.before, "after": one.after} if one.before or one.after else None
            for one in conversation.messages
        ],
        "links": [
            {"call": link.call, "number": link.number, "result": link.result, "by": link.by}
            for link in conversation.links
        ],
    }


def where_document(where: Where | None) -> Record | None:
    return None if where is None else {"start": where.start, "stop": where.stop, "by": where.how}


def rows(conversation: Conversation) -> list[Record]:
    """A row a message."""
    return [
        {
            "position": one.position,
            "role": one.role,
            "name": one.name or None,
            "start": None if one.where is None else one.where.start,
            "stop": None if one.where is None else one.where.stop,
            "tool_call_id": one.call_id,
            "thinking": text_of(one, "thinking"),
            "content": text_of(one, "text", "media", "data", "special"),
            "tool_calls": text_of(one, "call"),
        }
        for one in conversation.messages
    ]


def text_of(message: Message, *kinds: str) -> str | None:
    """Parts with a blank line between them, but special tokens as far from what is before them as they were written."""
    text = ""
    for part in (one for one in message.parts if one.kind in kinds):
        gap = part.gap if part.kind == "special" else "\n\n"
        text += gap * bool(text) + named(f"{part.label} {part.text}".strip())
    return text or None

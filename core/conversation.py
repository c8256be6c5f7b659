"""The conversation of a sample: its messages from wherever the run has them, and which of them belong together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dumptui.core.context_parallel import Array
from dumptui.core.errors import DumpError
from dumptui.core.join import Step
from dumptui.core.messages import Part, as_recorded, identity, parts_of
from dumptui.core.record import Record
from dumptui.core.response_text import text_notes
from dumptui.core.sample import Sample
from dumptui.core.sidecar import Row, Sidecar, choose
from dumptui.core.tokens import Vocabulary
from dumptui.core.turns import Where, find_turns, locate
from dumptui.core.unrecorded import Said, as_messages, split_sample
from dumptui.core.values import as_text


@dataclass(frozen=True, slots=True)
class Link:
    """A tool call, the `part` of a message, and the message with its result; `by_id`, else by their order."""

    call: int
    part: int
    result: int
    by_id: bool


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
    notes = filter(None, [note, how, *text_notes(sample, vocabulary)])
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
    note: str | None = "no conversation is recorded"
    if isinstance(sidecar, DumpError):
        note = str(sidecar)
    elif sidecar is not None:
        row, choice = recorded_row(step, sample, sidecar)
        if row is not None and (messages := as_messages(row.get("messages"))):
            return messages, choice
        note = "the trajectory file has no conversation of this sample"
        note += ", and its last line is cut" if sidecar.cut else ""
    if messages := as_messages(sample.metadata.get("messages")):
        return messages, None
    return None, note


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


def pair(messages: Sequence[Message]) -> list[Link]:
    """Tool calls with their results: by id, and where one of them has none, in order after the message that calls."""
    links: list[Link] = []
    open_calls: list[tuple[int, int]] = []  # (message, part), the newest last
    for message in messages:
        if message.role in ("tool", "function"):
            chosen = chosen_call(messages, open_calls, message)
            if chosen is not None:
                open_calls.remove(chosen)
                part = messages[chosen[0]].parts[chosen[1]]
                links.append(Link(*chosen, message.position, message.call_id is not None and part.call_id is not None))
        else:
            open_calls += [(message.position, at) for at, part in enumerate(message.parts) if part.kind == "call"]
    return links


def chosen_call(
    messages: Sequence[Message], open_calls: Sequence[tuple[int, int]], result: Message
) -> tuple[int, int] | None:
    """The newest call of the result's id; else the first of the last message that calls, where an id is missing."""
    ids = {call: messages[call[0]].parts[call[1]].call_id for call in open_calls}
    if result.call_id is not None:
        same = [call for call in open_calls if ids[call] == result.call_id]
        if same:
            return same[-1]
    last = open_calls[-1][0] if open_calls else -1
    unnamed = [call for call in open_calls if call[0] == last and (result.call_id is None or ids[call] is None)]
    return unnamed[0] if unnamed else None


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
            {"call": link.call, "result": link.result, "by": "id" if link.by_id else "order"}
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
    texts = [f"{part.label} {part.text}".strip() for part in message.parts if part.kind in kinds]
    return "\n\n".join(texts) if texts else None

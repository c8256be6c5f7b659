"""A conversation made ready for the screen, in the reader thread: every text visible, split into lines and measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dumptui.core.errors import DumpError
from dumptui.core.files.step_files import Entry, StepKey
from dumptui.core.formats.media import named
from dumptui.core.formats.sample import Sample
from dumptui.core.formats.sidecar import Sidecar
from dumptui.core.formats.weight_versions import version_range
from dumptui.core.sample.conversation import Conversation, Link, Message, open_sidecar, read_conversation
from dumptui.core.sample.messages import Part
from dumptui.core.sample.reconstruction import MASKED_ROLE
from dumptui.core.step.step import Step
from dumptui.core.text import visible
from dumptui.core.vocabulary import Vocabulary
from dumptui.tui.cell_formats.wrapping import Lines
from dumptui.tui.widgets.blocks.block import Block, Passage
from dumptui.tui.widgets.message import Answer

ROLE_STYLES = {"user": "second", "prompt": "second", "assistant": "first", "tool": "third", "function": "third"}
FOLDED_ROLES = ("system", "developer", "tool", "function", MASKED_ROLE)
PART_KINDS = {"thinking": "thinking", "special": "muted", "media": "muted", "data": "muted"}


class ConversationView(Answer):
    """The conversation of a sample, and a block a message."""

    key: StepKey
    position: int
    sample: Sample
    conversation: Conversation
    blocks: Sequence[Block]


class ConversationViews:
    """Reads conversations; which lines of the trajectory file are whose is kept for the step asked about last."""

    def __init__(self) -> None:
        self._entry: Entry | None = None
        self._sidecar: Sidecar | DumpError | None = None

    def open(self, step: Step, position: int, vocabulary: Vocabulary | None) -> ConversationView:
        failed = isinstance(self._sidecar, DumpError)  # which may heal
        if self._entry is None or self._entry != step.files.trajectory or failed:
            self._entry, self._sidecar = step.files.trajectory, open_sidecar(step)
        sample = step.samples[position]
        conversation = read_conversation(step, sample, self._sidecar, vocabulary)
        calls = {(link.call, link.part): link for link in conversation.links}
        results = {link.result: link for link in conversation.links}
        versions = versions_of(conversation, sample)
        blocks = [
            block_of(one, calls, results.get(one.position), versions.get(one.position, ""))
            for one in conversation.messages
        ]
        return ConversationView(step.files.key, position, sample, conversation, blocks)


def versions_of(conversation: Conversation, sample: Sample) -> dict[int, str]:
    """The weights that wrote each of the model's messages: by the tokens that each version wrote where that is
    recorded, else by the generate calls where there is one for each message.
    """
    written = [
        (one.position, one.where)
        for one in conversation.messages
        if one.role == "assistant" and one.where is not None and one.where.start >= sample.prompt_length
    ]
    spans = [span for call in sample.calls for span in call.spans]
    if any(span.start is not None for span in spans):
        found = [[span for span in spans if span.meets(where.start, where.stop)] for _, where in written]
    elif len(written) == len(sample.calls):
        found = [list(call.spans) for call in sample.calls]
    else:
        return {}
    return {
        at: visible(version_range(span.version for span in one)) for (at, _), one in zip(written, found, strict=True)
    }


def block_of(message: Message, calls: Mapping[tuple[int, int], Link], result: Link | None, version: str) -> Block:
    """`calls` are the links by the message and part that calls, `result` is the one that ends here."""
    passages = [
        passage_of(part, call_label(part, calls.get((message.position, at))) if part.kind == "call" else label_of(part))
        for at, part in enumerate(message.parts)
    ]
    passages = passages or [Passage("muted", "", Lines.of("(empty)"))]
    if message.after:
        passages.append(Passage("muted", "", Lines.of(visible(message.after))))
    return Block(
        kind=ROLE_STYLES.get(message.role, "muted"),
        title=visible(title_of(message, result)),
        aside=" · ".join(filter(None, [version, "masked" * is_left_out(message), place_of(message)])),
        passages=passages,
        folded=message.role in FOLDED_ROLES,
        lead=visible(message.before),
    )


def is_left_out(message: Message) -> bool:
    """Say that a message of the model is not trained on, since most are."""
    return message.masked and message.role == "assistant"


def passage_of(part: Part, label: str) -> Passage:
    return Passage(PART_KINDS.get(part.kind, "plain"), visible(label), Lines.of(named(part.text)))


def label_of(part: Part) -> str:
    if part.kind == "thinking":
        return ", ".join(filter(None, ["thinking", part.label]))
    return part.label if part.kind != "data" else part.label or "content"


def call_label(part: Part, link: Link | None) -> str:
    """The tool that is called, and where its result is."""
    name = f"call {part.label}".rstrip()
    if link is None:
        return f"{name} · no result"
    return f"{name} · result in {link.result}" + ("" if link.by == "id" else f", by {link.by}")


def title_of(message: Message, result: Link | None) -> str:
    title = f"{message.position} {message.role}" + (f" · {message.name}" if message.name else "")
    if message.role not in ("tool", "function"):
        return title
    if result is not None:
        return f"{title} · result of {result.call}"
    return f"{title} · no call" + (f" with its id {message.call_id}" if message.call_id else "")


def place_of(message: Message) -> str:
    where = message.where
    if where is None:
        return ""
    return "in the prompt" if where.how == "prompt" else f"tokens {where.start}-{where.stop - 1}"

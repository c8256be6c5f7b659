"""The messages of a sample without a recorded conversation: its prompt, and the turns of its response.

Both are split by their chat template; a response without a known template is split where its loss mask changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dumptui.core.formats.sample import Sample
from dumptui.core.formats.values import as_mapping
from dumptui.core.sample.chat_templates import CHAT_TEMPLATES, Section, Template, find_template
from dumptui.core.sample.turns import Finder, Turn, Where, join_texts, locate

MASKED_ROLE = "masked"
"""The role of a part of the response that was not trained on, where no message names its author."""


@dataclass(frozen=True, slots=True)
class Said:
    """A message in the form of a recorded one, with the position of its tokens and the delimiters around it."""

    dumped: Mapping[str, Any]
    where: Where | None
    before: str = ""
    after: str = ""


def split_sample(sample: Sample, turns: Sequence[Turn], texts: Sequence[str] | None) -> tuple[list[Said], str | None]:
    """Return prompt and response as messages, and a note on how they were split. `texts` are those of the tokens."""
    prompt_texts = () if texts is None else texts[: sample.prompt_length]
    response_texts = () if texts is None else texts[sample.prompt_length :]
    template = find_template(join_texts(prompt_texts))
    prompt, prompt_template = split_prompt(sample, template, prompt_texts)
    templates = [candidate for candidate in (prompt_template, template) if candidate is not None]
    response, response_template = split_by_template(sample, turns, templates[:1] or CHAT_TEMPLATES, response_texts)
    if response_template is not None:
        parts = "prompt and response are" if response_template is prompt_template else "the response is"
        return [*prompt, *response], f"{parts} split by the {response_template.name} template"
    response, note = split_by_mask(sample, turns, texts)
    notes = [
        f"the prompt is split by the {prompt_template.name} template" if prompt_template is not None else None,
        note,
    ]
    return [*prompt, *response], "; ".join(filter(None, notes)) or None


def as_messages(value: object) -> list[Mapping[str, Any]]:
    """Return the messages of a list; an item that is not a dict becomes the content of a message without a role."""
    if not isinstance(value, (list, tuple)):
        return []
    return [as_mapping(item) or {"content": item} for item in value]


def messages_of(sections: Sequence[Section]) -> list[Said]:
    return [
        Said({"role": section.role, "content": section.content}, None, section.before, section.after)
        for section in sections
    ]


def locate_sections(sections: Sequence[Section], tokens: Sequence[str], first: int) -> list[Where]:
    """Return the positions of the sections of a text, whose `tokens` begin at position `first`."""
    spans = Finder(tokens).spans([len(section.text) for section in sections])
    return [Where(first + start, first + stop, "template") for start, stop in spans]


# The prompt -----------------------------------------------------------------------------------------------------


def split_prompt(
    sample: Sample, template: Template | None, tokens: Sequence[str]
) -> tuple[list[Said], Template | None]:
    """Return the messages of the prompt and the template of its recorded text; `template` is that of its `tokens`.

    The tokenizer may add messages that the recorded text lacks: if the messages of the tokens end with the same roles,
    their positions are used.
    """
    messages, own_template = read_prompt(sample.prompt or join_texts(tokens))
    sections = [] if template is None else template.split(join_texts(tokens))
    if messages and [section.role for section in sections[-len(messages) :]] == [
        message.dumped.get("role") for message in messages
    ]:
        positions: Sequence[Where | None] = locate_sections(sections, tokens, 0)[-len(messages) :]
    else:
        position = Where(0, sample.prompt_length, "prompt" if len(messages) > 1 else "mask")
        positions = [position if sample.prompt_length else None] * len(messages)
    return [replace(message, where=where) for message, where in zip(messages, positions, strict=True)], own_template


def read_prompt(prompt: object) -> tuple[list[Said], Template | None]:
    """Return the messages of a list or of a templated text, else the whole prompt as one message."""
    if isinstance(prompt, (list, tuple)):
        return [Said(message, None) for message in as_messages(prompt)], None
    template = find_template(prompt) if isinstance(prompt, str) else None
    if template is None:
        return [Said({"role": "prompt", "content": prompt}, None)] if prompt else [], None
    return messages_of(template.split(str(prompt))), template


# The response ---------------------------------------------------------------------------------------------------


def split_by_template(
    sample: Sample, turns: Sequence[Turn], templates: Sequence[Template], tokens: Sequence[str]
) -> tuple[list[Said], Template | None]:
    """Split a response by the first template that finds several turns in its tokens, else in its recorded text."""
    sections, template = first_split(join_texts(tokens), templates)
    if template is not None:
        positions: Sequence[Where | None] = locate_sections(sections, tokens, sample.prompt_length)
    else:
        sections, template = first_split(sample.response, templates)
        positions = locate([message.dumped for message in messages_of(sections)], 0, turns, None, sample.prompt_length)
    return [
        replace(message, where=where) for message, where in zip(messages_of(sections), positions, strict=True)
    ], template


def first_split(text: str, templates: Sequence[Template]) -> tuple[list[Section], Template | None]:
    splits = ((template.split(text, continued=True), template) for template in templates)
    return next((split for split in splits if len(split[0]) > 1), ([], None))


def split_by_mask(sample: Sample, turns: Sequence[Turn], texts: Sequence[str] | None) -> tuple[list[Said], str | None]:
    """Return one message per turn, where the texts of the tokens are known, and a note on the split."""
    if not sample.response_length:
        return [Said({"role": "assistant", "content": sample.response}, None)] if sample.response else [], None
    if len(turns) > 1 and texts is not None:
        return [turn_message(turn, texts) for turn in turns], "the response is split where its loss mask changes"
    text = sample.response or join_texts(() if texts is None else texts[sample.prompt_length :])
    where = Where(sample.prompt_length, sample.total_length, "mask")
    note = f"the {len(turns)} turns of the response can't be separated without a tokenizer" if len(turns) > 1 else None
    return [Said({"role": "assistant", "content": text}, where)], note


def turn_message(turn: Turn, texts: Sequence[str]) -> Said:
    content = {
        "role": "assistant" if turn.trained else MASKED_ROLE,
        "content": join_texts(texts[turn.start : turn.stop]),
    }
    return Said(content, Where(turn.start, turn.stop, "mask"))

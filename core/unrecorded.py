"""The messages of a sample of which no conversation is recorded: its prompt, and the turns of its response.

Both are split by the chat template that they stand in; a response that stands in none where its loss mask changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dumptui.core.sample import Sample
from dumptui.core.template import TEMPLATES, Section, Template, find_template
from dumptui.core.turns import Finder, Turn, Where, joined, locate
from dumptui.core.values import as_mapping

MASKED = "masked"
"""The role of what stands in the response but was not trained on, where no message says who wrote it."""


@dataclass(frozen=True, slots=True)
class Said:
    """A message in the form of recorded ones, its tokens, and the delimiters around it."""

    dumped: Mapping[str, Any]
    where: Where | None
    before: str = ""
    after: str = ""


def split_sample(sample: Sample, turns: Sequence[Turn], texts: Sequence[str] | None) -> tuple[list[Said], str | None]:
    """Prompt and response in messages, and what is said of how they were split. `texts` are those of the tokens."""
    asked = () if texts is None else texts[: sample.prompt_length]
    answered = () if texts is None else texts[sample.prompt_length :]
    template = find_template(joined(asked))
    prompt, own = split_prompt(sample, template, asked)
    known = [one for one in (own, template) if one is not None]
    response, used = split_by_template(sample, turns, known[:1] or TEMPLATES, answered)
    if used is not None:
        parts = "prompt and response are" if used is own else "the response is"
        return [*prompt, *response], f"{parts} split by the {used.name} template"
    response, how = split_by_mask(sample, turns, texts)
    notes = [f"the prompt is split by the {own.name} template" if own is not None else None, how]
    return [*prompt, *response], "; ".join(filter(None, notes)) or None


def as_messages(value: object) -> list[Mapping[str, Any]]:
    """A list of messages; one that is no dict becomes the content of a message without a role."""
    if not isinstance(value, (list, tuple)):
        return []
    return [as_mapping(one) or {"content": one} for one in value]


def said_in(sections: Sequence[Section]) -> list[Said]:
    return [Said({"role": one.role, "content": one.content}, None, one.before, one.after) for one in sections]


def places_of(sections: Sequence[Section], tokens: Sequence[str], first: int) -> list[Where]:
    """Of the messages of a text that is the one of these tokens, which begin at `first`."""
    spans = Finder(tokens).spans([len(one.text) for one in sections])
    return [Where(first + start, first + stop, "template") for start, stop in spans]


# The prompt -----------------------------------------------------------------------------------------------------


def split_prompt(
    sample: Sample, template: Template | None, tokens: Sequence[str]
) -> tuple[list[Said], Template | None]:
    """Its messages, and the template that its text stands in. `template` is that of its `tokens`.

    Recorded text and tokens may differ in what the tokenizer adds: messages are where those of the tokens are, if these
    end with the same roles.
    """
    said, own = read_prompt(sample.prompt or joined(tokens))
    sections = [] if template is None else template.split(joined(tokens))
    if said and [one.role for one in sections[-len(said) :]] == [one.dumped.get("role") for one in said]:
        places: Sequence[Where | None] = places_of(sections, tokens, 0)[-len(said) :]
    else:
        whole = Where(0, sample.prompt_length, "prompt" if len(said) > 1 else "mask")
        places = [whole if sample.prompt_length else None] * len(said)
    return [replace(one, where=where) for one, where in zip(said, places, strict=True)], own


def read_prompt(prompt: object) -> tuple[list[Said], Template | None]:
    """Of a list each message, of a text those of its template, else all of it as one."""
    if isinstance(prompt, (list, tuple)):
        return [Said(one, None) for one in as_messages(prompt)], None
    template = find_template(prompt) if isinstance(prompt, str) else None
    if template is None:
        return [Said({"role": "prompt", "content": prompt}, None)] if prompt else [], None
    return said_in(template.split(str(prompt))), template


# The response ---------------------------------------------------------------------------------------------------


def split_by_template(
    sample: Sample, turns: Sequence[Turn], templates: Sequence[Template], tokens: Sequence[str]
) -> tuple[list[Said], Template | None]:
    """The turns of a response that has several in one of the templates; of its tokens, else of its recorded text."""
    sections, found = first_split(joined(tokens), templates)
    if found is not None:
        places: Sequence[Where | None] = places_of(sections, tokens, sample.prompt_length)
    else:
        sections, found = first_split(sample.response, templates)
        places = locate([one.dumped for one in said_in(sections)], 0, turns, None, sample.prompt_length)
    return [replace(one, where=where) for one, where in zip(said_in(sections), places, strict=True)], found


def first_split(text: str, templates: Sequence[Template]) -> tuple[list[Section], Template | None]:
    splits = ((template.split(text, goes_on=True), template) for template in templates)
    return next((split for split in splits if len(split[0]) > 1), ([], None))


def split_by_mask(sample: Sample, turns: Sequence[Turn], texts: Sequence[str] | None) -> tuple[list[Said], str | None]:
    """A message a turn, where the texts are known, and what is said of that."""
    if not sample.response_length:
        return [Said({"role": "assistant", "content": sample.response}, None)] * bool(sample.response), None
    if len(turns) > 1 and texts is not None:
        return [turn_message(turn, texts) for turn in turns], "the response is split where its loss mask changes"
    text = sample.response or joined(() if texts is None else texts[sample.prompt_length :])
    where = Where(sample.prompt_length, sample.total_length, "mask")
    how = f"its {len(turns)} turns can't be separated without a tokenizer" if len(turns) > 1 else None
    return [Said({"role": "assistant", "content": text}, where)], how


def turn_message(turn: Turn, texts: Sequence[str]) -> Said:
    content = {"role": "assistant" if turn.trained else MASKED, "content": joined(texts[turn.start : turn.stop])}
    return Said(content, Where(turn.start, turn.stop, "mask"))

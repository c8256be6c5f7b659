"""All dumped fields of a sample, as blocks of lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from dumptui.core.files.step_files import StepKey
from dumptui.core.formats.sample import Sample
from dumptui.core.sample.facts import Fact, Section, sample_facts
from dumptui.core.step.step import Step
from dumptui.core.telemetry.lifecycle import Lifecycle
from dumptui.core.text import cell_width, visible
from dumptui.tui.cell_formats.wrapping import Lines
from dumptui.tui.presentation.timeline import Lane
from dumptui.tui.widgets.blocks.block import Block, Passage
from dumptui.tui.widgets.message import Answer

NAME_CELLS = 26
"""The most cells for the names before values of one line; a longer one pushes its value to the right."""
SHORT_CHARACTERS = 200
"""Characters up to which a value is shown in the line of its name."""


class Facts(Answer):
    """A sample, the sections of what is dumped of it, and a block for each of them."""

    key: StepKey
    sample: Sample
    sections: Sequence[Section]
    blocks: Sequence[Block]


def read_facts(step: Step, position: int, life: Lifecycle | None) -> Facts:
    """For the reader thread: values may be large, and some are still in their files."""
    sample = step.samples[position]
    sections = sample_facts(step, sample, life)
    return Facts(step.files.key, sample, sections, [block_of(section) for section in sections])


def block_of(section: Section) -> Block:
    aside = "" if section.brief else f"{len(section.facts)} value{'s' * (len(section.facts) != 1)}"
    lane = [] if section.lane is None else [Passage("plain", "", Lane(section.lane))]
    shown = [*lane, *passages(section.facts)]
    return Block("first", visible(section.title), aside, shown, folded=not section.brief)


def passages(facts: Sequence[Fact]) -> Iterator[Passage]:
    """Values of one line under each other, so long as no longer one comes between; that stands under its name."""
    width = min(NAME_CELLS, max(cell_width(visible(fact.name)) for fact in facts))
    for short, some in groupby(facts, is_short):
        if short:
            yield Passage("plain", "", Lines([line_of(fact, width) for fact in some]))
        else:
            yield from (Passage("plain", visible(fact.name), Lines.of(fact.value)) for fact in some)


def is_short(fact: Fact) -> bool:
    return "\n" not in fact.value and len(fact.value) <= SHORT_CHARACTERS


def line_of(fact: Fact, width: int) -> str:
    name = visible(fact.name)
    return f"{name}{' ' * max(0, width - cell_width(name))}  {visible(fact.value)}"


def section_text(section: Section) -> str:
    return "\n".join([section.title, *(f"  {fact.name}: {fact.value}" for fact in section.facts), ""])

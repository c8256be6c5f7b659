"""Everything that is dumped of a sample, over the screen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.message import Message

from dumptui.core.formats.sample import Sample
from dumptui.core.run.run import StepKey
from dumptui.core.sample.facts import Fact, Section, rows, sample_facts
from dumptui.core.step.step import Step
from dumptui.core.telemetry.lifecycle import Lifecycle
from dumptui.core.text import cell_width, sample_label, visible
from dumptui.tui.app.sheet_actions import SHEET_KEYS, SheetActions
from dumptui.tui.cell_formats.wrapping import Lines
from dumptui.tui.presentation.sheets import Sheet
from dumptui.tui.presentation.timeline import Lane
from dumptui.tui.widgets.blocks.block import Block, Passage
from dumptui.tui.widgets.blocks.blocks import Blocks
from dumptui.tui.widgets.dialogs.choices import Dialog
from dumptui.tui.widgets.key_bar import KeyLine
from dumptui.tui.widgets.line import Line

NAME_CELLS = 26
"""The most cells for the names before values of one line; a longer one pushes its value to the right."""
SHORT_CHARACTERS = 200
"""Characters of a value that still stands in the line of its name."""


@dataclass
class Facts(Message):
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


class FactsScreen(Dialog[None]):
    """One section under the other; those that are long are folded."""

    BINDING_GROUP_TITLE = "details"
    HELP = """\
# Details

All dumped fields of the sample. The **lifecycle** is drawn as a lane over time, each turn numbered where its generation
starts, and listed below the lane in seconds since the start.

- **up** and **down** move between the sections; **space** unfolds one, **z** all; **/** searches, **;** and **,** go to
  the next and the previous match.
- **n** and **p** show the details of the next and previous sample, **N** and **P** stay within its group.
- **y** copies the section, one of its values, or all sections; **e** writes all of them to a file; **:** shows the
  command line that prints them.
- **i** or **escape** goes back.
"""
    BINDINGS = [
        Binding("q,i,escape", "dismiss(None)", "Close", id="facts.leave"),
        Binding("n", "app.sample(1)", "Next", id="app.next-sample"),
        Binding("p", "app.sample(-1)", "Previous", id="app.previous-sample"),
        Binding("N", "app.member(1)", "Next in group", show=False, id="app.next-member"),
        Binding("P", "app.member(-1)", "Previous in group", show=False, id="app.previous-member"),
        *SHEET_KEYS,
        Binding("question_mark", "app.help", "Keys", key_display="?", id="app.help"),
    ]

    def __init__(self, facts: Facts) -> None:
        super().__init__()
        self.facts = facts

    def compose(self) -> ComposeResult:
        with Vertical(id="facts"):
            yield Line(id="facts-title")
            yield Blocks(id="fact-list", empty="no fields are dumped for this sample")
            yield KeyLine()

    def on_mount(self) -> None:
        self.show(self.facts)
        self.query_one(Blocks).focus()

    def show(self, facts: Facts) -> None:
        """Those of a sample, from the section on that was the current one."""
        blocks = self.query_one(Blocks)
        before = self.facts.blocks[blocks.current].title if self.facts.blocks else ""
        self.facts = facts
        name = sample_label(facts.sample.index, facts.sample.occurrence)
        self.query_one("#facts-title", Line).say(Text(f"sample {name}: all dumped fields", "bold"))
        blocks.show(facts.blocks, next((at for at, one in enumerate(facts.blocks) if one.title == before), 0))

    def sheet(self) -> Sheet | None:
        """The facts as `--print facts` has them; the row is the current section."""
        key, sample, sections = self.facts.key, self.facts.sample, self.facts.sections
        if not sections:
            return None
        found = rows(sections)
        place = {**key._asdict(), "sample_index": sample.index, "occurrence": sample.occurrence}
        section = sections[self.query_one(Blocks).current]
        return Sheet(
            "facts",
            key,
            {fact.name: fact.value for fact in section.facts},
            lambda: found,
            lambda: {**place, "rows": found},
            sample,
            row_name="the section",
            texts=(("all sections", "\n".join(map(section_text, sections))),),
        )

    def action_copy(self) -> None:
        self.desk.action_copy()

    def action_export(self) -> None:
        self.desk.action_export()

    def action_command(self) -> None:
        self.desk.action_command()

    @property
    def desk(self) -> SheetActions:
        return self.app.screen_stack[0].query_one(SheetActions)


def section_text(section: Section) -> str:
    return "\n".join([section.title, *(f"  {fact.name}: {fact.value}" for fact in section.facts), ""])

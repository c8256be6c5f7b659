"""All dumped fields of a sample, over the screen."""

from __future__ import annotations

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical

from dumptui.core.sample.facts import rows
from dumptui.core.text import sample_label
from dumptui.tui.presentation.facts import Facts, section_text
from dumptui.tui.presentation.sheets import SHEET_KEYS, Sheet
from dumptui.tui.widgets.blocks.blocks import Blocks
from dumptui.tui.widgets.dialogs.choices import Dialog
from dumptui.tui.widgets.key_bar import KeyLine
from dumptui.tui.widgets.line import Line


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
        Binding("escape,q,i", "dismiss(None)", "Close", id="facts.leave"),
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

"""The Groups pane: the prompt groups of a step, and the samples of the one under the cursor."""

from __future__ import annotations

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical

from dumptui.core.files.step_files import StepKey
from dumptui.core.tables.columns import SAMPLE_COLUMNS
from dumptui.core.tables.group_members import Group
from dumptui.core.tables.view_columns import GROUP_COLUMNS
from dumptui.core.text import plural, visible
from dumptui.core.types import Record
from dumptui.tui.panes.pane import Pane
from dumptui.tui.panes.requests import SampleChosen, SampleMoved
from dumptui.tui.presentation import columns
from dumptui.tui.presentation.groups import (
    answer_tail,
    facts,
    group_cells,
    group_label,
    group_record,
    group_style,
    label_text,
    title,
)
from dumptui.tui.presentation.sample_rows import (
    prompt_text,
    sample_records,
    sample_style,
)
from dumptui.tui.presentation.sheets import Sheet, SheetSource, table_sheet
from dumptui.tui.presentation.signs import sample_cells
from dumptui.tui.reading.messages import StepLoaded
from dumptui.tui.session.sample_order import Arrangement
from dumptui.tui.widgets.dialogs.choices import ChooseMore
from dumptui.tui.widgets.line import Line
from dumptui.tui.widgets.reward_strip import finite_range
from dumptui.tui.widgets.table.layout import GAP_CELLS, GUTTER_CELLS
from dumptui.tui.widgets.table.table import Table

BEFORE_TAIL = next(at for at, field in enumerate(columns.MEMBERS) if field.key == "tail")
MIN_TAIL_CELLS = 12


class GroupsPane(Horizontal, Pane):
    """Groups on the left, the samples of one on the right."""

    HELP = """\
# Groups

The prompt groups of the step, each with the rewards of its samples from best to worst, and the samples of the group
under the cursor with their labels and the ends of their responses.

- **enter** goes from a group to its samples, from a sample to its tokens; **escape** goes back.
- **b**, **w** and **x** open the tokens of the group's best, worst and median sample (the better of two medians).
- **U** lists the prompts of the run by how often they were solved over the steps, **E** the tool calls of the step.
- **d** shows the sample beside another one: the group's best, worst, or any other sample.
- **s** sorts by a column (**space** adds it as a secondary key); **S** reverses the order. A click on a column's label
  sorts by it, a second click reverses.

Binary rewards (only 0 and 1, or only -1 and 1, in the whole step) are shown as `+` and `-`; a reward above 0 is a
success, `?` is a sample without a reward. Other rewards are shown as values, or as bars over the range of the step.
**zero-std**: all rewards are equal, so no sample has an advantage; of binary rewards, **all correct** and **all wrong**
say which one; **single**: only one reward, so there is nothing to
compare; **unknown**: no reward. pass@k is the unbiased estimate 1 - C(n-c, k) / C(n, k) of Chen et al. 2021, for n
attempts with a reward, c of them successes; in the table k is n. The samples of one execution are one attempt, with
their mean reward. `~` means that samples without a reward are not counted. A sample without train data counts with its
own reward, if the trainer's raw rewards equal the samples'.
"""
    TABLES = {"group-rows": GROUP_COLUMNS, "members": SAMPLE_COLUMNS}
    BINDINGS = [
        Binding("s", "sort", "Sort", id="groups.sort"),
        Binding("S", "reverse", "Reverse", show=False, id="groups.reverse"),
        Binding("b", "open('best')", "Best", id="groups.best"),
        Binding("w", "open('worst')", "Worst", id="groups.worst"),
        Binding("x,m", "open('median')", "Median", id="groups.median"),
    ]

    def __init__(self) -> None:
        super().__init__(id="groups")
        self.groups: list[Group] = []
        self.samples: list[Record] = []
        self.order: list[int] = []
        self._records: list[Record] = []
        self._loaded: StepLoaded | None = None
        self._unseen = self._again = False
        self._arrangement = Arrangement()

    def compose(self) -> ComposeResult:
        with Vertical(id="groups-side"):
            yield Line(id="groups-title")
            yield Table(id="group-rows", empty="reading the step")
            yield Line(id="group-facts")
        with Vertical(id="members-side"):
            yield Line(id="members-title")
            yield Table(id="members", empty="")

    def on_mount(self) -> None:
        self.table = self.query_one("#group-rows", Table)
        self.members = self.query_one("#members", Table)

    # The step --------------------------------------------------------------------------------------------------

    def show_step(self, loaded: StepLoaded, arrangement: Arrangement, *, again: bool) -> None:
        self._loaded, self.groups = loaded, loaded.ranked
        self._unseen, self._again = True, again
        if self.display:
            self._look()

    def _look(self) -> None:
        """Make the tables once somebody looks: it would keep other panes waiting, 20 ms of a step of 512 groups."""
        loaded = self._loaded
        if loaded is None or not self._unseen:
            return
        self._unseen = False
        self.samples = sample_records(loaded.step, loaded.samples)
        ends = finite_range([reward for group in self.groups for reward in group.rewards])
        self._records = [group_record(group, ends) for group in self.groups]
        self.query_one("#groups-title", Line).say(title(loaded.step, self.groups, loaded.samples))
        self.table.empty = "the step has no samples"
        self._show_groups(keep_cursor=self._again)

    def begin_step(self, reason: str) -> None:
        self._loaded, self.groups, self.samples, self.order = None, [], [], []
        self.table.empty = visible(reason)
        for table in (self.table, self.members):
            table.show([], 0, lambda at: [])
        for line in self.query(Line):
            line.say("")

    def fail_step(self, key: StepKey, problem: str) -> None:
        self.begin_step(problem)

    def _show_groups(self, *, keep_cursor: bool) -> None:
        self.order = columns.order(self._records, self._arrangement.sort)
        self.table.show(
            [field.column for field in self._fields()],
            len(self.order),
            lambda at: group_cells(self._fields(), self._records[self.order[at]]),
            style=lambda at: group_style(self.groups[self.order[at]]),
            sort=self._arrangement.sort,
            keep_cursor=keep_cursor,
        )
        self._show_members()

    def _fields(self) -> list[columns.Field]:
        evaluation = self._loaded is not None and self._loaded.key.evaluation
        return [field for field in columns.GROUPS if evaluation or field.key != "dataset"]

    # The group under the cursor --------------------------------------------------------------------------------

    @property
    def group(self) -> Group | None:
        return self.groups[self.order[self.table.cursor]] if self.order else None

    @property
    def current(self) -> int | None:
        """The position of the sample under the cursor."""
        return None if self.group is None else self.group.members[self.members.cursor]

    def _show_members(self, *, keep_cursor: bool = False) -> None:
        group = self.group
        if group is None or self._loaded is None:
            return
        width = self._tail_cells()
        samples = self._loaded.step.samples

        def cells(at: int) -> list[str]:
            position = group.members[at]
            sample = samples[position]
            words = {"expected": label_text(sample.label), "tail": answer_tail(sample.response, width)}
            return sample_cells(columns.MEMBERS, {**self.samples[position], **words})

        self.members.show(
            [f.column._replace(width=width) if f.key == "tail" else f.column for f in columns.MEMBERS],
            len(group.members),
            cells,
            style=lambda at: sample_style(self.samples[group.members[at]]),
            keep_cursor=keep_cursor,
        )
        prompt = prompt_text(self._loaded.step.samples[group.members[0]].prompt)
        self.query_one("#group-facts", Line).say(facts(group, prompt))
        named = Text().append(f"group {group_label(group.row)}", "bold")
        self.query_one("#members-title", Line).say(
            named.append(f" · {plural(len(group.members), 'sample')}, best first")
        )

    def _tail_cells(self) -> int:
        """Return the cells that the columns before the tail leave, but one for the mark of more columns."""
        taken = sum(field.width + GAP_CELLS for field in columns.MEMBERS[:BEFORE_TAIL])
        return max(MIN_TAIL_CELLS, self.members.scrollable_content_region.width - GUTTER_CELLS - taken - 1)

    def on_resize(self) -> None:
        self._fit_tails()

    def _fit_tails(self) -> None:
        self.call_after_refresh(self._show_members, keep_cursor=True)

    @on(Table.Highlighted, "#group-rows")
    def _group_moved(self) -> None:
        with self.prevent(Table.Highlighted):
            self._show_members()
        self._tell()

    @on(Table.Highlighted, "#members")
    def _member_moved(self) -> None:
        self._tell()

    def _tell(self) -> None:
        """The other panes follow, unless it is they who led here."""
        if self.current is not None and (self.table.has_focus or self.members.has_focus):
            self.post_message(SampleMoved(self.current))

    @on(Table.Selected, "#group-rows")
    def _into_members(self) -> None:
        self.add_class("-members")
        self._fit_tails()
        self.members.focus()

    @on(Table.Selected, "#members")
    def _member_chosen(self) -> None:
        if self.current is not None:
            self.post_message(SampleChosen(self.current))

    def group_of(self, position: int) -> Group | None:
        return next((group for group in self.groups if position in group.members), None)

    def select_sample(self, position: int | None) -> None:
        if not self.display:
            return
        self._look()
        for at, number in enumerate(self.order):
            group = self.groups[number]
            if position in group.members:
                with self.prevent(Table.Highlighted):
                    if self.table.cursor != at:
                        self.table.cursor = at
                        self._show_members()
                    self.members.cursor = group.members.index(position)

    def sheet(self, source: SheetSource) -> Sheet | None:
        if self._loaded is None or self.group is None:
            return None
        if self.members.has_focus:
            rows = [self._loaded.samples[at] for at in self.group.members]
            return table_sheet("samples", self._loaded.key, rows, self.members.cursor)
        return table_sheet("groups", self._loaded.key, [self.groups[at].row for at in self.order], self.table.cursor)

    # Keys ------------------------------------------------------------------------------------------------------

    def on_descendant_focus(self) -> None:
        if self.members.has_focus != self.has_class("-members"):
            self.set_class(self.members.has_focus, "-members")
            self._fit_tails()

    def enter(self) -> None:
        self._look()
        (self.members if self.has_class("-members") else self.table).focus()

    def leave_level(self) -> bool:
        inside = self.has_class("-members")
        self.remove_class("-members")
        self._fit_tails()
        self.table.focus()
        return inside

    def action_open(self, which: str) -> None:
        position = getattr(self.group, which) if self.group is not None else None
        if position is None:
            return self.notify("no sample of the group has a reward", markup=False)
        self.post_message(SampleChosen(position))

    @on(Table.HeaderClicked, "#group-rows")
    def _header_clicked(self, event: Table.HeaderClicked) -> None:
        self._sort_by(event.key, event.more)

    def _sort_by(self, key: str | None, more: bool) -> None:
        if key is not None:
            before = self._arrangement
            self._arrange(before.then_by(key) if more else before.sorted_by(key))

    def _arrange(self, arrangement: Arrangement) -> None:
        self._arrangement = arrangement
        if self._loaded is not None:
            self._show_groups(keep_cursor=False)

    def action_sort(self) -> None:
        choices = [(field.key, f"{field.label:<8}  {field.tip}") for field in self._fields() if field.key != "strip"]
        sort = self._arrangement.sort
        title = "sort the groups by" + " (space: add as secondary key)" * bool(sort)
        dialog = ChooseMore(title, choices, sort[0][0] if sort else None)
        self.app.push_screen(dialog, lambda key: self._sort_by(key, dialog.more))

    def action_reverse(self) -> None:
        self._arrange(self._arrangement.reversed())

"""The Tools pane: the tool calls of a step by tool, and the lifecycles of its samples on one time axis."""

from __future__ import annotations

from functools import partial

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical

from dumptui.core.files.step_files import StepKey
from dumptui.core.tables.view_columns import TIMELINE_COLUMNS, TOOL_COLUMNS
from dumptui.core.text import visible
from dumptui.core.types import Record
from dumptui.tui.panes.pane import Pane
from dumptui.tui.panes.requests import ReadWanted, SampleChosen, SampleMoved
from dumptui.tui.presentation import columns
from dumptui.tui.presentation.sheets import Sheet, SheetSource, table_sheet
from dumptui.tui.presentation.tools import (
    axis,
    is_in_scope,
    lane_text,
    scope_words,
    timeline_record,
    timeline_title,
    tool_cells,
    tools_title,
)
from dumptui.tui.reading.messages import StepLoaded, ToolsRead
from dumptui.tui.reading.reader import Reader
from dumptui.tui.session.sample_order import Arrangement
from dumptui.tui.widgets.line import Line
from dumptui.tui.widgets.message import Answer
from dumptui.tui.widgets.table.layout import GAP_CELLS, GUTTER_CELLS
from dumptui.tui.widgets.table.table import Table

BEFORE_LANE = next(at for at, field in enumerate(columns.TIMELINE) if field.key == "lane")


class ToolsPane(Vertical, Pane):
    """Tools above, samples below."""

    HELP = """\
# Tools

Whether the tools or the model make rewards low: the tool calls of the step by tool, and the lifecycle of every sample.

- **failed** counts calls whose result is an error: its text begins with a traceback, an error or a timeout, or it has
  an entry that says so (`error`, `is_error`, `exit_code` other than 0, `success` false, `status` "error").
- **if failed** is the mean reward of the samples in which a call of the tool failed, **if ok** of those in which every
  call of it has a result without an error. If both are low, the tool is not the reason.
- The last rows are all samples that called any tool, those that called none, and those whose messages are not recorded.
- **s/call** is the mean time of a call by the recorded spans; a turn in which several tools were called counts only for
  all tools together. **timed** is the number of calls that it covers.
- Below are the samples, those that ended last first, with generation, tools and waiting on one time axis.
- **enter** on a tool lists only its samples, **enter** on a sample opens its tokens, **escape** goes back.
"""

    TABLES = {"tool-rows": TOOL_COLUMNS, "timeline": TIMELINE_COLUMNS}

    def __init__(self) -> None:
        super().__init__(id="tools")
        self._loaded: StepLoaded | None = None
        self._asked: StepLoaded | None = None
        self._read: ToolsRead | None = None
        self._scope: Record | None = None
        self.samples: list[Record] = []

    def compose(self) -> ComposeResult:
        yield Line(id="tools-title")
        yield Table(id="tool-rows", empty="reading the step")
        yield Line(id="timeline-title")
        yield Table(id="timeline", empty="reading the step")

    def on_mount(self) -> None:
        self.tools = self.query_one("#tool-rows", Table)
        self.timeline = self.query_one("#timeline", Table)

    # The step --------------------------------------------------------------------------------------------------

    def show_step(self, loaded: StepLoaded, arrangement: Arrangement, *, again: bool) -> None:
        self._loaded = loaded
        if not again:
            self._clear("reading the tool calls")
        if self.display:
            self._want()

    def begin_step(self, reason: str) -> None:
        self._loaded = None
        self._clear(reason)

    def fail_step(self, key: StepKey, problem: str) -> None:
        self.begin_step(problem)

    def _clear(self, reason: str) -> None:
        self._read = self._scope = None
        self.samples = []
        for table in (self.tools, self.timeline):
            table.empty = visible(reason)
            table.show([], 0, lambda at: [])
        for line in self.query(Line):
            line.say("")

    def _want(self) -> None:
        """Messages and events are read once somebody looks."""
        if self._loaded is not None and self._loaded is not self._asked:
            self._asked = self._loaded
            self.post_message(ReadWanted(partial(Reader.read_tools, loaded=self._loaded)))

    def take(self, answer: Answer) -> None:
        if isinstance(answer, ToolsRead) and self._loaded is not None and answer.step is self._loaded.step:
            self._read = answer
            self._show_tools(self._loaded.key, answer)
            self._show_samples()

    def _show_tools(self, key: StepKey, read: ToolsRead) -> None:
        self.query_one("#tools-title", Line).say(tools_title(key, read.tools))
        self.tools.empty = "the step has no samples"
        self.tools.show(
            [field.column for field in columns.TOOLS],
            len(read.tools),
            lambda at: tool_cells(read.tools[at]),
            style=lambda at: "warn" if read.tools[at]["failed"] else None,
        )

    def _show_samples(self) -> None:
        read, scope = self._read, self._scope
        if read is None:
            return
        self.samples = [row for row in read.samples if scope is None or is_in_scope(row, scope)]
        words = "" if scope is None else scope_words(scope)
        self.query_one("#timeline-title", Line).say(timeline_title(self.samples, read.lives, words))
        self.timeline.empty = "the step has no samples"
        self._draw(read)

    def _draw(self, read: ToolsRead) -> None:
        width = self._lane_cells()
        ends = axis(read.lives.values()) if read.lives else (0.0, 0.0)
        fields = [field for field in columns.TIMELINE if field.key != "lane" or read.lives]
        shown = [field.column._replace(width=width) if field.key == "lane" else field.column for field in fields]

        def cells(at: int) -> list[str]:
            row = self.samples[at]
            lane = lane_text(read.lives.get(int(str(row["position"]))), width, ends)
            return columns.cells(fields, {**timeline_record(row), "lane": lane})

        self.timeline.show(
            shown,
            len(self.samples),
            cells,
            style=lambda at: "warn" if self.samples[at]["failed"] else None,
        )

    def _lane_cells(self) -> int:
        """Return the cells that the columns before the lane leave, but one for the mark of more columns."""
        taken = sum(field.width + GAP_CELLS for field in columns.TIMELINE[:BEFORE_LANE])
        return max(8, self.timeline.scrollable_content_region.width - GUTTER_CELLS - taken - 1)

    def on_resize(self) -> None:
        if self._read is not None:
            self.call_after_refresh(self._draw, self._read)

    # Keys ------------------------------------------------------------------------------------------------------

    @on(Table.Selected, "#tool-rows")
    def _tool_chosen(self, event: Table.Selected) -> None:
        if self._read is not None:
            self._scope = self._read.tools[event.row]
            self._show_samples()
            self.timeline.focus()

    @on(Table.Selected, "#timeline")
    def _sample_chosen(self, event: Table.Selected) -> None:
        if self.samples:
            self.post_message(SampleChosen(int(str(self.samples[event.row]["position"]))))

    @on(Table.Highlighted, "#timeline")
    def _sample_moved(self, event: Table.Highlighted) -> None:
        if self.samples and event.table.has_focus:
            self.post_message(SampleMoved(int(str(self.samples[event.row]["position"]))))

    def select_sample(self, position: int | None) -> None:
        at = next((at for at, row in enumerate(self.samples) if row["position"] == position), None)
        if at is not None:
            with self.prevent(Table.Highlighted):
                self.timeline.cursor = at

    def enter(self) -> None:
        self._want()
        (self.timeline if self._scope is not None else self.tools).focus()

    def leave_level(self) -> bool:
        inside = self._scope is not None or self.timeline.has_focus
        self._scope = None
        self._show_samples()
        self.tools.focus()
        return inside

    def sheet(self, source: SheetSource) -> Sheet | None:
        if self._loaded is None or self._read is None:
            return None
        return table_sheet("tools", self._loaded.key, self._read.tools, self.tools.cursor)

"""The Batch pane: the train files of a step, and the per-token columns of each sample that was trained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical

from dumptui.core.fields.registry import field_label
from dumptui.core.files.step_files import StepKey
from dumptui.core.step.distribution import Distribution
from dumptui.core.tables import steps
from dumptui.core.tables.columns import SAMPLE_COLUMNS
from dumptui.core.tables.view_columns import DISTRIBUTION_COLUMNS, TRAIN_FILE_COLUMNS
from dumptui.core.text import visible
from dumptui.core.types import Record
from dumptui.tui.panes.pane import Pane
from dumptui.tui.panes.requests import ReadWanted, ReverseWanted, SampleChosen, SampleMoved, SortWanted
from dumptui.tui.presentation import columns
from dumptui.tui.presentation.columns import Field
from dumptui.tui.presentation.packing import cp_text, left_out_text, micro_text, shards_text, summary
from dumptui.tui.presentation.sample_rows import sample_records, sample_style
from dumptui.tui.presentation.sheets import Sheet, SheetSource, table_sheet
from dumptui.tui.presentation.signs import sample_cells
from dumptui.tui.reading.messages import BatchAnalysed, StepLoaded
from dumptui.tui.reading.reader import Reader
from dumptui.tui.session.sample_order import Arrangement
from dumptui.tui.widgets.line import Line
from dumptui.tui.widgets.message import Answer
from dumptui.tui.widgets.plot.histogram import Bars
from dumptui.tui.widgets.table.table import Table

FIRST_COLUMN = "advantages"  # the column to look at first
PACKING_WIDGETS = ("#packing-shards", "#packing-micro", "#packing-left-out")


class BatchPane(Vertical, Pane):
    """Files, packing and columns, samples below."""

    HELP = """\
# Batch

What the trainer wrote of the step: its files, and the trained samples with their per-token columns.

- A file's **dp** counts data-parallel shards. Files of one shard hold the same samples on other tensor, pipeline and
  context-parallel ranks.
- **tokens** are prompt and response tokens of a shard's samples. Data-parallel ranks wait for the one with the most
  tokens: **max/mean** is how much larger that one is than the mean. With several optimizer steps, the worst step's
  is shown as well.
- **mb** is a sample's micro-batch within its shard, **opt** its optimizer step where there are several; both count
  from 0. `-` means that the dump has no such record.
- **not trained** lists the samples that the trainer did not learn from, with the reason if the dump has it.
- The **columns** table has the statistics of each per-token column over all unmasked tokens of the step. The bars show
  how the column under the cursor is distributed, from its 0.5 to its 99.5 percentile; the outermost bars hold the rest.
- **raw** is the trainer's reward of a sample, **norm** that reward after group normalisation.
- **s** sorts the samples by a column, here and in the Rollout pane (**space** adds it as a secondary key); **S**
  reverses the order. A click on a column's label sorts by it, a second click reverses.
- **v** enlarges the columns table. **enter** on a sample opens its tokens; **tab** switches between the tables;
  **escape** goes back.
"""

    TABLES = {
        "files": TRAIN_FILE_COLUMNS,
        "batch-columns": DISTRIBUTION_COLUMNS,
        "batch-samples": SAMPLE_COLUMNS,
    }
    BINDINGS = [
        Binding("s", "sort", "Sort", id="batch.sort"),
        Binding("S", "reverse", "Reverse", show=False, id="batch.reverse"),
        Binding("v", "columns", "Columns", id="batch.columns", tooltip="Enlarge the per-token columns, and back"),
    ]

    def __init__(self) -> None:
        super().__init__(id="batch")
        self._arrangement = Arrangement()
        self.files: list[Record] = []
        self.trained: list[int] = []
        self.samples: list[Record] = []
        self.columns: list[Distribution] = []
        self._column = FIRST_COLUMN
        self._loaded: StepLoaded | None = None
        self._asked: StepLoaded | None = None

    def compose(self) -> ComposeResult:
        yield Line(id="batch-title")
        yield Table(id="files", empty="reading the step")
        yield Line(id="file-detail")
        for name in PACKING_WIDGETS:
            yield Line(id=name[1:])
        yield Table(id="batch-columns", empty="reading the step")
        yield Bars(id="batch-bars")
        yield Table(id="batch-samples", empty="reading the step")

    def show_step(self, loaded: StepLoaded, arrangement: Arrangement, *, again: bool) -> None:
        """Show the trained samples in the order that the samples of the step have elsewhere."""
        self.files = [
            {
                **row,
                "cp": cp_text(row),
                "status": row["state"] if row["reason"] is None else f"{row['state']}: {row['reason']}",
            }
            for row in steps.batch(loaded.step)
        ]
        self.samples = sample_records(loaded.step, loaded.samples)
        self.query_one("#batch-title", Line).say(summary(loaded.step))
        self._say_empty("no train files in this step", "no sample has train data")
        self.query_one("#files", Table).show(
            [field.column for field in columns.BATCH_FILES],
            len(self.files),
            lambda at: columns.cells(columns.BATCH_FILES, self.files[at]),
            style=lambda at: None if self.files[at]["state"] == "ok" else "bad",
            keep_cursor=again,
        )
        self.sort_samples(arrangement, keep_cursor=again)
        files = self.query_one("#files", Table)
        files.styles.max_height = len(self.files) + 1  # what few files leave is for the samples
        self._show_file(files.cursor)
        self._loaded = loaded
        if not again:
            self._show_columns([], "computing the columns")
            for name in PACKING_WIDGETS:
                self.query_one(name, Line).say("")
        if self.display:
            self._want_packing()

    def sort_samples(self, arrangement: Arrangement, *, keep_cursor: bool = False) -> None:
        self._arrangement = arrangement
        self.trained = arrangement.order(self.samples, {at for at, row in enumerate(self.samples) if row["trained"]})
        shown = sample_fields(self.samples)
        self.query_one("#batch-samples", Table).show(
            [field.column for field in shown],
            len(self.trained),
            lambda at: sample_cells(shown, self.samples[self.trained[at]]),
            style=lambda at: sample_style(self.samples[self.trained[at]]),
            sort=arrangement.sort,
            keep_cursor=keep_cursor,
        )

    # Packing and columns ---------------------------------------------------------------------------------------

    def _want_packing(self) -> None:
        """What takes reading every token of the step is worked out once somebody looks."""
        if self._loaded is not None and self._loaded is not self._asked:
            self._asked = self._loaded
            self.post_message(ReadWanted(partial(Reader.pack, loaded=self._loaded)))

    def take(self, answer: Answer) -> None:
        if isinstance(answer, BatchAnalysed) and self._loaded is not None and answer.step is self._loaded.step:
            self._show_packing(self._loaded.key, answer)

    def _show_packing(self, key: StepKey, packed: BatchAnalysed) -> None:
        if not key.evaluation:
            texts = shards_text(packed.loads), micro_text(packed.loads), left_out_text(packed.left_out, self.samples)
            for name, text in zip(PACKING_WIDGETS, texts, strict=True):
                self.query_one(name, Line).say(text)
        self._show_columns(packed.columns, "the step has no per-token columns")

    def _show_columns(self, found: list[Distribution], empty: str) -> None:
        table = self.query_one("#batch-columns", Table)
        self.columns = found
        table.empty = empty
        table.show(
            [field.column for field in columns.BATCH_COLUMNS],
            len(found),
            lambda at: columns.cells(columns.BATCH_COLUMNS, shown_distribution(self.columns[at])),
            style=lambda at: "warn" if self.columns[at].not_finite else None,
        )
        with self.prevent(Table.Highlighted):
            table.cursor = next((at for at, one in enumerate(found) if one.name == self._column), 0)
        self._show_bars(table.cursor)

    @on(Table.Highlighted, "#batch-columns")
    def _column_moved(self, event: Table.Highlighted) -> None:
        self._column = self.columns[event.row].name if self.columns else self._column
        self._show_bars(event.row)

    def _show_bars(self, at: int) -> None:
        bars = self.query_one(Bars)
        if not self.columns:
            return bars.show((), (0.0, 0.0), "")
        one = self.columns[at]
        name = visible(field_label(one.name))
        label = f"{name}, {one.count:,} tokens" if one.bins else f"{name}: {one.reason or 'no value'}"
        bars.show(one.bins, one.ends, label)

    def action_sort(self) -> None:
        self.post_message(SortWanted([field.key for field in sample_fields(self.samples)]))

    def action_reverse(self) -> None:
        self.post_message(ReverseWanted())

    @on(Table.HeaderClicked, "#batch-samples")
    def _header_clicked(self, event: Table.HeaderClicked) -> None:
        self.post_message(SortWanted([], event.key, event.more))

    def action_columns(self) -> None:
        self.toggle_class("-columns")
        self.query_one("#batch-columns" if self.has_class("-columns") else "#files", Table).focus()

    def arrange_samples(self, arrangement: Arrangement) -> None:
        self.sort_samples(arrangement)

    def fail_step(self, key: StepKey, problem: str) -> None:
        self.files, self.samples, self.trained, self._loaded, self.columns = [], [], [], None, []
        self._say_empty(problem, "")
        self.query_one("#files", Table).styles.max_height = None
        for line in self.query(Line):
            line.say("")
        for table in self.query(Table):
            table.show([], 0, lambda at: [])
        self._show_columns([], "")

    def _say_empty(self, files: str, samples: str) -> None:
        self.query_one("#files", Table).empty = files
        self.query_one("#batch-samples", Table).empty = samples

    def select_sample(self, position: int | None) -> None:
        """A sample that was not trained has no row here."""
        if position in self.trained:
            self.query_one("#batch-samples", Table).cursor = self.trained.index(position)

    @on(Table.Highlighted, "#files")
    def _file_moved(self, event: Table.Highlighted) -> None:
        self._show_file(event.row)

    def _show_file(self, at: int) -> None:
        text = Text()
        if self.files:
            row = self.files[at]
            held = visible(columns.listed(row["fields"])) or "no per-token columns"
            text.append(f"{row['file']} ", "bold").append(held)
            if row["reason"]:
                text.append(f" · {visible(str(row['reason']))}", "bold")
        self.query_one("#file-detail", Line).say(text)

    def sheet(self, source: SheetSource) -> Sheet | None:
        if self._loaded is None:
            return None
        files, samples = self.query_one("#files", Table), self.query_one("#batch-samples", Table)
        if samples.has_focus:
            rows = [self._loaded.samples[at] for at in self.trained]
            return table_sheet("samples", self._loaded.key, rows, samples.cursor)
        return table_sheet("batch", self._loaded.key, steps.batch(self._loaded.step), files.cursor)

    @on(Table.Selected, "#batch-samples")
    def _sample_selected(self, event: Table.Selected) -> None:
        if self.trained:
            self.post_message(SampleChosen(self.trained[event.row]))

    @on(Table.Highlighted, "#batch-samples")
    def _sample_moved(self, event: Table.Highlighted) -> None:
        if self.trained and event.table.has_focus:
            self.post_message(SampleMoved(self.trained[event.row]))

    def enter(self) -> None:
        self.query_one("#batch-columns" if self.has_class("-columns") else "#files", Table).focus()
        self._want_packing()


def sample_fields(rows: Sequence[Record]) -> list[Field]:
    """The columns of the samples, but for those that say nothing here: of one optimizer step, or of no value."""
    hidden = {"optimizer_step"} if len({row["optimizer_step"] for row in rows} - {None}) < 2 else set()
    hidden |= {"ref_entropy_mean"} if all(row["ref_entropy_mean"] is None for row in rows) else set()
    return [field for field in columns.BATCH_SAMPLES if field.key not in hidden]


def shown_distribution(found: Distribution) -> Record:
    """Return the row of a per-token column by its name on screen."""
    return {**asdict(found), "name": field_label(found.name)}

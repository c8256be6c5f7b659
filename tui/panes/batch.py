"""The Batch pane: the train files of a step, and the per-token columns of each sample that was trained."""

from __future__ import annotations

from dataclasses import dataclass

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message

from dumptui.core import tables
from dumptui.core.join import Step
from dumptui.core.tables import Record
from dumptui.core.text import visible
from dumptui.tui import columns
from dumptui.tui.panes.samples import SampleChosen, count, sample_records, sample_style
from dumptui.tui.reader import Loaded
from dumptui.tui.sheets import Sheet, table_sheet
from dumptui.tui.widgets.line import Line
from dumptui.tui.widgets.table import Table


class BatchPane(Vertical):
    """Files above, samples below."""

    HELP = """\
# Batch

What the trainer wrote of the step: its files, and the trained samples with their per-token columns.

- A file's **dp** counts data-parallel shards. Files of one shard hold the same samples on other tensor, pipeline and
  context-parallel ranks.
- **enter** on a sample opens its tokens; **tab** goes between the two tables; **escape** goes back.
"""

    @dataclass
    class SampleMoved(Message):
        """The cursor went to another sample."""

        position: int

    def __init__(self) -> None:
        super().__init__(id="batch")
        self.files: list[Record] = []
        self.trained: list[int] = []
        self.samples: list[Record] = []
        self._loaded: Loaded | None = None

    def compose(self) -> ComposeResult:
        yield Line(id="batch-title")
        yield Table(id="files", empty="reading the step")
        yield Line(id="file-detail")
        yield Table(id="batch-samples", empty="reading the step")

    def show_step(self, loaded: Loaded, *, again: bool = False) -> None:
        self.files = [
            {
                **row,
                "cp": cp_text(row),
                "status": row["state"] if row["reason"] is None else f"{row['state']}: {row['reason']}",
            }
            for row in tables.batch(loaded.step)
        ]
        self._loaded = loaded
        self.samples = sample_records(loaded)
        self.trained = [at for at, row in enumerate(self.samples) if row["trained"]]
        self.query_one("#batch-title", Line).say(summary(loaded.step))
        self._say_empty("no train files in this step", "no sample has train data")
        self.query_one("#files", Table).show(
            [field.column for field in columns.BATCH_FILES],
            len(self.files),
            lambda at: columns.cells(columns.BATCH_FILES, self.files[at]),
            style=lambda at: None if self.files[at]["state"] == "ok" else "bad",
            keep_cursor=again,
        )
        self.query_one("#batch-samples", Table).show(
            [field.column for field in columns.BATCH_SAMPLES],
            len(self.trained),
            lambda at: columns.cells(columns.BATCH_SAMPLES, self.samples[self.trained[at]]),
            style=lambda at: sample_style(self.samples[self.trained[at]]),
            keep_cursor=again,
        )
        self._show_file(self.query_one("#files", Table).cursor)

    def clear(self, reason: str) -> None:
        """Nothing is known of the step."""
        self.files, self.samples, self.trained, self._loaded = [], [], [], None
        self._say_empty(reason, "")
        for table in self.query(Table):
            table.show([], 0, lambda at: [])
        self.query_one("#batch-title", Line).say("")
        self._show_file(0)

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

    def sheet(self) -> Sheet | None:
        if self._loaded is None:
            return None
        files, samples = self.query_one("#files", Table), self.query_one("#batch-samples", Table)
        if samples.has_focus:
            rows = [self._loaded.samples[at] for at in self.trained]
            return table_sheet("samples", self._loaded.key, rows, samples.cursor)
        return table_sheet("batch", self._loaded.key, tables.batch(self._loaded.step), files.cursor)

    @on(Table.Selected, "#batch-samples")
    def _sample_selected(self, event: Table.Selected) -> None:
        if self.trained:
            self.post_message(SampleChosen(self.trained[event.row]))

    @on(Table.Highlighted, "#batch-samples")
    def _sample_moved(self, event: Table.Highlighted) -> None:
        if self.trained and event.table.has_focus:
            self.post_message(self.SampleMoved(self.trained[event.row]))

    def enter(self) -> None:
        self.query_one("#files", Table).focus()


def cp_text(row: Record) -> str:
    return "-" if row["cp_size"] is None else f"{row['cp_rank']} of {row['cp_size']}"


def summary(step: Step) -> Text:
    """What was trained, from how many files, under which layout."""
    text = Text().append(str(step.files.key), "bold")
    if step.files.key.evaluation:
        return text.append(" · an eval is not trained on")
    text.append(
        f" · trained on {step.trained} of {len(step.samples)} samples · {count(len(step.files.shards), 'file')}"
    )
    if step.peers:
        sizes = sorted({peers.cp_size for peers in step.peers})
        formats = sorted({shard.qkv_format or "format not recorded" for shard in step.shards})
        known = "layout inferred" if any(peers.inferred for peers in step.peers) else "layout recorded"
        text.append(
            f": dp {len(step.peers)} x cp {'/'.join(map(str, sizes))} ({known}) · {', '.join(map(visible, formats))}"
        )
    if reason := tables.train_reason(step):
        text.append(f" · {visible(reason)}", "bold")
    if step.orphans:
        text.append(f" · {len(step.orphans)} train rows match no sample: {visible(step.orphans[0])}", "bold")
    return text

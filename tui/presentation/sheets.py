"""What stands on screen as plain values: for the clipboard, for a file, for the command line that prints it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from dumptui.tui.widgets.table.table import Table

if TYPE_CHECKING:
    from dumptui.core.formats.sample import Sample
    from dumptui.core.run.run import StepKey
    from dumptui.core.sample.conversation import Conversation
    from dumptui.core.sample.view import SampleView
    from dumptui.core.types import Record
    from dumptui.tui.app.app import DumpTui


@dataclass(frozen=True)
class Sheet:
    """Rows in the order on screen, each with every column there is of it.

    `view` is the one of `--print` that prints them, with these `options`; `row` the one under the cursor. `rows` and
    `document` take long for a long sample, and may read: they are for the reader thread.
    """

    view: str
    key: StepKey | None
    row: Record | None
    rows: Callable[[], Sequence[Record]]
    document: Callable[[], Mapping[str, object]]
    sample: Sample | None = None
    options: tuple[str, ...] = ()
    row_name: str = "the row"
    texts: tuple[tuple[str, str], ...] = ()  # what else can be copied, each with its name
    suffix: str = ""  # of the name of a file, behind the view

    @property
    def name(self) -> str:
        """Of a file that holds it."""
        at = [] if self.key is None else [str(self.key).replace(" ", "-")]
        index = [] if self.sample is None else [f"sample-{'x' if self.sample.index is None else self.sample.index}"]
        what = [] if index and self.view == "tokens" else [self.view]
        return "-".join(["dumptui", *at, *index, *what, *filter(None, [self.suffix])])


@runtime_checkable
class Sheeted(Protocol):
    """A pane, or a screen over them, that gives its rows as they are in core."""

    def sheet(self) -> Sheet | None: ...


def table_sheet(view: str, key: StepKey | None, rows: Sequence[Record], at: int, where: str = "") -> Sheet:
    def document() -> Mapping[str, object]:
        return {**(key._asdict() if key is not None else {}), "rows": list(rows)}

    row, options = rows[at] if at < len(rows) else None, ("--where", where) if where else ()
    return Sheet(view, key, row, lambda: rows, document, options=options)


def sheet_of(app: DumpTui) -> Sheet | None:
    """What the screen or the pane on it shows; where neither tells, the cells of the table that has the focus."""
    if isinstance(app.screen, Sheeted):
        return app.screen.sheet()
    if app.pane == "tokens":
        return sample_sheet(app)
    if app.pane == "conversation":
        return conversation_sheet(app)
    pane = app.panes[app.pane]
    if isinstance(pane, Sheeted):
        return pane.sheet()
    table = app.focused
    if not isinstance(table, Table):
        return None
    rows: list[Record] = [dict(table.texts(at)) for at in range(table.row_count)]
    return table_sheet(app.pane, None if app.loaded is None else app.loaded.key, rows, table.cursor)


def sample_sheet(app: DumpTui) -> Sheet | None:
    """The sample of the Tokens pane, as `--print tokens` has it."""
    from dumptui.core.tables import tokens

    loaded, opened = app.loaded, app.tokens.opened
    if loaded is None or opened is None:
        return None

    def document() -> Mapping[str, object]:
        return next(tokens.tokens(loaded.step, app.reader.words(), [opened.view.sample]))

    return Sheet(
        "tokens",
        opened.key,
        position_row(opened.view, app.tokens.token),
        lambda: list(tokens.position_rows(dict(document()))),
        document,
        opened.view.sample,
    )


def conversation_sheet(app: DumpTui) -> Sheet | None:
    """The messages of the sample, as `--print conversation` has them."""
    from dumptui.core.sample import conversation

    loaded, position = app.loaded, app.rollout.current
    if loaded is None or position is None:
        return None
    step, sample = loaded.step, loaded.step.samples[position]
    place = {**loaded.key._asdict(), "sample_index": sample.index, "occurrence": sample.occurrence}

    def talk() -> Conversation:
        return conversation.read_conversation(step, sample, conversation.open_sidecar(step), app.reader.words())

    return Sheet(
        "conversation",
        loaded.key,
        None,
        lambda: list(conversation.rows(talk())),
        lambda: {**place, **conversation.document(talk())},
        sample,
    )


def position_row(view: SampleView, position: int) -> Record | None:
    if position >= len(view.texts):
        return None
    fields = {name: view.value(name, position) for name in view.fields}
    row = {"position": position, "token_id": int(view.sample.tokens[position]), "text": view.texts[position]}
    return {"sample_index": view.sample.index, "occurrence": view.sample.occurrence, **row, **fields}

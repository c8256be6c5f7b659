"""What stands on screen as plain values: for the clipboard, for a file, for the command line that prints it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from textual.binding import Binding

if TYPE_CHECKING:
    from dumptui.core.files.step_files import StepKey
    from dumptui.core.formats.sample import Sample
    from dumptui.core.sample.conversation import Conversation
    from dumptui.core.sample.view import SampleView
    from dumptui.core.step.step import Step
    from dumptui.core.types import Record
    from dumptui.core.vocabulary import Vocabulary

    Words: TypeAlias = Callable[[], Vocabulary | None]

SHEET_KEYS = [
    Binding("y", "app.copy", "Copy", id="desk.copy", tooltip="Copy a cell, the row or the sample's text"),
    Binding("e", "app.export", "Export", id="desk.export", tooltip="Write this view to a file"),
    Binding(
        "colon",
        "app.command",
        "Command line",
        key_display=":",
        show=False,
        id="desk.command",
        tooltip="Show the command line that prints this view",
    ),
]
"""The keys of the panes, and of a screen over them that has a sheet."""


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


@dataclass(frozen=True)
class SheetSource:
    """What a pane may need for its sheet besides what it shows: the step, the sample under the cursor, the tokenizer.

    `words` is for the reader thread.
    """

    step: Step | None
    position: int | None
    words: Words

    @property
    def key(self) -> StepKey | None:
        return None if self.step is None else self.step.files.key


@runtime_checkable
class Sheeted(Protocol):
    """A screen over the panes that has a sheet of its own."""

    def sheet(self) -> Sheet | None: ...


def table_sheet(view: str, key: StepKey | None, rows: Sequence[Record], at: int, where: str = "") -> Sheet:
    def document() -> Mapping[str, object]:
        return {**(key._asdict() if key is not None else {}), "rows": list(rows)}

    row, options = rows[at] if at < len(rows) else None, ("--where", where) if where else ()
    return Sheet(view, key, row, lambda: rows, document, options=options)


def sample_sheet(step: Step, view: SampleView, token: int, words: Words) -> Sheet:
    """Return a sample token by token, as `--print tokens` has it; the row is that of the token at this position."""
    from dumptui.core.tables import tokens

    def document() -> Mapping[str, object]:
        return next(tokens.tokens(step, words(), [view.sample]))

    return Sheet(
        "tokens",
        step.files.key,
        position_row(view, token),
        lambda: list(tokens.position_rows(dict(document()))),
        document,
        view.sample,
    )


def conversation_sheet(step: Step, position: int, words: Words) -> Sheet:
    """Return the messages of a sample, as `--print conversation` has them."""
    from dumptui.core.sample import conversation

    key, sample = step.files.key, step.samples[position]
    place = {**key._asdict(), "sample_index": sample.index, "occurrence": sample.occurrence}

    def read() -> Conversation:
        return conversation.read_conversation(step, sample, conversation.open_sidecar(step), words())

    return Sheet(
        "conversation",
        key,
        None,
        lambda: list(conversation.rows(read())),
        lambda: {**place, **conversation.document(read())},
        sample,
    )


def position_row(view: SampleView, position: int) -> Record | None:
    if position >= len(view.texts):
        return None
    fields = {name: view.value(name, position) for name in view.fields}
    row = {"position": position, "token_id": int(view.sample.tokens[position]), "text": view.texts[position]}
    return {"sample_index": view.sample.index, "occurrence": view.sample.occurrence, **row, **fields}

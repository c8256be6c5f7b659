"""What the Tokens pane says in words: of the sample, of the statistic, of one token."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.text import Text

from dumptui.core.fields.registry import FIELDS, definition, field_label, scale_of
from dumptui.core.formats.weight_versions import version_range, version_text
from dumptui.core.sample.view import SampleField, SampleView
from dumptui.core.text import clip, sample_label, visible
from dumptui.core.vocabulary import CONTINUATION_MARK
from dumptui.tui.cell_formats.tables import number, ratio_number

GAP_TEXT = "  "
LABEL_CELLS = max(len(field.label) for field in FIELDS)  # so that what the statistics are is aligned
TOKEN_WIDTH = 32  # cells of a token's own text: some are 80 blanks


def by_interest(view: SampleView) -> list[tuple[str, SampleField]]:
    """The fields, what is derived first and what is not there last."""
    return sorted(view.fields.items(), key=lambda one: (not one[1].usable, not definition(one[0]).inputs))


def title(view: SampleView, place: str) -> Text:
    sample = view.sample
    masked = 0 if view.mask is None else int((view.mask == 0).sum())
    text = Text().append(f"sample {sample_label(sample.index, sample.occurrence)}", "bold")
    counts = [
        f"{sample.response_length} response tokens",
        f"{masked} masked" if masked else "",
        f"{len(view.turns)} turns" if len(view.turns) > 1 else "",
    ]
    facts = [
        place,
        "" if sample.status == "completed" else visible(sample.status),
        ", ".join(filter(None, counts)),
        f"prompt {sample.prompt_length}",
        *view.notes,
        f"weights {version_range(sample.versions)}" if sample.versions else "",
    ]
    return text.append("".join(f" · {visible(fact)}" for fact in facts if fact))


# The statistic --------------------------------------------------------------------------------------------------


def statistic_text(view: SampleView, name: str) -> Text:
    """What the statistic is, and whether all of it is there."""
    field = view.fields.get(name)
    if field is None:
        return Text("no per-token statistic is dumped for this sample", "bold")
    text = Text().append(visible(field_label(name)), "bold")
    if formula := definition(name).formula:
        text.append(f" = {formula}")
    if field.state != "ok" or field.reason:
        text.append(f" · {field.state}", "bold").append(f": {visible(field.reason)}" if field.reason else "", "bold")
    return text


def absence(view: SampleView, name: str) -> str:
    """Why another statistic than `name` is shown."""
    field = view.fields.get(name)
    return "" if field is None or field.usable else f"no {field_label(name)}: {field.state}, {field.reason} · "


def worst_text(view: SampleView, name: str, worst: Sequence[int]) -> str:
    said = [f"#{at} {signed(name, view.value(name, at))}" for at in worst]
    return " · worst " + ", ".join(said) if said else ""


def choice_text(name: str, field: SampleField) -> str:
    """A statistic in the list of them: what it is, or why it is not there."""
    known = definition(name)
    state = "" if field.state == "ok" else f"({field.state}: {field.reason})  "
    return visible(f"{field_label(name):<{LABEL_CELLS}}  {state}{known.meaning}".rstrip())


def signed(name: str, value: float | None) -> str:
    if value is None:
        return "-"
    if scale_of(name) == "ratio":
        return ratio_number(value)
    return f"{'+' if definition(name).signed and 0 < value < math.inf else ''}{number(value)}"


# One token ------------------------------------------------------------------------------------------------------


def token_line(view: SampleView, position: int) -> Text:
    """Every statistic of one token, and what made it."""
    text = Text().append(f"#{position}", "bold").append(f" {token_text(view, position)}")
    text.append(f"{GAP_TEXT}id {int(view.sample.tokens[position])}", "dim")
    if view.special[position]:
        text.append(f"{GAP_TEXT}special", "dim")
    if position < view.sample.prompt_length:
        return text.append(f"{GAP_TEXT}prompt", "italic")
    if view.masked(position):
        text.append(f"{GAP_TEXT}loss_mask = 0", "italic")
        return text.append_text(context(view, position))
    there = dict(field for field in by_interest(view) if field[1].usable)
    prominent = [name for name in there if definition(name).prominent]
    for name in prominent:
        text.append_text(statistic(view, name, position))
    text.append_text(context(view, position))
    for name in there:
        if name not in prominent:
            text.append_text(statistic(view, name, position))
    return text


def token_text(view: SampleView, position: int) -> str:
    """The text of a token in quotes; of one that holds a part of a character, also its bytes."""
    text, piece = view.texts[position], view.pieces[position]
    quoted = f'"{clip(visible(text), TOKEN_WIDTH)}"'
    if isinstance(piece, str) or piece == text.encode("utf-8", "replace"):
        return quoted
    if text == CONTINUATION_MARK:
        begun = next((at for at in range(position, -1, -1) if view.texts[at] != CONTINUATION_MARK), position)
        quoted = f'{CONTINUATION_MARK} of "{visible(view.texts[begun][-1:])}" at #{begun}'
    return f"{quoted}{GAP_TEXT}bytes {piece.hex(' ')}"


def statistic(view: SampleView, name: str, position: int) -> Text:
    value = signed(name, view.value(name, position))
    text = Text().append(f"{GAP_TEXT}{visible(field_label(name))} ", "dim")
    return text.append(value, "bold" if name == "lp_diff" else "none")


def context(view: SampleView, position: int) -> Text:
    """Weights, turn and context-parallel rank of a token, as far as they are known and there are others."""
    version, turn, rank = view.version(position), view.turn(position), view.cp_rank(position)
    facts = [
        "" if version is None else visible(version_text(version)),
        f"turn {turn}" if turn is not None and len(view.turns) > 1 else "",
        "" if rank is None or view.chunks is None else f"cp rank {rank} of {view.chunks.size}",
    ]
    return Text("".join(f"{GAP_TEXT}{fact}" for fact in facts if fact))

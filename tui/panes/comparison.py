"""The pair pane: two samples beside each other, with the first token where they part."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical

from dumptui.core.diff.sequences import Stretch
from dumptui.core.diff.texts import Comparison
from dumptui.core.fields.registry import FIELDS
from dumptui.core.sample import comparison
from dumptui.core.sample.comparison import Pair
from dumptui.core.sample.view import SampleView
from dumptui.core.text import clip, sample_label, visible
from dumptui.core.types import Record
from dumptui.tui.panes.pane import Pane
from dumptui.tui.panes.partners import Partner
from dumptui.tui.panes.requests import PairWanted, SampleChosen
from dumptui.tui.presentation import columns
from dumptui.tui.presentation.sheets import Sheet, SheetSource
from dumptui.tui.reading.messages import SamplesCompared
from dumptui.tui.widgets.diff.diff_view import Beside
from dumptui.tui.widgets.line import Line

# The facts shown of the tokens where two samples first differ, and their labels.
MAX_TOKEN_CELLS = 24  # cells of a token's text


class PairPane(Vertical, Pane):
    """What both have is folded; where they differ they stand side by side."""

    HELP = """\
# Two samples

Two samples of a step side by side; on narrow screens `-` marks the first and `+` the second. Equal parts are muted,
long equal passages are folded.

- **]** and **[** go to the next and the previous difference: the first tokens that differ are marked, and shown below.
- **v** compares the words of the responses instead of the tokens: then the same text in different tokens counts as
  equal.
- **y** copies a difference or both samples; **e** writes them to a file, one row per pair of tokens or words.
- **n** and **p** compare the first sample with the next and previous one of its group; **o** swaps the two samples.
- **enter** opens the tokens of the first one; **escape** goes back.
"""
    BINDINGS = [
        Binding("v,t", "words", "Words", id="pair.words", tooltip="Compare words instead of tokens, or tokens again"),
        Binding("o", "exchange", "Swap", id="pair.exchange"),
        Binding("enter", "open", "Tokens", show=False, id="pair.open"),
    ]

    def __init__(self) -> None:
        super().__init__(id="pair")
        self.compared: SamplesCompared | None = None
        self.partners: list[Partner] = []
        self.by_words = False

    def compose(self) -> ComposeResult:
        yield Line(id="pair-title")
        yield Line(id="pair-parting")
        yield Beside(id="beside")
        yield Line(id="pair-left")
        yield Line(id="pair-right")

    def enter(self) -> None:
        self.query_one(Beside).focus()

    @property
    def pair(self) -> Pair | None:
        return None if self.compared is None else self.compared.pair

    @property
    def comparison(self) -> Comparison | None:
        return None if self.pair is None else self.pair.comparison(self.by_words)

    @property
    def differences(self) -> list[Stretch]:
        stretches = () if self.comparison is None else self.comparison.difference.stretches
        return [one for one in stretches if not one.same]

    def show_pair(self, compared: SamplesCompared, records: Sequence[Record], partners: list[Partner]) -> None:
        """`records` are the rows of the step's samples, `partners` what else the first sample can be compared with."""
        self.compared, self.partners = compared, partners
        left, right = records[compared.left], records[compared.right]
        self.query_one("#pair-title", Line).say(title(left, right, partners))
        self._show_comparison()

    def _show_comparison(self) -> None:
        assert self.pair is not None and self.comparison is not None
        kind = "words" if self.by_words else "tokens"
        self.query_one(Beside).empty = f"neither sample has {kind}"
        self.query_one(Beside).show(self.comparison)
        self.query_one("#pair-parting", Line).say(parting_text(self.comparison, kind))
        self._show_difference(0)

    @on(Beside.Moved)
    def _moved(self, event: Beside.Moved) -> None:
        self._show_difference(event.index)

    def _show_difference(self, index: int) -> None:
        """What stands at the start of a difference, on both sides."""
        if self.pair is None or self.comparison is None:
            return
        found = self.differences
        lines = (Text(), Text())
        if found:
            at, to = found[index].left.start, found[index].right.start
            lines = self._told("-", self.pair.left, at), self._told("+", self.pair.right, to)
        for name, line in zip(("#pair-left", "#pair-right"), lines, strict=True):
            self.query_one(name, Line).say(line)

    def _told(self, sign: str, view: SampleView, at: int) -> Text:
        assert self.comparison is not None
        text = Text().append(f"{sign} {columns.whole(view.sample.index)} ", "bold")
        if not self.by_words:
            return text.append_text(token_text(view, at))
        texts = (self.comparison.left if sign == "-" else self.comparison.right).texts
        return text.append(f"word {at} {quoted(texts[at])}" if at < len(texts) else f"ends after {at} words")

    def sheet(self, source: SheetSource) -> Sheet | None:
        """Both as rows, as `--print pair` has them; the row is the current difference."""
        if self.compared is None:
            return None
        compared, words = self.compared, self.by_words
        found, [left, right] = compared.pair, [view.sample for view in (compared.pair.left, compared.pair.right)]
        partner = sample_label(right.index, right.occurrence)
        at, differences = self.query_one(Beside).cursor, self.differences
        return Sheet(
            "pair",
            compared.key,
            comparison.difference_row(found, words, differences[at]) if differences else None,
            lambda: list(comparison.rows(found, words)),
            lambda: {**compared.key._asdict(), **comparison.document(found, words)},
            left,
            options=("--with", partner, *(["--words"] if words else [])),
            row_name="the difference",
            texts=(
                ("both, with the differences marked", comparison.marked_text(found, words)),
                ("the first response", left.response),
                ("the second response", right.response),
            ),
            suffix=partner,
        )

    # Keys ------------------------------------------------------------------------------------------------------

    def next_partner(self, by: int) -> int | None:
        """The next sample to compare the first one with; None beyond the last."""
        if self.compared is None:
            return None
        positions = [one.position for one in self.partners]
        at = positions.index(self.compared.right) + by if self.compared.right in positions else 0
        return positions[at] if 0 <= at < len(positions) else None

    def action_words(self) -> None:
        self.by_words = not self.by_words
        if self.pair is not None:
            self._show_comparison()

    def action_exchange(self) -> None:
        if self.compared is not None:
            self.post_message(PairWanted(self.compared.right, self.compared.left))

    def action_open(self) -> None:
        if self.compared is not None:
            self.post_message(SampleChosen(self.compared.left))


# Texts ----------------------------------------------------------------------------------------------------------


def title(left: Record, right: Record, found: Sequence[Partner]) -> Text:
    text = Text().append(f"sample {visible(str(left['label']))} vs {visible(str(right['label']))}", "bold")
    roles = [one.role for one in found if one.position == right["position"]]
    text.append(f" ({roles[0]})" if roles and roles[0] else "")
    rewards = [columns.reward(one["compared_reward"]) for one in (left, right)]
    text.append(f" · reward {rewards[0]} vs {rewards[1]}")
    return text.append(f" · {left['response_length']} vs {right['response_length']} response tokens")


def parting_text(shown: Comparison, kind: str) -> Text:
    """Where two samples part, and how much they share."""
    found = shown.difference
    sizes = len(shown.left.texts), len(shown.right.texts)
    if found.first_difference is None:
        return Text(f"identical: {sizes[0]:,} {kind}", "bold")
    differences = sum(not one.same for one in found.stretches)
    text = Text().append(f"first differ at {kind[:-1]} {found.first_difference[0]:,}", "bold")
    least = "" if found.complete else "at least "  # to look for all of it would have taken too long
    text.append(f" · {least}{found.shared:,} {kind} in common (of {sizes[0]:,} / {sizes[1]:,})")
    return text.append(f" · {differences:,} difference{'s' * (differences != 1)}")


def token_text(view: SampleView, at: int) -> Text:
    """A token with its place and log-probs, as far as they are there."""
    if at >= len(view.texts):
        return Text(f"ends here, after {at:,} tokens")
    response = at - view.sample.prompt_length
    place = f"response token {response:,}" if response >= 0 else "prompt"
    text = Text(f"#{at} ({place}) ").append(quoted(visible(view.texts[at])), "bold")
    text.append(f" id {view.sample.tokens[at]}")
    for field in FIELDS:
        if field.compared and field.name in view.fields and response >= 0:
            text.append(f"  {field.label} ").append(columns.fixed(3)(view.value(field.name, at)))
    masked = view.mask is not None and 0 <= response < len(view.mask) and not view.mask[response]
    return text.append("  masked" if masked else "")


def quoted(text: str) -> str:
    return f'"{clip(text, MAX_TOKEN_CELLS)}"'

"""The Tokens pane: one sample token by token, shaded by a statistic, with the chart of that statistic under it."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.reactive import var

from dumptui.core.text import visible
from dumptui.core.view import MASKED, MISSING, PROMPT, SampleField, SampleView
from dumptui.tui import columns, scales
from dumptui.tui.dialog import Choose
from dumptui.tui.output import number
from dumptui.tui.reader import Opened
from dumptui.tui.scales import SIGNED, Floats, Range, is_diverging, span_text
from dumptui.tui.widgets.heatmap import Heatmap
from dumptui.tui.widgets.line import Line
from dumptui.tui.widgets.plot import Band, Plot, Series

LABELS = {
    "lp_diff": "Δ",
    "imp_ratio": "ratio",
    "train_log_probs": "trainer",
    "rollout_log_probs": "engine",
    "ref_log_probs": "ref",
    "teacher_log_probs": "teacher",
    "entropy": "H",
    "ref_entropy": "ref H",
    "teacher_entropy": "teacher H",
    "advantages": "adv",
    "returns": "return",
    "values": "value",
}
MEANING = {"lp_diff": "train - rollout log-prob", "imp_ratio": "exp(train - rollout log-prob)"}
KIND_BANDS = {PROMPT: "prompt", MASKED: "masked", MISSING: "missing"}


class TokensPane(Vertical):
    """Text, the token under the cursor, and the chart."""

    HELP = """\
# Tokens

One sample: its prompt (muted), its trained tokens shaded by a statistic, masked tokens (tool output) never shaded.

- **m** chooses the statistic; the shades span the same range over the whole step.
- **]** goes to the next worst token, **[** back: worst by the largest |value| of the statistic.
- **n** and **p** open the next and previous sample in the order of the table.
- Arrows or **h j k l** move the cursor; a click on text or chart does too. **escape** goes back to the samples.

lp_diff is the trainer's log-prob of a token minus the engine's, imp_ratio its exponential. Both exist only where the
loss mask is 1 and both log-probs are there.
"""
    BINDINGS = [
        Binding("m", "statistic", "Statistic", id="tokens.statistic"),
        Binding("right_square_bracket", "worst(1)", "Worst token", key_display="]", id="tokens.worst"),
        Binding("left_square_bracket", "worst(-1)", "Back", key_display="[", show=False, id="tokens.worst-back"),
    ]

    statistic: var[str] = var("lp_diff", init=False)

    def __init__(self) -> None:
        super().__init__(id="tokens")
        self.opened: Opened | None = None
        self.place = ""
        self._worst_at = -1

    def compose(self) -> ComposeResult:
        yield Line(id="tokens-title")
        yield Line(id="tokens-shade")
        yield Heatmap(id="text", empty="no sample is open")
        yield Line(id="token")
        yield Line(id="chart-title")
        yield Plot(id="chart")

    def enter(self) -> None:
        self.query_one("#text", Heatmap).focus()

    @property
    def position(self) -> int | None:
        """The sample on show, by its position in the rollout file."""
        return None if self.opened is None else self.opened.position

    @property
    def view(self) -> SampleView | None:
        return None if self.opened is None else self.opened.view

    def go_to(self, position: int) -> None:
        """Put the cursor on a token of the sample on show, by its absolute position; one beyond its ends is the end."""
        self.query_one("#text", Heatmap).goto(position)

    def clear(self, reason: str) -> None:
        """Another step is open: no sample of it has been asked for yet."""
        self.opened = None
        heat = self.query_one("#text", Heatmap)
        heat.empty = visible(reason)
        heat.show([], np.empty(0), np.empty(0, np.uint8), diverging=True, cursor=0)
        for name in ("#tokens-title", "#tokens-shade", "#token", "#chart-title"):
            self.query_one(name, Line).say("")
        self.query_one("#chart", Plot).show(empty="")

    def show_sample(self, opened: Opened, place: str) -> None:
        """`place` says where the sample stands, such as "group 92, 3 of 4". One that was open keeps its cursor."""
        before = self.opened
        again = before is not None and (before.key, before.position) == (opened.key, opened.position)
        start = min(opened.view.sample.prompt_length, max(0, len(opened.view.texts) - 1))
        cursor = self.query_one("#text", Heatmap).cursor if again else start
        self.opened = opened
        self.place = place
        self._worst_at = -1
        usable = self._usable()
        if self.statistic not in usable and usable:
            self.set_reactive(TokensPane.statistic, usable[0])
        self.query_one("#text", Heatmap).empty = "the sample has no tokens"
        with self.app.batch_update():
            self._show_statistic(cursor=cursor)
        self.query_one("#tokens-title", Line).say(title(opened.view, place))

    def _usable(self) -> list[str]:
        """Fields with values, the difference first."""
        assert self.view is not None
        return [name for name, field in by_interest(self.view) if field.state in ("ok", "partial")]

    # The statistic ---------------------------------------------------------------------------------------------

    def watch_statistic(self) -> None:
        if self.view is not None:
            self._worst_at = -1
            self._show_statistic(cursor=self.query_one("#text", Heatmap).cursor)

    def _show_statistic(self, cursor: int) -> None:
        assert self.opened is not None
        view = self.opened.view
        scale = None if self.statistic == "imp_ratio" else self.opened.scales.get(self.statistic)
        heat = self.query_one("#text", Heatmap)
        kinds = view.kinds(self.statistic)
        heat.show(
            view.texts,
            shades(view, self.statistic, scale),
            kinds,
            diverging=is_diverging(self.statistic, scale or (0.0, 0.0)),
            cursor=cursor,
        )
        self.query_one("#tokens-shade", Line).say(self._shade_line(view, scale))
        self._draw_chart(view, kinds)
        self._show_token(heat.cursor)

    def _shade_line(self, view: SampleView, scale: Range | None) -> Text:
        field = view.fields.get(self.statistic)
        if field is None or field.values is None:
            return Text("no per-token statistic is dumped for this sample", "bold")
        text = Text().append(visible(self.statistic), "bold")
        if self.statistic in MEANING:
            text.append(f" = {MEANING[self.statistic]}")
        if field.state != "ok":
            text.append(f" · {field.state}", "bold")
        if field.reason:
            text.append(f": {visible(field.reason)}", "bold")
        if field.state not in ("ok", "partial"):
            return text
        text.append(worst_text(view, self.statistic)).append(
            f" · scale of the step {span_text(self.statistic, scale)} · "
        )
        return text.append_text(self.query_one("#text", Heatmap).legend())

    def _draw_chart(self, view: SampleView, kinds: npt.NDArray[np.uint8]) -> None:
        start = view.sample.prompt_length
        field = view.fields.get(self.statistic)
        title_line = Text().append(f"{visible(self.statistic)} against position", "bold")
        chart = self.query_one("#chart", Plot)
        if field is None:
            chart.show(empty="no per-token statistic is dumped for this sample")
        else:
            y = field.values.astype(np.float64)
            series = Series(self.statistic, np.arange(start, start + len(y), dtype=np.float64), y)
            empty = f"{field.state}: {field.reason}" if field.reason else "no trained token has a value"
            span = (0.0, float(max(len(view.texts) - 1, 1)))
            chart.show(
                series,
                x_range=span,
                bands=bands(kinds),
                cursor=float(self.query_one("#text", Heatmap).cursor),
                empty=visible(empty),
            )
            title_line.append("   ▒ prompt   ░ masked   ╱ missing   ^ cursor", "dim")
        self.query_one("#chart-title", Line).say(title_line)

    # The cursor ------------------------------------------------------------------------------------------------

    @on(Heatmap.Moved)
    def _moved(self, event: Heatmap.Moved) -> None:
        self._show_token(event.index)

    @on(Plot.Clicked, "#chart")
    def _chart_clicked(self, event: Plot.Clicked) -> None:
        if self.view is not None and self.view.texts:
            at = min(max(round(event.x), 0), len(self.view.texts) - 1)
            self.query_one("#text", Heatmap).goto(at)

    def _show_token(self, position: int) -> None:
        if self.view is None or not self.view.texts:
            return
        self.query_one("#token", Line).say(token_line(self.view, position))
        self.query_one("#chart", Plot).cursor = float(position)

    def action_worst(self, by: int) -> None:
        if self.view is None:
            return
        worst = self.view.worst(self.statistic)
        if not len(worst):
            self.notify(f"no token has a value of {visible(self.statistic)}", markup=False)
            return
        self._worst_at = min(max(self._worst_at + by, 0), len(worst) - 1)
        self.query_one("#text", Heatmap).goto(int(worst[self._worst_at]))

    def action_statistic(self) -> None:
        if self.view is None:
            return
        choices = []
        for name, field in by_interest(self.view):
            state = "" if field.state == "ok" else f"  ({field.state}: {field.reason or 'no file has the column'})"
            choices.append((name, visible(f"{name}{state}")))

        def chosen(name: str | None) -> None:
            if name is not None:
                self.statistic = name

        self.app.push_screen(Choose("shade and chart by", choices, self.statistic), chosen)


def shades(view: SampleView, name: str, span: Range | None) -> Floats:
    """Per token of the sample; NaN where there is no value."""
    out = np.full(len(view.texts), np.nan)
    field = view.fields.get(name)
    if field is not None:
        start = view.sample.prompt_length
        out[start:] = scales.shades(name, field.values, span)[: len(out) - start]
    return out


def worst_text(view: SampleView, name: str) -> str:
    worst = [(at, signed(name, view.value(name, int(at)))) for at in view.worst(name)[:3]]
    return " · worst " + ", ".join(f"#{at} {value}" for at, value in worst) if worst else ""


def bands(kinds: npt.NDArray[np.uint8]) -> list[Band]:
    """The runs of prompt, masked and missing positions."""
    if not len(kinds):
        return []
    edges = [0, *(np.flatnonzero(np.diff(kinds)) + 1).tolist(), len(kinds)]
    runs = pairwise(edges)
    return [Band(start, stop, KIND_BANDS[int(kinds[start])]) for start, stop in runs if int(kinds[start]) in KIND_BANDS]  # type: ignore[arg-type]


def title(view: SampleView, place: str) -> Text:
    sample = view.sample
    masked = 0 if view.mask is None else int((view.mask == 0).sum())
    text = Text().append(f"sample {'?' if sample.index is None else sample.index}", "bold")
    if sample.occurrence:
        text.append(f".{sample.occurrence}")
    facts = [
        place,
        f"reward {columns.reward(sample.reward)}",
        visible(sample.status),
        f"{sample.response_length} response tokens" + (f", {masked} masked" if masked else ""),
        f"prompt {sample.prompt_length}",
        versions(sample.versions),
        *view.notes,
    ]
    return text.append("".join(f" · {visible(fact)}" for fact in facts if fact))


def versions(found: list[str]) -> str:
    if not found:
        return ""
    distinct = list(dict.fromkeys(found))
    return f"weights v{distinct[0]}" if len(distinct) == 1 else f"weights v{distinct[0]}-v{distinct[-1]}"


def token_line(view: SampleView, position: int) -> Text:
    """Every statistic of one token."""
    sample = view.sample
    text = Text().append(f"#{position} ", "bold")
    text.append(f' "{visible(view.texts[position])}"').append(f"  id {int(sample.tokens[position])}", "dim")
    at = position - sample.prompt_length
    if at < 0:
        return text.append("   prompt", "italic")
    if view.mask is not None and at < len(view.mask) and not view.mask[at]:
        return text.append("   masked: not trained on, no statistic", "italic")
    for name, field in by_interest(view):
        if field.state in ("ok", "partial"):
            value = signed(name, view.value(name, position))
            text.append(f"   {visible(LABELS.get(name, name))} ", "dim")
            text.append(value, "bold" if name == "lp_diff" else "none")
    return text


def by_interest(view: SampleView) -> list[tuple[str, SampleField]]:
    """The fields, the difference first: where a line is too short, the last are cut."""
    return sorted(view.fields.items(), key=lambda one: one[0] not in MEANING)


def signed(name: str, value: float | None) -> str:
    if value is None:
        return "-"
    text = number(value)
    return f"+{text}" if name in SIGNED and name != "imp_ratio" and value > 0 and math.isfinite(value) else text

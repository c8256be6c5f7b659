"""The chart of the Tokens pane: one or two statistics against the position in the sequence."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical

from dumptui.core.fields.ratio_limits import LARGEST_RATIO
from dumptui.core.fields.registry import field_label
from dumptui.core.sample.view import MASKED, MISSING, PROMPT, SampleView
from dumptui.core.text import visible
from dumptui.tui.presentation import shading
from dumptui.tui.widgets.line import Line
from dumptui.tui.widgets.plot.frame import FINE_MARK, MARK, Band
from dumptui.tui.widgets.plot.plot import Series
from dumptui.tui.widgets.plot.zoom_plot import ZoomPlot

KIND_BANDS = {PROMPT: "prompt", MASKED: "masked", MISSING: "missing"}
MIN_TOKENS_ACROSS = 8.0  # tokens across: fewer are no picture
NO_STATISTIC = "no per-token statistic is dumped for this sample"


class TokenChart(Vertical):
    """A title that is its legend, and the plot; two statistics have an axis each."""

    DEFAULT_CSS = "TokenChart { height: auto; }"

    def compose(self) -> ComposeResult:
        yield Line(id="chart-title")
        yield ZoomPlot(id="chart", closest=MIN_TOKENS_ACROSS)

    @property
    def plot(self) -> ZoomPlot:
        return self.query_one("#chart", ZoomPlot)

    def clear(self) -> None:
        self.plot.show(empty="")
        self.query_one("#chart-title", Line).say("")

    def begin(self, view: SampleView) -> None:
        """Another sample: all of it is in view, but of a long prompt only as much as takes a third of the width."""
        sample = view.sample
        longest = sample.response_length / 2
        late = sample.response_length and sample.prompt_length > longest
        end = float(sample.total_length - 1)
        self.plot.window = (
            (max(sample.prompt_length - longest, 0.0), end) if late and longest > MIN_TOKENS_ACROSS else None
        )

    def show_statistics(self, view: SampleView, name: str, second: str | None, cursor: int) -> None:
        """`second` is drawn as dots on an axis of its own."""
        shown = [line_of(view, name)] if name in view.fields else []
        if second is not None and second in view.fields:
            shown.append(line_of(view, second)._replace(component="second", style="dots", axis="right"))
        turns, edges = view.borders
        self.plot.show(
            *shown,
            x_range=(0.0, float(max(len(view.texts) - 1, 1))),
            bands=bands(view.kinds(name)),
            marks=turns,
            fine_marks=edges,
            cursor=float(cursor),
            empty=visible(absence(view, name)),
        )
        self.query_one("#chart-title", Line).say(self._title(view, name, second) if shown else Text())

    def _title(self, view: SampleView, name: str, second: str | None) -> Text:
        text = Text().append(visible(field_label(name)), "bold")
        if second is not None:
            text.append(" (left) and ").append(visible(field_label(second)), "bold").append(" (right, dots)")
            if (field := view.fields.get(second)) is not None and not field.usable:
                text.append(f", {field.state}: {visible(field.reason or '')},")
        text.append(" against position")
        kinds = dict.fromkeys(band.kind for band in self.plot.picture.bands)
        signs = {"prompt": "▒ prompt", "masked": "░ masked", "missing": "╱ missing"}
        notes = [sign for kind, sign in signs.items() if kind in kinds]
        notes += [f"{MARK} turn"] * bool(self.plot.picture.marks) + [f"{FINE_MARK} chunk"] * bool(
            self.plot.picture.fine_marks
        )
        return text.append("   ".join(["", *notes, "^ cursor"]), "dim")


def line_of(view: SampleView, name: str) -> Series:
    start, values = view.sample.prompt_length, view.fields[name].values.astype(np.float64)
    if shading.is_ratio(name):
        values = np.minimum(values, LARGEST_RATIO)
    return Series(name, np.arange(start, start + len(values), dtype=np.float64), values)


def absence(view: SampleView, name: str) -> str:
    field = view.fields.get(name)
    if field is None:
        return NO_STATISTIC
    return "no trained token has a value" if field.usable else f"{field.state}: {field.reason}"


def bands(kinds: npt.NDArray[np.uint8]) -> list[Band]:
    """The runs of prompt, masked and missing positions."""
    if not len(kinds):
        return []
    edges = [0, *(np.flatnonzero(np.diff(kinds)) + 1).tolist(), len(kinds)]
    runs = pairwise(edges)
    return [Band(start, stop, KIND_BANDS[int(kinds[start])]) for start, stop in runs if int(kinds[start]) in KIND_BANDS]  # type: ignore[arg-type]

"""One sample token by token: its text shaded by a statistic, the token under the cursor, and the chart."""

from __future__ import annotations

from functools import partial

import numpy as np
from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.reactive import var

from dumptui.core.sample.view import SampleView
from dumptui.core.step.field_survey import FieldSurvey
from dumptui.core.text import visible
from dumptui.tui.panes.pane import Pane
from dumptui.tui.panes.requests import ReadWanted, SurveyWanted
from dumptui.tui.panes.tokens.chart import TokenChart
from dumptui.tui.panes.tokens.navigation import Search, WorstTokenCursor
from dumptui.tui.presentation import shading
from dumptui.tui.presentation.shading import Floats, Range
from dumptui.tui.presentation.tokens import absence, by_interest, statistic_text, title, token_line, worst_text
from dumptui.tui.reading.messages import FieldSurveyed, SampleOpened
from dumptui.tui.reading.reader import Reader
from dumptui.tui.session.hue_choice import kept_hues
from dumptui.tui.widgets.heatmap.heatmap import Heatmap
from dumptui.tui.widgets.heatmap.hues import DEFAULT_PAIR
from dumptui.tui.widgets.heatmap.token_flow import Flow
from dumptui.tui.widgets.line import Line
from dumptui.tui.widgets.plot.plot import Plot

SCALE_NAMES = ("step", "sample", "window")


class TokenView(Vertical, Pane):
    """What is on show of a sample; the pane made of it has the keys."""

    statistic: var[str] = var("lp_diff", init=False)
    """The one asked for; a sample without it shows another, see `shown`."""

    second: var[str | None] = var(None, init=False)
    """The other statistic of the chart."""

    scale: var[str] = var("step", init=False)
    """What the shades span, one of SCALES."""

    hues: var[str] = var(DEFAULT_PAIR, init=False)
    """The pair of them that the shades are of, one of hues.PAIRS."""

    def __init__(self) -> None:
        super().__init__(id="tokens")
        self.opened: SampleOpened | None = None
        self.surveys: dict[str, FieldSurvey] = {}
        """What is known of fields over the whole step of the sample."""
        self.place = ""
        self.walk = WorstTokenCursor()
        self.search = Search()
        self.awaited: tuple[int, int] | None = None
        """A sample that is being read, by position, and the token to go to in it."""
        self._insists = False  # on the statistic though the sample lacks it: the reason is what was asked for

    def compose(self) -> ComposeResult:
        yield Line(id="tokens-title")
        yield Line(id="tokens-shade")
        yield Heatmap(id="text", empty="no sample is open")
        yield Line(id="token")
        yield TokenChart()

    def on_mount(self) -> None:
        self.heat = self.query_one("#text", Heatmap)
        self.chart = self.query_one(TokenChart)
        self.hues = kept_hues()
        self.app.theme_changed_signal.subscribe(self, lambda theme: self.call_after_refresh(self.reshade))

    def enter(self) -> None:
        self.heat.focus()

    @property
    def position(self) -> int | None:
        """The sample on show, by its position in the rollout file."""
        return None if self.opened is None else self.opened.position

    @property
    def view(self) -> SampleView | None:
        return None if self.opened is None else self.opened.view

    @property
    def token(self) -> int:
        """The position of the token under the cursor, counted from the start of the prompt."""
        return self.query_one("#text", Heatmap).cursor

    def go_to(self, position: int) -> None:
        """Put the cursor on a token of the sample on show, by its absolute position; beyond the ends is the end."""
        self.heat.goto(position)

    def leave_sample(self, reason: str) -> None:
        self.opened = self.awaited = None
        self.walk = WorstTokenCursor()
        self.heat.empty = visible(reason)
        self.heat.show(Flow(), np.empty(0), np.empty(0, np.uint8), diverging=True, cursor=0)
        for name in ("#tokens-title", "#tokens-shade", "#token"):
            self.query_one(name, Line).say("")
        self.chart.clear()

    def show_sample(self, opened: SampleOpened, place: str) -> None:
        """`place` says where the sample stands, such as "group 92, 3 of 4". One that was open keeps its cursor."""
        before = self.opened
        again = before is not None and (before.key, before.position) == (opened.key, opened.position)
        self.opened, self.place, self.surveys = opened, place, dict(opened.surveys)
        self._insists = self._insists and again
        self.search.begin(self.search.pattern)
        self.heat.empty = "the sample has no tokens"
        if not again:
            self.chart.begin(opened.view)
        with self.app.batch_update():
            self._show_statistic(self._first_cursor(opened, again=again))
            self.query_one("#tokens-title", Line).say(title(opened.view, place))
        if self.search.pattern:
            self._ask_search()

    def _ask_search(self) -> None:
        if self.view is not None:
            self.post_message(ReadWanted(partial(Reader.search, view=self.view, pattern=self.search.pattern)))

    def _first_cursor(self, opened: SampleOpened, *, again: bool) -> int:
        """The token that was asked for, or the first of the response."""
        awaited, self.awaited = self.awaited, None
        if awaited is not None and awaited[0] == opened.position:
            self.walk.along(opened.view, self.shown)
            self.walk.stand_on(awaited[1])
            return awaited[1]
        return self.heat.cursor if again else min(opened.view.sample.prompt_length, max(0, len(opened.view.texts) - 1))

    # The statistic ---------------------------------------------------------------------------------------------

    @property
    def shown(self) -> str:
        """The statistic that the sample is shaded by: the one asked for, else the first that it has."""
        assert self.view is not None
        names = [name for name, _ in by_interest(self.view)]  # what is usable first
        usable = self.view.fields[names[0]].usable
        asked = self.view.fields.get(self.statistic)
        return names[0] if asked is None or (usable and not asked.usable and not self._insists) else self.statistic

    def insist(self, name: str) -> None:
        """Show a statistic also where the sample lacks it, to say why."""
        self._insists = True
        if name == self.statistic:
            self._show_again()
        self.statistic = name

    def watch_statistic(self) -> None:
        self._show_again()

    def watch_second(self) -> None:
        self._show_again()

    def watch_hues(self) -> None:
        self.heat.pair = self.hues
        self.reshade()

    def watch_scale(self) -> None:
        self.reshade()

    def _show_again(self) -> None:
        if self.view is not None:
            self._show_statistic(self.heat.cursor)

    def _show_statistic(self, cursor: int) -> None:
        assert self.opened is not None
        view, name = self.opened.view, self.shown
        self.walk.along(view, name)
        shade, diverging = self._shades()
        with self.prevent(Heatmap.Scrolled):
            self.heat.show(
                self.opened.flow,
                shade,
                view.kinds(name),
                diverging=diverging,
                cursor=cursor,
            )
        if self.search.hits:
            self.heat.mark(self.search.tokens)
        if self.scale == "window":
            self.reshade()
        self._say_shade()
        self.chart.show_statistics(view, name, self.second, self.heat.cursor)
        self._show_token(self.heat.cursor)
        if name not in self.surveys and view.fields[name].usable:
            self.post_message(SurveyWanted(name))

    def _take_survey(self, event: FieldSurveyed) -> None:
        if self.opened is None or event.key != self.opened.key:
            return
        if event.survey is None:
            self.notify(visible(f"the scale of the step is unknown: {event.problem}"), markup=False)
            return
        self.surveys[event.name] = event.survey
        if event.name == self.shown and self.scale == "step":
            self.reshade()

    # Shades ----------------------------------------------------------------------------------------------------

    def reshade(self) -> None:
        if self.view is not None:
            shade, diverging = self._shades()
            self.heat.reshade(shade, diverging=diverging)
            self._say_shade()

    def _shades(self) -> tuple[Floats, bool]:
        """Per token, NaN where there is no value, and whether they diverge."""
        assert self.view is not None
        view, name, span = self.view, self.shown, self._span()[0]
        out = np.full(len(view.texts), np.nan)
        if (field := view.fields.get(name)) is not None:
            start = view.sample.prompt_length
            out[start:] = shading.shades(name, field.values, span)[: len(out) - start]
        return out, shading.is_diverging(name, span or (0.0, 0.0))

    def _span(self) -> tuple[Range | None, str]:
        """What the shades span, and its name; until the step's is known, it is the sample's."""
        assert self.opened is not None
        view, name = self.opened.view, self.shown
        if self.scale == "window":
            tokens = self.heat.on_screen
            said = f"window #{tokens.start}-#{max(tokens.stop - 1, 0)}"
            return view.span(name, tokens.start, tokens.stop), said
        if self.scale == "step" and shading.is_ratio(name):
            return None, "step"
        if self.scale == "step" and (survey := self.surveys.get(name)) is not None:
            return survey.span, "step"
        return view.span(name), "sample"

    def _say_shade(self) -> None:
        assert self.view is not None
        name, (span, said) = self.shown, self._span()
        text = self.search.text(self.heat.cursor)
        if name != self.statistic:
            text.append(visible(absence(self.view, self.statistic)), "bold")
        text.append_text(statistic_text(self.view, name))
        if (field := self.view.fields.get(name)) is not None and field.usable:
            text.append(f" · scale of the {said} {shading.span_text(name, span)} ").append_text(
                self.heat.scale_legend()
            )
            text.append(worst_text(self.view, name, self.view.worst(name, 3).tolist()))
            text.append(" · ").append_text(self.heat.kind_legend())
        self.query_one("#tokens-shade", Line).say(text)

    @on(Heatmap.Scrolled)
    def _scrolled(self) -> None:
        if self.scale == "window":
            self.reshade()

    # The cursor ------------------------------------------------------------------------------------------------

    @on(Heatmap.Moved)
    def _moved(self, event: Heatmap.Moved) -> None:
        self._show_token(event.index)
        if self.search.hits:
            self._say_shade()

    @on(Plot.Clicked, "#chart")
    def _chart_clicked(self, event: Plot.Clicked) -> None:
        if self.view is not None and self.view.texts:
            self.go_to(round(event.x))

    def _show_token(self, position: int) -> None:
        if self.view is not None and self.view.texts:
            self.query_one("#token", Line).say(token_line(self.view, position))
            self.chart.plot.cursor = float(position)

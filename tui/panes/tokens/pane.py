"""The Tokens pane: the keys of a sample on show."""

from __future__ import annotations

from textual.binding import Binding

from dumptui.core.errors import DumpError
from dumptui.core.fields.registry import field_label
from dumptui.core.tables.meanings import Meaning, of_field
from dumptui.core.text import visible
from dumptui.tui.panes.requests import SampleChosen
from dumptui.tui.panes.tokens.view import SCALE_NAMES, TokenView
from dumptui.tui.presentation.meanings import in_full
from dumptui.tui.presentation.sheets import Sheet, SheetSource, sample_sheet
from dumptui.tui.presentation.tokens import by_interest, choice_text
from dumptui.tui.reading.messages import FieldSurveyed, TokenHits
from dumptui.tui.screens.questions import TOKENS_HINT, ask_pattern
from dumptui.tui.session.hue_choice import keep_hues
from dumptui.tui.widgets.dialogs.choices import Choose
from dumptui.tui.widgets.dialogs.prompt import Ask
from dumptui.tui.widgets.heatmap.hues import HUE_PAIRS, meaning
from dumptui.tui.widgets.message import Answer
from dumptui.tui.widgets.plot.zoom_plot import PAN_SHARE, ZOOM_FACTOR

NO_SECOND = "no second statistic"


class TokensPane(TokenView):
    """What its keys do to a sample on show."""

    HELP = """\
# Tokens

One sample: the prompt is muted, trained tokens are shaded by a statistic, masked tokens (tool output) are not shaded.
Special tokens are shown in «». A character made of several tokens is shown on the first one, the others show ⋯.

- **m** chooses the statistic, **M** a second one for the chart, drawn against the right axis.
- **r** changes the range of the shades: the whole **step** (ratio has full shade at e and 1/e), this **sample**,
  or the **window**, the tokens on screen.
- **K** changes the two hues of the shades: orange-blue, red-blue, purple-green. The choice is saved.
- **]** goes to the next worst token of the sample, and after its last one to those of the whole step; **[** goes back.
  **}** and **{** use the whole step at once. Worst means largest |value|; for ratio, largest |log|.
- **/** searches the text for a regular expression, also across tokens; **;** goes to the next match, **,** to the
  previous one; escape clears the search. **ctrl+g** goes to a position.
- **+** and **-** zoom the chart around the cursor, **H** and **L** scroll it, **0** shows the whole chart. The wheel
  zooms, shift and wheel scrolls, a drag zooms to the dragged range, a double click shows the whole chart.
- **n** and **p** open the next and previous sample in the order of the table.
- Arrows or **h j k l** move the cursor; a click on text or chart does too. **escape** goes back to the samples.

Δ (lp_diff) is the trainer's log-prob of a token minus the engine's, ratio (imp_ratio) the exponential of Δ. Both exist
only where the loss mask is 1 and both log-probs are dumped. Before a token, │ marks the start of a turn (a generate
call, or a run of trained tokens) and ┊ the start of a context-parallel (cp) chunk; each cp rank trained two of them.
"""
    BINDINGS = [
        Binding("m", "statistic", "Statistic", id="tokens.statistic"),
        Binding("M", "second", "Second statistic", show=False, id="tokens.second"),
        Binding("r,s", "scale", "Scale", id="tokens.scale"),
        Binding("K,C", "hues", "Hues", show=False, id="tokens.hues", tooltip="Change the hues of the shades"),
        Binding("right_square_bracket", "worst(1)", "Worst token", key_display="]", id="tokens.worst"),
        Binding("left_square_bracket", "worst(-1)", "Back", key_display="[", show=False, id="tokens.worst-back"),
        Binding("right_curly_bracket", "step_worst(1)", key_display="}", show=False, id="tokens.step-worst"),
        Binding("left_curly_bracket", "step_worst(-1)", key_display="{", show=False, id="tokens.step-worst-back"),
        Binding("slash", "search", "Search", key_display="/", id="tokens.search"),
        Binding("semicolon,f3", "hit(1)", "Next match", key_display=";", show=False, id="tokens.next-hit"),
        Binding("comma,shift+f3", "hit(-1)", "Previous match", key_display=",", show=False, id="tokens.previous-hit"),
        Binding("escape", "end_search", "Clear search", show=False, id="tokens.end-search"),
        Binding("ctrl+g", "position", "Go to", show=False, id="tokens.position"),
        Binding("plus,equals_sign", "zoom(1)", "Zoom in", key_display="+", show=False, id="tokens.zoom-in"),
        Binding("minus", "zoom(-1)", "Zoom out", key_display="-", show=False, id="tokens.zoom-out"),
        Binding("0", "zoom(0)", "Whole chart", show=False, id="tokens.zoom-reset"),
        Binding("H", "pan(-1)", "Scroll the chart left", show=False, id="tokens.pan-left"),
        Binding("L", "pan(1)", "Scroll the chart right", show=False, id="tokens.pan-right"),
    ]

    def sheet(self, source: SheetSource) -> Sheet | None:
        if source.step is None or self.view is None:
            return None
        return sample_sheet(source.step, self.view, self.token, source.words)

    # Statistics ------------------------------------------------------------------------------------------------

    def action_statistic(self) -> None:
        def chosen(name: str | None) -> None:
            if name is not None:
                self.insist(name)

        if self.view is not None:
            dialog = Choose("statistic for shades and chart", self._choices(), self.shown, self._meanings())
            self.app.push_screen(dialog, chosen)

    def action_second(self) -> None:
        def chosen(name: str | None) -> None:
            if name is not None:
                self.second = None if name == NO_SECOND else name

        if self.view is not None:
            choices = [(NO_SECOND, NO_SECOND), *self._choices()]
            dialog = Choose("second statistic (right axis)", choices, self.second or NO_SECOND, self._meanings())
            self.app.push_screen(dialog, chosen)

    def _choices(self) -> list[tuple[str, str]]:
        assert self.view is not None
        return [(name, choice_text(name, field)) for name, field in by_interest(self.view)]

    def _meanings(self) -> dict[str, str]:
        assert self.view is not None
        return {name: in_full(of_field(name)) for name, _ in by_interest(self.view)}

    def meanings(self) -> list[Meaning]:
        """Return what the statistics mean, those on show first."""
        if self.view is None:
            return []
        names = dict.fromkeys([self.shown, *filter(None, [self.second]), *(name for name, _ in by_interest(self.view))])
        return [of_field(name) for name in names]

    def action_scale(self) -> None:
        self.scale = SCALE_NAMES[(SCALE_NAMES.index(self.scale) + 1) % len(SCALE_NAMES)]

    def action_hues(self) -> None:
        pairs = list(HUE_PAIRS)
        self.choose_hues(pairs[(pairs.index(self.hues) + 1) % len(pairs)])

    def choose_hues(self, pair: str) -> None:
        self.hues = pair
        keep_hues(pair)
        self.app.clear_notifications()
        self.notify(f"hues {pair}: {meaning(pair)}")

    # The chart -------------------------------------------------------------------------------------------------

    def action_zoom(self, by: int) -> None:
        if by:
            self.chart.plot.zoom(ZOOM_FACTOR**-by)
        else:
            self.chart.plot.window = None

    def action_pan(self, by: int) -> None:
        self.chart.plot.pan(by * PAN_SHARE)

    # Going to a token ------------------------------------------------------------------------------------------

    def action_position(self) -> None:
        last = 0 if self.view is None else len(self.view.texts) - 1

        async def check(text: str) -> str:
            if not (text.isascii() and text.isdecimal() and int(text) <= last):
                raise DumpError("position", f"type a number from 0 to {last}")
            return ""

        def answered(text: str | None) -> None:
            if text:
                self.go_to(int(text))

        if self.view is not None and self.view.texts:
            self.app.push_screen(Ask(f"go to the token at position (0 to {last})", check), answered)

    def action_worst(self, by: int) -> None:
        if self.view is None:
            return
        token = self.walk.next(by)
        if token is None:
            self.action_step_worst(1)
        else:
            self.go_to(token)

    def action_step_worst(self, by: int) -> None:
        if self.opened is None:
            return
        survey = self.surveys.get(self.shown)
        if survey is None or not len(survey.tokens):
            state = "are not known yet" if survey is None else "do not exist: no trained token has a value"
            self.notify(f"the worst tokens of the step by {visible(field_label(self.shown))} {state}", markup=False)
            return
        position, token = self.walk.next_of_step(survey, by)
        if position == self.opened.position:
            self.walk.stand_on(token)
            self.go_to(token)
        else:
            self.awaited = position, token
            self.post_message(SampleChosen(position))

    # Search ----------------------------------------------------------------------------------------------------

    def action_search(self) -> None:
        def answered(pattern: str | None) -> None:
            if pattern:
                self._begin_search(pattern)
            elif pattern is not None:
                self.action_end_search()

        if self.view is not None:
            question = ask_pattern("search the text", self.search.pattern, hint=TOKENS_HINT)
            self.app.push_screen(question, answered)

    def _begin_search(self, pattern: str) -> None:
        self.search.begin(pattern)
        self.search.goes = True
        self._ask_search()

    def take(self, answer: Answer) -> None:
        match answer:
            case FieldSurveyed():
                self._take_survey(answer)
            case TokenHits():
                self._take_hits(answer)

    def _take_hits(self, event: TokenHits) -> None:
        if event.view is not self.view or event.pattern != self.search.pattern:
            return
        if event.problem:
            self.notify(visible(event.problem), severity="error", markup=False)
            return self.action_end_search()
        self.search.found(event.hits)
        self._mark_hits()
        if self.search.goes and (token := self.search.first(self.heat.cursor)) is not None:
            self.go_to(token)
        self.search.goes = False

    def action_hit(self, by: int) -> None:
        token = self.search.next(self.heat.cursor, by)
        if token is None:
            self.notify("no match in this sample" if self.search.pattern else "no search yet; / starts one")
        else:
            self.go_to(token)

    def _mark_hits(self) -> None:
        self.heat.mark(self.search.tokens)
        self.reshade()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return bool(self.search.pattern) if action == "end_search" else True

    def action_end_search(self) -> None:
        self.search.begin("")
        self._mark_hits()

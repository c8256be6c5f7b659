"""The app: which step, sample and pane are on screen, and what every key of it does."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias

from textual import events, on
from textual.app import App, ComposeResult, SystemCommand
from textual.binding import Binding
from textual.command import Provider
from textual.containers import Horizontal

from dumptui.core.errors import DumpError
from dumptui.core.state import State
from dumptui.core.text import visible
from dumptui.tui.answers import Compared, Found, Hits, Loaded, Opened, Packed, Surveyed, Unopened
from dumptui.tui.desk import Desk
from dumptui.tui.finder import Finder
from dumptui.tui.memory import Memory
from dumptui.tui.panes.rollout import RolloutPane
from dumptui.tui.panes.samples import SampleChosen, SampleMoved, place
from dumptui.tui.sample_app import SAMPLE_PANES, SampleApp
from dumptui.tui.widgets.keys import KeyLine
from dumptui.tui.widgets.line import Line
from dumptui.tui.widgets.tabs import TabLine
from dumptui.tui.widgets.wait import WaitLine

# The other panes are imported after the first paint, and so are handled by name: with `on` their classes would be
# needed here.
if TYPE_CHECKING:
    from rich.console import RenderableType
    from textual.screen import Screen

    from dumptui.core.run import Run, StepKey
    from dumptui.core.summaries import Summaries
    from dumptui.core.workers import Workers
    from dumptui.tui.panes.batch import BatchPane
    from dumptui.tui.panes.conversation import ConversationPane
    from dumptui.tui.panes.groups import GroupsPane
    from dumptui.tui.panes.health import HealthPane
    from dumptui.tui.panes.pair import PairPane
    from dumptui.tui.panes.token_view import TokenView
    from dumptui.tui.panes.tokens import TokensPane
    from dumptui.tui.partners import Partner
    from dumptui.tui.place import Place

    Pane: TypeAlias = RolloutPane | BatchPane | TokensPane | ConversationPane | HealthPane | GroupsPane | PairPane

HELP = "HelpPanel"  # by name: importing it brings a Markdown parser, a tenth of the time of a start
PANES = {
    "rollout": "Rollout",
    "batch": "Batch",
    "tokens": "Tokens",
    "conversation": "Conversation",
    "health": "Health",
    "groups": "Groups",
}
OUT_OF_PLACE = {"health": ("conversation", "facts", "sample", "member", "compare"), "conversation": ("conversation",)}


def places() -> type[Provider]:
    from dumptui.tui.palette import Places

    return Places


def actions() -> type[Provider]:
    from dumptui.tui.palette import Actions

    return Actions


class DumpTui(SampleApp):
    """One run: Enter goes from a step to its samples to a sample's tokens, Escape back, n and p along the samples."""

    TITLE = "dumptui"
    CSS_PATH = "dumptui.tcss"
    HORIZONTAL_BREAKPOINTS = [(0, "-tiny"), (60, "-narrow"), (100, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-low"), (20, "-high"), (32, "-tall")]
    COMMANDS = App.COMMANDS | {places, actions}
    BINDINGS = [
        *(
            Binding(str(at), f"pane('{name}')", PANES[name], show=False, id=f"app.{name}")
            for at, name in enumerate(PANES, 1)
        ),
        Binding("escape", "up", "Back", id="app.up"),
        Binding("n", "sample(1)", "Next", id="app.next-sample", tooltip="The next sample of the table"),
        Binding("p", "sample(-1)", "Previous", id="app.previous-sample", tooltip="The sample before in the table"),
        Binding("greater_than_sign", "step(1)", "Step after", key_display=">", show=False, id="app.next-step"),
        Binding("less_than_sign", "step(-1)", "Step before", key_display="<", show=False, id="app.previous-step"),
        Binding("number_sign", "ask_step", "Go to a step", key_display="#", show=False, id="app.ask-step"),
        Binding("t", "twin_step", "Eval or train", show=False, id="app.twin-step", tooltip="The eval of its number"),
        Binding("d", "compare", "Compare", show=False, id="app.compare", tooltip="The sample beside another one"),
        Binding("F", "follow", "Follow", show=False, id="app.follow", tooltip="Go to each newest step"),
        Binding("end", "follow_on", "Follow", show=False, id="app.follow-on", priority=True),
        Binding("q", "quit", "Quit", id="app.quit"),
        Binding("ctrl+p", "command_palette", "Everything", show=False, priority=True, id="app.palette"),
        Binding("question_mark", "help", "Keys", key_display="?", id="app.help"),
    ]

    def __init__(
        self,
        run: Run,
        key: StepKey | None = None,
        sample: tuple[int, int] | None = None,
        pane: str | None = None,
        summaries: Summaries | None = None,
        workers: Workers | None = None,
        follow: bool = False,
        bell: bool = False,
        state: State | None = None,
    ) -> None:
        """`key` is one of the run's steps; without it, the newest that can be read and has samples is opened.

        `state` keeps what is chosen, by default as long as the app runs.
        """
        super().__init__(run, key, summaries, workers, follow, bell)
        self.state = state or State(run.root, None)
        self._position: int | None = None  # of the sample that is shown, or waited for, in
        self._opening = "tokens"  # this pane
        self._stale: set[str] = set()  # panes whose sample was read before its step was read again
        self._asked_sample: tuple[int | None, int] | None = sample
        self._asked_place: Place | None = None  # its token is gone to once its sample is open
        self.placed = (key, sample, pane) != (None, None, None)  # a place was asked for, or a sample opened
        self._asked_pane = pane or ("rollout" if sample is None else "tokens")
        self._below = "rollout"  # the pane from which a sample was opened
        self._beside = "rollout"  # the pane from which two samples were compared
        self._pair: tuple[int, int] | None = None  # the samples that the pair pane waits for
        self._filled = asyncio.Event()

    def compose(self) -> ComposeResult:
        name = Line(id="run")
        name.say(visible(self.run_.root.resolve().name))
        with Horizontal(id="top"):
            yield name
            yield Line(id="where")
            yield TabLine(PANES, 0.45 if self.live.on else 0.56)  # more is said of a run that is followed
        with Desk(initial="rollout", id="panes"):
            yield RolloutPane(list(self.run_.steps), Finder(self.reader), Memory(self.state))
        yield WaitLine(id="progress")
        yield KeyLine(lambda: self.desk.offer())

    def on_mount(self) -> None:
        self.desk = self.query_one(Desk)
        self.wait = self.query_one(WaitLine)
        self.rollout = self.query_one(RolloutPane)
        self.rollout.enter()
        self.announce(self.wanted)
        self.screen.call_after_refresh(self._fill)  # not in the app's own queue, which waits for it at a key

    async def _fill(self) -> None:
        """Bring what the first screen does without: the other panes, the plots and the reader, 0.3 s of imports."""
        from dumptui.tui.panes.batch import BatchPane
        from dumptui.tui.panes.conversation import ConversationPane
        from dumptui.tui.panes.groups import GroupsPane
        from dumptui.tui.panes.health import HealthPane
        from dumptui.tui.panes.pair import PairPane
        from dumptui.tui.panes.tokens import TokensPane

        self.batch, self.tokens, self.talk = BatchPane(), TokensPane(), ConversationPane()
        self.health, self.groups, self.pair = HealthPane(), GroupsPane(), PairPane()
        panes: list[Pane] = [self.rollout, self.batch, self.tokens, self.talk, self.health, self.groups]
        self.panes = dict(zip(PANES, panes, strict=True))
        self.panes["pair"] = self.pair  # has no tab: a pair is asked for
        with self.batch_update():
            await self.rollout.fill()
            await self.desk.fill(pane for pane in self.panes.values() if pane is not self.rollout)
            if self._exit:  # meanwhile: nothing is mounted any more
                return
            self.start()
            self._show_pane(self._asked_pane)
        self._filled.set()

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.InputEvent):  # typed ahead, it waits for the pane that it may be for
            await self._filled.wait()
        await super().on_event(event)

    # Steps -----------------------------------------------------------------------------------------------------

    def clear(self, why: str) -> None:
        self.groups.clear(why)
        self._pair = None
        if self.pane == "pair":
            self._show_pane(self._beside)
        self._leave_sample(why)

    def _leave_sample(self, why: str) -> None:
        self._position = None
        self.tokens.clear(why)
        self.talk.clear(why)

    @on(RolloutPane.StepChosen)
    def _step_chosen(self, event: RolloutPane.StepChosen) -> None:
        if event.key != self.wanted:
            self._asked_sample = None
        self.choose_step(event.key)

    def show(self, loaded: Loaded, again: bool, waited: bool) -> None:
        """Where more of the step on screen is there now, the place in it stays, or is still `waited` for."""
        self.rollout.show_step(loaded, again=again)
        self.batch.show_step(loaded, self.rollout.right.arrangement, again=again)
        self.groups.show_step(loaded, again=again)
        if not again:
            self._leave_sample("enter on a sample opens it" if loaded.samples else "the step has no samples")
            self._open_asked_sample()
        elif self._position is not None and self._position >= len(loaded.samples):
            self._leave_sample("the step was written anew, with fewer samples")
        else:
            self._stale = set(SAMPLE_PANES)
            if self._position is not None and (waited or self.pane in SAMPLE_PANES):
                self.open_sample(self._position, self._opening if waited else self.pane)

    def show_failure(self, problem: str) -> None:
        self.rollout.show_failure(self.wanted, problem)
        self.batch.clear(problem)
        self.clear(problem)

    # Health ----------------------------------------------------------------------------------------------------

    def on_health_pane_wanted(self) -> None:
        self.reader.find_health()

    def on_health_pane_step_wanted(self, event: HealthPane.StepWanted) -> None:
        self.rollout.leave_samples()
        self._step_chosen(RolloutPane.StepChosen(event.key))
        self._show_pane("rollout")

    @on(Found)
    def _health_found(self, event: Found) -> None:
        self.health.add(event.rows, event.done)

    # Samples ---------------------------------------------------------------------------------------------------

    def _open_asked_sample(self) -> None:
        assert self.loaded is not None
        asked, self._asked_sample = self._asked_sample, None
        from dumptui.core.views import find_sample

        try:
            if asked is not None:
                self.rollout.select_sample(find_sample(self.loaded.step, *asked).position)
                self.panes[self.pane].enter()
        except DumpError as error:
            self.notify(visible(str(error)), severity="error", markup=False)
        if self.pane in SAMPLE_PANES:
            self._go_to_pane(self.pane)

    @on(SampleChosen)
    def _sample_chosen(self, event: SampleChosen) -> None:
        self.live.moved(False)
        self.open_sample(event.position)

    def on_batch_pane_sort_wanted(self, event: BatchPane.SortWanted) -> None:
        if event.key is None:
            self.rollout.ask_sort(event.columns)
        else:
            self.rollout.sort_by(event.key, event.more)

    def on_batch_pane_reverse_wanted(self) -> None:
        self.rollout.action_reverse()

    @on(RolloutPane.Arranged)
    def _arranged(self) -> None:
        self.batch.sort_samples(self.rollout.right.arrangement)
        self.batch.select_sample(self.rollout.current)

    def on_batch_pane_packing_wanted(self, event: BatchPane.PackingWanted) -> None:
        self.reader.pack(event.loaded)

    @on(Packed)
    def _packed(self, event: Packed) -> None:
        self.batch.show_packed(event)

    @on(SampleMoved)
    def _sample_moved(self, event: SampleMoved) -> None:
        self.rollout.select_sample(event.position)

    def open_sample(self, position: int, pane: str = "tokens") -> None:
        """Show a sample in a pane once it is read; while its step is, the first one will be."""
        if self.loaded is None or position >= len(self.loaded.samples):
            return self._show_pane(pane)
        self._position, self._opening = position, pane
        self.wait.begin(f"reading the {pane} of sample {self.loaded.step.samples[position].index}")
        if pane == "conversation":
            self.read_conversation(position)
        else:
            self.reader.open_sample(self.loaded.step, position)

    def sample_opened(self, position: int, pane: str) -> bool:
        if (position, pane) != (self._position, self._opening):
            return False
        self.wait.end()
        self.placed = True
        self._stale.discard(pane)
        self.rollout.select_sample(position)
        self._show_pane(pane)
        return True

    @on(Opened)
    def _sample_opened(self, event: Opened) -> None:
        if self.loaded is None or event.key != self.loaded.key or not self.sample_opened(event.position, "tokens"):
            return
        self.tokens.show_sample(event, place(self.loaded.step, event.position))
        if (token := self.take_token()) is not None:
            self.tokens.go_to(token)
        self._go_to_token(event)

    def on_token_view_survey_wanted(self, event: TokenView.SurveyWanted) -> None:
        if self.loaded is not None:
            self.reader.survey(self.loaded.step, event.name)

    @on(Surveyed)
    def _surveyed(self, event: Surveyed) -> None:
        self.tokens.take_survey(event)

    def on_token_view_search_wanted(self, event: TokenView.SearchWanted) -> None:
        self.reader.search(event.view, event.pattern)

    @on(Hits)
    def _searched(self, event: Hits) -> None:
        self.tokens.take_hits(event)

    @on(Unopened)
    def _sample_unopened(self, event: Unopened) -> None:
        self._leave_reading()
        self.notify(visible(event.problem), severity="error", markup=False)

    # Two samples -----------------------------------------------------------------------------------------------

    def action_compare(self) -> None:
        """Ask with which sample to compare the one under the cursor: others of its group, or those beside it."""
        from dumptui.tui.dialog import Choose
        from dumptui.tui.partners import choice_text, first_choice

        compared = self.pair.compared if self.pane == "pair" else None
        left = self.rollout.current if compared is None else compared.left
        if self.loaded is None or left is None:
            return
        found = self._partners(left)
        if (first := first_choice(found)) is None:
            return self.notify("there is no other sample to compare this one with", markup=False)
        records = self.rollout.right.samples
        choices = [(str(one.position), choice_text(records[one.position], one)) for one in found]
        dialog = Choose(f"compare sample {records[left]['label']} with", choices, str(first.position))
        self.push_screen(dialog, lambda chosen: None if chosen is None else self.compare(left, int(chosen)))

    def _partners(self, left: int) -> list[Partner]:
        from dumptui.tui.partners import partners

        return partners(self.groups.group_of(left), left, self.rollout.order)

    def compare(self, left: int, right: int) -> None:
        if self.loaded is not None:
            self._pair = left, right
            self.wait.begin("comparing two samples")
            self.reader.compare(self.loaded.step, left, right)

    def on_pair_pane_wanted(self, event: PairPane.Wanted) -> None:
        self.compare(event.left, event.right)

    @on(Compared)
    def _compared(self, event: Compared) -> None:
        wanted = self.wait.waiting and (event.left, event.right) == self._pair
        if self.loaded is None or event.key != self.loaded.key or not wanted:
            return
        self.wait.end()
        if self.pane != "pair":
            self._beside = self.pane
        self.pair.show_pair(event, self.rollout.right.samples, self._partners(event.left))
        self.rollout.select_sample(event.left)
        self._show_pane("pair")

    def action_sample(self, by: int) -> None:
        if self.pane == "pair" and self.facts_screen is None:
            right = self.pair.next_partner(by)
            if right is not None and self.pair.compared is not None:
                self.compare(self.pair.compared.left, right)
            return
        position = self.rollout.next_sample(by) if self.loaded is not None else None
        if position is not None:
            self.go_to_sample(position)

    def go_to_sample(self, position: int) -> None:
        """Another sample of the step, in the pane that is on screen or comes there, or its facts where those are."""
        if self.facts_screen is not None:
            self.rollout.select_sample(position)
            self.action_facts()
        elif self.pane in SAMPLE_PANES or self.wait.waiting:
            self.open_sample(position, self._opening if self.wait.waiting else self.pane)
        else:
            self.rollout.select_sample(position)
            self.batch.select_sample(position)
            self.groups.select_sample(position)

    # Places ----------------------------------------------------------------------------------------------------

    def go(self, place: Place) -> None:
        """Go to a place, as far as it is still there."""
        if place.key not in self.run_.steps:
            return self.notify(f"there is no {place.key} in this run", severity="warning", markup=False)
        if self.loaded is None or place.key != self.loaded.key:
            self.choose_step(place.key)
        self._asked_sample, self._asked_place = place.sample, place
        self._show_pane(place.pane if place.pane in PANES else "rollout")
        if self.loaded is not None:
            self._open_asked_sample()

    def _go_to_token(self, event: Opened) -> None:
        place, self._asked_place = self._asked_place, None
        sample = event.view.sample
        if place is not None and place.token is not None and place.sample == (sample.index, sample.occurrence):
            self.tokens.go_to(place.token)

    def exit(self, result: None = None, return_code: int = 0, message: RenderableType | None = None) -> None:
        if self.loaded is not None:
            self.desk.remember()
        super().exit(result, return_code, message)

    # Panes -----------------------------------------------------------------------------------------------------

    @property
    def pane(self) -> str:
        return self.desk.current or "rollout"

    @on(TabLine.Chosen)
    def _tab_chosen(self, event: TabLine.Chosen) -> None:
        self.action_pane(event.name)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """What is done with the sample under the cursor is not offered where none is in sight, nor where one is."""
        if hasattr(self, "desk") and action in OUT_OF_PLACE.get(self.pane, ()):
            return False
        return super().check_action(action, parameters)

    def action_pane(self, name: str) -> None:
        if name == "tokens":
            self.live.moved(False)
        self._go_to_pane(name)

    def _go_to_pane(self, name: str) -> None:
        """The same place seen another way: the sample under the cursor stays the same."""
        if self.loaded is not None and self.wait.waiting:
            self._leave_reading()
        current = self.rollout.current if self.loaded is not None else None
        if name in SAMPLE_PANES and current is not None and self._has_to_read(current, name):
            self.open_sample(current, name)
        else:
            self._show_pane(name)

    def _has_to_read(self, position: int, pane: str) -> bool:
        return pane in self._stale or position != self._position_in(pane)

    def _position_in(self, pane: str) -> int | None:
        return self.talk.position if pane == "conversation" else self.tokens.position

    def _show_pane(self, name: str) -> None:
        if self.pane not in SAMPLE_PANES:
            self._below = self.pane
        self.desk.current = name
        self.query_one(TabLine).active = name
        self.batch.select_sample(self.rollout.current)
        self.groups.select_sample(self.rollout.current)
        self.panes[name].enter()

    def action_up(self) -> None:
        """Escape: leave what is being read, else one level up."""
        if self.wait.waiting:
            self._leave_reading()
        elif self.screen.query(HELP):
            self.action_hide_help_panel()
        elif self.pane == "pair":
            self._show_pane(self._beside)
        elif self.pane == "groups" and self.groups.up():
            return
        elif self.pane != "rollout":
            self._show_pane(self._below if self.pane in SAMPLE_PANES else "rollout")
        else:
            self.rollout.leave_samples()

    def _leave_reading(self) -> None:
        self.reader.abandon()
        self.wait.end()
        if self.loaded is None:
            self.show_where()
            return self.show_failure("left unread; enter on the step reads it")
        self._position = self._position_in(self.pane)
        if self._position is not None and self.pane in SAMPLE_PANES:
            self.rollout.select_sample(self._position)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Of Textual's own those that no key of ours stands for."""
        yield from (one for one in super().get_system_commands(screen) if one.title in ("Theme", "Screenshot"))

    def action_help(self) -> None:
        if self.screen.query(HELP):
            self.action_hide_help_panel()
        else:
            self.action_show_help_panel()

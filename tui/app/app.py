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
from dumptui.core.store.state import State
from dumptui.core.text import visible
from dumptui.tui.app.comparison import PairApp
from dumptui.tui.app.samples import SAMPLE_PANES
from dumptui.tui.app.sheet_actions import SheetActions
from dumptui.tui.panes.rollout.pane import RolloutPane
from dumptui.tui.presentation.sample_rows import SampleChosen, SampleMoved
from dumptui.tui.reading.messages import BatchAnalysed, HealthRows, StepLoaded
from dumptui.tui.reading.run_search import Finder
from dumptui.tui.session.location import current_place
from dumptui.tui.session.preferences import Preferences
from dumptui.tui.widgets.key_bar import KeyLine
from dumptui.tui.widgets.line import Line
from dumptui.tui.widgets.progress_line import WaitLine
from dumptui.tui.widgets.tab_bar import TabLine

# The other panes are imported after the first paint, and so are handled by name: with `on` their classes would be
# needed here.
if TYPE_CHECKING:
    from rich.console import RenderableType
    from textual.screen import Screen

    from dumptui.core.process.workers import Workers
    from dumptui.core.run.run import Run, StepKey
    from dumptui.core.store.summaries import Summaries
    from dumptui.tui.panes.batch import BatchPane
    from dumptui.tui.panes.comparison import PairPane
    from dumptui.tui.panes.conversation import ConversationPane
    from dumptui.tui.panes.groups import GroupsPane
    from dumptui.tui.panes.health import HealthPane
    from dumptui.tui.panes.tokens.pane import TokensPane
    from dumptui.tui.session.location import Location

    Pane: TypeAlias = RolloutPane | BatchPane | TokensPane | ConversationPane | HealthPane | GroupsPane | PairPane

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
    from dumptui.tui.app.palette import Places

    return Places


def actions() -> type[Provider]:
    from dumptui.tui.app.palette import Actions

    return Actions


def import_panes() -> None:
    import dumptui.tui.panes.batch
    import dumptui.tui.panes.comparison
    import dumptui.tui.panes.conversation
    import dumptui.tui.panes.groups
    import dumptui.tui.panes.health
    import dumptui.tui.panes.tokens.pane
    import dumptui.tui.reading.tasks  # noqa: F401
    from dumptui.tui.widgets.plot.canvas import figure_class

    figure_class()  # brings plotext


class DumpTui(PairApp):
    """One run: Enter goes from a step to its samples to a sample's tokens, Escape back, n and p along the samples."""

    TITLE = "dumptui"
    CSS_PATH = "../dumptui.tcss"
    HORIZONTAL_BREAKPOINTS = [(0, "-tiny"), (60, "-narrow"), (100, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-low"), (20, "-high"), (32, "-tall")]
    COMMANDS = App.COMMANDS | {places, actions}
    BINDINGS = [
        *(
            Binding(str(at), f"pane('{name}')", PANES[name], show=False, id=f"app.{name}")
            for at, name in enumerate(PANES, 1)
        ),
        Binding("escape", "up", "Back", id="app.up"),
        Binding("n", "sample(1)", "Next", id="app.next-sample", tooltip="The next sample in the table"),
        Binding("p", "sample(-1)", "Previous", id="app.previous-sample", tooltip="The previous sample in the table"),
        Binding("greater_than_sign", "step(1)", "Next step", key_display=">", show=False, id="app.next-step"),
        Binding("less_than_sign", "step(-1)", "Previous step", key_display="<", show=False, id="app.previous-step"),
        Binding("number_sign", "ask_step", "Go to a step", key_display="#", show=False, id="app.ask-step"),
        Binding(
            "t",
            "twin_step",
            "Train/eval",
            show=False,
            id="app.twin-step",
            tooltip="The eval with the same number, or back",
        ),
        Binding("F", "follow", "Follow", show=False, id="app.follow", tooltip="Follow the newest step"),
        Binding("end", "follow_on", "Follow", show=False, id="app.follow-on", priority=True),
        Binding("q", "quit", "Quit", id="app.quit"),
        Binding("ctrl+p", "command_palette", "Commands", show=False, priority=True, id="app.palette"),
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
        self._asked_sample: tuple[int | None, int] | None = sample
        self.placed = (key, sample, pane) != (None, None, None)
        self._asked_pane = pane or ("rollout" if sample is None else "tokens")
        self._below = "rollout"  # the pane from which a sample was opened
        self._filled = asyncio.Event()

    def compose(self) -> ComposeResult:
        name = Line(id="run")
        name.say(visible(self.run_.root.resolve().name))
        with Horizontal(id="top"):
            yield name
            yield Line(id="where")
            yield TabLine(PANES, 0.45 if self.live.on else 0.56)  # more is said of a run that is followed
        with SheetActions(initial="rollout", id="panes"):
            yield RolloutPane(list(self.run_.steps), Finder(self.reader), Preferences(self.state))
        yield WaitLine(id="progress")
        yield KeyLine(lambda: self.desk.offer())

    @property
    def is_ready(self) -> bool:
        return self._filled.is_set()

    def on_mount(self) -> None:
        self.desk = self.query_one(SheetActions)
        self.wait = self.query_one(WaitLine)
        self.rollout = self.query_one(RolloutPane)
        self.rollout.enter()
        self.announce(self.wanted)
        self.screen.call_after_refresh(self._fill)  # not in the app's own queue, which waits for it at a key

    async def _fill(self) -> None:
        """Bring what the first screen does without: the other panes, the plots and the reader."""
        await asyncio.wrap_future(self.reader.submit(import_panes))  # 0.3 s, in which the screen can be drawn
        from dumptui.tui.panes.batch import BatchPane
        from dumptui.tui.panes.comparison import PairPane
        from dumptui.tui.panes.conversation import ConversationPane
        from dumptui.tui.panes.groups import GroupsPane
        from dumptui.tui.panes.health import HealthPane
        from dumptui.tui.panes.tokens.pane import TokensPane

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
            self.show_pane(self._asked_pane)
        self._filled.set()

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.InputEvent):  # typed ahead, it waits for the pane that it may be for
            await self._filled.wait()
        await super().on_event(event)

    # Steps -----------------------------------------------------------------------------------------------------

    def clear(self, why: str) -> None:
        with self.renewing(self.groups):
            self.groups.clear(why)
        self.leave_pair()
        self._leave_sample(why)

    def _leave_sample(self, why: str) -> None:
        self._position = None
        with self.renewing(self.tokens):
            self.tokens.clear(why)
        with self.renewing(self.talk):
            self.talk.clear(why)

    @on(RolloutPane.StepChosen)
    def _step_chosen(self, event: RolloutPane.StepChosen) -> None:
        if event.key != self.wanted:
            self._asked_sample = None
        self.choose_step(event.key)

    def show(self, loaded: StepLoaded, again: bool, waited: bool) -> None:
        """Where more of the step on screen is there now, the place in it stays, or is still `waited` for."""
        with self.renewing(self.rollout):
            self.rollout.show_step(loaded, again=again)
        with self.renewing(self.batch):
            self.batch.show_step(loaded, self.rollout.right.arrangement, again=again)
        with self.renewing(self.groups):
            self.groups.show_step(loaded, again=again)
        if not again:
            self._leave_sample("enter on a sample opens it" if loaded.samples else "the step has no samples")
            self._open_asked_sample()
        elif self._position is not None and self._position >= len(loaded.samples):
            self._leave_sample("the step was rewritten with fewer samples")
        else:
            self._renew_samples(waited)

    def show_again(self) -> None:
        """What the samples on screen are read with is another: the tokenizer."""
        self._renew_samples(self.wait.waiting)

    def _renew_samples(self, waited: bool) -> None:
        """Of what shows samples read before, the one on screen now, the others when they come there."""
        self._stale = frozenset(SAMPLE_PANES)
        if self.facts_screen is not None:
            self.action_facts()
        elif self.pane == "pair" and self.pair.compared is not None:
            self.compare_again(self.pair.compared)
        elif self._position is not None and (waited or self.pane in SAMPLE_PANES):
            self.open_sample(self._position, self._opening if waited else self.pane)

    def show_failure(self, problem: str) -> None:
        if self.loaded is not None:  # its files are being written anew: the place is gone to again once they are there
            place = current_place(self)
            self._asked_sample, self._asked_place = place.sample, place
        with self.renewing(self.rollout):
            self.rollout.show_failure(self.wanted, problem)
        with self.renewing(self.batch):
            self.batch.clear(problem)
        self.clear(problem)

    # Health ----------------------------------------------------------------------------------------------------

    def on_health_pane_wanted(self) -> None:
        self.reader.find_health()

    def on_health_pane_step_wanted(self, event: HealthPane.StepWanted) -> None:
        self.rollout.leave_samples()
        self._step_chosen(RolloutPane.StepChosen(event.key))
        self.show_pane("rollout")

    @on(HealthRows)
    def _health_found(self, event: HealthRows) -> None:
        with self.renewing(self.health):
            self.health.add(event.rows, event.done, event.whole)

    # Samples ---------------------------------------------------------------------------------------------------

    def _open_asked_sample(self) -> None:
        assert self.loaded is not None
        asked, self._asked_sample = self._asked_sample, None
        from dumptui.core.tables.tokens import find_sample

        try:
            if asked is not None:
                self.rollout.select_sample(find_sample(self.loaded.step, *asked).position)
                self.panes[self.pane].enter()
        except DumpError as error:
            self.notify(visible(error.short), severity="error", markup=False)
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

    @on(BatchAnalysed)
    def _packed(self, event: BatchAnalysed) -> None:
        self.batch.show_packed(event)

    @on(SampleMoved)
    def _sample_moved(self, event: SampleMoved) -> None:
        self.rollout.select_sample(event.position)

    # Along the samples -------------------------------------------------------------------------------------------

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
            self._select_elsewhere(position)

    def _select_elsewhere(self, position: int | None) -> None:
        """The other panes that list the samples of the step."""
        with self.containing(self.batch):
            self.batch.select_sample(position)
        with self.containing(self.groups):
            self.groups.select_sample(position)

    # Places ----------------------------------------------------------------------------------------------------

    def go(self, place: Location) -> None:
        """Go to a place, as far as it is still there."""
        if place.key not in self.run_.steps:
            return self.notify(f"this run has no {place.key}", severity="warning", markup=False)
        if self.loaded is None or place.key != self.loaded.key:
            self.choose_step(place.key)
        self._asked_sample, self._asked_place = place.sample, place
        self.show_pane(place.pane if place.pane in PANES else "rollout")
        if self.loaded is not None:
            self._open_asked_sample()

    def exit(self, result: None = None, return_code: int = 0, message: RenderableType | None = None) -> None:
        try:
            if self.loaded is not None:
                self.desk.remember()
        finally:
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
            self.show_pane(name)

    def show_pane(self, name: str) -> None:
        if self.pane not in SAMPLE_PANES:
            self._below = self.pane
        self.desk.current = name
        self.query_one(TabLine).active = name
        self._select_elsewhere(self.rollout.current)
        with self.containing(self.panes[name]):
            self.panes[name].enter()

    def action_up(self) -> None:
        """Escape: leave what is being read, else one level up."""
        if self.wait.waiting:
            self._leave_reading()
        elif self.pane == "pair":
            self.leave_pair()
        elif self.pane == "groups" and self.groups.up():
            return
        elif self.pane != "rollout":
            self.show_pane(self._below if self.pane in SAMPLE_PANES else "rollout")
        else:
            self.rollout.leave_samples()

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Of Textual's own those that no key of ours stands for."""
        yield from (one for one in super().get_system_commands(screen) if one.title in ("Theme", "Screenshot"))

    def action_help(self) -> None:
        from dumptui.tui.screens.help import HelpScreen

        self.push_screen(HelpScreen(self.screen))

"""The app: composes the panes and the controllers, passes messages up to them, and names what each key does."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING

from textual import events, on
from textual.app import App, ComposeResult, SystemCommand
from textual.containers import Horizontal

from dumptui.core.store.cache import Cache
from dumptui.core.store.state import State
from dumptui.core.store.summaries import Summaries
from dumptui.core.text import visible
from dumptui.tui.app.bindings import APP_BINDINGS, APP_COMMANDS, SYSTEM_COMMANDS
from dumptui.tui.app.follow import Live
from dumptui.tui.app.last_visit import LastVisit
from dumptui.tui.app.pane_switcher import PaneSwitcher
from dumptui.tui.app.panes import Panes, import_panes
from dumptui.tui.app.sheet_actions import SheetActions
from dumptui.tui.app.steps import Steps
from dumptui.tui.panes import FIRST_PANE, SHORT_TABS, TABS
from dumptui.tui.panes.requests import Request
from dumptui.tui.panes.rollout.pane import RolloutPane
from dumptui.tui.reading.reader import Reader
from dumptui.tui.reading.run_search import Finder
from dumptui.tui.session.preferences import Preferences
from dumptui.tui.terminal.terminal_app import TerminalApp
from dumptui.tui.terminal.themes import keep_theme
from dumptui.tui.widgets.key_bar import KeyLine
from dumptui.tui.widgets.line import Line, TailedLine
from dumptui.tui.widgets.message import Answer
from dumptui.tui.widgets.progress_line import WaitLine
from dumptui.tui.widgets.tab_bar import TabLine

# The controllers of samples know the reader's answers by type, which brings numpy: they come with the panes.
if TYPE_CHECKING:
    from rich.console import RenderableType
    from textual.screen import Screen

    from dumptui.core.files.step_files import StepKey
    from dumptui.core.process.workers import Workers
    from dumptui.core.run.run import Run
    from dumptui.tui.reading.messages import StepLoaded


class DumpTui(TerminalApp):
    """One run: Enter goes from a step to its samples to a sample's tokens, Escape back, n and p along the samples."""

    TITLE = "dumptui"
    CSS_PATH = "../dumptui.tcss"
    HORIZONTAL_BREAKPOINTS = [(0, "-tiny"), (60, "-narrow"), (100, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-low"), (20, "-high"), (32, "-tall")]
    COMMANDS = App.COMMANDS | APP_COMMANDS
    BINDINGS = APP_BINDINGS

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
        super().__init__()
        self.state = state or State(run.root, None)
        self.reader = Reader(summaries or Summaries(run, Cache(run.root, None)), self.post_message, workers, follow)
        self.rollout = RolloutPane(list(run.steps), Finder(self.reader), Preferences(self.state))
        self.wait = WaitLine(id="progress")
        self._where = TailedLine(id="where")
        self._switcher = PaneSwitcher(self.rollout, initial=FIRST_PANE, id="panes")
        self._tabs = TabLine(TABS, *((None, 0.45) if follow else (SHORT_TABS, 0.58)))  # a live run needs room for news
        live = Live(follow, key is None, bell)
        self.steps = Steps(self, run, key, self.reader, live, self.rollout, self.wait, self._where)
        self.panes = Panes(self, self._switcher, self._tabs, self.rollout)
        self._asked_sample: tuple[int | None, int] | None = sample
        self._asked_pane = pane or (FIRST_PANE if sample is None else "tokens")
        is_at_start = (key, sample, pane) == (None, None, None)
        self._visit = LastVisit(self.state, self.steps, self.panes, self._switcher, offered=is_at_start)
        self._filled = asyncio.Event()

    def compose(self) -> ComposeResult:
        name = Line(id="run")
        name.say(visible(self.steps.run.root.resolve().name))
        with Horizontal(id="top"):
            yield from (name, self._where, self._tabs)
        yield self._switcher
        yield self.wait
        yield KeyLine(self._visit.offer)

    def on_mount(self) -> None:
        self.theme_changed_signal.subscribe(self, lambda theme: keep_theme(theme.name))
        self.rollout.enter()
        self.steps.announce(self.steps.wanted)
        self.screen.call_after_refresh(self._fill)  # not in the app's own queue, which waits for it at a key

    async def _fill(self) -> None:
        """Add what the first screen does without: the other panes, the plots and the reader."""
        imported = asyncio.wrap_future(self.reader.compute(import_panes))  # 0.3 s, in which the screen can be drawn
        ended = asyncio.ensure_future(self._filled.wait())
        await asyncio.wait((imported, ended), return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
        if self.is_exiting:
            return
        imported.result()
        with self.batch_update():
            await self.rollout.fill()
            await self.panes.fill()
            if self.is_exiting:
                return
            self._make_controllers()
            self.steps.start(self.places)
            self.panes.show(self._asked_pane)
        self._filled.set()

    def _make_controllers(self) -> None:
        from dumptui.tui.app.comparison import Comparison
        from dumptui.tui.app.places import Places
        from dumptui.tui.app.samples import Samples
        from dumptui.tui.app.worst_tokens import WorstTokensList
        from dumptui.tui.panes.conversation import ConversationPane
        from dumptui.tui.panes.tokens.pane import TokensPane

        steps, reader, panes = self.steps, self.reader, self.panes
        self.tokens, self.conversation = panes.of(TokensPane), panes.of(ConversationPane)
        self.comparison = Comparison(self, steps, reader, panes)
        self.samples = Samples(self, steps, reader, panes, self.comparison, self._visit)
        self.places = Places(self, steps, panes, self.samples, self.comparison, self._asked_sample)
        self.worst_tokens = WorstTokensList(self, steps, reader, self.rollout, self.places)
        self.sheets = SheetActions(self, steps, reader, panes, self.places, self.state, self._visit)

    @property
    def is_ready(self) -> bool:
        return self._filled.is_set()

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.InputEvent):
            await self._filled.wait()  # typed ahead, it waits for the pane that it may be for
            if self.is_exiting:
                return
            if not isinstance(event, events.MouseMove):
                self.reader.yield_to_ui()
        await super().on_event(event)

    def painted(self) -> None:
        self.reader.go_on()

    def exit(self, result: None = None, return_code: int = 0, message: RenderableType | None = None) -> None:
        try:
            if self.loaded is not None:
                self.sheets.remember()
        finally:
            super().exit(result, return_code, message)
            self._filled.set()  # a key that waits for the panes would keep the app's queue from its end

    def on_unmount(self) -> None:
        self.reader.close()

    @property
    def loaded(self) -> StepLoaded | None:
        return self.steps.loaded

    @property
    def pane(self) -> str:
        return self.panes.name

    # Messages ------------------------------------------------------------------------------------------------------

    @on(Answer)
    def _answered(self, answer: Answer) -> None:
        """Give an answer of the reader to every controller and pane; each takes what it knows."""
        for taker in (self.steps, self.samples, self.comparison, self.panes):
            taker.take(answer)

    @on(Request)
    def _requested(self, request: Request) -> None:
        for server in (self.steps, self.places, self.samples, self.comparison):
            server.serve(request)

    @on(TabLine.Chosen)
    def _tab_chosen(self, event: TabLine.Chosen) -> None:
        self.samples.choose_pane(event.name)

    # Keys ----------------------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "follow_on":  # elsewhere, and of a run that is not followed, its key goes to the last row
            return self.steps.live.on and self.focused is not None and self.focused.id == "steps"
        return action not in self.panes.current.WITHOUT_ACTIONS and super().check_action(action, parameters)

    def action_pane(self, name: str) -> None:
        self.samples.choose_pane(name)

    def action_up(self) -> None:
        self.places.up()

    async def action_back_or_quit(self) -> None:
        if not self.places.back():
            await self.action_quit()

    def action_step(self, by: int) -> None:
        self.rollout.steps.go(by)

    def action_ask_step(self) -> None:
        self.rollout.ask_step()

    def action_twin_step(self) -> None:
        self.rollout.twin_step()

    def action_follow(self) -> None:
        self.steps.follow()

    def action_follow_on(self) -> None:
        self.steps.follow()

    def action_sample(self, by: int) -> None:
        self.samples.go_along(by)

    def action_member(self, by: int) -> None:
        self.samples.go_along_group(by)

    def action_conversation(self) -> None:
        self.samples.open_conversation()

    def action_facts(self) -> None:
        self.samples.facts.open()

    def action_worst_tokens(self) -> None:
        self.worst_tokens.open()

    def action_compare(self) -> None:
        self.comparison.ask()

    def action_copy(self) -> None:
        self.sheets.ask_copy()

    def action_export(self) -> None:
        self.sheets.ask_export()

    def action_command(self) -> None:
        self.sheets.show_command()

    def action_bookmark(self) -> None:
        self.sheets.ask_bookmark()

    def action_bookmarks(self) -> None:
        self.sheets.list_bookmarks()

    def action_visit(self) -> None:
        self.sheets.go_to_visit()

    def action_command_palette(self) -> None:
        from dumptui.tui.app.palette import Palette

        if not isinstance(self.screen, Palette):
            self.push_screen(Palette(id="--command-palette"))

    def action_help(self) -> None:
        from dumptui.tui.screens.help import HelpScreen

        self.push_screen(HelpScreen(self.screen))

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Yield those of Textual's own commands that have no key."""
        yield from (command for command in super().get_system_commands(screen) if command.title in SYSTEM_COMMANDS)

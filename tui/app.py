"""The app: which step, sample and pane are on screen, and what every key of it does."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from rich.console import RenderableType
from textual import on
from textual._compositor import CompositorUpdate
from textual.app import App, ComposeResult, SystemCommand
from textual.binding import Binding
from textual.containers import Horizontal
from textual.screen import Screen
from textual.widgets import ContentSwitcher, Footer, HelpPanel

from dumptui.core.run import Run, StepKey
from dumptui.tui.headline import headline
from dumptui.tui.palette import Steps
from dumptui.tui.panes.batch import BatchPane
from dumptui.tui.panes.rollout import RolloutPane
from dumptui.tui.panes.tokens import TokensPane
from dumptui.tui.reader import Failed, Loaded, Opened, Progress, Reader, Summary
from dumptui.tui.terminal import Terminal
from dumptui.tui.widgets.line import Line
from dumptui.tui.widgets.table import Table
from dumptui.tui.widgets.tabs import TabLine
from dumptui.tui.widgets.wait import WaitLine

PANES = {"rollout": "Rollout", "batch": "Batch", "tokens": "Tokens"}


class DumpTui(App[None]):
    """One run: Enter goes from a step to its samples to a sample's tokens, Escape back, n and p along the samples."""

    TITLE = "dumptui"
    CSS_PATH = "dumptui.tcss"
    HORIZONTAL_BREAKPOINTS = [(0, "-tiny"), (60, "-narrow"), (100, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-low"), (20, "-high")]
    COMMANDS = App.COMMANDS | {Steps}
    BINDINGS = [
        Binding("1", "pane('rollout')", "Rollout", show=False, id="app.rollout"),
        Binding("2", "pane('batch')", "Batch", show=False, id="app.batch"),
        Binding("3", "pane('tokens')", "Tokens", show=False, id="app.tokens"),
        Binding("escape", "up", "Back", id="app.up"),
        Binding(
            "n",
            "sample(1)",
            "Next",
            id="app.next-sample",
            tooltip="The next sample in the order of the table",
        ),
        Binding(
            "p",
            "sample(-1)",
            "Previous",
            id="app.previous-sample",
            tooltip="The sample before in the order of the table",
        ),
        Binding("greater_than_sign", "step(1)", "Step after", key_display=">", show=False, id="app.next-step"),
        Binding("less_than_sign", "step(-1)", "Step before", key_display="<", show=False, id="app.previous-step"),
        Binding("question_mark", "help", "Keys", key_display="?", id="app.help"),
        Binding("q", "quit", "Quit", id="app.quit"),
    ]

    def __init__(
        self,
        run: Run,
        key: StepKey | None,
        sample: tuple[int, int] | None,
        pane: str | None,
        reward_key: str | None,
    ) -> None:
        super().__init__()
        self.animation_level = "none"  # over SSH an animated page is 220 KB instead of 24
        self.run_ = run
        self._terminal = Terminal()
        self.reader = Reader(run, self.post_message, reward_key)
        self.loaded: Loaded | None = None
        self._asked_step = key
        self._asked_sample = sample
        self._asked_pane = pane or ("tokens" if sample is not None else "rollout")
        self._wanted = key if key is not None else self._newest()
        self._position: int | None = None

    def _newest(self) -> StepKey:
        return max(self.run_.steps, key=lambda key: (not key.evaluation, key.step))

    def compose(self) -> ComposeResult:
        with Horizontal(id="top"):
            yield Line(id="where")
            yield TabLine(PANES)
        with ContentSwitcher(initial="rollout", id="panes"):
            yield RolloutPane(list(self.run_.steps))
            yield BatchPane()
            yield TokensPane()
        yield WaitLine(id="progress")
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        self.rollout = self.query_one(RolloutPane)
        self.batch = self.query_one(BatchPane)
        self.tokens = self.query_one(TokensPane)
        self.wait = self.query_one(WaitLine)
        self.rollout.steps.focus()
        if self._wanted not in self.run_.steps:
            self.notify(f"no {self._wanted} in this run", severity="error", markup=False)
            self._wanted = self._newest()
        with self.prevent(Table.Highlighted):
            self.rollout.select_step(self._wanted)
        self.open_step(self._wanted)
        self.reader.scan([key for key in reversed(self.run_.steps) if key != self._wanted])

    def on_unmount(self) -> None:
        self.reader.close()

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        if isinstance(renderable, CompositorUpdate) and not self._batch_count:
            renderable = self._terminal.changes(screen._compositor, renderable)
        super()._display(screen, renderable)

    def _resume_signal(self) -> None:
        self._terminal.forget()
        super()._resume_signal()

    # Steps -----------------------------------------------------------------------------------------------------

    def open_step(self, key: StepKey) -> None:
        self._wanted = key
        self._position = None
        self.wait.begin(f"reading {key}")
        self.rollout.show_wait(key, "reading")
        self.reader.open_step(key)
        self._show_where()

    def go_to_step(self, key: StepKey) -> None:
        self.rollout.select_step(key)

    @on(RolloutPane.StepChosen)
    def _step_chosen(self, event: RolloutPane.StepChosen) -> None:
        if event.key != self._wanted:
            self._asked_step, self._asked_sample = event.key, None
            self.open_step(event.key)

    @on(Loaded)
    def _step_loaded(self, event: Loaded) -> None:
        self.rollout.summarise(event.key, event.row)
        if event.key != self._wanted:
            return
        self.wait.end()
        if not event.samples and self._land_elsewhere(event.key):
            return
        self.loaded = event
        self.rollout.show_step(event)
        self.batch.show_step(event)
        self.tokens.clear("enter on a sample opens its tokens")
        self._show_where()
        self._go_where_asked()

    @on(Failed)
    def _step_failed(self, event: Failed) -> None:
        self.rollout.summarise(event.key, event.row)
        if event.key != self._wanted:
            return
        self.wait.end()
        if self._land_elsewhere(event.key):
            return
        self.loaded = None
        self.rollout.show_failure(event.key, event.problem)
        self.tokens.clear(event.problem)
        self._show_where()

    def _land_elsewhere(self, key: StepKey) -> bool:
        """Where no step was asked for, the newest that can be read and has samples is opened."""
        if self._asked_step is not None:
            return False
        older = [one for one in self.run_.steps if one.evaluation == key.evaluation and one.step < key.step]
        if not older:
            return False
        with self.prevent(Table.Highlighted):
            self.rollout.select_step(max(older))
        self.open_step(max(older))
        return True

    @on(Summary)
    def _step_summary(self, event: Summary) -> None:
        self.rollout.summarise(event.key, event.row)

    @on(Progress)
    def _progress(self, event: Progress) -> None:
        if event.key == self._wanted and self.wait.waiting:
            self.wait.begin(
                f"reading {event.key}: {event.done / max(event.total, 1):.0%} of {event.total / 1e6:.1f} MB"
            )

    def _go_where_asked(self) -> None:
        pane, self._asked_pane = self._asked_pane, "rollout"
        if self._asked_sample is not None and self.loaded is not None:
            index, occurrence = self._asked_sample
            self._asked_sample = None
            for sample in self.loaded.step.samples:
                if (sample.index, sample.occurrence) == (index, occurrence):
                    self.open_sample(sample.position)
                    break
            else:
                self.notify(f"no sample {index} in {self.loaded.key}", severity="error", markup=False)
        if pane != "rollout":
            self.action_pane(pane)

    def action_step(self, by: int) -> None:
        keys = [key for key in self.run_.steps if key.evaluation == self._wanted.evaluation]
        at = keys.index(self._wanted) + by
        if 0 <= at < len(keys):
            self.go_to_step(keys[at])

    # Samples ---------------------------------------------------------------------------------------------------

    @on(RolloutPane.SampleChosen)
    @on(BatchPane.SampleChosen)
    def _sample_chosen(self, event: RolloutPane.SampleChosen | BatchPane.SampleChosen) -> None:
        self.open_sample(event.position)

    def open_sample(self, position: int) -> None:
        """Show a sample in the Tokens pane, once it is read."""
        if self.loaded is not None:
            self._position = position
            self.wait.begin(f"reading the tokens of sample {self.loaded.step.samples[position].index}")
            self.reader.open_sample(self.loaded.step, position)

    @on(Opened)
    def _sample_opened(self, event: Opened) -> None:
        if self.loaded is None or event.key != self.loaded.key or event.position != self._position:
            return
        self.wait.end()
        self.tokens.show_sample(event, self._place(event.position))
        with self.prevent(Table.Highlighted):
            self.rollout.select_sample(event.position)
        if self.pane != "tokens":
            self._show_pane("tokens")

    def _place(self, position: int) -> str:
        assert self.loaded is not None
        group = self.loaded.step.samples[position].group
        if group is None:
            return str(self.loaded.key)
        members = [sample.position for sample in self.loaded.step.samples if sample.group == group]
        return f"{self.loaded.key} · group {group}, {members.index(position) + 1} of {len(members)}"

    def action_sample(self, by: int) -> None:
        order = self.rollout.order
        if not order:
            return
        at = self.rollout.table.cursor if self._position is None else order.index(self._position) + by
        if 0 <= at < len(order):
            if self.pane == "tokens":
                self.open_sample(order[at])
            else:
                self.rollout.table.cursor = min(max(self.rollout.table.cursor + by, 0), len(order) - 1)

    # Panes -----------------------------------------------------------------------------------------------------

    @property
    def pane(self) -> str:
        return self.query_one("#panes", ContentSwitcher).current or "rollout"

    @on(TabLine.Chosen)
    def _tab_chosen(self, event: TabLine.Chosen) -> None:
        self.action_pane(event.name)

    def action_pane(self, name: str) -> None:
        if name == "tokens" and self._position is None and self.rollout.order:
            self.open_sample(self.rollout.order[self.rollout.table.cursor])
        else:
            self._show_pane(name)

    def _show_pane(self, name: str) -> None:
        self.query_one("#panes", ContentSwitcher).current = name
        self.query_one(TabLine).active = name
        if name == "tokens":
            self.tokens.query_one("#text").focus()
        elif name == "batch":
            self.batch.focus_first()
        elif self._position is not None or self.rollout.has_class("-samples"):
            self.rollout.enter_samples()
        else:
            self.rollout.steps.focus()

    def action_up(self) -> None:
        """Escape: leave what is being read, else one level up."""
        if self.wait.waiting:
            self._leave_reading()
        elif self.screen.query(HelpPanel):
            self.action_hide_help_panel()
        elif self.pane == "tokens":
            self.action_pane("rollout")
            self._position = None
        elif self.pane == "batch":
            self.action_pane("rollout")
        else:
            self.rollout.leave_samples()

    def _leave_reading(self) -> None:
        self.reader.abandon()
        self.wait.end()
        if self._position is not None and self.pane != "tokens":
            self._position = None
        if self.loaded is None or self.loaded.key != self._wanted:
            self.rollout.show_failure(self._wanted, "left unread; enter on the step reads it")

    def action_help(self) -> None:
        if self.screen.query(HelpPanel):
            self.action_hide_help_panel()
        else:
            self.action_show_help_panel()

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        yield from super().get_system_commands(screen)
        for name, label in PANES.items():
            yield SystemCommand(f"Pane: {label}", "the same place seen another way", partial(self.action_pane, name))

    def _show_where(self) -> None:
        self.query_one("#where", Line).say(headline(self.run_, self._wanted, self.rollout.rows.get(self._wanted)))

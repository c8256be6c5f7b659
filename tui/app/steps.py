"""Which step of the run is on screen: from being wanted to being read and shown, or given up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from textual import events, on

from dumptui.core.process import gc_tuning
from dumptui.core.run.run import Run, StepKey
from dumptui.core.store.cache import Cache
from dumptui.core.store.summaries import Summaries
from dumptui.core.text import plural, visible
from dumptui.tui.app.follow import POLL_SECONDS, Live, is_newer
from dumptui.tui.panes.rollout.pane import RolloutPane
from dumptui.tui.presentation.headline import headline, window_title
from dumptui.tui.reading.messages import Broken, ReadProgress, RunPolled, StepFailed, StepLoaded, StepSummaries, Unseen
from dumptui.tui.reading.reader import Reader
from dumptui.tui.terminal.terminal_app import TerminalApp
from dumptui.tui.widgets.line import Line
from dumptui.tui.widgets.progress_line import WaitLine
from dumptui.tui.widgets.table.table import Table

if TYPE_CHECKING:
    from rich.console import RenderableType
    from textual.screen import Screen

    from dumptui.core.process.workers import Workers
    from dumptui.core.types import Record

MINUTE_SECONDS = 60.0  # seconds after which the age of the newest data may read otherwise


def staleness_of(row: Record) -> tuple[str, str]:
    return str(row.get("staleness_mean")), str(row.get("staleness_reason"))


class StepsApp(TerminalApp):
    """The part of the app that goes from step to step; `clear`, `show` and `show_failure` are for its panes."""

    rollout: RolloutPane
    wait: WaitLine

    def __init__(
        self,
        run: Run,
        key: StepKey | None,
        summaries: Summaries | None,
        workers: Workers | None,
        follow: bool,
        bell: bool,
    ) -> None:
        super().__init__()
        self.run_ = run
        self.reader = Reader(summaries or Summaries(run, Cache(run.root, None)), self.post_message, workers, follow)
        self.loaded: StepLoaded | None = None
        self.failed = False
        """The step that is wanted can't be shown as it is."""
        self.live = Live(follow, key is None, bell)
        newest, *older = run.newest_first
        self.wanted = key or newest
        self._told_of_reward_key = False
        self.others = [] if key else [*older, newest]  # to try where a step has nothing to show

    def start(self) -> None:
        """Read, and follow; once there are panes to show it."""
        gc_tuning.collect_from_here()
        self.open_step(self.wanted)
        self._scan_others()
        if self.live.on:
            self.reader.look()
            self.set_interval(POLL_SECONDS, self.reader.look)
            self.set_interval(MINUTE_SECONDS, self.show_where)

    def on_unmount(self) -> None:
        self.reader.close()

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.InputEvent) and not isinstance(event, events.MouseMove):
            self.reader.rest()
        await super().on_event(event)

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        super()._display(screen, renderable)
        if renderable is not None:
            self.reader.go_on()

    # What the panes do with it.

    def clear(self, why: str) -> None:
        raise NotImplementedError

    def show(self, loaded: StepLoaded, again: bool, waited: bool) -> None:
        raise NotImplementedError

    def show_again(self) -> None:
        raise NotImplementedError

    def show_failure(self, problem: str) -> None:
        raise NotImplementedError

    # Going to a step -------------------------------------------------------------------------------------------

    @property
    def newest(self) -> StepKey:
        return self.run_.newest_first[0]

    def _newest_like(self, key: StepKey) -> StepKey | None:
        """The newest train step or, where `key` is of one, the newest eval."""
        return next((one for one in self.run_.newest_first if one.evaluation == key.evaluation), None)

    def announce(self, key: StepKey) -> None:
        """Say what will be read."""
        self.wanted, self.loaded, self.failed = key, None, False
        with self.prevent(Table.Highlighted):
            self.rollout.select_step(key)
        self.wait.begin(f"reading {key}")
        self.rollout.show_wait(key, "reading")
        self.show_where()

    def open_step(self, key: StepKey) -> None:
        self.announce(key)
        self.clear(f"reading {key}")
        self.reader.open_step(key)

    def choose_step(self, key: StepKey) -> None:
        """Open a step because the user said so."""
        given_up = self.loaded is None and not self.wait.waiting
        if key != self.wanted or given_up:
            self.others = []
            self.live.moved(key == self._newest_like(key))
            self.open_step(key)

    @on(RolloutPane.RewardKeyChosen)
    def _reward_key_chosen(self, event: RolloutPane.RewardKeyChosen) -> None:
        self.reader.take_reward(event.name)
        self.open_step(self.wanted)
        self._scan_others()

    def _scan_others(self) -> None:
        self.reader.scan([key for key in reversed(self.run_.steps) if key != self.wanted])

    def action_step(self, by: int) -> None:
        self.rollout.next_step(by)

    def action_ask_step(self) -> None:
        self.rollout.ask_step()

    def action_twin_step(self) -> None:
        self.rollout.twin_step()

    def action_follow(self) -> None:
        self.live.moved(True)
        self.rollout.select_step(self.newest)

    def action_follow_on(self) -> None:
        self.action_follow()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "follow_on":  # elsewhere, and of a run that is not followed, its key goes to the last row
            return self.live.on and self.focused is not None and self.focused.id == "steps"
        return super().check_action(action, parameters)

    @on(Table.Highlighted, "#samples")
    def _moved_among_samples(self, event: Table.Highlighted) -> None:
        if event.row:  # at the first one a step opens
            self.live.moved(False)
            self.show_where()

    # What the reader answers -----------------------------------------------------------------------------------

    @on(StepLoaded)
    def _step_loaded(self, event: StepLoaded) -> None:
        self.rollout.summarise(event.key, event.row)
        if event.key != self.wanted or (not event.samples and self._try_another()):
            return
        waited = self.wait.waiting
        self.wait.end()
        self.others = []
        again = self.loaded is not None and self.loaded.key == event.key
        self.loaded, self.failed = event, False
        self._show_title(event.row)
        self.show_where()
        self.show(event, again, waited)
        self._check_reward_key(event.row)
        self._go_along(self.rollout.rows)

    def _check_reward_key(self, row: Record) -> None:
        """Say once that the rewards of a step lack the entry that was chosen."""
        key, entries = self.reader.reward_key, row.get("reward_entries")
        there = entries if isinstance(entries, list) else []
        if key is not None and row["samples"] and key not in there and not self._told_of_reward_key:
            self._told_of_reward_key = True
            known = f"it has {', '.join(map(str, there))}" if there else "the rewards are not dicts"
            step = "eval" if row["evaluation"] else "step"
            message = f"no reward of {step} {row['step']} has the entry {key}: {known}"
            self.notify(visible(message), severity="warning", markup=False)

    @on(StepFailed)
    def _step_failed(self, event: StepFailed) -> None:
        self.rollout.summarise(event.key, event.row)
        if event.key == self.wanted and not self._try_another():
            self.wait.end()
            self.show_failure(event.problem)
            self.loaded, self.failed = None, True
            self.show_where()
            self._go_along(self.rollout.rows)

    def _try_another(self) -> bool:
        """Open an older step in place of one that has nothing to show, unless it was asked for."""
        if self.others:
            self.open_step(self.others.pop(0))
            return True
        return False

    @on(ReadProgress)
    def _progress(self, event: ReadProgress) -> None:
        if event.key == self.wanted and self.wait.is_due:
            share = event.done / max(event.total, 1)
            files = plural(len(list(self.run_.steps[event.key].entries())), "file")
            of = f"{share:.0%} of {event.total / 1e6:,.1f} MB in {files}"
            self.wait.begin(f"reading {event.key}: {of}{self.wait.left(share)}")

    # A run that grows ------------------------------------------------------------------------------------------

    @on(StepSummaries)
    def _step_summary(self, event: StepSummaries) -> None:
        for key, row in event.rows.items():
            self.rollout.summarise(key, row)
        if self.live.rings(event.rows):
            self.bell()
        self._go_along(event.rows)
        if self.wanted in event.rows:
            self.show_where()
            if self.loaded is not None and staleness_of(event.rows[self.wanted]) != staleness_of(self.loaded.row):
                self.reader.open_step(self.wanted)  # of its samples too, other steps tell more now

    def _go_along(self, rows: Mapping[StepKey, Record]) -> None:
        newer = self.live.step_to_open(rows, self.wanted, self.run_.ages)
        if newer in self.run_.steps and not self.wait.waiting:
            self.open_step(newer)

    @on(RunPolled)
    def _run_grew(self, event: RunPolled) -> None:
        look = event.look
        self.live.grew(event)
        if look.run is not self.run_:
            self.run_ = look.run
            self.rollout.grow(list(look.run.steps))
        if self.wanted in look.gone and self.live.following:
            return self.open_step(self._newest_like(self.wanted) or self.newest)
        if (self.loaded is not None or self.failed) and self.wanted in (*look.changed, *look.waiting):
            self.reader.open_step(self.wanted)  # what is on screen stays there until it is read
        elif event.words and self.loaded is not None:
            self.show_again()
        self.show_where()

    @on(Unseen)
    def _run_unseen(self, event: Unseen) -> None:
        self.live.unseen(event.problem)
        self.show_where()

    @on(Broken)
    def _part_broken(self, event: Broken) -> None:
        self.say_broken(event.error)

    def show_where(self) -> None:
        line = headline(self.run_, self.wanted, self.rollout.rows.get(self.wanted))
        newer = sum(is_newer(key, self.wanted, self.run_.ages) for key in self.run_.steps)
        self.query_one("#where", Line).say(line.append_text(self.live.line(newer)))

    def _show_title(self, row: Record) -> None:
        """What tmux and the like name the window by, while a run is followed."""
        if self.live.on and self._driver is not None and not self.is_headless:
            self._driver.write(f"\x1b]2;{window_title(self.wanted, row)}\x07")

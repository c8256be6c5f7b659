"""Which step of the run is on screen: from being asked for to being read and shown, or given up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from dumptui.core.health.finding import count_words
from dumptui.core.process import gc_tuning
from dumptui.core.text import plural, visible
from dumptui.tui.app.follow import POLL_SECONDS, Live, is_newer
from dumptui.tui.panes.requests import ReadWanted, Request, RewardKeyChosen, SampleRowMoved
from dumptui.tui.presentation.headline import headline, window_title
from dumptui.tui.reading.messages import (
    Broken,
    HealthRows,
    ReadProgress,
    RunPolled,
    StepFailed,
    StepLoaded,
    StepSummaries,
    Unseen,
)

if TYPE_CHECKING:
    from dumptui.core.files.step_files import StepKey
    from dumptui.core.run.run import Run
    from dumptui.core.types import Record
    from dumptui.tui.panes.rollout.pane import RolloutPane
    from dumptui.tui.reading.reader import Reader
    from dumptui.tui.terminal.terminal_app import TerminalApp
    from dumptui.tui.widgets.line import TailedLine
    from dumptui.tui.widgets.message import Answer
    from dumptui.tui.widgets.progress_line import WaitLine

MINUTE_SECONDS = 60.0  # seconds after which the age of the newest data may read otherwise


def staleness_of(row: Record) -> tuple[str, str]:
    return str(row.get("staleness_mean")), str(row.get("staleness_reason"))


class StepScreen(Protocol):
    """What shows a step."""

    def clear(self, reason: str) -> None:
        """Show nothing of a step that is being read."""

    def show(self, loaded: StepLoaded, *, again: bool, repeat: Callable[[], None] | None) -> None:
        """Show a step; with `again`, more of the step on screen. `repeat` asks once more for what was waited for."""

    def show_again(self, repeat: Callable[[], None] | None) -> None:
        """Show the samples on screen as they are read with another tokenizer."""

    def show_failure(self, problem: str) -> None:
        """Say why the step can't be shown."""


class Steps:
    """Goes from step to step. `loaded` is the step on screen, None until it is read; `wanted` is its key."""

    def __init__(
        self,
        app: TerminalApp,
        run: Run,
        key: StepKey | None,
        reader: Reader,
        live: Live,
        rollout: RolloutPane,
        wait: WaitLine,
        where: TailedLine,
    ) -> None:
        """`where` is the line that names the step and says how the run is followed."""
        self._app = app
        self.run = run
        self._reader = reader
        self.live = live
        self._rollout = rollout
        self.wait = wait
        self._where = where
        self.loaded: StepLoaded | None = None
        self.failed = False
        """Whether the wanted step can't be shown as it is."""
        newest, *older = run.newest_first
        self.wanted = key or newest
        self._others = [] if key else [*older, newest]  # to try where a step has nothing to show
        self._warned_of_reward_key = False
        self._repeat: Callable[[], None] | None = None

    def start(self, screen: StepScreen) -> None:
        """Read, and follow, now that there are panes to show it."""
        gc_tuning.collect_from_here()
        self._screen = screen
        self.open(self.wanted)
        self._scan_others()
        self._reader.begin_health()
        if self.live.on:
            self._reader.look()
            self._app.set_interval(POLL_SECONDS, self._reader.look)
            self._app.set_interval(MINUTE_SECONDS, self.show_where)

    # Going to a step ---------------------------------------------------------------------------------------------

    @property
    def newest(self) -> StepKey:
        return self.run.newest_first[0]

    def is_at(self, key: StepKey) -> bool:
        """Whether this step is on screen."""
        return self.loaded is not None and self.loaded.key == key

    def _newest_like(self, key: StepKey) -> StepKey | None:
        """Return the newest train step or, for an eval, the newest eval."""
        return next((other for other in self.run.newest_first if other.evaluation == key.evaluation), None)

    def announce(self, key: StepKey) -> None:
        """Say what will be read."""
        self.wanted, self.loaded, self.failed = key, None, False
        self._rollout.steps.keep(key)
        self.wait.begin(f"reading {key}")
        self._repeat = None
        self._rollout.samples.show_wait(key, "reading")
        self.show_where()

    def open(self, key: StepKey) -> None:
        self.announce(key)
        self._screen.clear(f"reading {key}")
        self._reader.open_step(key)

    def ask(self, text: str, repeat: Callable[[], None]) -> None:
        """Say what is being read of the step on screen. `repeat` asks for it again if the step is read again first:
        the answer would be of the step as it was, or not come.
        """
        self.wait.begin(text)
        self._repeat = repeat

    def _interrupted(self) -> Callable[[], None] | None:
        """End the wait; return how to ask again for what was waited for."""
        repeat, self._repeat = self._repeat if self.wait.waiting else None, None
        self.wait.end()
        return repeat

    def choose(self, key: StepKey) -> None:
        """Open a step because the user asked for it."""
        given_up = self.loaded is None and not self.wait.waiting
        if key != self.wanted or given_up:
            self._others = []
            self.live.moved(key == self._newest_like(key))
            self.open(key)

    def give_up(self) -> None:
        """Leave a step that is being read."""
        self.show_where()
        self._screen.show_failure("not loaded; enter loads it")

    def follow(self) -> None:
        """Go to the newest step, and to each new one."""
        self.live.moved(True)
        self._rollout.steps.select(self.newest)

    def _scan_others(self) -> None:
        self._reader.scan([key for key in reversed(self.run.steps) if key != self.wanted])

    # Messages ----------------------------------------------------------------------------------------------------

    def serve(self, request: Request) -> None:
        match request:
            case ReadWanted():
                request.ask(self._reader)
            case RewardKeyChosen():
                self._reader.take_reward(request.name)
                self.open(self.wanted)
                self._scan_others()
            case SampleRowMoved() if request.row:  # a step opens at its first sample
                self.live.moved(False)
                self.show_where()

    def take(self, answer: Answer) -> None:
        match answer:
            case StepLoaded():
                self._step_loaded(answer)
            case StepFailed():
                self._step_failed(answer)
            case ReadProgress():
                self._show_progress(answer)
            case StepSummaries():
                self._summarise(answer)
            case HealthRows():
                self._rollout.take_findings(answer)
                self.show_where()
            case RunPolled():
                self._run_polled(answer)
            case Unseen():
                self.live.unseen(answer.problem)
                self.show_where()
            case Broken():
                self._app.say_broken(answer.error)

    # The step ----------------------------------------------------------------------------------------------------

    def _step_loaded(self, loaded: StepLoaded) -> None:
        self._rollout.summarise(loaded.key, loaded.row)
        if loaded.key != self.wanted or (not loaded.samples and self._try_another()):
            return
        repeat = self._interrupted()
        self._others = []
        again = self.loaded is not None and self.loaded.key == loaded.key
        self.loaded, self.failed = loaded, False
        if self.live.on:
            self._app.set_window_title(window_title(self.wanted, loaded.row))
        self.show_where()
        self._screen.show(loaded, again=again, repeat=repeat)
        self._check_reward_key(loaded.row)
        self._go_along(self._rollout.rows)

    def _check_reward_key(self, row: Record) -> None:
        """Say once that the rewards of a step lack the entry that was chosen."""
        key, entries = self._reader.reward_key, row.get("reward_entries")
        names = entries if isinstance(entries, list) else []
        if key is not None and row["samples"] and key not in names and not self._warned_of_reward_key:
            self._warned_of_reward_key = True
            known = f"it has {', '.join(map(str, names))}" if names else "the rewards are not dicts"
            step = "eval" if row["evaluation"] else "step"
            message = f"no reward of {step} {row['step']} has the entry {key}: {known}"
            self._app.notify(visible(message), severity="warning", markup=False)

    def _step_failed(self, failure: StepFailed) -> None:
        self._rollout.summarise(failure.key, failure.row)
        if failure.key == self.wanted and not self._try_another():
            self.wait.end()
            self._screen.show_failure(failure.problem)
            self.loaded, self.failed = None, True
            self.show_where()
            self._go_along(self._rollout.rows)

    def _try_another(self) -> bool:
        """Open an older step in place of one that has nothing to show, unless it was asked for."""
        if self._others:
            self.open(self._others.pop(0))
            return True
        return False

    def _show_progress(self, progress: ReadProgress) -> None:
        if progress.key == self.wanted and self.wait.is_due:
            share = progress.done / max(progress.total, 1)
            files = plural(len(list(self.run.steps[progress.key].entries())), "file")
            of = f"{share:.0%} of {progress.total / 1e6:,.1f} MB in {files}"
            self.wait.begin(f"reading {progress.key}: {of}{self.wait.left(share)}")

    # A run that grows --------------------------------------------------------------------------------------------

    def _summarise(self, summaries: StepSummaries) -> None:
        for key, row in summaries.rows.items():
            self._rollout.summarise(key, row)
        if self.live.rings(summaries.rows):
            self._app.bell()
        self._go_along(summaries.rows)
        if self.wanted in summaries.rows:
            self.show_where()
            if self.loaded is not None and staleness_of(summaries.rows[self.wanted]) != staleness_of(self.loaded.row):
                self._reader.reload_step(self.wanted)  # the staleness of its samples changes too

    def _go_along(self, rows: Mapping[StepKey, Record]) -> None:
        newer = self.live.step_to_open(rows, self.wanted, self.run.ages)
        if newer in self.run.steps and not self.wait.waiting:
            self.open(newer)

    def _run_polled(self, polled: RunPolled) -> None:
        poll = polled.look
        self.live.grew(polled)
        if poll.run is not self.run:
            self.run = poll.run
            self._rollout.grow(list(poll.run.steps))
        if self.wanted in poll.gone and self.live.following:
            return self.open(self._newest_like(self.wanted) or self.newest)
        if (self.loaded is not None or self.failed) and self.wanted in (*poll.changed, *poll.waiting):
            self._reader.reload_step(self.wanted)  # what is on screen stays there until it is read
        elif polled.words and self.loaded is not None:
            self._screen.show_again(self._interrupted())
        self.show_where()

    def show_where(self) -> None:
        row = None if self.live.problem else self._rollout.rows.get(self.wanted)  # a problem needs the room
        line = headline(self.run, self.wanted, row)
        newer = sum(is_newer(key, self.wanted, self.run.ages) for key in self.run.steps)
        health = count_words(self._rollout.findings)
        self._where.say_with(
            line.append_text(self.live.line(newer)), [", ".join(health), *health[:1]] if health else []
        )

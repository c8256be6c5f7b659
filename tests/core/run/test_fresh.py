"""Who has followed a run for long sees, in every pane, what somebody sees who starts now."""

from __future__ import annotations

import asyncio
import io
import json
import os
import shlex
import shutil
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, redirect_stdout
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from textual.pilot import Pilot

from dumptui.core.files.step_files import StepKey
from dumptui.core.run.run import Run
from dumptui.core.store.cache import Cache
from dumptui.core.store.summaries import Summaries
from dumptui.core.telemetry.telemetry import STREAM_FIELDS, Telemetry
from dumptui.tui.app.app import DumpTui
from dumptui.tui.cli.main import make_parser, step_key
from dumptui.tui.cli.print_views import Request, print_view
from dumptui.tui.presentation.command_line import command_line
from dumptui.tui.presentation.exports import EXPORT_FORMATS
from tests.support.file_faults import Refusals
from tests.support.job import Job
from tests.support.screen import DEADLINE, lines, press, text, until

SIZES = [(120, 40), (200, 60)]
LONG = "DUMPTUI_LONG_TESTS" in os.environ
"""Whether to compare at every look of the follower, not at four moments only; it takes some minutes."""

# Each pane, by the keys that lead there from the one before it.
PANES = {
    "steps": ("1", "escape", "escape", "F"),
    "samples": ("enter", "home"),
    "batch": ("2",),
    "samples of the batch": ("v",),
    "groups": ("v", "6", "home"),
    "two samples": ("1", "home", "d", "enter"),
    "health": ("escape", "5", "home"),
    "tokens": ("1", "home", "3", "home"),
    "conversation": ("4", "home"),
    "all dumped fields": ("i",),
    "tools": ("escape", "E", "home"),
    "prompts": ("U", "home"),
    "worst tokens": ("1", "W"),
}
BACK = ("escape", "1", "escape", "escape", "F")


class Session(NamedTuple):
    app: DumpTui
    pilot: Pilot[None]
    summaries: Summaries

    async def go(self, *keys: str) -> None:
        """Press each key once what the one before it asked for has been read: escape would give that up."""
        for key in keys:
            await until(self.pilot, lambda: not self.app.wait.waiting)
            await press(self.pilot, key)
        await until(self.pilot, lambda: not self.app.wait.waiting)

    async def look(self) -> None:
        self.app.reader.look()
        await until(self.pilot, lambda: not self.app.reader._looking)
        await asyncio.wrap_future(self.app.reader.compute(lambda: None))
        await until(self.pilot, lambda: not self.app.reader._work.scan.is_busy)  # it may go to a newer step after that


@asynccontextmanager
async def following(root: Path, size: tuple[int, int], cache: Path | None) -> AsyncIterator[Session]:
    run = Run.open(root)
    summaries = Summaries(run, Cache(root, cache))
    app = DumpTui(run, summaries=summaries, follow=True)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: app.is_ready and not app.wait.waiting)
        yield Session(app, pilot, summaries)


class Follower:
    """Followers of a run, one of each size of the screen, and what they keep between two starts."""

    def __init__(self, root: Path, cache: Path) -> None:
        self.root = root
        self._cache = cache
        self._sessions: list[Session] = []
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Follower:
        for size in SIZES:
            self._sessions.append(await self._stack.enter_async_context(following(self.root, size, self._cache)))
        return self

    async def __aexit__(self, *exc: Any) -> None:
        await self._stack.__aexit__(*exc)

    async def look(self) -> None:
        for session in self._sessions:
            await session.look()

    async def until(self, condition: Callable[[DumpTui], object]) -> None:
        for app, pilot, _ in self._sessions:
            await until(pilot, partial(condition, app))

    async def until_shown(self, *words: str) -> None:
        await self.until(lambda app: all(word in text(app) for word in words))

    async def go(self, *keys: str) -> None:
        for session in self._sessions:
            await session.go(*keys)

    def choose(self, key: StepKey) -> None:
        for session in self._sessions:
            session.app.steps.choose(key)

    async def through(self, pieces: Iterable[object]) -> None:
        """Look after every third piece that is written, and after the last; with LONG, compare after each."""
        for number, _ in enumerate(pieces):
            if LONG:
                await self.go(*BACK)
                await self.assert_fresh()
            elif number % 3 == 0:
                await self.look()
        await self.look()

    async def assert_fresh(self) -> None:
        """Every pane of the newest step is, in the end, that of a new start, and the printed view says the same."""
        await self.look()
        for session in self._sessions:
            app = session.app
            await asyncio.wrap_future(app.reader.compute(session.summaries.save))
            await asyncio.wrap_future(app.reader.compute(partial(assert_telemetry, app)))
            async with following(self.root, (app.size.width, app.size.height), None) as fresh:
                for name, keys in PANES.items():
                    await session.go(*keys)
                    await fresh.go(*keys)
                    await until_same(name, session, fresh)
                    if session is self._sessions[0]:
                        assert_printed(app, self._cache)
            await session.go(*BACK)


def assert_telemetry(app: DumpTui) -> None:
    follow = app.reader._work._follow
    assert follow is not None
    assert follow.with_telemetry(records) == records(Telemetry(app.steps.run.root))


def records(telemetry: Telemetry) -> dict[str, Any]:
    """All that is known from the streams."""
    tables = {stream: list(telemetry.table(stream).rows()) for stream in STREAM_FIELDS if stream != "phases"}
    return tables | {
        "metrics": telemetry.metrics.calls(),
        "lanes": list(telemetry.lane_rows()),
        "settings": telemetry.meta,
        "problems": telemetry.problems(),
    }


async def until_same(name: str, session: Session, fresh: Session) -> None:
    """Both may still be reading."""
    end = time.monotonic() + DEADLINE
    while not is_same(session.app, fresh.app):
        if time.monotonic() > end:
            said = "\n".join(differing(session.app, fresh.app))
            raise AssertionError(f"{name}, the follower and the new start:\n{said}")
        await asyncio.sleep(0.05)


def is_same(app: DumpTui, fresh: DumpTui) -> bool:
    """Whether the screens and the rows that an export would write are the same."""
    return lines(app) == lines(fresh) and exported(app) == exported(fresh)


def differing(app: DumpTui, fresh: DumpTui) -> Iterator[str]:
    for row, (ours, theirs) in enumerate(zip_longest(lines(app), lines(fresh), fillvalue="")):
        if ours != theirs:
            yield f"row {row}, follower: {ours}\nrow {row}, new start: {theirs}"
    own_rows, other_rows = (set(rows_of(exported(of) or "{}")) for of in (app, fresh))
    yield f"rows of the follower alone: {sorted(own_rows - other_rows)}"
    yield f"rows of the new start alone: {sorted(other_rows - own_rows)}"


def exported(app: DumpTui) -> str | None:
    """The sheet on screen as JSON; None where there is none, or it can't be read at the moment."""
    sheet = app.sheets.sheet()
    return None if sheet is None else EXPORT_FORMATS["json"](sheet)


def assert_printed(app: DumpTui, cache: Path) -> None:
    """The command line that the pane gives prints the same rows, by what the follower kept."""
    sheet = app.sheets.sheet()
    if sheet is None:
        return
    words = shlex.split(command_line(app.steps.run, sheet, app.reader.reward_key))[1:]
    args = make_parser().parse_args([*words, "--json"])
    run, out = Run.open(args.run), io.StringIO()
    with redirect_stdout(out):
        print_view(Request(run, Summaries(run, Cache(run.root, cache)), step_key(args), args))
    printed, shown = rows_of(out.getvalue()), rows_of(exported(app) or "")
    assert printed == shown, f"{words}: {set(printed) - set(shown)}\n{set(shown) - set(printed)}"


UNREAD = {"extra", "metadata", "notes", "note"}
"""What `--print` of a sample leaves out where it need not read the whole step."""


def rows_of(document: str) -> list[str]:
    """The rows of a document, whatever their order on screen is; of one without rows, all it says."""
    whole = json.loads(document)
    rows = [{name: row[name] for name in row.keys() - UNREAD} for row in whole.get("rows", [whole])]
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


async def test_a_follower_sees_what_a_new_start_sees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At three moments while the run is disturbed, and at the end."""
    root, refusals = tmp_path / "run", Refusals(monkeypatch)
    job = Job(root, tmp_path / "aside")
    first = job.step(0)
    next(first)  # the only step is half written
    async with Follower(root, tmp_path / "cache") as follower:
        await follower.until(lambda app: app.steps.failed)
        await follower.go("5", "1")  # health is looked for once
        await follower.through(first)
        await late_and_refused(job, follower, refusals)
        await follower.assert_fresh()
        await healed_and_resumed(job, follower, refusals)
        await follower.assert_fresh()
        await rewritten_while_open(job, follower)
        await follower.assert_fresh()
        await gone_and_back(job, follower, tmp_path / "away")
        await follower.assert_fresh()


async def late_and_refused(job: Job, follower: Follower, refusals: Refusals) -> None:
    """A step is selected while it is half written; much of it is late, partial, or can't be read."""
    job.tokenizer(length=500)
    for path in job.step(1, late=LATE):
        await follower.look()
        if path.parent.name == "rollout_data":
            follower.choose(StepKey(1))
    await follower.through(job.step(2, drop=(1,)))
    await follower.through(job.step(2, evaluation=True))
    refusals.refuse(job.root / "train_data" / "1_0.pt")
    await follower.through(job.step(3))
    refusals.refuse(job.root / "rollout_data" / "3.pt")


LATE = ("dashboard_columns", "trajectory")


async def healed_and_resumed(job: Job, follower: Follower, refusals: Refusals) -> None:
    """What was late comes, what was refused is allowed, and an attempt resumes two steps behind the one before."""
    refusals.heal(job.root / "rollout_data" / "3.pt")
    refusals.heal(job.root / "train_data" / "1_0.pt")
    job.tokenizer()
    await follower.through(job.rest(1, LATE))
    job.metrics('{"ts": 1.0, "step_key": null, "step": 0, "metrics": {"loss": 1.0}}\n{"ts": 2')
    job.telemetry(0, 1, 2, 3)
    for number in (4, 5):
        for _ in job.step(number):
            pass
        await follower.look()
    for number in (3, 4):
        await follower.through(job.step(number, attempt=1))
    next(job.step(5, attempt=1))  # half written, and left so
    await follower.look()


async def rewritten_while_open(job: Job, follower: Follower) -> None:
    """A step is rewritten while its sample is on screen; the train files of another can't be listed."""
    follower.choose(StepKey(4))
    await follower.go("enter", "down", "enter")
    await follower.until_shown("Δ against position", "sample 17 ·")
    await follower.through(job.step(4, attempt=2))
    await follower.until_shown("Δ against position", "sample 17 ·")
    await follower.go(*BACK)


async def gone_and_back(job: Job, follower: Follower, away: Path) -> None:
    """The run's folder goes away and comes back, a step is removed by rotation, and a folder with it."""
    job.root.rename(away)
    await follower.look()
    await follower.until_shown("no such folder")
    follower.choose(StepKey(1))
    away.rename(job.root)
    await follower.look()
    job.rotate(0)
    job.metrics(', "step_key": null, "step": 0, "metrics": {}}\n')
    shutil.rmtree(job.root / "trajectory")
    await follower.through(job.step(5, attempt=2))

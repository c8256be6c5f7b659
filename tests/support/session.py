"""The app on a run, as a person uses it: opened at a place, keys pressed, lists chosen from, tables read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from threading import Event
from typing import Any, TypeAlias

from textual.pilot import Pilot
from textual.widgets import OptionList

from dumptui.core.run.run import Run
from dumptui.tui.app.app import DumpTui
from dumptui.tui.reading.reader import Reader
from dumptui.tui.widgets.table.table import Table
from tests.support.screen import press, until

Session: TypeAlias = tuple[DumpTui, Pilot[None]]


WIDE, NARROW, TINY = (100, 22), (80, 24), (40, 12)  # small ones: painting is half of the time of these tests


@asynccontextmanager
async def opened(
    root: Path, *, size: tuple[int, int] = WIDE, scanned: bool = False, **where: Any
) -> AsyncIterator[Session]:
    """The app with its first step read and, if `scanned`, the rows of the others as well."""
    run = Run.open(root)
    app = DumpTui(run, **where)
    if not scanned:  # 0.2 s of a test
        app.reader.scan = lambda keys: None  # type: ignore[method-assign]
    async with app.run_test(size=size, notifications=True) as pilot:
        await until(pilot, lambda: not app.wait.waiting)
        await until(pilot, lambda: not scanned or len(app.rollout.rows) == len(run.steps))
        app.rollout.steps.show()
        yield app, pilot


@contextmanager
def busy(reader: Reader) -> Iterator[None]:
    """Keep the thread of a reader waiting: it begins with what is asked meanwhile once all of that is asked."""
    gate = Event()
    reader.compute(gate.wait)
    try:
        yield
    finally:
        gate.set()


async def go(pilot: Pilot[None], *keys: str) -> None:
    """Type as a person who looks: each key after what the one before brought."""
    app = pilot.app
    assert isinstance(app, DumpTui)
    for key in keys:
        await press(pilot, key)
        await until(pilot, lambda: not app.wait.waiting)


async def choose(pilot: Pilot[None], label: str, key: str = "enter") -> None:
    """Pick an entry of the open dialog."""
    choices = pilot.app.screen.query_one(OptionList)
    labels = [str(choices.get_option_at_index(at).prompt) for at in range(choices.option_count)]
    choices.highlighted = next(at for at, prompt in enumerate(labels) if prompt.startswith(label))
    await press(pilot, key)
    await until(pilot, lambda: len(pilot.app.screen_stack) == 1)


async def click(pilot: Pilot[None], widget: Any, x: int, y: int) -> None:
    await pilot.click(widget, offset=(x, y))


def under_cursor(table: Table) -> list[str]:
    """The cells of the row under the cursor; one empty cell while the table has no place on the screen."""
    return table.render_line(table.cursor + 1 - table.scroll_offset.y).text.strip("> ").split() or [""]


def column(table: Table, label: str) -> list[str]:
    """A right-aligned column of a table on screen, from the cells under its label."""
    end = table.render_line(0).text.index(label) + len(label)
    rows = range(1, 1 + min(table.row_count, table.size.height - 1))
    return [table.render_line(y).text[:end].split()[-1] for y in rows]

"""The app on a run with a state that is kept between starts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

from textual.pilot import Pilot
from textual.widgets import OptionList

from dumptui.core.run.run import Run
from dumptui.core.store.state import State
from dumptui.tui.app.app import DumpTui
from tests.support.screen import press, until

Session: TypeAlias = tuple[DumpTui, Pilot[None]]


@asynccontextmanager
async def opened_with_state(root: Path, *, size: tuple[int, int] = (120, 30), **where: Any) -> AsyncIterator[Session]:
    app = DumpTui(Run.open(root), state=State.of(root), **where)
    async with app.run_test(size=size, notifications=True) as pilot:
        await until(pilot, lambda: not app.wait.waiting)
        yield app, pilot


async def pick(pilot: Pilot[None], label: str) -> None:
    """Choose the entry of the open dialog that begins so."""
    choices = pilot.app.screen.query_one(OptionList)
    labels = [str(choices.get_option_at_index(at).prompt) for at in range(choices.option_count)]
    choices.highlighted = next(at for at, prompt in enumerate(labels) if prompt.startswith(label))
    await press(pilot, "enter")

"""Each pane as text at three sizes, beside how it looked when a person last looked: UPDATE_GOLDENS=1 takes it anew."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dumptui.core.files.step_files import StepKey
from dumptui.core.run.run import Run
from dumptui.tui.app.app import DumpTui
from dumptui.tui.panes import TABS
from dumptui.tui.panes.health import HealthPane
from dumptui.tui.widgets.table.table import Table
from tests.support.screen import press, still, tab, text, until, until_shown

GOLDENS = Path(__file__).parents[1] / "goldens"
WAYS = {
    "rollout": [],
    "samples": ["enter", "down"],
    "tokens": ["enter", "]"],
    "batch": ["2"],
    "conversation": ["1", "end", "c"],
    "facts": ["i"],
    "health": ["escape", tab("health")],
    "groups": [tab("groups")],
    "pair": ["down", "enter", "d", "enter"],
}
"""The keys to each view from the one before it; the ways to the other panes are their tabs."""
WAYS |= {name: [tab(name)] for name in TABS if name not in WAYS}


@pytest.mark.parametrize("size", [(120, 40), (80, 24), (40, 12)], ids=lambda size: "x".join(map(str, size)))
async def test_panes_look_as_before(demo: Path, size: tuple[int, int]) -> None:
    app = DumpTui(Run.open(demo), StepKey(2))
    differing = []
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: not app.wait.waiting and len(app.rollout.rows) == len(app.steps.run.steps))
        app.rollout.steps.show()
        await until(pilot, lambda: app.rollout.overview.is_complete)
        for name, keys in WAYS.items():
            for key in keys:
                await press(pilot, key)
                await until(pilot, lambda: not app.wait.waiting)
            if name == "tokens":
                await until(pilot, lambda: app.tokens.opened and app.tokens.surveys)
            if name == "batch":
                await until(pilot, lambda: "computing the columns" not in text(app))
            if name == "facts":
                await until_shown(pilot, "▾ sample")
            if name == "health":
                await until(pilot, lambda: app.panes.of(HealthPane).query_one(Table).empty != "checking")
            shown = await still(pilot) + "\n"
            golden = GOLDENS / f"{name}-{size[0]}x{size[1]}.txt"
            if os.environ.get("UPDATE_GOLDENS"):
                GOLDENS.mkdir(exist_ok=True)
                golden.write_text(shown)
            if shown != golden.read_text():
                differing.append((golden.name, golden.read_text().split("\n"), shown.split("\n")))
    for name, before, now in differing:
        assert now == before, f"{name} looks different; if it should, UPDATE_GOLDENS=1 takes it anew"

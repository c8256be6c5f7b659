"""Everything is read in 16 colours and without colour, on black and on white; what a colour says, a sign says as well."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from rich.color import Color, ColorSystem, ColorType
from rich.style import Style
from textual.pilot import Pilot

from dumptui.core.run import Run, StepKey
from dumptui.tui.app import DumpTui
from dumptui.tui.widgets.table import Table
from tests.everywhere import WAY
from tests.screen import press, strips, text, until
from tests.test_scales import brightness

# The 16 colours of xterm; most terminals have lighter dark ones.
XTERM = [(0, 0, 0), (205, 0, 0), (0, 205, 0), (205, 205, 0), (0, 0, 238), (205, 0, 205), (0, 205, 205), (229, 229, 229)]
XTERM += [(127, 127, 127), (255, 0, 0), (0, 255, 0), (255, 255, 0), (92, 92, 255), (255, 0, 255), (0, 255, 255)]
XTERM += [(255, 255, 255)]
LEAST = 2.0
"""Of the contrast between letters and what they stand on. xterm's green and cyan on white have no more than that."""


class Look(NamedTuple):
    theme: str
    system: ColorSystem | None = None
    """What the terminal has, None for true colours."""
    colour: bool = True


LOOKS = {
    "16 on black": Look("ansi-dark", ColorSystem.STANDARD),
    "16 on white": Look("ansi-light", ColorSystem.STANDARD),
    "light": Look("textual-light"),
    "none": Look("textual-dark", colour=False),
    "none on white": Look("textual-light", colour=False),
    "none of 16": Look("ansi-dark", ColorSystem.STANDARD, colour=False),
}


async def everywhere(app: DumpTui, pilot: Pilot[None]) -> AsyncIterator[str]:
    await until(pilot, lambda: not app.wait.waiting and len(app.rollout.rows) == len(app.run_.steps))
    app.rollout.show_steps()
    for stop, keys in WAY.items():
        for key in keys:
            await press(pilot, key)
            await until(pilot, lambda: not app.wait.waiting)
        before = ""
        while before != (now := text(app)):
            before = now
            await asyncio.sleep(0.05)
        yield stop


def contrast(style: Style, look: Look) -> float:
    white = "light" in look.theme
    ends = [rgb(style.color, look, (0, 0, 0) if white else XTERM[7])]
    ends.append(rgb(style.bgcolor, look, (255, 255, 255) if white else (0, 0, 0)))
    if style.reverse:
        ends.reverse()
    if style.dim:
        ends[0] = tuple((one + other) // 2 for one, other in zip(*ends, strict=True))  # type: ignore[assignment]
    low, high = sorted(brightness(Color.from_rgb(*end)) for end in ends)
    return (high + 0.05) / (low + 0.05)


def rgb(colour: Color | None, look: Look, default: tuple[int, int, int]) -> tuple[int, int, int]:
    if colour is None or colour.type == ColorType.DEFAULT:
        return default
    shown = colour if look.system is None else colour.downgrade(look.system)
    return XTERM[shown.number or 0] if shown.type == ColorType.STANDARD else tuple(shown.get_truecolor())


def pieces(app: DumpTui) -> Iterator[tuple[str, Style]]:
    for strip in strips(app):
        for segment in strip:
            yield segment.text, segment.style or Style()


@pytest.mark.parametrize("name", LOOKS)
async def test_nothing_vanishes(demo: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    look = LOOKS[name]
    if not look.colour:
        monkeypatch.setenv("NO_COLOR", "1")
    app = DumpTui(Run.open(demo), StepKey(3))
    app.theme = look.theme
    faint: dict[tuple[str, str], float] = {}
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        async for stop in everywhere(app, pilot):
            for said, style in pieces(app):
                if any(char.isalnum() for char in said) and (found := contrast(style, look)) < LEAST:
                    faint.setdefault((stop, said.strip()), round(found, 2))
            for table in app.screen.query(Table):
                assert_marked(table, stop)
    assert not faint


def assert_marked(table: Table, stop: str) -> None:
    """The row under the cursor has a sign before it, and no other row has."""
    if table.region and table.row_count:
        shown = [table.render_line(y).text for y in range(1, table.size.height)]
        assert [line[:1] for line in shown].count(">") == 1, f"{stop}: {table.id}"

"""Everything is read in 16 colours and without colour, on black and on white; what a colour says, a sign says too."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from rich.color import Color, ColorSystem, ColorType
from rich.style import Style
from textual.widgets import OptionList

from dumptui.core.files.step_files import StepKey
from dumptui.core.run.run import Run
from dumptui.tui.app.app import DumpTui
from dumptui.tui.widgets.table.table import Table
from tests.support.colours import brightness
from tests.support.everywhere import everywhere
from tests.support.screen import strips

# The 16 colours of xterm; most terminals have lighter dark ones.
XTERM = [(0, 0, 0), (205, 0, 0), (0, 205, 0), (205, 205, 0), (0, 0, 238), (205, 0, 205), (0, 205, 205), (229, 229, 229)]
XTERM += [(127, 127, 127), (255, 0, 0), (0, 255, 0), (255, 255, 0), (92, 92, 255), (255, 0, 255), (0, 255, 255)]
XTERM += [(255, 255, 255)]
SAID = re.compile(
    r"!|~|trunc|removed|no train|aborted|failed|unplaced|zero-std|all correct|all wrong|single|unknown|error|warning|"
    r"info|set \d|[1-9]$"
)
"""What a row in colour says in words: what is wrong with it, or how many values are not finite."""
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


def contrast(style: Style, look: Look) -> float:
    white = "light" in look.theme
    text = rgb(style.color, look, (0, 0, 0) if white else XTERM[7])
    ground = rgb(style.bgcolor, look, (255, 255, 255) if white else (0, 0, 0))
    if style.reverse:
        text, ground = ground, text
    shown = Color.from_rgb(*text)
    if style.dim:
        shown = Color.from_rgb(*((one + other) // 2 for one, other in zip(text, ground, strict=True)))
    low, high = sorted(brightness(one) for one in (shown, Color.from_rgb(*ground)))
    return (high + 0.05) / (low + 0.05)


def rgb(colour: Color | None, look: Look, default: tuple[int, ...]) -> tuple[int, ...]:
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
                assert_said(table, stop)
    assert not faint


def assert_marked(table: Table, stop: str) -> None:
    """The row under the cursor has a sign before it, and no other row has."""
    if table.region and table.row_count:
        shown = [table.render_line(y).text for y in range(1, table.size.height)]
        assert [line[:1] for line in shown].count(">") == 1, f"{stop}: {table.id}"


def assert_said(table: Table, stop: str) -> None:
    """A row in another colour than the others says why, in the columns that are on screen."""
    plain = table.rich_style.color
    for y in range(1, table.size.height if table.size.width >= 40 and table.row_count else 0):
        strip = table.render_line(y)
        coloured = any(segment.style is not None and segment.style.color != plain for segment in strip)
        if strip.text.strip() and coloured and not strip.text.startswith(">"):
            assert SAID.search(strip.text.rstrip()), f"{stop}: {table.id}: {strip.text}"


@pytest.mark.parametrize("name", ["16 on black", "none"])
async def test_hits_differences_and_kinds_of_tokens_are_told_without_hue(
    demo: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bold italic is a hit, reverse is under the cursor, faint what two samples share and the prompt."""
    if not LOOKS[name].colour:
        monkeypatch.setenv("NO_COLOR", "1")
    app = DumpTui(Run.open(demo), StepKey(3))
    app.theme = LOOKS[name].theme
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        async for stop in everywhere(app, pilot):
            looks = [style for _, style in pieces(app)]
            if stop in ("hits in the text", "search of the conversation"):
                assert any(style.bold and style.italic for style in looks), stop
            if stop in ("pair", "tokens"):
                assert len({round(contrast(style, LOOKS[name])) for style in looks}) > 1, stop
            if stop in ("tokens", "pair", "picture"):
                assert any(style.reverse and style.bold for style in looks), stop
            if stop in ("sorting", "compare with", "statistic", "copy", "export", "palette"):
                assert_chosen(app, stop)


def assert_chosen(app: DumpTui, stop: str) -> None:
    """One entry of the list differs from all others by more than a hue."""
    (options,) = app.screen.query(OptionList)
    looks = [next(iter(options.render_line(y))).style or Style() for y in range(options.size.height)]
    told = [(bool(style.reverse), bool(style.bold), lightness(style)) for style in looks]
    assert 1 <= min(map(told.count, told)) <= 2 and len(set(told)) == 2, stop  # an entry of the palette has two lines


def lightness(style: Style) -> int:
    return round(brightness(style.bgcolor) * 4) if style.bgcolor is not None else 0

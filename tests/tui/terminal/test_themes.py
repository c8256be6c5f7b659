"""Themes are remembered, and whatever the colours, what they say is said without them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from rich.style import Style

from dumptui.core.files.step_files import StepKey
from dumptui.core.run.run import Run
from dumptui.core.store.state import State
from dumptui.tui.app.app import DumpTui
from dumptui.tui.session.hue_choice import HUES_KEY, kept_hues
from dumptui.tui.terminal.themes import OWN_COLOURS, THEME_KEY, begin_with_theme
from dumptui.tui.widgets.heatmap.hues import DEFAULT_PAIR
from tests.support.kept_session import opened_with_state, pick
from tests.support.screen import Terminal, press, strips, until, until_shown

BASIC = re.compile(rb"\x1b\[((?:[0-9]+;)*[0-9]*)m")


async def test_a_chosen_theme_is_there_at_the_next_start_of_any_run(demo: Path, tmp_path: Path) -> None:
    async with opened_with_state(demo) as (app, pilot):
        await press(pilot, "ctrl+p", *"theme")
        await until_shown(pilot, "Change the current theme")
        await press(pilot, "enter")
        await until_shown(pilot, "Search for themes")
        await press(pilot, *"ansi-light")
        await pilot.pause()
        await press(pilot, "enter")
        await until(pilot, lambda: State.of(None).get(THEME_KEY) == "ansi-light")
    app = DumpTui(Run.open(demo))
    begin_with_theme(app)
    assert app.theme == "ansi-light"


async def test_other_hues_are_there_at_once_said_in_words_and_kept_for_every_run(demo: Path) -> None:
    def legend() -> list[str]:
        """The backgrounds of the ends of the scale, the lower one first."""
        pieces = [(segment.text.strip(), segment.style or Style()) for strip in strips(app)[:4] for segment in strip]
        return [style.bgcolor.name for text, style in pieces if text in ("−", "+") and style.bgcolor is not None]

    async with opened_with_state(demo) as (app, pilot):
        await press(pilot, "3")
        await until_shown(pilot, "Δ against position")
        before = legend()
        await press(pilot, "C")
        await until_shown(pilot, "red is above zero, blue below")
        assert len(before) == len(legend()) == 2 and before[1] != legend()[1]
        await press(pilot, "1", "ctrl+p", *"purple")
        await until_shown(pilot, "purple is above zero, green below")
        await press(pilot, "enter")
        await until(pilot, lambda: kept_hues() == "purple-green")
        await press(pilot, "3")
        await until(pilot, lambda: len(legend()) == 2 and legend() != before)
        own = legend()
    async with opened_with_state(demo) as (app, pilot):
        await press(pilot, "3")
        await until_shown(pilot, "Δ against position")
        await until(pilot, lambda: legend() == own)
        app.theme = "ansi-light"
        await until(pilot, lambda: legend() == ["color(2)", "color(5)"])


@pytest.mark.parametrize("kept", ["gone", 3, None, []], ids=repr)
def test_hues_that_are_none_are_not_taken(kept: object) -> None:
    State.of(None).put(HUES_KEY, kept)
    assert kept_hues() == DEFAULT_PAIR


@pytest.mark.parametrize("kept", ["gone", 3, None, []], ids=repr)
def test_a_theme_that_is_none_is_not_taken(demo: Path, kept: object, monkeypatch: pytest.MonkeyPatch) -> None:
    State.of(None).put(THEME_KEY, kept)
    monkeypatch.setenv("TERM", "xterm-256color")
    app = DumpTui(Run.open(demo))
    before = app.theme
    begin_with_theme(app)
    assert app.theme == before


def test_the_environment_goes_before_what_was_chosen(demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    State.of(None).put(THEME_KEY, "nord")
    monkeypatch.setenv("TEXTUAL_THEME", "dracula")
    app = DumpTui(Run.open(demo))
    before = app.theme
    begin_with_theme(app)
    assert app.theme == before


def test_a_terminal_of_16_colours_gets_its_own(demo: Path) -> None:
    with Terminal(demo, env={"TERM": "xterm", "COLORTERM": ""}) as terminal:
        terminal.until("step 3, 4 of 4", "? Keys")
        for key in ("\r", "\r", "]", "y", "q"):
            terminal.press(key)
            terminal.settle()
        written = {code for codes in BASIC.findall(bytes(terminal.raw)) for code in codes.split(b";")}
        assert not written & {b"38", b"48"}, "more than the 16 colours"
        terminal.press("ctrl+c")
        assert terminal.end() == 0


def test_ansi_colours_without_colour_are_those_of_the_terminal(demo: Path) -> None:
    with Terminal(demo, env={"TERM": "xterm", "COLORTERM": "", "NO_COLOR": "1"}) as terminal:
        terminal.until("step 3, 4 of 4", "? Keys")
        terminal.press("\r")
        terminal.settle()
        written = {code for codes in BASIC.findall(bytes(terminal.raw)) for code in codes.split(b";")}
        assert b"39" in written and not any(re.fullmatch(rb"[349][0-7]|10[0-7]", code) for code in written)
        terminal.press("ctrl+c")
        assert terminal.end() == 0


@pytest.mark.parametrize("colours", ["none", OWN_COLOURS])
async def test_without_colour_the_cursor_the_pane_and_large_values_are_told(
    demo: Path, monkeypatch: pytest.MonkeyPatch, colours: str
) -> None:
    """By a letter or an attribute: `>` before a row, reverse on a token, bold for + and underline for -."""
    if colours == "none":
        monkeypatch.setenv("NO_COLOR", "1")
    async with opened_with_state(demo, key=StepKey(2)) as (app, pilot):
        if colours != "none":
            app.theme = colours
        await press(pilot, "enter", "j")
        await until_shown(pilot, ">    65")
        await press(pilot, "enter")
        await until_shown(pilot, "Δ against position")
        await press(pilot, "]")
        pieces = [(segment.text, segment.style or Style()) for strip in strips(app) for segment in strip]
        assert next(text.strip() for text, style in pieces if style.reverse) == "3 Tokens"
        token = app.tokens.view.texts[app.tokens.token] if app.tokens.view else ""
        assert token in [text for text, style in pieces if style.reverse and style.bold]
        shaded = [style for _, style in pieces if not style.reverse]
        assert any(style.underline for style in shaded) and any(style.bold for style in shaded)


@pytest.mark.parametrize("colours", ["none", OWN_COLOURS, "ansi-light"])
async def test_without_colour_the_chosen_entry_of_a_list_is_told(
    demo: Path, monkeypatch: pytest.MonkeyPatch, colours: str
) -> None:
    """Its background differs from that of the others by more than a hue."""
    if colours == "none":
        monkeypatch.setenv("NO_COLOR", "1")
    async with opened_with_state(demo) as (app, pilot):
        if colours != "none":
            app.theme = colours
        await press(pilot, "y", "j")
        await until_shown(pilot, "the command line")
        looks = {}
        for strip in strips(app):
            for segment in strip:
                for name in ("the row", "the command line"):
                    if segment.text.strip().startswith(name):
                        looks[name] = segment.style or Style()
        chosen, other = looks["the command line"], looks["the row"]
        assert (chosen.reverse, chosen.bold, brightness(chosen)) != (other.reverse, other.bold, brightness(other))
        assert abs(brightness(chosen) - brightness(other)) > 40 or chosen.reverse != other.reverse
        await press(pilot, "k")
        await pick(pilot, "the row")


def brightness(style: Style) -> float:
    if style.bgcolor is None:
        return 0.0
    return sum(style.bgcolor.get_truecolor()) / 3

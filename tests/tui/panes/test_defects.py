"""A defect of dumptui costs the widget or pane that it is in, wherever it is; each test puts one in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.app import ComposeResult

from dumptui.core.defect import Defect, defect_of
from dumptui.core.files.step_files import StepKey
from dumptui.tui.app.app import DumpTui
from dumptui.tui.panes.batch import BatchPane
from dumptui.tui.panes.groups import GroupsPane
from dumptui.tui.panes.rollout.pane import RolloutPane
from dumptui.tui.panes.rollout.steps_table import StepsSide
from dumptui.tui.panes.tokens.pane import TokensPane
from dumptui.tui.screens.help import HelpScreen
from dumptui.tui.widgets.plot.scatter import Scatter
from tests.support.screen import press, tab, text, until, until_shown
from tests.support.session import opened

SAID = ("LookupError: ␛[/red] lost at ", "dumptui 0.1.0: please report it")
SIZE = (200, 40)


class Broken:
    """A method that fails as long as `holds` is true of its arguments."""

    def __init__(self, patch: pytest.MonkeyPatch, owner: type, name: str, holds: Callable[..., bool]) -> None:
        method = getattr(owner, name)

        def broken(*arguments: Any, **named: Any) -> Any:
            if holds(*arguments, **named):
                raise LookupError("\x1b[/red] lost")
            return method(*arguments, **named)

        patch.setattr(owner, name, broken)


def assert_contained(app: DumpTui, defects: list[BaseException]) -> None:
    assert defects and all(isinstance(one, LookupError) for one in defects)
    assert [one.what for one in app.defects] == ["LookupError: ␛[/red] lost"]
    defects.clear()


async def test_a_widget_that_can_not_be_drawn_is_replaced_until_it_can(
    demo: Path, monkeypatch: pytest.MonkeyPatch, defects: list[BaseException]
) -> None:
    Broken(monkeypatch, Scatter, "render_line", lambda self, y: self.point == 1)
    async with opened(demo, key=StepKey(2), size=SIZE) as (app, pilot):
        await press(pilot, "v", "v", "home")
        await until_shown(pilot, "response length", "1 Roll")
        await press(pilot, "right")
        await until_shown(pilot, "this part failed: ", *SAID, "< step 2 >", "reward against length")
        assert "response length" not in text(app)
        await press(pilot, "right")
        await until_shown(pilot, "response length")
        assert "failed" not in text(app)
        assert_contained(app, defects)


async def test_a_pane_that_can_not_take_a_step_is_replaced_until_another_step(
    demo: Path, monkeypatch: pytest.MonkeyPatch, defects: list[BaseException]
) -> None:
    Broken(monkeypatch, BatchPane, "sort_samples", lambda self, *_, **__: self.app.steps.wanted == StepKey(2))
    async with opened(demo, key=StepKey(1), size=SIZE) as (app, pilot):
        await press(pilot, ">", tab("batch"))
        await until_shown(pilot, "this pane failed: ", *SAID, "step 2, 3 of 4")
        await press(pilot, tab("groups"))
        await until_shown(pilot, "step 2 ·", "best first")
        await press(pilot, "<", tab("batch"))
        await until_shown(pilot, "step 1 · trained on")
        assert "failed" not in text(app)
        assert_contained(app, defects)


async def test_a_pane_that_can_not_show_a_sample_is_replaced_until_another_sample(
    demo: Path, monkeypatch: pytest.MonkeyPatch, defects: list[BaseException]
) -> None:
    Broken(monkeypatch, TokensPane, "_say_shade", lambda self: self.position == 1)
    async with opened(demo, key=StepKey(2), size=SIZE) as (app, pilot):
        await press(pilot, "enter", "enter")
        await until_shown(pilot, "sample 64 ·")
        await press(pilot, "n")
        await until_shown(pilot, "this pane failed: ", *SAID)
        assert "sample 65 ·" not in text(app)
        await press(pilot, "n")
        await until_shown(pilot, "sample 66 ·")
        assert "failed" not in text(app)
        assert_contained(app, defects)


async def test_a_message_that_a_pane_can_not_handle_costs_the_pane(
    demo: Path, monkeypatch: pytest.MonkeyPatch, defects: list[BaseException]
) -> None:
    Broken(monkeypatch, GroupsPane, "_show_members", lambda self, **_: self.table.cursor == 1)
    async with opened(demo, key=StepKey(2), size=SIZE) as (app, pilot):
        await press(pilot, tab("groups"))
        await until_shown(pilot, "best first")
        await press(pilot, "down")
        await until_shown(pilot, "this pane failed: ", *SAID)
        await press(pilot, tab("rollout"))
        await until_shown(pilot, "< step 2 >")
        await press(pilot, "<", tab("groups"))
        await until_shown(pilot, "step 1 ·", "best first")
        assert_contained(app, defects)


async def test_a_timer_that_fails_costs_the_side_that_it_is_for(
    demo: Path, monkeypatch: pytest.MonkeyPatch, defects: list[BaseException]
) -> None:
    async with opened(demo, key=StepKey(2), size=SIZE) as (app, pilot):
        Broken(monkeypatch, StepsSide, "show", lambda self: True)
        app.rollout.steps.summarise(StepKey(2), app.rollout.rows[StepKey(2)])
        await until_shown(pilot, "this pane failed: ", "LookupError: ", "< step 2 >", "reward against length")
        assert_contained(app, defects)


async def test_a_key_that_fails_is_said_and_the_pane_stays(
    demo: Path, monkeypatch: pytest.MonkeyPatch, defects: list[BaseException]
) -> None:
    Broken(monkeypatch, RolloutPane, "action_trend", lambda self: True)
    async with opened(demo, key=StepKey(2), size=SIZE) as (app, pilot):
        for _ in range(2):
            app.clear_notifications()
            await press(pilot, "m")
            await until_shown(pilot, "the key failed: LookupError: ␛[/red] lost", "report it", "< step 2 >")
        await press(pilot, "<")
        await until_shown(pilot, "< step 1 >")
        assert_contained(app, defects)


async def test_a_dialog_that_fails_goes_away(
    demo: Path, monkeypatch: pytest.MonkeyPatch, defects: list[BaseException]
) -> None:
    def compose(self: HelpScreen) -> ComposeResult:
        raise LookupError("\x1b[/red] lost")

    monkeypatch.setattr(HelpScreen, "compose", compose)
    async with opened(demo, key=StepKey(2), size=SIZE) as (app, pilot):
        await press(pilot, "?")
        await until_shown(pilot, "the dialog failed: LookupError")
        await until(pilot, lambda: len(app.screen_stack) == 1)
        await press(pilot, "<")
        await until_shown(pilot, "< step 1 >")
        assert_contained(app, defects)


def test_what_is_reported_names_a_line_of_dumptui() -> None:
    with pytest.raises(TypeError) as raised:
        Defect(1, 2, 3)  # type: ignore[call-arg, arg-type]
    assert defect_of(raised.value).where.startswith("test_defects.py:")
    assert str(defect_of(LookupError())) == "LookupError at an unknown line, dumptui 0.1.0"

"""One list of panes: the tabs, `--pane`, the palette, the help and the printed views name the same things."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from dumptui.core.files.step_files import StepKey
from dumptui.core.run.run import Run
from dumptui.tui.app.app import DumpTui
from dumptui.tui.cli.main import PRINT_VIEWS, make_parser
from dumptui.tui.panes import FIRST_PANE, PANE_LIST, PANES_BESIDE_SAMPLES, SAMPLE_PANES, TABS, PaneEntry
from dumptui.tui.panes.rollout.pane import RolloutPane
from tests.support.screen import press, text, until, until_shown

PRINTED_VIEWS = {"rollout": {"overview", "steps", "samples"}, "tokens": {"tokens", "worst"}}
"""The views that print a pane, where that is not the one of its name."""
VIEWS_WITHOUT_PANE = {"metrics", "keys", "lanes", "facts"}


@pytest.mark.parametrize("entry", PANE_LIST, ids=lambda entry: entry.name)
def test_the_help_of_a_pane_has_its_title(entry: PaneEntry) -> None:
    assert dedent(entry.load().HELP or "").startswith(f"# {entry.title}\n")


def test_panes_are_in_the_list_once_by_the_id_that_they_have() -> None:
    assert len({entry.name for entry in PANE_LIST}) == len(PANE_LIST)
    for entry in PANE_LIST:
        kind = entry.load()
        assert issubclass(kind, RolloutPane) or kind().id == entry.name
    assert set(TABS) >= SAMPLE_PANES and FIRST_PANE in TABS
    assert PANES_BESIDE_SAMPLES >= SAMPLE_PANES


def test_the_command_line_takes_the_panes_that_have_a_tab() -> None:
    [pane] = [action for action in make_parser()._actions if action.dest == "pane"]
    assert list(pane.choices or ()) == list(TABS)


def test_each_pane_has_the_views_that_print_it() -> None:
    printed: set[str] = set().union(*(PRINTED_VIEWS.get(entry.name, {entry.name}) for entry in PANE_LIST))
    assert printed | VIEWS_WITHOUT_PANE == set(PRINT_VIEWS)


async def test_tabs_keys_and_palette_come_from_the_list(demo: Path) -> None:
    app: DumpTui = DumpTui(Run.open(demo), StepKey(1))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.loaded is not None)
        assert {str(pane.id) for pane in app.panes} == {entry.name for entry in PANE_LIST}
        await press(pilot, "ctrl+p", *"Pane:")
        await until_shown(pilot, *(f"Pane: {title}" for title in TABS.values()))
        await press(pilot, "escape")
        for number, (name, title) in enumerate(TABS.items(), 1):
            await press(pilot, str(number))
            await until(pilot, lambda name=name: app.pane == name)  # type: ignore[misc]
            assert f"{number} {title}" in text(app)

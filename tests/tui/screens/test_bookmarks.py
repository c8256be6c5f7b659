"""Places marked with a note: they are there at the next start, whatever was written in them."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import OptionList

from dumptui.core.files.step_files import StepKey
from dumptui.core.store.state import State
from dumptui.tui.screens.bookmarks import STATE_KEY, Bookmark, bookmarks, note_of, set_bookmark
from dumptui.tui.session.location import Location
from tests.support.kept_session import opened_with_state
from tests.support.screen import press, text, until, until_shown

HOSTILE = "[/red]\x1b]0;owned\x07\u202e\x9b31m"


def test_they_are_listed_in_the_order_of_the_run_and_one_place_has_one_note(tmp_path: Path) -> None:
    state = State.of(tmp_path / "run")
    late, early = Location(StepKey(9), "tokens", (None, 2), 5), Location(StepKey(2))
    set_bookmark(state, late, "late")
    set_bookmark(state, early, "early")
    set_bookmark(State.of(tmp_path / "run"), late, "later")
    assert bookmarks(State.of(tmp_path / "run")) == [Bookmark(early, "early"), Bookmark(late, "later")]
    assert note_of(state, late) == "later"
    set_bookmark(state, early, None)
    assert bookmarks(state) == [Bookmark(late, "later")]


@pytest.mark.parametrize("kept", [None, 3, {}, [1, {"place": {}, "note": "x"}, {"note": 1}]], ids=repr)
def test_what_is_no_bookmark_is_left_out(tmp_path: Path, kept: object) -> None:
    state = State.of(tmp_path / "run")
    state.put(STATE_KEY, kept)
    assert bookmarks(state) == []


async def test_a_place_is_marked_found_again_and_forgotten(demo: Path) -> None:
    async with opened_with_state(demo, key=StepKey(1), sample=(33, 0)) as (app, pilot):
        await until_shown(pilot, "sample 33 ·")
        await press(pilot, "]", "B", *"why so low", "enter")
        token = app.tokens.token
        await until_shown(pilot, f"bookmarked step 1, sample 33, token {token} (tokens)")
    async with opened_with_state(demo) as (app, pilot):
        await press(pilot, "'")
        await until_shown(pilot, f"step 1, sample 33, token {token} (tokens)", "why so low")
        await press(pilot, "G", "enter")
        await until_shown(pilot, "sample 33 ·", f"#{token} ")
        await press(pilot, "B")
        await until_shown(pilot, "why so low")  # it can be written on
        await press(pilot, *" here", "enter", "'")
        await until_shown(pilot, "why so low here")
        await press(pilot, "d")
        await until_shown(pilot, "no bookmarks yet; B adds one")
        await press(pilot, "enter", "d", "j", "escape")
        assert len(app.screen_stack) == 1
    assert bookmarks(State.of(demo)) == []


async def test_the_last_visit_is_the_first_of_them_and_not_deleted(demo: Path) -> None:
    State.of(demo).put("visit", Location(StepKey(1), "batch").to_json())
    async with opened_with_state(demo) as (app, pilot):
        await press(pilot, "'", "d")
        await until_shown(pilot, "step 1 (batch)", "last position in the previous session")
        await press(pilot, "enter")
        await until_shown(pilot, "step 1, 2 of 4", "2 Batch")
        assert app.pane == "batch"


async def test_hostile_notes_and_places_stand_in_visibly(demo: Path) -> None:
    set_bookmark(State.of(demo), Location(StepKey(3), HOSTILE, (1, 0)), HOSTILE)
    async with opened_with_state(demo, size=(160, 30)) as (app, pilot):
        await press(pilot, "'")
        await until_shown(pilot, "[/red]␛]0;owned␇‹202e›‹009b›31m")
        assert "\u202e" not in text(app) and "\x1b" not in text(app)
        await press(pilot, "enter")
        await until(pilot, lambda: not app.screen.query(OptionList))
        await until_shown(pilot, "no sample 1 in step 3")


async def test_where_nothing_can_be_kept_that_is_said_and_the_mark_lasts_as_long_as_the_screen(
    demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    async with opened_with_state(demo) as (_, pilot):
        await press(pilot, "B", *"note", "enter")
        await until_shown(pilot, "settings not saved")
        await press(pilot, "'")
        await until_shown(pilot, "step 3 (rollout)", "note")

"""What is done with what is on screen: going back to a place."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.pilot import Pilot

from dumptui.core.run import Run, StepKey
from dumptui.core.state import State
from dumptui.tui.app import DumpTui
from dumptui.tui.place import Place
from tests.screen import lines, press, text, until, until_shown

Session: TypeAlias = tuple[DumpTui, Pilot[None]]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=4,
)


@asynccontextmanager
async def opened(root: Path, *, size: tuple[int, int] = (120, 30), **where: Any) -> AsyncIterator[Session]:
    app = DumpTui(Run.open(root), state=State.of(root), **where)
    async with app.run_test(size=size, notifications=True) as pilot:
        await until(pilot, lambda: not app.wait.waiting)
        yield app, pilot


async def leave(pilot: Pilot[None]) -> None:
    await press(pilot, "q")


def footer(app: DumpTui) -> str:
    return lines(app)[-1]


# Places ----------------------------------------------------------------------------------------------------------


@given(
    st.integers(),
    st.booleans(),
    st.text(),
    st.none() | st.tuples(st.none() | st.integers(), st.integers()),
    st.none() | st.integers(),
)
def test_a_place_survives_json(
    step: int, evaluation: bool, pane: str, sample: tuple[int | None, int] | None, token: int | None
) -> None:
    place = Place(StepKey(step, evaluation), pane, sample, token)
    assert Place.from_json(place.to_json()) == place


@given(JSON | st.fixed_dictionaries(dict.fromkeys(("step", "evaluation", "pane", "sample", "token"), JSON)))
def test_anything_else_is_no_place_or_one_without_what_is_wrong(value: object) -> None:
    place = Place.from_json(value)
    assert place is None or str(place)


async def test_the_last_visit_is_offered_again_and_not_in_the_way(demo: Path) -> None:
    async with opened(demo, key=StepKey(1), sample=(33, 0)) as (app, pilot):
        await until_shown(pilot, "sample 33 ·")
        assert "back to" not in text(app)
        await press(pilot, "]")
        token = app.tokens.token
        await leave(pilot)
    offer = f"` back to step 1, sample 33, token {token} (tokens)"
    async with opened(demo, size=(80, 24)) as (app, pilot):
        assert footer(app).strip().startswith(offer) and footer(app).endswith("? Keys")
        await leave(pilot)  # at once: that was no visit
    async with opened(demo) as (app, pilot):
        assert offer in footer(app)
        await press(pilot, "`")
        await until_shown(pilot, "sample 33 ·", f"#{token} ")
        assert app.tokens.token == token
        await press(pilot, "1")
        assert "back to" not in footer(app)
    async with opened(demo, key=StepKey(0)) as (app, pilot):
        assert "back to" not in text(app)  # a place was asked for; the key still goes there
        await press(pilot, "`")
        await until_shown(pilot, "sample 33 ·", f"#{token} ")


async def test_a_visit_to_what_is_gone_says_so(demo: Path) -> None:
    State.of(demo).put("visit", Place(StepKey(77), "tokens", (1, 0)).to_json())
    async with opened(demo) as (app, pilot):
        await press(pilot, "`")
        await until_shown(pilot, "there is no step 77 in this run", "step 3, 4 of 4")
    State.of(demo).put("visit", Place(StepKey(1), "gone", (777, 0)).to_json())
    async with opened(demo) as (_, pilot):
        await press(pilot, "`")
        await until_shown(pilot, "no sample 777 in step 1", "< step 1 >")


@pytest.mark.parametrize("kept", [None, [], "x", {"step": "1"}], ids=repr)
async def test_without_a_visit_nothing_is_offered(demo: Path, kept: object) -> None:
    State.of(demo).put("visit", kept)
    async with opened(demo) as (app, pilot):
        assert "back to" not in text(app)
        await press(pilot, "`")
        await until_shown(pilot, "there was no visit before this one")

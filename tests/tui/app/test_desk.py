"""What is done with what is on screen: going back to a place."""

from __future__ import annotations

import csv
import json
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.pilot import Pilot

from dumptui.core.files.step_files import StepKey
from dumptui.core.store.state import State
from dumptui.tui.app.app import DumpTui
from dumptui.tui.panes.health import HealthPane
from dumptui.tui.session.location import Location
from dumptui.tui.terminal.clipboard import copyable
from dumptui.tui.widgets.table.table import Table
from tests.support.kept_session import opened_with_state, pick
from tests.support.screen import lines, press, run, text, until, until_shown
from tests.support.writer import sample, write_step

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=4,
)


async def leave(pilot: Pilot[None]) -> None:
    await press(pilot, "ctrl+c")


def footer(app: DumpTui) -> str:
    return lines(app)[-1]


def printed(root: Path, *words: str) -> str:
    return run("--no-cache", root, "--print", *words).stdout


# Copying, files, the command line --------------------------------------------------------------------------------


async def test_a_cell_a_row_and_a_text_are_copied(demo: Path) -> None:
    async with opened_with_state(demo, key=StepKey(2)) as (app, pilot):
        await press(pilot, "y")
        await pick(pilot, "the row")
        await until_shown(pilot, "copied the row")
        assert json.loads(app.clipboard)["step"] == 2
        await press(pilot, "enter", "j", "y")
        await pick(pilot, "response_length ")
        assert app.loaded is not None
        assert app.clipboard == str(app.loaded.step.samples[1].response_length)
        await press(pilot, "enter")
        await until_shown(pilot, "Δ against position")
        await press(pilot, "]", "y")
        await pick(pilot, "the response")
        assert app.clipboard == app.loaded.step.samples[1].response
        await until_shown(pilot, "copied the response")
        assert "copied response_length" not in text(app)  # one message at a time
        await press(pilot, "y")
        await pick(pilot, "lp_diff ")
        assert abs(float(app.clipboard)) > 0


async def test_what_is_too_long_for_a_terminal_goes_to_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = "word \x1b]0;owned\x07" * 10_000
    write_step(tmp_path / "run", 0, [sample(0, response=long)])
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    async with opened_with_state(tmp_path / "run") as (app, pilot):
        await press(pilot, "enter", "y")
        await pick(pilot, "the response")
        await until_shown(pilot, "too long for the clipboard: written to")
        assert not app.clipboard
    assert (tmp_path / "work" / "dumptui-copy.txt").read_text() == copyable(long)


@pytest.mark.parametrize(
    ("keys", "words", "name"),
    [
        ([], ["steps"], "dumptui-steps"),
        (["enter"], ["samples", "--step", "2"], "dumptui-step-2-samples"),
        (["2"], ["batch", "--step", "2"], "dumptui-step-2-batch"),
        (["enter", "enter"], ["tokens", "--step", "2", "--sample", "64"], "dumptui-step-2-sample-64"),
        (
            ["enter", "c"],
            ["conversation", "--step", "2", "--sample", "64"],
            "dumptui-step-2-sample-64-conversation",
        ),
        (["5"], ["health"], "dumptui-health"),
        (["enter", "i"], ["facts", "--step", "2", "--sample", "64"], "dumptui-step-2-sample-64-facts"),
        (
            ["enter", "d", "enter", "t"],
            ["pair", "--step", "2", "--sample", "64", "--with", "65", "--words"],
            "dumptui-step-2-sample-64-pair-65",
        ),
    ],
    ids=["steps", "samples", "batch", "tokens", "conversation", "health", "facts", "pair"],
)
async def test_what_is_exported_is_what_the_command_line_prints(
    demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: list[str], words: list[str], name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    async with opened_with_state(demo, key=StepKey(2)) as (app, pilot):
        await until(pilot, lambda: len(app.rollout.rows) == len(app.steps.run.steps))
        for key in keys:
            await press(pilot, key)
            await until(pilot, lambda: not app.wait.waiting)
        if name == "dumptui-health":
            await until(pilot, lambda: app.panes.of(HealthPane).query_one(Table).empty != "checking")
        await press(pilot, ":")
        await until_shown(pilot, "this command prints the view on screen")
        await press(pilot, "y")
        assert shlex.split(app.clipboard) == ["dumptui", str(demo.resolve()), "--print", *words]
        for label, suffix in {"CSV": "csv", "JSON": "json", "Markdown": "md"}.items():
            await press(pilot, "e")
            await pick(pilot, label)
            await until(pilot, lambda: text(app).count(f"{name}.{suffix}"))  # noqa: B023
    want = printed(demo, *words, "--csv").splitlines()
    got = (tmp_path / f"{name}.csv").read_text().splitlines()
    assert sorted(got) == sorted(want) and got[0] == want[0]
    rows = json.loads(printed(demo, *words, "--json"))
    exported = json.loads((tmp_path / f"{name}.json").read_text())
    if words[0] in ("tokens", "conversation"):
        whole = dict.fromkeys(("notes", "metadata", "extra"))  # what --sample leaves unread
        assert exported | whole == rows | whole
    else:
        assert sorted(map(str, exported["rows"])) == sorted(map(str, rows["rows"]))
    assert (tmp_path / f"{name}.md").read_text().startswith("| ")


async def test_a_file_is_named_whatever_the_length_of_its_path(
    demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / ("a-long-name" * 20) / ("of-a-folder" * 20)
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    async with opened_with_state(demo, key=StepKey(2), size=(60, 20)) as (_, pilot):
        for name in ("dumptui-steps.csv", "dumptui-steps-2.csv"):
            await press(pilot, "e")
            await pick(pilot, "CSV")
            await until_shown(pilot, f"written to {name} in")


async def test_the_order_on_screen_is_the_order_of_the_file(
    demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with opened_with_state(demo, key=StepKey(2)) as (app, pilot):
        await press(pilot, "enter", "s")
        await pick(pilot, "len")
        await press(pilot, "e")
        await pick(pilot, "CSV")
        await until_shown(pilot, "written to")
        assert app.loaded is not None
        rows = (tmp_path / "dumptui-step-2-samples.csv").read_text().splitlines()
        lengths = [int(row["response_length"]) for row in csv.DictReader(rows)]
    assert lengths == sorted(lengths, reverse=True) and len(set(lengths)) > 1


async def test_a_difference_and_both_texts_are_copied(tmp_path: Path) -> None:
    ids = {"prompt_len": 3, "response_len": 3}
    made = [sample(0, response="a b c", tokens=[1, 2, 3, 10, 11, 12], **ids)]
    made.append(sample(1, response="a [x] c", tokens=[1, 2, 3, 10, 99, 12], **ids))
    write_step(tmp_path, 0, made)
    async with opened_with_state(tmp_path) as (app, pilot):
        await press(pilot, "enter", "d", "enter")
        await until_shown(pilot, "first differ at token 4")
        await press(pilot, "y")
        await pick(pilot, "the difference")
        assert json.loads(app.clipboard) == {
            "left_position": 4,
            "left_text": " 11",
            "right_position": 4,
            "right_text": " 99",
        }
        await press(pilot, "t", "y")
        await pick(pilot, "both")
        assert app.clipboard == "a[- b-]{+ [x]+} c"
        await press(pilot, "y")
        await pick(pilot, "the second response")
        assert app.clipboard == "a [x] c"
        await press(pilot, ":")
        await until_shown(pilot, "--with 1 --words")


async def test_a_section_a_value_and_all_facts_are_copied_from_where_they_stand(tmp_path: Path) -> None:
    write_step(tmp_path, 0, [sample(3, status="odd", label="\x1b[2J", metadata={"source": "hotpot"})])
    async with opened_with_state(tmp_path, size=(120, 40)) as (app, pilot):
        await press(pilot, "i")
        await until_shown(pilot, "all dumped fields", "y Copy", "e Export", "? Keys")
        await press(pilot, "home", "y")
        await pick(pilot, "the section")
        assert json.loads(app.clipboard)["status"] == "odd"
        await until_shown(pilot, "copied the section")
        await press(pilot, "y")
        await pick(pilot, "status ")
        assert app.clipboard == "odd"
        await press(pilot, "y")
        await pick(pilot, "all sections")
        assert "metadata\n  source: hotpot\n" in app.clipboard and "label: ␛[2J" in app.clipboard
        await press(pilot, "?")
        await until_shown(pilot, "Details")
        await press(pilot, "escape", "y")
        await pick(pilot, "the section")


async def test_a_sample_without_an_index_is_named_too(tmp_path: Path) -> None:
    write_step(tmp_path / "run", 0, [sample(None, seed=at, response=f"the {at}") for at in range(2)], train=False)
    async with opened_with_state(tmp_path / "run") as (app, pilot):
        await press(pilot, "enter", "j", "i")
        await until_shown(pilot, "sample ?.1: all dumped")
        await press(pilot, ":", "y")
        words = shlex.split(app.clipboard)
        assert words[-1] == "?.1" and "the 1" in printed(tmp_path / "run", *words[3:])
        await press(pilot, "escape", "d")
        await press(pilot, "enter")
        await until_shown(pilot, "first differ at")
        await press(pilot, ":", "y")
        words = shlex.split(app.clipboard)
        assert words[-4:] == ["--sample", "?.1", "--with", "?"] and printed(tmp_path / "run", *words[3:])


async def test_while_nothing_is_there_nothing_is_copied(tmp_path: Path) -> None:
    write_step(tmp_path / "run", 0, [])
    async with opened_with_state(tmp_path / "run", pane="tokens") as (app, pilot):
        for key in ("y", "e", ":"):
            app.clear_notifications()
            await press(pilot, key)
            await until_shown(pilot, "nothing is shown here yet")


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
    place = Location(StepKey(step, evaluation), pane, sample, token)
    assert Location.from_json(place.to_json()) == place


@given(JSON | st.fixed_dictionaries(dict.fromkeys(("step", "evaluation", "pane", "sample", "token"), JSON)))
def test_anything_else_is_no_place_or_one_without_what_is_wrong(value: object) -> None:
    place = Location.from_json(value)
    assert place is None or str(place)


async def test_the_last_visit_is_offered_again_and_not_in_the_way(demo: Path) -> None:
    async with opened_with_state(demo, key=StepKey(1), sample=(33, 0)) as (app, pilot):
        await until_shown(pilot, "sample 33 ·")
        assert "ack to" not in text(app)
        await press(pilot, "]")
        token = app.tokens.token
        await leave(pilot)
    async with opened_with_state(demo, size=(80, 24)) as (app, pilot):
        assert footer(app).strip().startswith("` Back to step 1  ") and footer(app).endswith("? Keys")
        await leave(pilot)  # at once: that was no visit
    async with opened_with_state(demo, size=(60, 12)) as (app, pilot):
        assert footer(app).strip().startswith("` Last place  ")
        await leave(pilot)
    async with opened_with_state(demo, size=(40, 12)) as (app, pilot):
        assert footer(app).strip().startswith("/ Filter")
        await leave(pilot)
    async with opened_with_state(demo, size=(240, 40)) as (app, pilot):
        assert footer(app).strip().startswith(f"` Back to step 1, sample 33, token {token} (tokens)  ")
        await leave(pilot)
    async with opened_with_state(demo) as (app, pilot):
        assert "` Back to step 1  " in footer(app)
        await press(pilot, "`")
        await until_shown(pilot, "sample 33 ·", f"#{token} ")
        assert app.tokens.token == token
        await press(pilot, "1")
        assert "ack to" not in footer(app)
    async with opened_with_state(demo, key=StepKey(0)) as (app, pilot):
        assert "ack to" not in text(app)  # a place was asked for; the key still goes there
        await press(pilot, "`")
        await until_shown(pilot, "sample 33 ·", f"#{token} ")


async def test_a_visit_to_what_is_gone_says_so(demo: Path) -> None:
    State.of(demo).put("visit", Location(StepKey(77), "tokens", (1, 0)).to_json())
    async with opened_with_state(demo) as (_, pilot):
        await press(pilot, "`")
        await until_shown(pilot, "this run has no step 77", "step 3, 4 of 4")
    State.of(demo).put("visit", Location(StepKey(1), "gone", (777, 0)).to_json())
    async with opened_with_state(demo) as (_, pilot):
        await press(pilot, "`")
        await until_shown(pilot, "no sample 777 in step 1", "< step 1 >")


@pytest.mark.parametrize("kept", [None, [], "x", {"step": "1"}], ids=repr)
async def test_without_a_visit_nothing_is_offered(demo: Path, kept: object) -> None:
    State.of(demo).put("visit", kept)
    async with opened_with_state(demo) as (app, pilot):
        assert "ack to" not in text(app)
        await press(pilot, "`")
        await until_shown(pilot, "there was no earlier session")

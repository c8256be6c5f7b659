"""What a person chose is there at the next start, and keeping it never gets in the way."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from dumptui.core.store.state import State, state_folder
from dumptui.tui.screens.bookmarks import bookmarks
from dumptui.tui.session.location import Location
from dumptui.tui.session.preferences import Preferences


@pytest.fixture(autouse=True)
def home(homes: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


@pytest.fixture
def run(home: Path) -> Path:
    (home / "run").mkdir()
    return home / "run"


def kept(home: Path) -> list[Path]:
    return sorted((home / "state").glob("**/*.*"))


def test_what_is_put_comes_back_for_the_same_run_by_any_path_and_for_no_other(home: Path, run: Path) -> None:
    State.of(run).put("columns", ["reward", "len \udc80"])
    (home / "link").symlink_to(run)
    assert State.of(home / "link").get("columns") == ["reward", "len \udc80"]
    assert State.of(home / "other").get("columns", []) == []
    assert State.of(None).get("columns") is None
    assert json.loads(kept(home)[0].read_text())["run"] == str(run)


def test_none_forgets_a_name(run: Path) -> None:
    state = State.of(run)
    state.put("note", "x")
    state.put("note", None)
    assert State.of(run).get("note", "nothing") == "nothing"


def test_of_two_at_once_each_keeps_its_names_and_the_last_value_of_one_name_stays(run: Path) -> None:
    one, other = State.of(run), State.of(run)
    one.put("theme", "nord")
    other.put("place", {"step": 3})
    other.put("theme", "dracula")
    assert one.get("theme") == "dracula"
    assert State.of(run).get("place") == {"step": 3}


@pytest.mark.parametrize(
    "content", [b"", b'{"chosen": ', b"[]", b'{"chosen": []}', b"\xff\xfe", b"[" * 100_000], ids=repr
)
def test_a_broken_file_is_told_in_a_sentence_and_set_aside(home: Path, run: Path, content: bytes) -> None:
    State.of(run).put("theme", "nord")
    (file,) = kept(home)
    file.write_bytes(content)
    state = State.of(run)
    assert state.get("theme", "default") == "default"
    assert state.problem is not None and "is damaged" in state.problem and "\n" not in state.problem
    state.put("theme", "nord")
    assert State.of(run).get("theme") == "nord"
    assert file.with_suffix(".broken").read_bytes() == content


def test_a_folder_that_cannot_be_made_keeps_choices_for_the_session(home: Path, run: Path) -> None:
    (home / "state").write_text("in the way")
    state = State.of(run)
    state.put("theme", "nord")
    assert state.get("theme") == "nord"
    assert state.problem is not None and state.problem.startswith("settings not saved")
    (home / "state").unlink()
    state.put("place", 3)  # what could not be kept before is kept with it
    assert State.of(run).get("theme") == "nord"


@pytest.mark.parametrize("call", ["mkstemp", "replace"])
def test_a_full_disk_leaves_the_last_choices_and_no_litter(
    home: Path, run: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    State.of(run).put("theme", "nord")

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(f"dumptui.core.store.xdg.{'tempfile' if call == 'mkstemp' else 'os'}.{call}", full)
        state = State.of(run)
        state.put("theme", "dracula")
    assert state.problem is not None and "No space left on device" in state.problem
    assert state.get("theme") == "dracula"
    assert State.of(run).get("theme") == "nord"
    assert [path.suffix for path in kept(home)] == [".json"]


def test_a_file_that_is_a_folder_is_told(home: Path, run: Path) -> None:
    State.of(run).put("theme", "nord")
    (file,) = kept(home)
    file.unlink()
    file.mkdir()
    state = State.of(run)
    state.put("theme", "dracula")
    assert state.get("theme") == "dracula" and state.problem is not None


def test_nothing_is_ever_kept_inside_the_run(home: Path, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "link").symlink_to(run)
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "link" / "state"))
    state = State.of(run)
    state.put("theme", "nord")
    assert not list(run.iterdir())
    assert state.get("theme") == "nord"
    assert state.problem is not None and "inside the run" in state.problem


def test_the_folder_is_what_the_xdg_specification_says(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    monkeypatch.setenv("HOME", str(home))
    for given in ("", "relative/path"):
        monkeypatch.setenv("XDG_STATE_HOME", given)
        assert state_folder() == home / ".local" / "state" / "dumptui"
    monkeypatch.setenv("HOME", "")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # a user id that no passwd file knows
    assert state_folder() is None
    State.of(home).put("theme", "nord")


@pytest.mark.parametrize("value", [1, "x", [[]], [{}], {"a": 1}, [["step", {}]], [[{}, True]], True, -1.5])
def test_choices_of_another_shape_are_passed_over(home: Path, run: Path, value: Any) -> None:
    """They come from a file, in which anything may stand: it was a defect at each start."""
    state = State.of(run)
    for name in (
        "samples.columns",
        "steps.columns",
        "samples.own-columns",
        "samples.sort",
        "samples.filters",
        "bookmarks",
    ):
        state.put(name, value)
    memory = Preferences(state)
    for table in ("samples", "steps"):
        assert memory.shown(table) in ("default", [])
        assert memory.own_shown(table) in ("default", [])
    assert memory.sort == () and all(isinstance(one, str) for one in memory.history("filters"))
    assert bookmarks(state) == [] and Location.from_json(value) is None

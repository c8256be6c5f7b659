"""A folder that is looked at again and again is the folder as it is, however little of it each look touches."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dumptui.core.files.listing import list_folder
from dumptui.core.run.polling import FILES_PER_POLL, RECENT_FILES, Folder, Folders


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "train_data"
    path.mkdir()
    return path


def write(path: Path, text: str = "x", age: float = 1000.0) -> None:
    path.write_text(text)
    os.utime(path, (age, age))


CHANGES: dict[str, Callable[[Path], object]] = {
    "a file": lambda path: write(path / "new"),
    "a longer file": lambda path: write(path / "a", "longer"),
    "another time": lambda path: write(path / "a", "a", 2000.0),
    "another file of that name": lambda path: (path / "a").rename(path / "b"),
    "a file less": lambda path: (path / "a").unlink(),
    "no folder": shutil.rmtree,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_every_kind_of_change_is_seen_once(folder: Path, change: Callable[[Path], object]) -> None:
    for name in "abc":
        write(folder / name, name)
    (folder / "inner").mkdir()
    (folder / "nowhere").symlink_to("nothing")
    seen = Folder(folder)
    assert seen.look() and seen.entries == list_folder(folder) and len(seen.entries) == 3
    assert not seen.look()
    change(folder)
    assert seen.look() and seen.entries == list_folder(folder)
    assert not seen.look() and seen.problem is None


def test_a_folder_that_is_not_there_yet(folder: Path) -> None:
    seen = Folder(folder / "later")
    assert not seen.look() and not seen.entries and seen.problem is None
    (folder / "later").mkdir()
    write(folder / "later" / "a")
    assert seen.look() and [entry.name for entry in seen.entries] == ["a"]


def test_what_cannot_be_listed_stands_until_it_can(folder: Path, tmp_path: Path) -> None:
    write(folder / "a")
    folders = Folders()
    assert [entry.name for entry in folders.list(folder)] == ["a"]
    folder.rename(tmp_path / "away")
    folder.write_text("a file where the folder was")
    assert folders.look() and not folders.look()
    assert folders.problem is not None and folders.problem.problem == "can't be listed: Not a directory"
    assert [entry.name for entry in folders.list(folder)] == ["a"]
    folder.unlink()
    (tmp_path / "away").rename(folder)
    write(folder / "b")
    assert folders.look() and folders.problem is None
    assert [entry.name for entry in folders.list(folder)] == ["a", "b"]


def test_an_old_file_of_a_large_folder_that_is_rewritten_in_place_is_seen_when_its_turn_comes(folder: Path) -> None:
    count = RECENT_FILES + 3 * FILES_PER_POLL
    for at in range(count):
        write(folder / f"{at:04}", age=1000.0 + at)
    seen = Folder(folder, lambda: 1000.0)
    seen.look()
    write(folder / f"{count - 1:04}", "the newest is looked at every time")
    assert seen.look()
    write(folder / "0005", "the old ones by turns")
    assert sum(seen.look() for _ in range(count // FILES_PER_POLL + 1)) == 1 and seen.entries == list_folder(folder)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abcde"), st.sampled_from(["write", "remove", "replace", "look"]))))
def test_after_any_changes_the_entries_are_those_of_a_fresh_listing(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[str, str]]
) -> None:
    folder = tmp_path_factory.mktemp("folder")
    seen = Folder(folder)
    for at, (name, what) in enumerate(changes):
        if what == "look":
            seen.look()
            assert seen.entries == list_folder(folder)
        elif what == "write":
            write(folder / name, "x" * at, 1000.0 + at)
        elif what == "replace":
            write(folder / "aside", "x", 1000.0 + at)
            (folder / "aside").rename(folder / name)
        else:
            (folder / name).unlink(missing_ok=True)
    seen.look()
    assert seen.entries == list_folder(folder)

"""The cache of summaries: what is kept comes back only for the files it was made from, and it never gets in the way."""

from __future__ import annotations

import os
import resource
import stat
from pathlib import Path

import pytest

from dumptui.core.files.listing import list_folder
from dumptui.core.store import cache as module
from dumptui.core.store.cache import Cache, cache_folder, fingerprint
from dumptui.core.store.xdg import replace_file


def test_what_is_kept_comes_back_non_finite_numbers_included(tmp_path: Path) -> None:
    Cache(tmp_path / "run", tmp_path / "cache").store("steps", {"3": {"reward": float("inf"), "state": "ok"}})
    assert Cache(tmp_path / "run", tmp_path / "cache").load("steps") == {"3": {"reward": float("inf"), "state": "ok"}}
    assert Cache(tmp_path / "other run", tmp_path / "cache").load("steps") == {}


@pytest.mark.parametrize("change", ["size", "time", "inode", "name", "key"])
def test_a_fingerprint_changes_with_every_trait_of_a_source(tmp_path: Path, change: str) -> None:
    (tmp_path / "0.pt").write_bytes(b"one")
    os.utime(tmp_path / "0.pt", (1000, 1000))
    before = fingerprint(list_folder(tmp_path), "reward")
    if change == "size":
        (tmp_path / "0.pt").write_bytes(b"longer")
        os.utime(tmp_path / "0.pt", (1000, 1000))
    elif change == "time":
        os.utime(tmp_path / "0.pt", (1001, 1001))
    elif change == "inode":
        (tmp_path / "new").write_bytes(b"one")
        os.utime(tmp_path / "new", (1000, 1000))
        os.replace(tmp_path / "new", tmp_path / "0.pt")
    elif change == "name":
        os.rename(tmp_path / "0.pt", tmp_path / "1.pt")
    assert fingerprint(list_folder(tmp_path), "score" if change == "key" else "reward") != before


def test_a_damaged_file_and_a_folder_that_cannot_be_made_keep_nothing(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "run", tmp_path / "cache")
    cache.store("steps", {"1": 1})
    (kept,) = (tmp_path / "cache").glob("*/*.json")
    kept.write_bytes(kept.read_bytes()[:-2])
    assert cache.load("steps") == {}
    (tmp_path / "file").write_text("in the way")
    blocked = Cache(tmp_path / "run", tmp_path / "file" / "cache")
    blocked.store("steps", {"1": 1})
    assert blocked.load("steps") == {}
    off = Cache(tmp_path / "run", None)
    off.store("steps", {"1": 1})
    assert off.load("steps") == {}


def test_the_longest_unused_goes_first_when_too_much_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache(tmp_path / "run", tmp_path / "cache")
    for at, name in enumerate(("a", "b", "c")):
        cache.store(name, {"text": "x" * 1000})
        (kept,) = (tmp_path / "cache").glob(f"*/{name}.json")
        os.utime(kept, (at, at))
    assert cache.load("a")  # used: b is now the oldest
    monkeypatch.setattr(module, "MAX_CACHE_BYTES", 3500)
    cache.store("d", {"text": "x" * 1000})
    assert [bool(cache.load(name)) for name in "abcd"] == [True, False, True, True]
    assert not list((tmp_path / "cache").glob("*/.new-*"))


def test_a_user_without_a_home_keeps_nothing_and_a_relative_folder_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "nowhere")
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    assert cache_folder() is None
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/tmp/caches")
    assert cache_folder() == Path("/var/tmp/caches/dumptui")


def test_a_file_of_another_shape_keeps_nothing(tmp_path: Path) -> None:
    """It was a defect at every start: a row without its stamp, a number in place of a row, digits that changed."""
    cache = Cache(tmp_path / "run", tmp_path / "cache")
    cache.store("steps", {"step 0": {"stamp": "1", "row": {"reward": 0.25}}})
    (kept,) = (tmp_path / "cache").glob("*/*.json")
    whole = kept.read_bytes()
    others = [
        b"[]",
        b'{"step 0": 1}',
        b'{"step 0": {}}',
        b"1\n{}",
        b"\n",
        b"",
        whole.replace(b"0.25", b"0.75"),
        b"[" * 99999,
    ]
    for other in others:
        kept.write_bytes(other)
        assert cache.load("steps") == {}
    for bit in range(8 * len(whole)):
        kept.write_bytes(whole[: bit // 8] + bytes([whole[bit // 8] ^ 1 << bit % 8]) + whole[bit // 8 + 1 :])
        assert cache.load("steps") in ({}, {"step 0": {"stamp": "1", "row": {"reward": 0.25}}})
    kept.unlink()
    os.mkfifo(kept)
    assert cache.load("steps") == {}
    cache.store("steps", {"a": 1})
    assert cache.load("steps") == {"a": 1}


def test_nobody_else_can_look_into_it(tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "dumptui"
    folder.mkdir(parents=True, mode=0o755)
    Cache(tmp_path / "run", folder).store("steps", {"a": 1})
    assert [stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.glob("*"))] == [0o700, 0o700]


def test_nothing_is_kept_inside_the_run(tmp_path: Path) -> None:
    root = tmp_path / "run"
    root.mkdir()
    (tmp_path / "link").symlink_to(root)
    for folder in (root / "cache", root, tmp_path / "link" / "dumptui"):
        cache = Cache(root, folder)
        cache.store("steps", {"a": 1})
        assert cache.load("steps") == {} and list(root.iterdir()) == []


def test_a_full_disk_leaves_what_was_kept_and_no_litter(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "run", tmp_path / "cache")
    cache.store("steps", {"a": 1})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        cache.store("steps", {"a": "x" * 100_000})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert cache.load("steps") == {"a": 1}
    assert [path.name for path in (tmp_path / "cache").glob("*/*")] == ["steps.json"]


def test_what_a_killed_process_left_half_written_is_removed_by_the_next_one(tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    old, young, other = (tmp_path / name for name in (".new-abc", ".new-def", "notes"))
    for left in (old, young, other):
        left.write_text("half")
    for left in (old, other):
        os.utime(left, (1.0, 1.0))
    replace_file(path, "whole")
    assert {left.name for left in tmp_path.iterdir()} == {".new-def", "notes", "kept.json"}

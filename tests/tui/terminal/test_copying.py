"""What is copied, as terminals take it, and files and command lines made of what is on screen."""

from __future__ import annotations

import base64
import json
import os
import re
import resource
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dumptui.core.errors import DumpError
from dumptui.core.files.step_files import StepKey
from dumptui.core.run.run import Run
from dumptui.core.types import Record
from dumptui.tui.presentation.command_line import command_line, quoted
from dumptui.tui.presentation.exports import folder_for, in_folder, to_markdown, write_new
from dumptui.tui.presentation.sheets import table_sheet
from dumptui.tui.terminal.clipboard import MAX_BYTES, SCREEN_CHUNK_BYTES, clipboard_sequence, copyable, fits

UMASK = os.umask(0)
os.umask(UMASK)
PATHS = st.binary().map(os.fsdecode)


def decoded(sequence: str) -> str:
    found = re.fullmatch(r"\x1b\]52;c;([A-Za-z0-9+/=]*)\x07", sequence)
    assert found is not None, sequence
    return base64.b64decode(found[1]).decode()


# The clipboard: case 33, QwenLM/qwen-code#4929, anomalyco/opencode#7028, what is copied through tmux goes nowhere -----


@given(st.text(st.characters(codec=None)))
def test_what_is_copied_has_nothing_that_a_terminal_obeys_and_reaches_it_whole(text: str) -> None:
    safe = copyable(text)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", safe)
    assert decoded(clipboard_sequence(safe, {"TERM": "xterm"})) == safe


def test_what_is_no_control_is_copied_as_it_is() -> None:
    text = "tab\tline\n\u202eright to left\u200b  é漢字"
    assert copyable(text) == text
    assert copyable("\x1b[201~rm\r\udc80") == "␛[201~rm␍‹dc80›"


@pytest.mark.parametrize("env", [{"TMUX": "/tmp/tmux-0/default,1,0", "TERM": "screen"}, {"TERM": "tmux-256color"}])
def test_tmux_gets_the_form_it_obeys_and_the_one_it_passes_on(env: dict[str, str]) -> None:
    sequence = clipboard_sequence("text", env)
    plain, wrapped = sequence.split("\x1bPtmux;")
    assert decoded(plain) == "text"
    assert wrapped.endswith("\x1b\\") and decoded(wrapped[:-2].replace("\x1b\x1b", "\x1b")) == "text"


def test_screen_gets_pieces_that_it_takes() -> None:
    text = "text" * 1000
    sequence = clipboard_sequence(text, {"STY": "1.pts", "TERM": "screen"})
    pieces = re.findall(r"\x1bP(.*?)\x1b\\", sequence, re.DOTALL)
    assert decoded("".join(pieces)) == text
    assert max(map(len, pieces)) <= SCREEN_CHUNK_BYTES


def test_the_limit_is_that_of_the_whole_sequence_in_bytes() -> None:
    assert fits("x" * MAX_BYTES) and not fits("x" * (MAX_BYTES + 1)) and not fits("é" * (MAX_BYTES // 2 + 1))
    assert len(clipboard_sequence("x" * MAX_BYTES, {})) < 100_005


# Files -----------------------------------------------------------------------------------------------------------


def test_a_file_is_never_written_over(tmp_path: Path) -> None:
    names = [write_new(tmp_path, "dumptui-steps", "csv", text).name for text in "abc"]
    assert names == ["dumptui-steps.csv", "dumptui-steps-2.csv", "dumptui-steps-3.csv"]
    (tmp_path / "away.csv").symlink_to(tmp_path / "elsewhere.csv")  # a dangling link is no free name either
    assert write_new(tmp_path, "away", "csv", "x").name == "away-2.csv"
    assert not (tmp_path / "elsewhere.csv").exists()


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DumpError, match=r"^x\.csv in .*/missing: No such file or directory$"):
        write_new(tmp_path / "missing", "x", "csv", "x")


@contextmanager
def full_disk(room: int) -> Iterator[None]:
    """Files take so many bytes and no more."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("room", [0, 1000])
def test_a_full_disk_leaves_neither_the_file_nor_a_part_of_it(tmp_path: Path, room: int) -> None:
    with full_disk(room), pytest.raises(DumpError, match=r"^x\.csv in .*: File too large$"):
        write_new(tmp_path, "x", "csv", "x" * 5000)
    assert [path.name for path in tmp_path.iterdir() if path.name != "xdg"] == []
    assert write_new(tmp_path, "x", "csv", "x" * 5000).read_text() == "x" * 5000
    assert (tmp_path / "x.csv").stat().st_mode & 0o777 == 0o666 & ~UMASK


def test_a_file_system_without_links_takes_files_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    assert [write_new(tmp_path, "x", "csv", text).name for text in "ab"] == ["x.csv", "x-2.csv"]
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "xdg") == ["x-2.csv", "x.csv"]


def test_a_file_is_named_in_full_whatever_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert in_folder(Path("/home/me/runs/x.csv")) == "x.csv in ~/runs"
    assert in_folder(Path("/a" * 300, "x.csv")) == f"x.csv in …a{'/a' * 23}"


@pytest.mark.parametrize("way", ["the run", "a folder of it", "a link to it", "where a link in it leads"])
def test_no_file_goes_into_the_run(demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    root = tmp_path / "run"
    shutil.copytree(demo, root)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    (tmp_path / "link").symlink_to(root)
    shutil.move(root / "rollout_data", tmp_path / "data")
    (root / "rollout_data").symlink_to(tmp_path / "data")
    folders = {"the run": root, "a folder of it": root / "train_data", "a link to it": tmp_path / "link"}
    monkeypatch.chdir(folders.get(way, tmp_path / "data"))
    run = Run.open(root)
    assert folder_for(run) == home
    monkeypatch.setenv("HOME", str(root))
    with pytest.raises(DumpError, match="inside the run"):
        folder_for(run)
    monkeypatch.chdir(home)
    assert folder_for(run) == home


def test_markdown_is_a_table_whatever_the_dump_says() -> None:
    rows: list[Record] = [{"id": 1, "te|xt": "a|b\n![x](http://e.vil) <b> `c` \x1b[31m"}, {"id": None, "te|xt": None}]
    first, rule, *lines = to_markdown(rows).splitlines()
    assert first == r"| id | te\|xt |" and rule == "| --- | --- |"
    assert lines == [r"| 1 | a\|b⏎!\[x\](http://e.vil) \<b\> \`c\` ␛\[31m |", "| - | - |"]


# The command line ------------------------------------------------------------------------------------------------


@given(PATHS)
def test_a_shell_reads_back_the_word_and_a_screen_can_show_it(word: str) -> None:
    shown = quoted(word)
    assert shown.isprintable()
    if word.isprintable():
        assert shlex.split(shown) == [word]


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not there")
def test_bash_reads_hostile_words_back() -> None:
    words = ["plain", "two words", "it's", "a\nb\\'\x1b[31m", "\udcff\x07", "$(touch x)`id`", "é\u202e", ""]
    line = "printf '%s\\0' " + " ".join(map(quoted, words))
    found = subprocess.run(["bash", "-c", line.encode("utf-8")], capture_output=True, check=True).stdout
    assert found.split(b"\0")[:-1] == [os.fsencode(word) for word in words]


def test_the_line_names_run_step_and_reward_key(demo: Path) -> None:
    sheet = table_sheet("samples", StepKey(2, True), [], 0)
    line = command_line(Run.open(demo), sheet, "a key")
    assert shlex.split(line)[1:] == [str(demo), "--print", "samples", "--eval", "2", "--reward-key", "a key"]
    assert sheet.row is None and json.loads(json.dumps(sheet.document())) == {
        "step": 2,
        "evaluation": True,
        "rows": [],
    }

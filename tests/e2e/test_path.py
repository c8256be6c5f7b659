"""A person's whole way through a run, in a terminal: from the steps to the worst token, copied, marked and exported."""

from __future__ import annotations

import base64
import csv
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.screen import ROOT, Terminal, foreign

COPIED = re.compile(rb"\x1b\]52;c;([A-Za-z0-9+/=]*)\x07")
KEY_BYTES = 30_000  # what no key may cost at 120x40 in true colour


class Walk:
    """Keys, what each is waited for, and the bytes that it costs."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal

    def press(self, key: str, *shown: str) -> None:
        before = len(self.terminal.raw)
        self.terminal.press(key)
        self.terminal.until(*shown)
        self.terminal.settle(0.3)  # a key right after an escape is another key
        assert len(self.terminal.raw) - before < KEY_BYTES, key

    def type(self, text: str) -> None:
        self.terminal.press(text)
        self.terminal.until(text)

    def copied(self) -> str:
        return base64.b64decode(COPIED.findall(bytes(self.terminal.raw))[-1]).decode()


def to_worst_sample(walk: Walk) -> None:
    walk.press("enter", "< step 3")
    walk.press("s", "sort the samples by")
    for _ in range(6):  # sample, group, reward, len, flags, |Δ|, max |Δ|
        walk.terminal.press("j")
    walk.press("enter", "by max |Δ|, largest first")
    walk.press("g", "<")


def to_worst_token(walk: Walk) -> None:
    walk.press("enter", "response tokens", "Δ = trainer - engine")
    walk.press("]", "#")


def copy(walk: Walk) -> None:
    walk.press("y", "the response", "the command line")
    walk.press("\r", "copied the row")
    assert '"lp_diff"' in walk.copied()
    walk.press(":", "this command prints the view on screen")
    walk.press("y", "copied the command line")
    assert "--print tokens --step 3 --sample" in walk.copied()


def mark(walk: Walk) -> None:
    walk.press("B", "bookmark step 3")
    walk.type("the worst of all")
    walk.press("\r", "bookmarked step 3")
    walk.press("'", "the worst of all")
    walk.press("q", "Keys")


def export(walk: Walk) -> None:
    walk.press("e", "export to dumptui-step-3-sample-")
    walk.press("\r", "written to")


# What other panes bring to the way is another entry here.
WAY: list[Callable[[Walk], None]] = [to_worst_sample, to_worst_token, copy, mark, export]


def test_the_whole_way_through_a_run(shared: Path, tmp_path: Path) -> None:
    before = listed(shared / "runs" / "multiturn")
    work, env = tmp_path / "work", {"XDG_STATE_HOME": str(tmp_path / "state"), "PYTHONPATH": str(ROOT), "TMUX": ""}
    work.mkdir()
    change = f"import os; os.chdir({str(work)!r})"
    with Terminal(
        shared / "runs" / "multiturn", "--step", "3", env=env | {"TERM": "xterm-256color"}, code=change
    ) as terminal:
        terminal.until("step 3, 4 of 4", "? Keys")
        walk = Walk(terminal)
        for part in WAY:
            part(walk)
        terminal.press("ctrl+c")
        assert terminal.end() == 0
        terminal.assert_clean()
        assert foreign(COPIED.sub(b"", bytes(terminal.raw))) == []
    (file,) = work.iterdir()
    rows = list(csv.DictReader(file.read_text().splitlines()))
    assert file.name.startswith("dumptui-step-3-sample-") and {"position", "lp_diff"} <= set(rows[0])
    assert listed(shared / "runs" / "multiturn") == before
    with Terminal(shared / "runs" / "multiturn", env=env) as terminal:
        terminal.until("Back to step 3")
        terminal.press("`")
        terminal.until("response tokens", "#")


def listed(folder: Path) -> list[tuple[str, int]]:
    return sorted((str(path), path.stat().st_mtime_ns) for path in folder.rglob("*"))


@pytest.mark.parametrize("pane", ["rollout", "batch", "tokens", "conversation", "health", "groups"])
def test_hostile_text_is_copied_and_listed_as_text(shared: Path, tmp_path: Path, pane: str) -> None:
    env = {"XDG_STATE_HOME": str(tmp_path), "TMUX": "", "STY": ""}
    with Terminal(shared / "runs" / "odd", "--pane", pane, env=env) as terminal:
        terminal.until("? Keys")
        terminal.settle()
        beside = ("i", "z", "q", "d", "\r", "t", "escape")  # facts, and another sample
        for key in ("\r", "y", "G", "k", "k", "\r", ":", "y", "B", "\r", "'", "q", "e", "q", *beside):
            terminal.press(key)
            terminal.settle(0.1)
        assert foreign(COPIED.sub(b"", bytes(terminal.raw))) == []
        for copied in COPIED.findall(bytes(terminal.raw)):
            assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", base64.b64decode(copied).decode())

"""Phrases that stopped readers do not come back in the labels, tips, help and messages of the screen, nor in README."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
MODULES = sorted(path for top in ("core", "tui") for path in (ROOT / top).rglob("*.py"))
RIDDLES = re.compile(
    "|".join(
        [
            *("nothing (shows|ends|is found)", "takes, escape", "escape (leaves|shows)", "asked for", "left unread"),
            *("behind the others", r"\balike\b", r"\bpart at\b", "that is dumped", "look again", "hit before"),
            *(r"\ba (dp )?(shard|row|file|rank|position) (a|and)\b", "above the mean", r"\bleft out\b", "not kept"),
            *("not generating", "after its end", r"\bforeign\b", "hands it on", r"\banew\b", "another way"),
            *("stands for nothing", "line of keys", "order round", r"\btold\b", "fulfil", r"\bmembers?\b", "is a lot"),
            *(r"\bis cut\b", "stands? as", "for want of", "may be had", r"\bvalues? a token\b", "not readable"),
            *(r"(?<!there )\bis no (?!longer)", r"\bare no \w+s\b", "Focus Next"),
        ]
    ),
    re.IGNORECASE,
)


def texts(path: Path) -> Iterator[str]:
    """Yield the string literals of a module that a reader may see: sentences, but no docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_screen_speaks_plainly(path: Path) -> None:
    found = [match[0] for text in texts(path) if " " in text for match in RIDDLES.finditer(text)]
    assert not found


@pytest.mark.parametrize("name", ["README.md", "CHANGELOG.md"])
def test_the_documents_speak_plainly(name: str) -> None:
    assert not RIDDLES.findall((ROOT / name).read_text(encoding="utf-8"))

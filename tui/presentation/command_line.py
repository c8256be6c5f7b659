"""The command line that prints the view on screen."""

from __future__ import annotations

import os
import shlex

from dumptui.core.run.run import Run
from dumptui.core.text import sample_label
from dumptui.tui.presentation.sheets import Sheet


def command_line(run: Run, sheet: Sheet, reward_key: str | None) -> str:
    words = ["dumptui", str(run.root.resolve()), "--print", sheet.view]
    if sheet.key is not None:
        words += ["--eval" if sheet.key.evaluation else "--step", str(sheet.key.step)]
    if sheet.sample is not None:
        words += ["--sample", sample_label(sheet.sample.index, sheet.sample.occurrence)]
    words += sheet.options
    if reward_key is not None:
        words += ["--reward-key", reward_key]
    return " ".join(map(quoted, words))


def quoted(word: str) -> str:
    """Return a word quoted for a shell; unprintable ones as bytes, `$'\\x1b'`, which bash, zsh and ksh know."""
    if word.isprintable():
        return shlex.quote(word)
    return "$'" + "".join(map(escaped, word)) + "'"


def escaped(char: str) -> str:
    if char in "\\'":
        return "\\" + char
    return char if char.isprintable() else "".join(f"\\x{byte:02x}" for byte in os.fsencode(char))

"""The first screen: what it does without, and that nothing typed before or beside it is lost."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from inspect import isfunction
from pathlib import Path

from textual.message import Message

from dumptui.tui.session.keymap import all_classes, import_all
from tests.support.screen import ROOT, Terminal

HEAVY = """
import sys
import dumptui.tui.app.app, dumptui.core.store.summaries, dumptui.core.store.cache
print(*sorted(sys.modules.keys() & {"numpy", "polars", "plotext", "tokenizers", "torch"}))
"""


def test_the_first_screen_does_without_what_only_reading_needs() -> None:
    """Each takes longer to import than that screen takes to be drawn."""
    done = subprocess.run([sys.executable, "-c", HEAVY], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


def test_keys_that_are_typed_ahead_find_their_pane(demo: Path) -> None:
    with Terminal(demo, "--step", "2") as terminal:
        terminal.press("3", "]")
        terminal.until("Δ against position", "worst")
    with Terminal(demo, "--step", "2") as terminal:
        terminal.until("? Keys")
        terminal.press("5")
        terminal.until("2 shards missing")


def messages(root: type[Message] = Message) -> Iterator[type[Message]]:
    yield root
    for message in root.__subclasses__():
        yield from messages(message)


def test_what_is_handled_by_name_is_a_message() -> None:
    """A handler of a message that has another name by now would never be called."""
    import_all()
    known = {message.handler_name for message in messages() if message is not Message} | {"on_event", "on_callback"}
    handled = {
        name for node in all_classes() for name, one in vars(node).items() if name.startswith("on_") and isfunction(one)
    }
    assert handled - known == set()

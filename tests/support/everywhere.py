"""The keys that bring every pane and every dialog on screen, one after the other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import NamedTuple

from textual.pilot import Pilot

from dumptui.tui.app.app import DumpTui
from tests.support.screen import press, still, until, until_shown


class Stop(NamedTuple):
    keys: tuple[str, ...]
    """Named as Textual does; characters stand for themselves."""
    shown: str
    """What then is on screen, whatever the run. Its samples have to be in groups, with train data and messages."""


WAY = {
    "steps": Stop((), "? Keys"),
    "a step by its number": Stop(("#",), "go from step"),
    "samples": Stop(("escape", "enter"), "< step"),
    "sorting": Stop(("s",), "sort the samples by"),
    "columns": Stop(("escape", "C"), "columns of the samples"),
    "filter": Stop(("escape", "/", "r", "e"), "tab complete"),
    "filtered": Stop((*"sponse_length > 0", "enter"), "where response_length > 0"),
    "search of the step": Stop(("escape", "f", "."), "search"),
    "searched": Stop(("enter",), "? Keys"),
    "search of the run": Stop(("escape", "ctrl+f", "."), "search"),
    "hits of the run": Stop(("enter",), "steps searched"),
    "picture": Stop(("escape", "tab", "right"), "reward against length"),
    "batch": Stop(("2",), "per-token fields"),
    "columns of the batch": Stop(("v", "down"), "p99"),
    "samples of the batch": Stop(("v", "tab", "tab", "down"), "per DP shard"),
    "groups": Stop(("6",), "pass@1"),
    "members": Stop(("enter",), "best first"),
    "compare with": Stop(("d",), "compare sample"),
    "tools": Stop(("escape", "escape", "E"), "tool call"),
    "lifecycles": Stop(("tab", "down"), "sample"),
    "again compare with": Stop(("6", "enter", "d"), "compare sample"),
    "pair": Stop(("enter",), "first differ at "),
    "pair by words": Stop(("t", "]"), " words"),
    "health": Stop(("5",), "health of the run"),
    "health below": Stop(("down",), "health of the run"),
    "tokens": Stop(("1", "enter"), " against position"),
    "worst token": Stop(("]",), "scale of the step"),
    "statistic": Stop(("m",), "statistic for shades and chart"),
    "second statistic": Stop(("escape", "M"), "second statistic (right axis)"),
    "position": Stop(("escape", "ctrl+g", *"9999"), "go to the token"),
    "search of the text": Stop(("escape", "/", "."), "search the text"),
    "hits in the text": Stop(("enter",), " hits"),
    "conversation": Stop(("escape", "4"), " message"),
    "unfolded": Stop(("z", "down", "M"), " message"),
    "search of the conversation": Stop(("/", ".", "enter"), " message"),
    "facts": Stop(("escape", "4", "i"), "all dumped fields"),
    "unfolded facts": Stop(("z", "end"), "all dumped fields"),
    "copy": Stop(("escape", "y"), "the response"),
    "export": Stop(("escape", "e"), "export to dumptui-"),
    "command line": Stop(("escape", ":"), "this command prints the view on screen"),
    "bookmark": Stop(("escape", "B", "x"), "bookmark step"),
    "marked": Stop(("enter",), "bookmarked step"),
    "bookmarks": Stop(("'",), "bookmarks"),
    "reward key": Stop(("escape", "1", "w"), "reward"),
    "palette": Stop(("escape", "ctrl+p"), "Filter  (/)"),
    "palette of steps": Stop(("g", "o"), "Go to step"),
    "keys": Stop(("escape", "escape", "?"), ": help"),
}


async def everywhere(app: DumpTui, pilot: Pilot[None]) -> AsyncIterator[str]:
    """The name of each stop once nothing moves there; a screen with room for it has to show what the stop says."""
    await until(pilot, lambda: not app.wait.waiting and len(app.rollout.rows) == len(app.steps.run.steps))
    app.rollout.steps.show()
    for name, stop in WAY.items():
        for key in stop.keys:
            await press(pilot, key)
            await until(pilot, lambda: not app.wait.waiting)
        if app.size.width >= 100:
            await until_shown(pilot, stop.shown)
        await still(pilot)
        yield name

"""A line to type into, at the bottom of the screen: what is typed is looked at with every key."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence

from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.suggester import Suggester
from textual.widgets import Input

from dumptui.core.errors import DumpError
from dumptui.core.text import visible
from dumptui.tui.dialog import Dialog
from dumptui.tui.keystrokes import TypedApp
from dumptui.tui.widgets.line import Line

Check = Callable[[str], Awaitable[str]]
"""What to say of a text, such as how much it finds; raises DumpError for one that can't be taken."""

MOST = 12  # words that are offered at a time
_WORD = re.compile(r"[^\W\d]\w*$")


async def anything(text: str) -> str:
    return ""


class Words(Suggester):
    """Completes the word at the end of what is typed to a name, found also by what the screen calls it."""

    def __init__(self, names: Mapping[str, str]) -> None:
        """`names` maps each to its label on screen, or an empty text."""
        super().__init__(case_sensitive=True)
        self._names = names

    def __bool__(self) -> bool:
        return bool(self._names)

    async def get_suggestion(self, value: str) -> str | None:
        """What goes on from what is typed, which is shown behind it."""
        completed = self.completed(value)
        return completed if completed is not None and completed.startswith(value) else None

    def completed(self, text: str) -> str | None:
        word, found = self.candidates(text)
        starting = [name for name in found if name.startswith(word)] or found[:1]
        return text[: len(text) - len(word)] + starting[0] if starting else None

    def candidates(self, text: str) -> tuple[str, list[str]]:
        """The word at the end of a text, and the names it may become: those that begin so, then those that hold it."""
        match = _WORD.search(text)
        if match is None or text[: match.start()].count("'") % 2 or text[: match.start()].count('"') % 2:
            return "", []
        word, low = match[0], match[0].lower()
        if low in self._names:
            return word, []
        begin = [name for name in self._names if name.startswith(low)]
        hold = [name for name, label in self._names.items() if low in name or label.lower().startswith(low)]
        return word, list(dict.fromkeys([*begin, *hold]))

    def offer(self, text: str) -> Text:
        """The names that the last word may become."""
        _, found = self.candidates(text)
        offered = Text()
        for name in found[:MOST]:
            offered.append("  " * bool(offered)).append(name, "bold")
            if label := self._names[name]:
                offered.append(f" ({label})")
        return offered.append("  …" * (len(found) > MOST))


class Entry(Input):
    """One line of plain text: what a terminal would obey or hide is not let in."""

    def validate_value(self, value: str) -> str:
        return "".join(char for char in value if char.isprintable())

    async def action_submit(self) -> None:
        """What is typed from here on is meant for what the answer brings, or for a better answer."""
        if isinstance(self.app, TypedApp):
            self.app.hold()
        await super().action_submit()


class Ask(Dialog[str | None]):
    """The answer is the text, None when left. Up and down go through what was typed before."""

    BINDINGS = [
        Binding("escape", "dismiss(None)", "Cancel", id="ask.leave"),
        Binding("up", "older", "Older", id="ask.older"),
        Binding("down", "newer", "Newer", id="ask.newer"),
        Binding("tab", "complete", "Complete", priority=True, id="ask.complete"),
    ]

    def __init__(
        self,
        title: str,
        check: Check = anything,
        *,
        value: str = "",
        hint: str = "",
        names: Mapping[str, str] | None = None,
        history: Sequence[str] = (),
    ) -> None:
        """`hint` is said while nothing is typed; `history` has the newest first."""
        super().__init__()
        self.heading = title
        self.check = check
        self.value = value
        self.hint = hint
        self.words = Words(names or {})
        self.history = ["", *history] if value in ("", *history[:1]) else [value, *history]
        self._at = self.history.index(value) if value in self.history else 0

    def compose(self) -> ComposeResult:
        with Vertical(id="ask"):
            yield Line(id="ask-title")
            entry = Entry(self.value, suggester=self.words, compact=True, select_on_focus=False)
            entry.cursor_blink = False  # which would write twice a second
            yield entry
            yield Line(id="ask-says")

    def on_mount(self) -> None:
        keys = "enter apply · esc cancel" + (" · tab complete" if self.words else "")
        self.query_one("#ask-title", Line).say(Text(self.heading, "bold").append(f" · {keys}", "not bold"))
        self._look(self.value)

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        self._look(event.value)

    @work(exclusive=True)
    async def _look(self, text: str) -> None:
        offer = self.words.offer(text)
        if offer:
            self._tell(offer)
        elif not text.strip():
            self._tell(Text(self.hint))
        else:
            await self._checked(text)

    async def _checked(self, text: str) -> bool:
        """Whether the text can be taken; it says what is found, or why not."""
        try:
            self._tell(Text(visible(await self.check(text))))
        except DumpError as error:
            self._tell(Text(visible(error.problem), "bold"))
            return False
        return True

    def _tell(self, text: Text) -> None:
        if self.is_current:  # it may have been left while a text was checked
            self.query_one("#ask-says", Line).say(text)

    @on(Input.Submitted)
    async def _submitted(self, event: Input.Submitted) -> None:
        self.workers.cancel_node(self)
        text = event.value if event.value.strip() else ""
        if (not text or await self._checked(text)) and self.is_current:  # a second enter is late
            self.dismiss(text)
        elif isinstance(self.app, TypedApp):
            self.app.release()

    def action_complete(self) -> None:
        entry = self.query_one(Entry)
        completed = self.words.completed(entry.value)
        if completed is not None:
            entry.value = completed
            entry.action_end()

    def action_older(self) -> None:
        self._recall(self._at + 1)

    def action_newer(self) -> None:
        self._recall(self._at - 1)

    def _recall(self, at: int) -> None:
        if 0 <= at < len(self.history):
            self._at = at
            entry = self.query_one(Entry)
            entry.value = self.history[at]
            entry.action_end()

"""A line to type into at the bottom of the screen; its text is checked at every key."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.suggester import Suggester
from textual.widgets import Input

from dumptui.core.errors import DumpError
from dumptui.core.text import visible
from dumptui.tui.terminal.key_queue import TypedApp
from dumptui.tui.widgets.dialogs.choices import Dialog
from dumptui.tui.widgets.line import Line

Check = Callable[[str], Awaitable[str]]
"""Returns a remark on a text, such as its number of matches; raises DumpError for an invalid one."""

MAX_SUGGESTIONS = 12  # names offered at a time
_LAST_WORD = re.compile(r"[^\W\d]\w*$")


async def anything(text: str) -> str:
    return ""


class Words(Suggester):
    """A completer of the last word to a name, which is also found by its label on screen."""

    def __init__(self, names: Mapping[str, str]) -> None:
        """`names` maps each to its label on screen, or an empty text."""
        super().__init__(case_sensitive=True)
        self._names = names

    def __bool__(self) -> bool:
        return bool(self._names)

    async def get_suggestion(self, value: str) -> str | None:
        completed = self.completed(value)
        return completed if completed is not None and completed.startswith(value) else None

    def completed(self, text: str) -> str | None:
        word, names = self.candidates(text)
        starting = [name for name in names if name.startswith(word)] or names[:1]
        return text[: len(text) - len(word)] + starting[0] if starting else None

    def candidates(self, text: str) -> tuple[str, list[str]]:
        """Return the word at the end of a text and the names it may become: first those that start with it, then those
        that contain it.
        """
        match = _LAST_WORD.search(text)
        if match is None or text[: match.start()].count("'") % 2 or text[: match.start()].count('"') % 2:
            return "", []
        word, low = match[0], match[0].lower()
        if low in self._names:
            return word, []
        starting = [name for name in self._names if name.startswith(low)]
        containing = [name for name, label in self._names.items() if low in name or label.lower().startswith(low)]
        return word, list(dict.fromkeys([*starting, *containing]))

    def offer(self, text: str) -> Text:
        """Return the names that the last word may become."""
        _, names = self.candidates(text)
        return self.listed(names[:MAX_SUGGESTIONS]).append("  …" if len(names) > MAX_SUGGESTIONS else "")

    def listed(self, names: Iterable[str] | None = None) -> Text:
        """Return names, by default all, with their labels on screen."""
        line = Text()
        for name in self._names if names is None else names:
            line.append("  " if line else "").append(name, "bold")
            if label := self._names[name]:
                line.append(f" ({label})")
        return line


class Entry(Input):
    """An input line of plain text; unprintable characters, which a terminal would obey or hide, are dropped."""

    def validate_value(self, value: str) -> str:
        return "".join(char for char in value if char.isprintable())

    async def action_submit(self) -> None:
        if isinstance(self.app, TypedApp):
            self.app.hold()  # the keys that follow are for the screen after the answer, or for a corrected one
        await super().action_submit()


class Ask(Dialog[str | None]):
    """A dialog for a text; the answer is None when it is closed. Up and down recall earlier texts."""

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
        """`hint` is shown while nothing is typed; `history` has the newest text first."""
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
            entry.cursor_blink = False  # a blinking cursor would write twice a second
            yield entry
            yield Line(id="ask-says")

    def on_mount(self) -> None:
        keys = "enter apply · esc cancel" + (" · tab complete, or list columns" if self.words else "")
        self.query_one("#ask-title", Line).say(Text(self.heading, "bold").append(f" · {keys}", "not bold"))
        self._look(self.value)

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        self.remove_class("-list")
        self._look(event.value)

    @work(exclusive=True)
    async def _look(self, text: str) -> None:
        offer = self.words.offer(text)
        if offer:
            self._show(offer)
        elif not text.strip():
            self._show(Text(self.hint))
        else:
            await self._checked(text)

    async def _checked(self, text: str) -> bool:
        """Whether the text is valid; shows what was found, or why it is invalid."""
        try:
            self._show(Text(visible(await self.check(text))))
        except DumpError as error:
            self._show(Text(visible(error.problem), "bold"))
            return False
        return True

    def _show(self, text: Text) -> None:
        if self.is_current:  # it may have been closed while a text was checked
            self.query_one("#ask-says", Line).say(text)

    @on(Input.Submitted)
    async def _submitted(self, event: Input.Submitted) -> None:
        self.workers.cancel_node(self)
        text = event.value if event.value.strip() else ""
        if (not text or await self._checked(text)) and self.is_current:  # a second enter comes too late
            self.dismiss(text)
        elif isinstance(self.app, TypedApp):
            self.app.release()

    def action_complete(self) -> None:
        """Complete the last word; without one, list every name."""
        entry = self.query_one(Entry)
        if self.words and not self.words.candidates(entry.value)[1]:
            self.add_class("-list")
            self._show(self.words.listed())
            return
        completed = self.words.completed(entry.value)
        if completed is not None:
            entry.value = completed
            entry.action_end()

    def action_older(self) -> None:
        self._recall(self._at + 1)

    def action_newer(self) -> None:
        self._recall(self._at - 1)

    def _recall(self, index: int) -> None:
        if 0 <= index < len(self.history):
            self._at = index
            entry = self.query_one(Entry)
            entry.value = self.history[index]
            entry.action_end()

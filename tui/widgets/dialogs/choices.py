"""Dialogs over the screen."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

Answer = TypeVar("Answer")


class Dialog(ModalScreen[Answer]):
    """A screen over the panes until it is answered or closed."""

    def dismiss(self, result: Answer | None = None) -> AwaitComplete:
        # A second enter that was typed ahead arrives after the answer; then nothing is left to dismiss.
        return super().dismiss(result) if self.is_active else AwaitComplete()


class Listing(Dialog[Answer | None]):
    """A list over the panes, with the keys of the tables; the answer is None when it is closed.

    `?` shows what the entry under the cursor means, by the texts in `meanings`.
    """

    BINDINGS = [
        Binding("escape,q", "dismiss(None)", "Close", id="list.leave"),
        Binding("j", "move('cursor_down')", "Down", show=False, id="list.down"),
        Binding("k", "move('cursor_up')", "Up", show=False, id="list.up"),
        Binding("ctrl+d", "move('page_down')", "Page down", show=False, id="list.page-down"),
        Binding("ctrl+u", "move('page_up')", "Page up", show=False, id="list.page-up"),
        Binding("g", "move('first')", "First", show=False, id="list.first"),
        Binding("G", "move('last')", "Last", show=False, id="list.last"),
        Binding("question_mark", "meaning", "Meaning", key_display="?", id="list.meaning"),
    ]

    def __init__(
        self, title: str, choices: Sequence[tuple[str, str]] = (), meanings: Mapping[str, str] | None = None
    ) -> None:
        """`choices` are keys and texts."""
        super().__init__()
        self.heading = title
        self.choices = choices
        self.meanings = meanings or {}

    def compose_meaning(self) -> ComposeResult:
        """Yield the place below the list where `?` shows a meaning."""
        if self.meanings:
            meaning = Static("", id="dialog-meaning")
            meaning.display = False
            yield meaning

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return bool(self.meanings) if action == "meaning" else True

    def action_meaning(self) -> None:
        """Show what the entry under the cursor means, and that of each the cursor comes to; or hide it."""
        meaning = self.query_one("#dialog-meaning", Static)
        meaning.display = not meaning.display
        self.set_class(bool(meaning.display), "-meaning")
        self._say_meaning(self.query_one(OptionList).highlighted)

    @on(OptionList.OptionHighlighted)
    def _highlighted(self, event: OptionList.OptionHighlighted) -> None:
        if self.meanings:
            self._say_meaning(event.option_index)

    def _say_meaning(self, index: int | None) -> None:
        key = "" if index is None else self.choices[index][0]
        self.query_one("#dialog-meaning", Static).update(Content(self.meanings.get(key, "")))

    async def action_move(self, how: str) -> None:  # an action of the list
        await self.query_one(OptionList).run_action(how)


class Choose(Listing[str]):
    """A choice of one; the answer is its key."""

    def __init__(
        self,
        title: str,
        choices: Sequence[tuple[str, str]],
        current: str | None = None,
        meanings: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(title, choices, meanings)
        self.current = current

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog"):
            yield Static(Text(self.heading, style="bold"), id="dialog-title")
            yield OptionList(*(Option(Content(text), id=key) for key, text in self.choices), markup=False)
            yield from self.compose_meaning()

    def on_mount(self) -> None:
        keys = [key for key, _ in self.choices]
        if self.current in keys:
            self.query_one(OptionList).highlighted = keys.index(self.current)

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option.id)


class ChooseMore(Choose):
    """A choice that can be added to earlier ones: `more` says so once it is made."""

    BINDINGS = [Binding("space,plus", "more", "Add", id="choose.more")]
    more = False

    def action_more(self) -> None:
        self.more = True
        self.query_one(OptionList).action_select()


class Pick(Listing["list[str] | str"]):
    """A choice of any number; the answer is a list of their keys, "all" or "default", or None when it is closed."""

    BINDINGS = [
        Binding("space", "turn", "Show/hide", id="pick.turn"),
        Binding("enter", "done", "Done", priority=True, id="pick.done"),
        Binding("a", "dismiss('all')", "All", id="pick.all"),
        Binding("d", "dismiss('default')", "Default", id="pick.default"),
    ]

    def __init__(
        self,
        title: str,
        choices: Sequence[tuple[str, str]],
        picked: Collection[str],
        meanings: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(title, choices, meanings)
        self.picked = set(picked)

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog"):
            yield Static(Text(self.heading, style="bold"), id="dialog-title")
            yield Static("space show/hide · enter apply · a all · d default · esc cancel")
            yield OptionList(*map(self._prompt, range(len(self.choices))), markup=False)
            yield from self.compose_meaning()

    def _prompt(self, index: int) -> Content:
        key, text = self.choices[index]
        return Content(f"{'x' if key in self.picked else ' '} {text}")

    @on(OptionList.OptionSelected)
    def _clicked(self, event: OptionList.OptionSelected) -> None:
        self._turn(event.option_index)

    def _turn(self, index: int) -> None:
        self.picked ^= {self.choices[index][0]}
        self.query_one(OptionList).replace_option_prompt_at_index(index, self._prompt(index))

    def action_turn(self) -> None:
        highlighted = self.query_one(OptionList).highlighted
        if highlighted is not None:
            self._turn(highlighted)

    def action_done(self) -> None:
        self.dismiss([key for key, _ in self.choices if key in self.picked])

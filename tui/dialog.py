"""Small questions over the screen."""

from __future__ import annotations

from collections.abc import Collection, Sequence
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

from dumptui.tui.columns import Shown

Answer = TypeVar("Answer")


class Dialog(ModalScreen[Answer]):
    """Over the screen until it is answered, or left."""

    def dismiss(self, result: Answer | None = None) -> AwaitComplete:
        """What was typed ahead, such as a second enter, arrives when it is answered already: nothing is left to do."""
        return super().dismiss(result) if self.is_active else AwaitComplete()


class Listing(Dialog[Answer | None]):
    """A list over the screen, gone through as the tables are; the answer is None when it is left."""

    BINDINGS = [
        Binding("escape,q", "dismiss(None)", "Close", id="list.leave"),
        Binding("j", "move('cursor_down')", "Down", show=False, id="list.down"),
        Binding("k", "move('cursor_up')", "Up", show=False, id="list.up"),
        Binding("ctrl+d", "move('page_down')", "Page down", show=False, id="list.page-down"),
        Binding("ctrl+u", "move('page_up')", "Page up", show=False, id="list.page-up"),
        Binding("g", "move('first')", "First", show=False, id="list.first"),
        Binding("G", "move('last')", "Last", show=False, id="list.last"),
    ]

    async def action_move(self, how: str) -> None:
        """`how` is an action of the list."""
        await self.query_one(OptionList).run_action(how)


class Choose(Listing[str]):
    """One of several; the answer is its key."""

    def __init__(self, title: str, choices: Sequence[tuple[str, str]], current: str | None = None) -> None:
        super().__init__()
        self.heading = title
        self.choices = choices
        self.current = current

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog"):
            yield Static(Text(self.heading, style="bold"), id="dialog-title")
            yield OptionList(*(Option(Content(text), id=key) for key, text in self.choices), markup=False)

    def on_mount(self) -> None:
        keys = [key for key, _ in self.choices]
        if self.current in keys:
            self.query_one(OptionList).highlighted = keys.index(self.current)

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option.id)


class ChooseMore(Choose):
    """A choice that can also be put behind those made before: `more` tells so, once it is made."""

    BINDINGS = [Binding("space,plus", "more", "Add", id="choose.more")]
    more = False

    def action_more(self) -> None:
        self.more = True
        self.query_one(OptionList).action_select()


class Pick(Listing[Shown]):
    """Any of several; the answer is a list of their keys, "all" or "default", or None when left."""

    BINDINGS = [
        Binding("space", "turn", "Show/hide", id="pick.turn"),
        Binding("enter", "done", "Done", priority=True, id="pick.done"),
        Binding("a", "dismiss('all')", "All", id="pick.all"),
        Binding("d", "dismiss('default')", "Default", id="pick.default"),
    ]

    def __init__(self, title: str, choices: Sequence[tuple[str, str]], picked: Collection[str]) -> None:
        super().__init__()
        self.heading = title
        self.choices = choices
        self.picked = set(picked)

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog"):
            yield Static(Text(self.heading, style="bold"), id="dialog-title")
            yield Static("space: on or off, enter: done, a: all, d: default")
            yield OptionList(*map(self._prompt, range(len(self.choices))), markup=False)

    def _prompt(self, at: int) -> Content:
        key, text = self.choices[at]
        return Content(f"{'x' if key in self.picked else ' '} {text}")

    @on(OptionList.OptionSelected)
    def _clicked(self, event: OptionList.OptionSelected) -> None:
        self._turn(event.option_index)

    def _turn(self, at: int) -> None:
        self.picked ^= {self.choices[at][0]}
        self.query_one(OptionList).replace_option_prompt_at_index(at, self._prompt(at))

    def action_turn(self) -> None:
        highlighted = self.query_one(OptionList).highlighted
        if highlighted is not None:
            self._turn(highlighted)

    def action_done(self) -> None:
        self.dismiss([key for key, _ in self.choices if key in self.picked])

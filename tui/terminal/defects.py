"""A defect costs the widget or pane that it is in: it is said there, and everything else goes on."""

from __future__ import annotations

import textwrap
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from time import monotonic
from typing import Any
from weakref import WeakKeyDictionary

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.app import ScreenStackError
from textual.containers import Horizontal, Vertical
from textual.css.query import NoMatches
from textual.dom import DOMNode
from textual.geometry import Offset, Region
from textual.message import Message
from textual.message_pump import CallbackError
from textual.strip import Strip
from textual.widget import MountError, Widget
from textual.worker import WorkerFailed

from dumptui.core.defect import Defect, defect_of
from dumptui.core.errors import DumpError, unexpected
from dumptui.core.text import visible
from dumptui.tui.terminal.key_queue import TypedApp

SAID_SECONDS = 15.0
"""How long a defect that has no place on the screen is said; the same one is not said again meanwhile."""


def cause_of(error: BaseException) -> BaseException:
    """The exception itself where Textual put it into another one."""
    if isinstance(error, WorkerFailed):
        return error.error
    if isinstance(error, CallbackError) and error.__context__ is not None:
        return error.__context__
    return error


def place_of(error: BaseException) -> Widget | None:
    """The innermost widget in whose code it was raised."""
    owners = [frame.f_locals.get("self") for frame, _ in traceback.walk_tb(error.__traceback__)]
    return next((one for one in reversed(owners) if isinstance(one, Widget)), None)


def container_of(widget: Widget) -> Widget | None:
    """What is taken from the screen with a widget whose state can't be trusted: the pane, or side of one, it is in."""
    return next((one for one in widget.ancestors_with_self if isinstance(one, (Horizontal, Vertical))), None)


class DefectApp(TypedApp):
    """Each widget is guarded where it is registered, Textual's own too: what it draws, and what it does on a message.

    | a defect in | costs |
    | --- | --- |
    | what a widget draws | the widget, until it can be drawn |
    | a message, timer or update | the pane or side of one, until it is shown something else (`renewing`) |
    | an action of a key, a key or the mouse | the action, which is said in a toast |
    | a dialog | the dialog |
    """

    def __init__(self) -> None:
        super().__init__()
        self.defects: dict[Defect, None] = {}
        """The defects that were seen, to report once the terminal is given back."""
        self._leaving = False
        self._failed: WeakKeyDictionary[Widget, Defect] = WeakKeyDictionary()
        self._undrawn: WeakKeyDictionary[Widget, Defect] = WeakKeyDictionary()
        self._said: dict[Defect, float] = {}

    @property
    def is_ready(self) -> bool:
        """Before the panes are there, a defect is the end: there is nothing that could go on."""
        return True

    @property
    def _goes_on(self) -> bool:
        return self.is_ready and not (self._exit or self._leaving)

    # At whose cost -----------------------------------------------------------------------------------------------

    @contextmanager
    def containing(self, pane: Widget) -> Iterator[None]:
        """Around an update of a pane: a defect costs that pane, and what follows is done."""
        try:
            yield
        except Exception as error:
            if not self._goes_on:
                raise
            self._fail(pane, self._seen(error))

    @contextmanager
    def renewing(self, pane: Widget) -> Iterator[None]:
        """The same where the pane is shown something else: one that failed is given another try."""
        for part in [one for one in self._failed if pane in one.ancestors_with_self]:
            del self._failed[part]
            refresh_all(part)
        with self.containing(pane):
            yield

    def contain(self, error: BaseException, node: DOMNode | None = None, message: Message | None = None) -> None:
        """Of an exception that came up to here, while `node` handled a message where that is known."""
        error = cause_of(error)
        defect, place = self._seen(error), place_of(error) or node
        if isinstance(message, events.InputEvent) or not isinstance(place, Widget) or not place.is_attached:
            self._say(f"this failed: {defect}", defect)
        elif place.screen is not self.screen_stack[0]:
            self._say(f"the dialog failed: {defect}", defect)
            if place.screen is self.screen:
                self.pop_screen()
        elif (pane := container_of(place)) is not None:
            self._fail(pane, defect)
        else:
            self._say(f"this failed: {defect}", defect)

    def say_broken(self, error: BaseException) -> None:
        """Of what the reader worked out in the background, which has no place on the screen."""
        if isinstance(error, (DumpError, MemoryError)):
            text = error.short if isinstance(error, DumpError) else unexpected(error)
            self.notify(visible(f"not all can be shown: {text}"), severity="error", markup=False)
        else:
            defect = self._seen(error)
            self._say(f"not all can be shown: {defect}", defect)

    def _seen(self, error: BaseException) -> Defect:
        defect = defect_of(error)
        self.defects[defect] = None
        return defect

    def _fail(self, part: Widget, defect: Defect) -> None:
        self._failed[part] = defect
        refresh_all(part)

    def _say(self, text: str, defect: Defect, *, again: bool = False) -> None:
        now = monotonic()
        if again or now - self._said.get(defect, -SAID_SECONDS) >= SAID_SECONDS:
            self._said[defect] = now
            self.clear_notifications()
            self.notify(f"{text}: please report it", severity="error", markup=False, timeout=SAID_SECONDS)

    # Where it comes up -------------------------------------------------------------------------------------------

    def _register(self, parent: DOMNode, *widgets: Widget, **where: Any) -> list[Widget]:
        for widget in widgets:
            if "render_lines" not in vars(widget):
                self._guard(widget)
        return super()._register(parent, *widgets, **where)

    def _guard(self, widget: Widget) -> None:
        """By attributes of its own that stand before the methods: a subclass could not be had of Textual's widgets."""
        vars(widget)["render_lines"] = partial(self._draw, widget, widget.render_lines)
        vars(widget)["_dispatch_message"] = partial(self._handle, widget, widget._dispatch_message)

    async def _handle(self, node: DOMNode, handle: Callable[[Message], Any], message: Message) -> None:
        """In place of an exception that would end the queue of the node, and with it all that its children say."""
        try:
            await handle(message)
        except Exception as error:
            if not self._goes_on:
                raise
            self.contain(error, node, message)

    async def _dispatch_message(self, message: Message) -> None:
        await self._handle(self, super()._dispatch_message, message)

    async def _dispatch_action(self, namespace: DOMNode, action_name: str, params: Any) -> bool:
        try:
            return await super()._dispatch_action(namespace, action_name, params)
        except Exception as error:
            if not self._goes_on:
                raise
            defect = self._seen(error)
            self._say(f"the key failed: {defect}", defect, again=True)
            return True

    def _handle_exception(self, error: Exception) -> None:
        """What timers, workers and layouts raise, and everything before the panes are there and at the end.

        Widgets are taken away before those that hold them, so what goes on at the end may find one gone, or its screen.
        """
        if self._exit or self._leaving:
            if not isinstance(error, (NoMatches, MountError, ScreenStackError)):
                super()._handle_exception(error)
        elif self.is_ready:
            self.contain(error)
        else:
            super()._handle_exception(error)

    def _fatal_error(self) -> None:
        """Not pages of local variables, which are text of the dump."""
        assert self._exception is not None
        self.panic(Text(last_words(defect_of(self._exception))))

    async def _shutdown(self) -> None:
        self._leaving = True
        await super()._shutdown()

    # Drawing -----------------------------------------------------------------------------------------------------

    def _draw(self, widget: Widget, render: Callable[[Region], list[Strip]], crop: Region) -> list[Strip]:
        """What a widget shows, or what is to be said in its place."""
        if self._failed and (part := self._failed_around(widget)) is not None:
            at = widget.region.offset - part.region.offset
            return self._notice("pane", self._failed[part], part, at, crop, "; another step or sample tries again")
        was_drawn = widget not in self._undrawn
        try:
            if not was_drawn:  # all of it, or the lines that can be drawn would stand among those of the notice
                render(Region(0, 0, *widget.outer_size))
                del self._undrawn[widget]
                widget.refresh()
            return render(crop)
        except Exception as error:
            self._undrawn[widget] = self._seen(error)
        if was_drawn:
            widget.refresh()
        return self._notice("part", self._undrawn[widget], widget, Offset(), crop)

    def _failed_around(self, widget: Widget) -> Widget | None:
        nodes = (one for one in widget.ancestors_with_self if isinstance(one, Widget))
        return next((one for one in nodes if one in self._failed), None)

    def _notice(self, what: str, defect: Defect, part: Widget, at: Offset, crop: Region, more: str = "") -> list[Strip]:
        """A sentence in place of a part of the screen: those cells of it that a widget at `at` in the part has."""
        style, width = self.screen.rich_style + Style(bold=True), part.outer_size.width
        lines = textwrap.wrap(f"this {what} failed: {defect}: please report it{more}", max(width - 2, 1))
        said = dict(enumerate(lines))
        return [
            Strip([Segment(f" {said.get(at.y + y, '')}", style)])
            .adjust_cell_length(max(width, at.x + crop.right), style)
            .crop(at.x + crop.x, at.x + crop.right)
            for y in crop.line_range
        ]


def last_words(defect: Defect) -> str:
    return f"dumptui: {defect}: a defect of dumptui, please report it"


def refresh_all(part: Widget) -> None:
    for one in part.walk_children(Widget, with_self=True):
        one.refresh()

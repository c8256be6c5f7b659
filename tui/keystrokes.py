"""One key at a time, so that each goes to what the one before it brought on the screen.

Textual sends a key to what has the focus as soon as it is read, and looks for its binding when the key has gone up from
there to the app. Of keys that are read at once, all that follow the one that opens a dialog would have gone to what is
below, and be lost.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from time import monotonic

from textual import events, on
from textual.actions import SkipAction
from textual.app import App
from textual.binding import Binding
from textual.message import Message
from textual.screen import Screen

LOST = 1.0
"""Seconds after which a key is no more waited for: the widget that had it may be gone, and the keys must go on."""


class Handled(Message):
    """Follows a key all the way from the focus up to the app: when it is there, the key has been handled."""

    def __init__(self, typed: events.Event) -> None:
        super().__init__()
        self.typed = typed


class TypedApp(App[None]):
    """Keys and pasted texts wait for the ones before them, and for the screen that these open to have its focus."""

    BINDINGS = [Binding("ctrl+c", "leave", show=False, system=True, priority=True)]

    def __init__(self) -> None:
        super().__init__()
        self._waiting: deque[events.Key | events.Paste] = deque()
        self._handling: events.Event | None = None
        self._harmless: str | None = None
        """The key that came last, if the screen is the same since."""
        self._held = False

    def on_mount(self) -> None:
        self.screen_change_signal.subscribe(self, self._change_screen, immediate=True)

    async def on_event(self, event: events.Event) -> None:
        if not isinstance(event, (events.Key, events.Paste)) or event.is_forwarded:
            return await super().on_event(event)
        if self._held and isinstance(event, events.Key) and event.key in ("escape", "ctrl+c"):
            self._waiting.clear()  # what was typed ahead is not wanted any more
            self._held = False
        self._waiting.append(event)
        await self._take()
        if self._waiting:
            self.set_timer(LOST, partial(self.call_later, self._take))

    async def _take(self) -> None:
        while self._waiting and not self._held and self._is_free_for(self._waiting[0]):
            self._handling = event = self._waiting.popleft()
            await super().on_event(event)
            told = event.is_forwarded and (self.focused or self.screen).post_message(Handled(event))
            if not told and self._handling is event:
                self._handling = None

    def _is_free_for(self, event: events.Key | events.Paste) -> bool:
        """A key that is held down need not wait once it has opened nothing: all of it is one change of the screen."""
        last = self._handling
        if last is None or monotonic() - last.time > LOST:
            return True
        return isinstance(event, events.Key) and key_of(last) == event.key == self._harmless

    @on(Handled)
    async def _go_on(self, message: Handled) -> None:
        message.stop()
        if message.typed is self._handling:
            self._handling, self._harmless = None, key_of(message.typed)
            await self._take()

    def _change_screen(self, screen: Screen[object]) -> None:
        """The key that did this has been handled, and what is to tell so may be lost with the screen that is left."""
        self._handling = self._harmless = None
        self.hold()
        if not screen.call_later(self.call_later, self.release):  # behind its mounting, and what that asks of the app
            self._held = False

    def hold(self) -> None:
        """Keep what is typed from now on until it is known where it belongs; escape and ctrl+c end that."""
        self._held = True

    def release(self) -> None:
        self._held = False
        self.call_later(self._take)  # by the app itself: what another sends goes up to its own parent only

    async def action_leave(self) -> None:
        """Quit, over a dialog too; where a text is selected, the key copies it."""
        if self.screen.get_selected_text() is not None or getattr(self.focused, "selected_text", None):
            raise SkipAction
        await self.action_quit()


def key_of(event: events.Event | None) -> str | None:
    return event.key if isinstance(event, events.Key) else None

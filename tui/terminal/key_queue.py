"""One key at a time, so that each goes to the screen that the key before it opened.

Textual sends a key to the focused widget as soon as it is read, and looks for its binding when the key has gone up from
there to the app. If several keys are read at once, all keys after one that opens a dialog would go to the widget below
the dialog, and be lost.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from time import monotonic

from textual import events, on
from textual.actions import SkipAction
from textual.app import App
from textual.binding import Binding
from textual.dom import DOMNode
from textual.message import Message
from textual.screen import Screen

NEWLINE_KEY = "ctrl+j"
"""What enter sends while the terminal is not in raw mode yet, at the start."""
LOST_SECONDS = 1.0
"""Seconds after which the next key stops waiting when the widget that got the last key is gone."""
HUNG_SECONDS = 5.0
"""Seconds after which it stops waiting for a widget that is still there: a busy machine can take as long as that."""


class Handled(Message):
    """A message that follows a key from the focus up to the app: when it arrives, the key has been handled."""

    def __init__(self, typed: events.Event) -> None:
        super().__init__()
        self.typed = typed


class TypedApp(App[None]):
    """An app whose keys and pasted texts wait for the earlier ones, and for the focus of screens that those open."""

    BINDINGS = [Binding("ctrl+c", "leave", show=False, system=True, priority=True)]

    def __init__(self) -> None:
        super().__init__()
        self._waiting: deque[events.Key | events.Paste] = deque()
        self._handling: events.Event | None = None
        self._sent_at = 0.0
        self._route: list[DOMNode] = []
        """The widgets that the last key goes through, from the focus up."""
        self._harmless: str | None = None
        """The last key, if the screen has not changed since."""
        self._held = False
        self._is_due = False  # whether a timer will look at the keys that wait

    def on_mount(self) -> None:
        self.screen_change_signal.subscribe(self, self._change_screen, immediate=True)

    async def on_event(self, event: events.Event) -> None:
        if not isinstance(event, (events.Key, events.Paste)) or event.is_forwarded:
            return await super().on_event(event)
        if isinstance(event, events.Key) and event.key == NEWLINE_KEY:
            event = events.Key("enter", "\r")
        if self._held and isinstance(event, events.Key) and event.key in ("escape", "ctrl+c"):
            self._waiting.clear()  # the keys typed ahead are dropped
            self._held = False
        self._waiting.append(event)
        await self._take()
        if self._waiting:
            self._try_later()

    def _try_later(self) -> None:
        if not self._is_due:
            self._is_due = True
            self.set_timer(LOST_SECONDS, partial(self.call_later, self._take_late))

    async def _take_late(self) -> None:
        self._is_due = False
        await self._take()
        if self._waiting:
            self._try_later()

    async def _take(self) -> None:
        while self._waiting and not self._held and self._is_free_for(self._waiting[0]):
            self._handling = event = self._waiting.popleft()
            await super().on_event(event)
            target = self.focused or self.screen
            self._sent_at, self._route = monotonic(), list(target.ancestors_with_self)
            is_sent = event.is_forwarded and target.post_message(Handled(event))
            if not is_sent and self._handling is event:
                self._handling = None

    def _is_free_for(self, event: events.Key | events.Paste) -> bool:
        """Whether a key can be handled now. A held key need not wait once it opened nothing: all its repeats act on one
        screen.
        """
        last = self._handling
        if last is None or self._is_lost():
            return True
        return isinstance(event, events.Key) and key_of(last) == event.key == self._harmless

    def _is_lost(self) -> bool:
        """Whether the last key's Handled message will not come. Its age counts from when it was sent, not typed: keys
        typed ahead may have waited for long before.
        """
        is_there = all(node.is_running for node in self._route)
        return monotonic() - self._sent_at > (HUNG_SECONDS if is_there else LOST_SECONDS)

    @on(Handled)
    async def _go_on(self, message: Handled) -> None:
        message.stop()
        if message.typed is self._handling:
            self._handling, self._harmless = None, key_of(message.typed)
            await self._take()

    def _change_screen(self, screen: Screen[object]) -> None:
        """Stop waiting for the key that changed the screen: its Handled message may be lost with the old screen."""
        self._handling = self._harmless = None
        self.hold()
        # released after the screen is mounted, and after the messages that this sends to the app
        if not screen.call_later(self.call_later, self.release):
            self._held = False

    def hold(self) -> None:
        """Keep the following keys until their screen is known; escape and ctrl+c end that."""
        self._held = True

    def release(self) -> None:
        self._held = False
        self.call_later(self._take)  # by the app itself: a message of another node goes only to its parent

    async def action_leave(self) -> None:
        # Ctrl+C quits, also over a dialog; while a text is selected, the key copies it instead.
        if self.screen.get_selected_text() is not None or getattr(self.focused, "selected_text", None):
            raise SkipAction
        await self.action_quit()


def key_of(event: events.Event | None) -> str | None:
    return event.key if isinstance(event, events.Key) else None

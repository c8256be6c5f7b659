"""Focus handling that neither redraws nor restyles the widget, which takes Textual 4 ms and all of its lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import events

if TYPE_CHECKING:
    from textual.widget import Widget
else:
    Widget = object  # Textual takes the styles of a widget from its first base that is a widget

MOVING_KEYS_NAME = "moving"


class Focus(Widget):
    """A base for widgets that look the same with and without the focus: no style sheet may use `:focus` for them."""

    BINDING_GROUP_TITLE = MOVING_KEYS_NAME

    def watch_has_focus(self, _has_focus: bool) -> None:
        pass  # a widget whose look depends on the focus refreshes it here

    def _on_focus(self, event: events.Focus) -> None:
        event.prevent_default()
        self.has_focus = True
        if self.parent is not None:
            self.parent.post_message(events.DescendantFocus(self))

    def _on_blur(self, event: events.Blur) -> None:
        event.prevent_default()
        self.has_focus = False
        if self.parent is not None:
            self.parent.post_message(events.DescendantBlur(self))

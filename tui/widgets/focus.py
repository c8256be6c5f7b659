"""What has the focus, without being drawn and styled anew for it as by Textual: 4 ms and all lines of the widget."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import events

if TYPE_CHECKING:
    from textual.widget import Widget
else:
    Widget = object  # Textual looks for the styles of a widget in the first of its bases that is one

MOVING = "moving"


class Focus(Widget):
    """For a widget that looks the same with the focus and without: no style sheet asks for `:focus` in it."""

    BINDING_GROUP_TITLE = MOVING

    def watch_has_focus(self, _has_focus: bool) -> None:
        """What looks different after all is refreshed here."""

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

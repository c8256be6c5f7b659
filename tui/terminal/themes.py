"""The theme of the screen: the last one chosen, in any run, or the terminal's own colours if it has only 16."""

from __future__ import annotations

import os
from dataclasses import replace

from textual.app import App
from textual.theme import BUILTIN_THEMES

from dumptui.core.store.state import State

THEME_KEY = "theme"
OWN_COLOURS = "ansi-dark"  # the one with light text; most of its colours are the terminal's own
OWN_LIGHT = "ansi-light"
# On black, blue and red are readable only in their bright form: a contrast of 2.2 and 3.6 becomes 4.9 and 5.3.
ON_BLACK = replace(BUILTIN_THEMES[OWN_COLOURS], primary="ansi_bright_blue", error="ansi_bright_red")


def begin_with_theme(app: App[None]) -> None:
    """Set the theme before the first paint. TEXTUAL_THEME takes precedence over the saved choice."""
    if os.environ.get("TEXTUAL_THEME"):
        return
    name = State.of(None).get(THEME_KEY)
    theme = app.get_theme(name) if isinstance(name, str) else None
    is_readable = app.console.color_system != "standard" or (theme and theme.ansi)  # other themes need more colours
    if not is_readable:
        app.theme = OWN_LIGHT if theme and not theme.dark else OWN_COLOURS
    elif theme:
        app.theme = theme.name


def keep_theme(name: str) -> None:
    State.of(None).put(THEME_KEY, name)

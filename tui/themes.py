"""The theme of the screen: the one chosen last, in whatever run, or the terminal's own colours where it has but 16."""

from __future__ import annotations

import os
from dataclasses import replace

from textual.app import App
from textual.theme import BUILTIN_THEMES

from dumptui.core.state import State

THEME = "theme"
OWN_COLOURS = "ansi-dark"  # of the two it is the one with light text, and takes the terminal's for most
OWN_LIGHT = "ansi-light"
# Blue and red are read on black only where they are the bright ones: a contrast of 2.2 and 3.6 becomes 4.9 and 5.3.
ON_BLACK = replace(BUILTIN_THEMES[OWN_COLOURS], primary="ansi_bright_blue", error="ansi_bright_red")


def begin_with_theme(app: App[None]) -> None:
    """Before the first screen is painted. TEXTUAL_THEME goes before what was chosen."""
    if os.environ.get("TEXTUAL_THEME"):
        return
    kept = State.of(None).get(THEME)
    theme = app.get_theme(kept) if isinstance(kept, str) else None
    if app.console.color_system == "standard" and not (theme and theme.ansi):  # others are not read in 16 colours
        app.theme = OWN_LIGHT if theme and not theme.dark else OWN_COLOURS
    elif theme:
        app.theme = theme.name


def keep_theme(name: str) -> None:
    State.of(None).put(THEME, name)

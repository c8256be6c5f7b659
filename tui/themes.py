"""The colours of the screen: those chosen last, in whatever run, or the terminal's own where it has but 16."""

from __future__ import annotations

import os

from textual.app import App

from dumptui.core.state import State
from dumptui.tui.scales import DEFAULT_PAIR, PAIRS

THEME, HUES = "theme", "hues"
OWN_COLOURS = "ansi-dark"  # of the two it is the one with light text, and takes the terminal's for most


def begin_with_theme(app: App[None]) -> None:
    """Before the first screen is painted. TEXTUAL_THEME goes before what was chosen."""
    kept = State.of(None).get(THEME)
    if os.environ.get("TEXTUAL_THEME"):
        return
    if isinstance(kept, str) and kept in app.available_themes:
        app.theme = kept
    elif app.console.color_system == "standard":
        app.theme = OWN_COLOURS


def keep_theme(name: str) -> None:
    State.of(None).put(THEME, name)


def kept_hues() -> str:
    """The pair of hues for values, one of PAIRS."""
    kept = State.of(None).get(HUES)
    return kept if isinstance(kept, str) and kept in PAIRS else DEFAULT_PAIR


def keep_hues(pair: str) -> None:
    State.of(None).put(HUES, pair)

"""The names of keys."""

from __future__ import annotations

from textual.keys import _character_to_key


def key_name(character: str) -> str:
    """Return the name that Textual gives the key of a character: "?" is question_mark."""
    return _character_to_key(character)

"""The clipboard of the terminal, also through tmux, GNU screen and SSH."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping

from dumptui.core.text import visible

MAX_BYTES = 74_994  # bytes: as base64 they fit the 100,000 that common terminals accept in one sequence
SCREEN_CHUNK_BYTES = 512  # GNU screen accepts 768 bytes in one string
CONTROL_CHARACTERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
PASTE_HINTS = {
    "tmux": "in tmux, enable `set -g set-clipboard on` or `allow-passthrough on`",
    "screen": "in GNU screen this works only if the terminal supports OSC 52",
}


def copyable(text: str) -> str:
    """Return the text of the dump with visible stand-ins for control characters and lone surrogates, as on screen.

    Pasted into a shell, an escape sequence would be obeyed. Newlines and tabs stay.
    """
    return CONTROL_CHARACTERS.sub(lambda match: visible(match[0]), text)


def fits(text: str) -> bool:
    return len(text.encode()) <= MAX_BYTES


def multiplexer(env: Mapping[str, str]) -> str:
    """Return "tmux", "screen" or an empty text; over SSH only TERM shows it."""
    term = env.get("TERM", "")
    if env.get("TMUX") or term.startswith("tmux"):
        return "tmux"
    return "screen" if env.get("STY") or term.startswith("screen.") else ""


def clipboard_sequence(text: str, env: Mapping[str, str]) -> str:
    """Return the OSC 52 sequence. tmux obeys the plain form or passes on the wrapped one, each with an option of its
    own, so it gets both.
    """
    plain = f"\x1b]52;c;{base64.b64encode(text.encode()).decode()}\x07"
    match multiplexer(env):
        case "tmux":
            return plain + "\x1bPtmux;" + plain.replace("\x1b", "\x1b\x1b") + "\x1b\\"
        case "screen":
            return "".join(
                f"\x1bP{plain[start : start + SCREEN_CHUNK_BYTES]}\x1b\\"
                for start in range(0, len(plain), SCREEN_CHUNK_BYTES)
            )
    return plain

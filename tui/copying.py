"""Text on its way to the clipboard of the terminal, also through tmux, GNU screen and SSH."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping

from dumptui.core.text import visible

LIMIT = 74_994  # bytes: as base64 it fits the 100,000 that common terminals take of one sequence
CHUNK = 512  # GNU screen takes 768 bytes of one string
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
HINTS = {
    "tmux": "in tmux, enable `set -g set-clipboard on` or `allow-passthrough on`",
    "screen": "in GNU screen this works only if the terminal supports OSC 52",
}


def copyable(text: str) -> str:
    """The text of the dump as it is, but for controls and lone surrogates: they stand in visibly, as on screen.

    Pasted into a shell, an escape sequence would be obeyed. Newlines and tabs stay.
    """
    return OBEYED.sub(lambda found: visible(found[0]), text)


def fits(text: str) -> bool:
    return len(text.encode()) <= LIMIT


def multiplexer(env: Mapping[str, str]) -> str:
    """ "tmux", "screen" or nothing; over SSH only TERM tells of it."""
    term = env.get("TERM", "")
    if env.get("TMUX") or term.startswith("tmux"):
        return "tmux"
    return "screen" if env.get("STY") or term.startswith("screen.") else ""


def clipboard_sequence(text: str, env: Mapping[str, str]) -> str:
    """OSC 52. tmux obeys the plain form or passes on the wrapped one, each by an option of its own: it gets both."""
    plain = f"\x1b]52;c;{base64.b64encode(text.encode()).decode()}\x07"
    match multiplexer(env):
        case "tmux":
            return plain + "\x1bPtmux;" + plain.replace("\x1b", "\x1b\x1b") + "\x1b\\"
        case "screen":
            return "".join(f"\x1bP{plain[at : at + CHUNK]}\x1b\\" for at in range(0, len(plain), CHUNK))
    return plain

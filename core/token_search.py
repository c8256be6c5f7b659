"""Finding a pattern in the text of tokens, also where a match begins in one token and ends in another."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from dumptui.core.tokens import CONTINUES

# Around each match, so that polars tells where it was. No text holds these two: Unicode keeps them for such use.
OPEN, CLOSE = "\ufdd0", "\ufdd1"
_REFUSAL = re.compile(r"^error: (.+)$", re.MULTILINE)


class BadPattern(ValueError):
    """No regular expression; `str()` says in a few words what is wrong with it."""


def find(texts: Sequence[str], pattern: str) -> list[range]:
    """The tokens of each match of a regular expression over the joined `texts`, in order; empty matches don't count.

    A character that several tokens make up counts once, and belongs to them all. The dialect is that of Rust, as in
    filters: linear in time, so that no pattern of a user hangs on 100,000 tokens. Raises BadPattern.
    """
    widths = [0 if text == CONTINUES else len(text) for text in texts]
    whole = "".join("" if text == CONTINUES else text for text in texts)
    ends = np.array(list(accumulate(widths)), np.int64)
    hits = []
    for start, stop in matches(whole, pattern):
        first = int(np.searchsorted(ends, start, "right"))
        last = int(np.searchsorted(ends, stop, "left")) + 1
        while last < len(texts) and texts[last] == CONTINUES:
            last += 1
        hits.append(range(first, last))
    return hits


def matches(text: str, pattern: str) -> list[tuple[int, int]]:
    """Start and end of every match that is not empty."""
    import polars as pl

    safe = text.encode("utf-8", "replace").decode().replace(OPEN, "\ufffd").replace(CLOSE, "\ufffd")
    try:
        (marked,) = pl.Series([safe]).str.replace_all(pattern, f"{OPEN}${{0}}{CLOSE}")
    except pl.exceptions.ComputeError as error:
        raise BadPattern(refusal(str(error))) from error
    found, at = [], 0
    before, *rest = marked.split(OPEN)
    at += len(before)
    for piece in rest:
        match, _, between = piece.partition(CLOSE)
        if match:
            found.append((at, at + len(match)))
        at += len(match) + len(between)
    return found


def refusal(message: str) -> str:
    """The reason within what polars says of a pattern, which is a page with a picture."""
    found = _REFUSAL.search(message)
    return found[1] if found else message.partition("\n")[0].removeprefix("regex error: ").rstrip(".")

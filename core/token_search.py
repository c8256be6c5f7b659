"""Finding a pattern in the text of tokens, also where a match begins in one token and ends in another."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from dumptui.core.filter_words import encodable
from dumptui.core.search import check_pattern
from dumptui.core.tokens import CONTINUES

# Around each match, so that polars tells where it was. No text holds these two: Unicode keeps them for such use.
OPEN, CLOSE = "\ufdd0", "\ufdd1"


def find(texts: Sequence[str], pattern: str) -> list[range]:
    """The tokens of each match of a regular expression over the joined `texts`, in order; empty matches don't count.

    A character that several tokens make up counts once, and belongs to them all. Raises DumpError for what is no
    pattern.
    """
    widths = [0 if text == CONTINUES else len(text) for text in texts]
    whole = "".join("" if text == CONTINUES else text for text in texts)
    ends = np.array(list(accumulate(widths)), np.int64)
    hits = []
    starts, stops = np.array(matches(whole, pattern), np.int64).reshape(-1, 2).T
    firsts, lasts = np.searchsorted(ends, starts, "right"), np.searchsorted(ends, stops) + 1
    for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True):
        while last < len(texts) and texts[last] == CONTINUES:
            last += 1
        hits.append(range(first, last))
    return hits


def matches(text: str, pattern: str) -> list[tuple[int, int]]:
    """Start and end of every match that is not empty."""
    import polars as pl

    check_pattern(pattern)
    safe = encodable(text).replace(OPEN, "\ufffd").replace(CLOSE, "\ufffd")
    (marked,) = pl.Series([safe]).str.replace_all(encodable(pattern), f"{OPEN}${{0}}{CLOSE}")
    found, at = [], 0
    before, *rest = marked.split(OPEN)
    at += len(before)
    for piece in rest:
        match, _, between = piece.partition(CLOSE)
        if match:
            found.append((at, at + len(match)))
        at += len(match) + len(between)
    return found

"""Search in the text of tokens, where a match may begin in one token and end in another."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from dumptui.core.query.filter_lexer import encodable
from dumptui.core.query.text_search import check_pattern
from dumptui.core.vocabulary import CONTINUATION_MARK

# Markers around each match, which show where polars found it. Unicode reserves both: no text holds them.
OPEN, CLOSE = "\ufdd0", "\ufdd1"


def find(texts: Sequence[str], pattern: str) -> list[range]:
    """Return the range of token positions of each match of a regular expression in the joined `texts`, in order.

    Empty matches are left out. A character spread over several tokens belongs to all of them. Raises DumpError for a
    pattern that can't be compiled.
    """
    widths = [0 if text == CONTINUATION_MARK else len(text) for text in texts]
    joined = "".join("" if text == CONTINUATION_MARK else text for text in texts)
    ends = np.array(list(accumulate(widths)), np.int64)
    hits = []
    starts, stops = np.array(matches(joined, pattern), np.int64).reshape(-1, 2).T
    firsts, lasts = np.searchsorted(ends, starts, "right"), np.searchsorted(ends, stops) + 1
    for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True):
        while last < len(texts) and texts[last] == CONTINUATION_MARK:
            last += 1
        hits.append(range(first, last))
    return hits


def matches(text: str, pattern: str) -> list[tuple[int, int]]:
    """Return start and end of every match that is not empty."""
    import polars as pl

    check_pattern(pattern)
    safe = encodable(text).replace(OPEN, "\ufffd").replace(CLOSE, "\ufffd")
    (marked,) = pl.Series([safe]).str.replace_all(encodable(pattern), f"{OPEN}${{0}}{CLOSE}")
    spans, position = [], 0
    before, *rest = marked.split(OPEN)
    position += len(before)
    for piece in rest:
        match, _, between = piece.partition(CLOSE)
        if match:
            spans.append((position, position + len(match)))
        position += len(match) + len(between)
    return spans

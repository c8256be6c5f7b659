"""The pair of hues that was chosen last, in whatever run."""

from __future__ import annotations

from dumptui.core.store.state import State
from dumptui.tui.widgets.heatmap.hues import DEFAULT_PAIR, HUE_PAIRS

HUES_KEY = "hues"


def kept_hues() -> str:
    """Return the saved pair of hues, one of PAIRS."""
    pair = State.of(None).get(HUES_KEY)
    return pair if isinstance(pair, str) and pair in HUE_PAIRS else DEFAULT_PAIR


def keep_hues(pair: str) -> None:
    State.of(None).put(HUES_KEY, pair)

"""Short names of samples, as the command line takes them."""

from __future__ import annotations


def sample_label(index: int | None, occurrence: int) -> str:
    """Return a sample's index with its occurrence, such as 7 or 7.1; `?` for a sample without an index."""
    return f"{'?' if index is None else index}" + (f".{occurrence}" if occurrence else "")

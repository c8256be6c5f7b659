"""Quantiles of parts are those of the whole."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dumptui.core.fields.quantiles import Quantiles

parts = st.lists(st.lists(st.floats(width=32, min_value=-100, max_value=100) | st.sampled_from([1.0, 2.0, np.nan])))


def quantiles(parts: list[list[float]]) -> tuple[Quantiles, np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """Those of the parts, and all finite values."""
    found = Quantiles()
    for part in parts:
        found.add(np.array(part, np.float32))
    whole = np.array([value for part in parts for value in part], np.float64)
    return found, whole[np.isfinite(whole)]


@given(parts, st.floats(0, 100))
def test_a_quantile_of_parts_is_that_of_the_whole(parts: list[list[float]], percent: float) -> None:
    found, whole = quantiles(parts)
    assert found.count == len(whole)
    if len(whole):
        assert found.percentile(percent) == pytest.approx(np.percentile(whole, percent), rel=1e-9, abs=1e-9)


@given(parts)
def test_values_are_counted_between_edges_and_beyond_them_in_the_outermost(parts: list[list[float]]) -> None:
    found, whole = quantiles(parts)
    if len(whole):
        counts, edges = np.histogram(np.clip(whole, -2, 2), 16, (-2, 2))
        assert found.counts(edges) == counts.tolist()

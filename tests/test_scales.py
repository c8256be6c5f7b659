"""How strongly values are shaded: the rules of the colours, whichever colours those are."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dumptui.tui import scales
from dumptui.tui.scales import Range, is_diverging, shades, span_text

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("name", "values", "span", "expected"),
    [
        ("imp_ratio", [1, math.e, 1 / math.e, math.exp(0.5), 0, INF, NAN], None, [0, 1, -1, 0.5, -1, 1, NAN]),
        ("imp_ratio", [1, 1.1, 1 / 1.1], (0.95, 1.1), [0, 1, -1]),
        ("lp_diff", [0, 0.2, -0.1, 9, -INF, NAN], (-0.1, 0.2), [0, 1, -0.5, 1, -1, NAN]),
        ("advantages", [0.5, 0], (0.0, 0.0), [1, 0]),
        ("returns", [-1, 1], (-2.0, 1.0), [-0.5, 0.5]),
        ("entropy", [1, 2, 3, 9], (1.0, 3.0), [0, 0.5, 1, 1]),
        ("entropy", [2, 2], (2.0, 2.0), [0, 0]),
        ("train_log_probs", [-4, -2, 0], (-4.0, 0.0), [1, 0.5, 0]),  # the improbable are darkest
        ("some_column", [1, 3], (1.0, 3.0), [0, 1]),
        ("some_column", [-1, 2], (-1.0, 2.0), [-0.5, 1]),
    ],
)
def test_shades_by_statistic(name: str, values: list[float], span: Range | None, expected: list[float]) -> None:
    assert shades(name, np.array(values, float), span).tolist() == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(
    ("name", "span", "text"),
    [
        ("imp_ratio", None, "full at e and 1/e"),
        ("imp_ratio", (0.5, 1.5), "full at 2.000 and 1/2.000"),
        ("lp_diff", (-0.3, 0.1), "±0.300"),
        ("entropy", (0.1, 2.5), "0.100 to 2.500"),
        ("ref_log_probs", (-3.0, 0.0), "-3.000 to 0.000"),
    ],
)
def test_the_ends_are_named(name: str, span: Range | None, text: str) -> None:
    assert span_text(name, span) == text


def test_every_pair_has_two_hues_for_signs() -> None:
    for pair in scales.PAIRS:
        found = scales.hues(pair, ansi=False)
        assert found.negative != found.positive
    assert scales.hues("no such pair", ansi=False) == scales.PAIRS[scales.DEFAULT_PAIR]
    assert scales.hues(scales.DEFAULT_PAIR, ansi=True).negative.background.startswith("ansi_")


floats = st.floats(width=32)
names = st.sampled_from(["imp_ratio", "lp_diff", "entropy", "rollout_log_probs", "values", "other"])
spans = st.tuples(*[st.floats(-1e30, 1e30)] * 2).map(lambda ends: (min(ends), max(ends)))


@given(names, st.lists(floats, max_size=20), spans | st.none())
def test_shades_stay_within_their_scale(name: str, values: list[float], span: Range | None) -> None:
    found = shades(name, np.array(values, np.float32), span)
    lowest = -1 if is_diverging(name, span or (0.0, 0.0)) else 0
    assert (np.isnan(found) == np.isnan(np.array(values))).all()
    assert ((found >= lowest) & (found <= 1) | np.isnan(found)).all()

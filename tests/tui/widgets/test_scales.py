"""How strongly values are shaded: the rules of the colours, whichever colours those are."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.color import ColorSystem
from rich.color_triplet import ColorTriplet
from rich.style import Style
from textual.color import Color, Lab, rgb_to_lab

from dumptui.tui.presentation.shading import Range, is_diverging, shades, span_text
from dumptui.tui.widgets.heatmap import hues
from dumptui.tui.widgets.heatmap.styles import shade_styles
from tests.support.colours import brightness

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
    for pair in hues.HUE_PAIRS:
        found = hues.hues(pair, ansi=False)
        assert found.negative != found.positive
        for dark in (True, False):
            own = hues.hues(pair, ansi=True, dark=dark)
            assert own.negative.background != own.positive.background and own.negative.faint != own.positive.faint
            assert all(Color.parse(colour).ansi is not None for hue in own for colour in hue[:3])
    assert hues.hues("no such pair", ansi=False) == hues.HUE_PAIRS[hues.DEFAULT_PAIR]
    assert hues.hues("no such pair", ansi=True) == hues.ON_BLACK[hues.DEFAULT_PAIR]


# What a colour is to who lacks the cones of long, middle or short waves, in linear RGB: Machado et al. 2009.
BLINDNESS = {
    "protanopia": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deuteranopia": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritanopia": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}


@pytest.mark.parametrize("kind", BLINDNESS)
@pytest.mark.parametrize("pair", hues.HUE_PAIRS)
def test_both_hues_are_told_apart_by_the_colour_blind(pair: str, kind: str) -> None:
    def lab(colour: str) -> Lab:
        linear = np.array([part / 255 for part in Color.parse(colour).rgb]) ** 2.2
        red, green, blue = np.clip(np.array(BLINDNESS[kind]) @ linear, 0, 1) * 255
        return rgb_to_lab(Color(*(round(255 * (part / 255) ** (1 / 2.2)) for part in (red, green, blue))))

    ends = hues.hues(pair, ansi=False)
    assert math.dist(lab(ends.negative.background), lab(ends.positive.background)) > 50


@pytest.mark.parametrize("base", ["#121212", "#1e1e1e", "#d8d8d8", "#ffffff"])
@pytest.mark.parametrize("pair", hues.HUE_PAIRS)
def test_text_is_read_on_every_shade(pair: str, base: str) -> None:
    for look, style in shade_styles(hues.hues(pair, ansi=False), Color.parse(base), Style(), diverging=True):
        if look:
            assert style.color is not None and style.bgcolor is not None
            lightness = sorted(brightness(one) for one in (style.color, style.bgcolor))
            assert (lightness[1] + 0.05) / (lightness[0] + 0.05) > 3.5


def ramp(pair: str, base: str, system: ColorSystem) -> dict[int, ColorTriplet]:
    """The backgrounds of all levels as a terminal of so many colours shows them."""
    dark = Color.parse(base).brightness < 0.5
    ends = hues.hues(pair, ansi=False, dark=dark, palette=system is ColorSystem.EIGHT_BIT)
    styles = shade_styles(ends, Color.parse(base), Style(bgcolor=base), diverging=True)
    return {level: style.bgcolor.downgrade(system).get_truecolor() for level, style in styles if style.bgcolor}


@pytest.mark.parametrize("system", [ColorSystem.TRUECOLOR, ColorSystem.EIGHT_BIT], ids=lambda system: str(system.name))
@pytest.mark.parametrize("base", ["#121212", "#1e1e1e", "#e0e0e0", "#ffffff"])
@pytest.mark.parametrize("pair", hues.HUE_PAIRS)
def test_each_level_stands_further_from_the_background_in_its_own_hue(
    pair: str, base: str, system: ColorSystem
) -> None:
    shown = ramp(pair, base, system)
    dark = Color.parse(base).brightness < 0.5
    for sign, hue in ((-1, hues.HUE_PAIRS[pair].negative), (1, hues.HUE_PAIRS[pair].positive)):
        lightness = [rgb_to_lab(Color(*shown[sign * level])).L for level in range(9)]
        steps = np.diff(lightness if dark else lightness[::-1])
        assert (steps >= -1).all(), lightness
        assert sum(steps > 0.5) >= 6, "hardly a level differs from the next"
        full = Color.parse(hue.background).hsl.h
        for level in range(1, 9):
            colour = Color(*shown[sign * level]).hsl
            turned = abs(colour.h - full)
            assert colour.s < 0.15 or min(turned, 1 - turned) < 0.12, (sign * level, shown[sign * level])
    assert all(shown[level] != shown[-level] for level in range(1, 9))


floats = st.floats(width=32)
names = st.sampled_from(["imp_ratio", "lp_diff", "entropy", "rollout_log_probs", "values", "other"])
spans = st.tuples(*[st.floats(-1e30, 1e30)] * 2).map(lambda ends: (min(ends), max(ends)))


@given(names, st.lists(floats, max_size=20), spans | st.none())
def test_shades_stay_within_their_scale(name: str, values: list[float], span: Range | None) -> None:
    found = shades(name, np.array(values, np.float32), span)
    lowest = -1 if is_diverging(name, span or (0.0, 0.0)) else 0
    assert (np.isnan(found) == np.isnan(np.array(values))).all()
    assert ((found >= lowest) & (found <= 1) | np.isnan(found)).all()

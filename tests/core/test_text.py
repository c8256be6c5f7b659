import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from dumptui.core.text import ELLIPSIS, cell_width, centred, clip, visible

# Any code point, with lone surrogates, and often one of those that terminals obey or disagree on.
ODD = "\x00\x1b\r\n\t\x7f\x9b\u202e\u200b\u200d\ufe0f\u0301\u1161\u2028\ufeff\U0001f3fd👩数é⏎ \u3000\ud800"
hostile = st.text(st.one_of(st.characters(), st.sampled_from(ODD), st.characters(categories=["Cs"])))
common = settings(max_examples=200, deadline=None)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text", "plain text"),
        ("[/] [/x]", "[/] [/x]"),
        ("\x1b[2J", "␛[2J"),
        ("a\x00b", "a␀b"),
        ("a\r\nb\tc\b", "a␍⏎b⇥c␈"),
        ("\x7f", "␡"),
        ("\x9b31m", "‹009b›31m"),
        ("\u202eabc", "‹202e›abc"),
        ("a\u200bb\ufeff", "a‹200b›b‹feff›"),
        ("\u2028", "‹2028›"),
        ("\ud83d", "‹d83d›"),
        ("\ue000\U0010ffff", "‹e000›‹10ffff›"),
        ("10\u00a0000\u2009m", "10⍽000‹2009›m"),
        ("❤\ufe0f", "❤‹fe0f›"),
        ("👍🏽", "👍‹1f3fd›"),
        ("数学\u3000é", "数学\u3000é"),
        ("\u0301a", "◌\u0301a"),
        ("e\u0301", "e\u0301"),
        ("", ""),
    ],
)
def test_what_a_terminal_would_obey_or_hide_is_shown(text: str, shown: str) -> None:
    assert visible(text) == shown


@common
@given(hostile)
def test_nothing_reaches_the_terminal_raw(text: str) -> None:
    shown = visible(text)
    shown.encode()
    assert not {unicodedata.category(char) for char in shown} & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    assert visible(shown) == shown


@common
@given(hostile)
def test_widths_agree_with_the_renderer(text: str) -> None:
    shown = visible(text)
    assert cell_width(shown) == cell_len(shown)


def test_every_character_of_the_basic_plane_and_emoji_takes_its_width() -> None:
    for code in [
        *range(0x10000),
        *range(0x1D300, 0x1D380),
        *range(0x1F000, 0x1FB00),
        *range(0x20000, 0x20100),
    ]:
        shown = visible(chr(code))
        assert cell_width(shown) == cell_len(shown) >= 1, hex(code)


@common
@given(hostile, st.integers(-1, 12))
def test_a_cut_fits_says_so_and_keeps_the_beginning(text: str, width: int) -> None:
    shown = visible(text)
    cut = clip(shown, width)
    assert cell_width(cut) <= max(width, 0)
    if cell_width(shown) <= width:
        assert cut == shown
    elif width > 0:
        assert cut.endswith(ELLIPSIS)
        assert shown.startswith(cut[:-1])
        assert cell_width(cut) >= width - 1


def test_a_cut_does_not_halve_a_wide_character() -> None:
    assert clip("数学课", 4) == "数…"
    assert clip("数学课", 6) == "数学课"
    assert clip("abc", 1) == "…"


def test_a_message_is_wrapped_into_the_middle() -> None:
    assert centred("no rows match", 11, 4) == [" " * 11, "  no rows  ", "   match   ", " " * 11]


@common
@given(hostile, st.integers(0, 30), st.integers(0, 6))
def test_a_message_fills_exactly_its_pane(text: str, width: int, height: int) -> None:
    lines = centred(text, width, height)
    assert len(lines) == height
    assert {cell_width(line) for line in lines} <= {width}

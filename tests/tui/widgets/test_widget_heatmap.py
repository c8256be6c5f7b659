from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.style import Style
from textual.app import App, ComposeResult
from textual.events import MouseScrollDown

from dumptui.tui.widgets.heatmap.heatmap import Heatmap
from dumptui.tui.widgets.heatmap.hues import HUE_PAIRS, Hue, Hues
from dumptui.tui.widgets.heatmap.styles import MASKED, MISSING, PROMPT, SHADE_LEVELS, TRAINED, looks
from dumptui.tui.widgets.heatmap.token_flow import Flow, wrap

HOSTILE = [
    "[/]",
    "[/x]",
    "\x1b[2J",
    "a\x00b",
    "\r",
    "\u202eabc",
    "\ud800",
    "x" * 20_000,
    "数" * 50,
    "\u0301",
    "",
]
NAN = float("nan")


class HeatmapApp(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.moves: list[int] = []
        self.scrolls = 0
        self.heatmap = Heatmap(empty="the tokens are not dumped")

    def compose(self) -> ComposeResult:
        yield self.heatmap

    def on_shaded_text_scrolled(self) -> None:
        self.scrolls += 1

    def on_heatmap_moved(self, message: Heatmap.Moved) -> None:
        assert message.control is self.heatmap
        self.moves.append(message.index)

    def show(
        self,
        texts: Sequence[str],
        shade: Sequence[float] | None = None,
        kind: Sequence[int] | None = None,
        *,
        diverging: bool = True,
        cursor: int | None = None,
    ) -> None:
        values = np.zeros(len(texts)) if shade is None else np.array(shade, float)
        kinds = np.full(len(texts), TRAINED) if kind is None else np.array(kind)
        self.heatmap.show(Flow(texts), values, kinds.astype(np.uint8), diverging=diverging, cursor=cursor)

    def lines(self) -> list[str]:
        return [strip.text for strip in self.screen._compositor.render_strips()]

    def style_of(self, text: str) -> Style:
        for strip in self.screen._compositor.render_strips():
            for segment in strip:
                if text in segment.text:
                    assert segment.style is not None
                    return segment.style
        raise AssertionError(f"{text!r} is not on screen")


def words(count: int) -> list[str]:
    return [f" w{number:05}" for number in range(count)]


async def test_text_flows_and_breaks_after_a_newline() -> None:
    app = HeatmapApp()
    async with app.run_test(size=(21, 6)) as pilot:
        app.show(["one", " two", ".\n\n", "three", " four", " five", " six", "", " 数学"])
        await pilot.pause()
        assert [line.rstrip() for line in app.lines()[:4]] == [
            "one two.⏎⏎",
            "three four five six◦",
            " 数学",
            "",
        ]


async def test_no_tokens_say_why() -> None:
    app = HeatmapApp()
    async with app.run_test(size=(40, 5)) as pilot:
        app.show([])
        await pilot.press("right", "down", "G", "pagedown")
        assert app.lines()[2].strip() == "the tokens are not dumped"
        assert app.moves == []


async def test_only_trained_tokens_are_shaded() -> None:
    app = HeatmapApp()
    async with app.run_test(size=(60, 4)) as pilot:
        app.show(["at", " pro", " tra", " mas", " mis"], [0, 1, 1, 1, 1], [1, PROMPT, TRAINED, MASKED, MISSING])
        await pilot.pause()
        plain = app.heatmap.rich_style.bgcolor
        assert app.style_of("tra").bgcolor != plain
        for text in ("pro", "mas", "mis"):
            assert app.style_of(text).bgcolor == plain
        assert app.style_of("mas").italic
        assert "∅ mis" in app.lines()[0]


@pytest.mark.parametrize("theme", ["textual-dark", "textual-light", "ansi-dark"])
async def test_sign_can_be_read_without_hue(theme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = HeatmapApp()
    async with app.run_test(size=(60, 4)) as pilot:
        app.theme = theme
        app.show([".", "up", "weak", "down", "nan"], [0, 0.9, 0.3, -0.9, NAN])
        await pilot.pause()
        assert (app.style_of("up").bold, app.style_of("up").underline) == (True, False)
        assert (app.style_of("down").bold, app.style_of("down").underline) == (False, True)
        assert not app.style_of("weak").bold
        assert app.style_of("nan").strike
        assert app.style_of(".").reverse  # the cursor


async def test_shade_grows_with_the_value_and_changes_with_the_statistic() -> None:
    app = HeatmapApp()
    async with app.run_test(size=(60, 4)) as pilot:
        app.show([".", "low", "high", "beyond", "inf"], [0, 0.2, 1.0, 7.0, np.inf])
        await pilot.pause()
        low, high = app.style_of("low").bgcolor, app.style_of("high").bgcolor
        assert low != high
        assert app.style_of("beyond").bgcolor == app.style_of("inf").bgcolor == high
        app.heatmap.reshade(np.array([0, 1.0, 0.2, 0, 0]), diverging=False)
        await pilot.pause()
        assert app.style_of("low").bold
        assert not app.style_of("high").bold
        assert "max" in app.heatmap.scale_legend().plain


async def test_search_hits_stand_out_until_other_tokens_are_shown() -> None:
    app = HeatmapApp()
    async with app.run_test(size=(60, 4)) as pilot:
        app.show(["at", "hit", "miss"])
        app.heatmap.mark({1})
        await pilot.pause()
        assert app.style_of("hit").italic
        assert not app.style_of("miss").italic
        app.show(["at", "hit"])
        await pilot.pause()
        assert not app.style_of("hit").italic


async def test_special_tokens_and_borders_are_signs_that_take_cells() -> None:
    app = HeatmapApp()
    async with app.run_test(size=(14, 4)) as pilot:
        flow = Flow(["<|im_end|>", "abc", " d"], special={0}, borders={1: "│", 2: "┊"})
        app.heatmap.show(flow, np.zeros(3), np.full(3, TRAINED, np.uint8), diverging=True)
        await pilot.pause()
        assert [line.rstrip() for line in app.lines()[:2]] == ["«<|im_end|>»", "│abc┊ d"]
        await pilot.click(offset=(5, 1))
        assert app.moves == [2]


async def test_a_folded_run_is_one_piece_with_its_number() -> None:
    app = HeatmapApp()
    texts = ["a", *["<pad>"] * 5000, "b", *["<pad>"] * 20]
    async with app.run_test(size=(40, 4)) as pilot:
        flow = Flow(texts, special=set(range(1, 5001)), borders={1: "│"}, folds={1: 5001, 5002: 5022})
        app.heatmap.show(flow, np.zeros(5022), np.full(5022, PROMPT, np.uint8), diverging=True)
        await pilot.pause()
        assert app.lines()[0].rstrip() == "a│«<pad>»×5,000b<pad>×20"
        await pilot.press("right", "right", "right", "left", "left", "G")
        assert app.moves == [1, 5001, 5002, 5001, 1, 5021]
        assert app.style_of("<pad>×20").reverse
        app.heatmap.goto(2500)  # by a bookmark or a search: the token keeps its number
        await pilot.pause()
        assert app.style_of("5,000").reverse and app.moves[-1] == 2500
        await pilot.press("right")
        await pilot.click(offset=(6, 0))
        assert app.moves[-2:] == [5001, 1]
        await pilot.resize_terminal(8, 6)
        await pilot.pause()
        assert "".join(line.strip() for line in app.lines()[:5]).endswith("b<pad>×…")


async def test_missing_tokens_differ_from_statistic_to_statistic() -> None:
    app = HeatmapApp()
    flow = Flow(["a", "b", "c"])
    async with app.run_test(size=(20, 4)) as pilot:
        for kinds, line in (([1, 3, 3], "a∅b∅c"), ([3, 1, 1], "∅abc"), ([1, 1, 1], "abc")):
            app.heatmap.show(flow, np.zeros(3), np.array(kinds, np.uint8), diverging=True)
            await pilot.pause()
            assert app.lines()[0].rstrip() == line


async def test_what_is_on_screen_is_told_when_it_changes() -> None:
    app = HeatmapApp()
    async with app.run_test(size=(22, 5)) as pilot:
        app.show(words(300))
        await pilot.pause()
        assert app.heatmap.on_screen == range(15)
        app.scrolls = 0
        await pilot.press("pagedown")
        assert app.heatmap.on_screen == range(15, 30)
        assert app.scrolls == 1


async def test_another_pair_of_hues_is_shown_at_once() -> None:
    app = HeatmapApp()
    async with app.run_test(size=(20, 4)) as pilot:
        app.show([".", "up"], [0, 1.0])
        await pilot.pause()
        before = app.style_of("up").bgcolor
        HUE_PAIRS["test"] = Hues(Hue("#000011"), Hue("#110000"), Hue("#001100"))
        app.heatmap.pair = "test"
        await pilot.pause()
        assert app.style_of("up").bgcolor != before
        del HUE_PAIRS["test"]


def test_a_legend_is_there_before_the_styles_are() -> None:
    heatmap = Heatmap()
    assert heatmap.scale_legend().plain.split() == ["−", "0", "+"]


async def test_the_legend_names_what_is_there() -> None:
    app = HeatmapApp()
    async with app.run_test(size=(60, 4)):
        app.show(["a", "b"], kind=[PROMPT, TRAINED])
        assert app.heatmap.scale_legend().plain.split() == ["−", "0", "+"]
        assert app.heatmap.kind_legend().plain == "prompt"
        app.show(["a", "b", "c"], [0, 0, NAN], [MASKED, MISSING, TRAINED])
        assert app.heatmap.kind_legend().plain == "masked  ∅missing  no value"


async def test_keys_move_by_token_line_page_and_end() -> None:
    app = HeatmapApp()
    async with app.run_test(size=(22, 5)) as pilot:
        app.show(words(300))  # 7 cells a token, three a line, five lines a page
        where = []
        for key in (
            "left",
            "right",
            "l",
            "h",
            "down",
            "j",
            "up",
            "k",
            "pagedown",
            "pageup",
            "ctrl+d",
            "end",
            "right",
        ):
            await pilot.press(key)
            where.append(app.heatmap.cursor)
        assert where == [0, 1, 2, 1, 4, 7, 4, 1, 16, 1, 7, 299, 299]
        await pilot.press("g")
        assert app.moves[-1] == 0
        assert app.lines()[0].startswith(" w00000")


async def test_the_cursor_leaves_no_trace() -> None:
    app = HeatmapApp()
    async with app.run_test(size=(22, 5)) as pilot:
        app.show(words(12))
        await pilot.press("down")
        assert not app.style_of("w00000").reverse
        assert app.style_of("w00003").reverse


async def test_a_column_is_kept_in_mind_over_short_lines() -> None:
    app = HeatmapApp()
    async with app.run_test(size=(30, 6)) as pilot:
        app.show(["aaaa", "bbbb", "cccc\n", "x\n", "dddd", "eeee", "ffff"], cursor=2)
        await pilot.press("down")
        assert app.heatmap.cursor == 3
        await pilot.press("down")
        assert app.heatmap.cursor == 6


async def test_goto_centres_what_was_off_screen_and_leaves_the_rest() -> None:
    app = HeatmapApp()
    async with app.run_test(size=(22, 5)) as pilot:
        app.show(words(300))
        await pilot.pause()
        app.heatmap.goto(150)
        await pilot.pause()
        assert app.lines()[2].startswith(" w00150")
        app.heatmap.goto(156)
        await pilot.pause()
        assert app.lines()[4].startswith(" w00156")
        app.heatmap.goto(10_000)
        await pilot.pause()
        assert app.moves == [150, 156, 299]
        assert " w00299" in app.lines()[4]


async def test_a_click_moves_to_the_token_under_it() -> None:
    app = HeatmapApp()
    async with app.run_test(size=(22, 5)) as pilot:
        app.show(words(5))
        await pilot.pause()
        await pilot.click(offset=(10, 0))
        await pilot.click(offset=(3, 1))
        await pilot.click(offset=(20, 1))  # behind the last token of the line
        await pilot.click(offset=(3, 4))  # below the text
        assert app.moves == [1, 3, 4]


async def test_the_wheel_scrolls_and_leaves_the_cursor() -> None:
    app = HeatmapApp()
    async with app.run_test(size=(22, 5)) as pilot:
        app.show(words(300))
        await pilot.pause()
        app.heatmap.post_message(MouseScrollDown(app.heatmap, 5, 3, 0, 1, 0, False, False, False))
        await pilot.pause()
        assert app.lines()[0].startswith(" w00009")
        assert app.moves == []


async def test_another_sample_takes_the_cursor_along_within_its_text() -> None:
    app = HeatmapApp()
    async with app.run_test(size=(22, 5)) as pilot:
        app.show(words(300), cursor=200)
        await pilot.pause()
        assert "w00200" in "".join(app.lines())
        app.show(words(4))
        await pilot.pause()
        assert app.heatmap.cursor == 3
        assert app.lines()[0].startswith(" w00000")
        assert app.moves == [200, 3]


async def test_a_narrower_pane_wraps_again_and_keeps_the_cursor_on_screen() -> None:
    app = HeatmapApp()
    async with app.run_test(size=(60, 5)) as pilot:
        app.show(words(300), cursor=290)
        await pilot.pause()
        await pilot.resize_terminal(20, 5)
        await pilot.pause()
        assert "w00290" in "".join(app.lines())


@pytest.mark.parametrize("theme", ["textual-dark", "ansi-dark"])
async def test_hostile_tokens_fill_their_cells_and_no_others(theme: str) -> None:
    app = HeatmapApp()
    async with app.run_test(size=(40, 12)) as pilot:
        app.theme = theme
        app.show(HOSTILE, kind=[index % 4 for index in range(len(HOSTILE))])
        await pilot.pause()
        lines = app.lines()
        assert {cell_len(line) for line in lines} == {40}
        assert all(line.isprintable() for line in lines)
        assert "[/][/x]␛[2J∅a␀b␍‹202e›abc‹d800›" in lines[0]
        assert "x…" in lines[1]


tokens = st.lists(st.tuples(st.integers(1, 30), st.booleans()), max_size=60)


@settings(max_examples=200, deadline=None)
@given(tokens, st.integers(1, 25))
def test_every_token_is_in_one_line_and_lines_fit(tokens: list[tuple[int, bool]], columns: int) -> None:
    widths, breaks = [width for width, _ in tokens], [ends for _, ends in tokens]
    starts = wrap([0, *accumulate(widths)], [index for index, ends in enumerate(breaks) if ends], columns)
    lines = [range(first, end) for first, end in pairwise(starts)]
    assert [token for line in lines for token in line] == list(range(len(tokens)))
    for number, line in enumerate(lines):
        assert len(line) > 0
        assert len(line) == 1 or sum(widths[token] for token in line) <= columns
        assert not any(breaks[token] for token in line[:-1])
        if line[-1] + 1 < len(tokens) and not breaks[line[-1]]:
            assert sum(widths[token] for token in line) + widths[lines[number + 1][0]] > columns


def test_levels_round_to_the_nearest_shade_and_keep_their_sign() -> None:
    shade = np.array([0, 0.01, 0.5, -0.5, 1, -1, 5])
    trained = np.full(len(shade), TRAINED, np.uint8)
    assert looks(shade, trained, diverging=True).tolist() == [0, 0, 4, -4, SHADE_LEVELS, -SHADE_LEVELS, SHADE_LEVELS]
    assert looks(shade, trained, diverging=False).tolist() == [0, 0, 4, 0, SHADE_LEVELS, 0, SHADE_LEVELS]

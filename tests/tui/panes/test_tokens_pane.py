"""The Tokens pane, used as a person does."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeAlias

import pytest
import pytest_asyncio
from textual.pilot import Pilot
from textual.widgets import Input, OptionList
from tokenizers import Tokenizer

from dumptui.core.files.step_files import StepKey
from dumptui.core.run.run import Run
from dumptui.core.sample.view import SampleView
from dumptui.tui.app.app import DumpTui
from dumptui.tui.panes.tokens.navigation import WorstTokenCursor
from tests.support.screen import lines, press, text, until, until_shown
from tests.support.tokenizer_files import byte_level
from tests.support.writer import Layout, sample, write_step

pytestmark = pytest.mark.asyncio(loop_scope="module")
Session: TypeAlias = tuple[DumpTui, Pilot[None]]
WIDE, NARROW, TINY = (100, 30), (80, 24), (40, 12)


@asynccontextmanager
async def opened(root: Path, at: int, *, step: int = 0, size: tuple[int, int] = WIDE) -> AsyncIterator[Session]:
    """The tokens of one sample."""
    app = DumpTui(Run.open(root), StepKey(step), (at, 0), pane="tokens")
    app.reader.scan = lambda keys: None  # type: ignore[method-assign]
    async with app.run_test(size=size, notifications=True) as pilot:
        await until(pilot, lambda: app.loaded is not None and app.tokens.opened is not None)
        await surveyed(pilot, app)
        yield app, pilot


async def surveyed(pilot: Pilot[None], app: DumpTui) -> None:
    tokens = app.tokens
    await until(pilot, lambda: tokens.opened is not None and tokens.shown in tokens.surveys)
    await press(pilot, "shift")  # no key: what the survey changed is painted


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def long_session(demo: Path) -> AsyncIterator[Session]:
    async with opened(demo, 70, step=2) as session:
        yield session


@pytest_asyncio.fixture(loop_scope="module")
async def session(long_session: Session) -> Session:
    """At sample 70 of step 2, as if it was just opened."""
    app, pilot = long_session
    while len(app.screen_stack) > 1:
        await app.pop_screen()
    tokens = app.tokens
    tokens.search.begin("")
    tokens.statistic, tokens.second, tokens.scale = "lp_diff", None, "step"
    tokens.walk = WorstTokenCursor()
    tokens.chart.plot.window = None
    if shown(app).sample.index != 70:
        app.samples.open(next(one.position for one in app.loaded.step.samples if one.index == 70))  # type: ignore[union-attr]
        await until(pilot, lambda: shown(app).sample.index == 70)
    tokens._show_again()
    await surveyed(pilot, app)
    tokens.go_to(shown(app).sample.prompt_length)
    await until_shown(pilot, "sample 70", "Δ = trainer - engine · scale of the step ±")
    return app, pilot


def shown(app: DumpTui) -> SampleView:
    assert app.tokens.view is not None
    return app.tokens.view


async def choose(pilot: Pilot[None], label: str) -> None:
    choices = pilot.app.screen.query_one(OptionList)
    options = [str(option.prompt) for option in choices.options]
    choices.highlighted = next(at for at, option in enumerate(options) if option.startswith(label))
    await press(pilot, "enter")


async def answer(pilot: Pilot[None], words: str) -> None:
    pilot.app.screen.query_one(Input).value = words
    await press(pilot, "enter")


def worst(view: SampleView) -> list[int]:
    return list(map(int, view.worst("lp_diff")))


# Statistics and scales --------------------------------------------------------------------------------------------


async def test_the_scale_is_that_of_the_step_until_another_is_wanted(session: Session) -> None:
    app, pilot = session
    view = shown(app)
    await press(pilot, "s")
    low, high = view.span("lp_diff")
    await until_shown(pilot, f"scale of the sample ±{max(-low, high):.3f}")
    await press(pilot, "s")
    tokens = app.tokens.heat.on_screen
    await until_shown(pilot, f"scale of the window #{tokens.start}-#{tokens.stop - 1} ±")
    await press(pilot, "s")
    await until_shown(pilot, "scale of the step ±")


async def test_the_window_scale_goes_with_the_window(tmp_path: Path) -> None:
    write_step(tmp_path, 0, [sample(0, prompt_len=4, response_len=3000), sample(1)])
    async with opened(tmp_path, 0) as (_, pilot):
        await press(pilot, "s", "s")
        await until_shown(pilot, "scale of the window #0-#")
        await press(pilot, "end")
        await until_shown(pilot, "-#3003 ±")


async def test_a_ratio_is_shaded_by_its_logarithm(session: Session) -> None:
    _, pilot = session
    await press(pilot, "m")
    await choose(pilot, "ratio")
    await until_shown(pilot, "ratio = exp(trainer - engine) · scale of the step full at e and 1/e")
    await press(pilot, "s")
    await until_shown(pilot, "scale of the sample full at 1.")


async def test_two_statistics_have_an_axis_each(session: Session) -> None:
    app, pilot = session
    await press(pilot, "M")
    await choose(pilot, "H ")
    await until_shown(pilot, "Δ (left) and H (right, dots) against position", "├")
    await press(pilot, "M")
    await choose(pilot, "no second")
    await until(pilot, lambda: "├" not in text(app))


async def test_a_statistic_that_is_not_there_says_why(session: Session) -> None:
    _, pilot = session
    await press(pilot, "m")
    await choose(pilot, "teacher    (not dumped: no file of the step has this column)")
    await until_shown(pilot, "teacher · not dumped: no file of the step has this column")
    await press(pilot, "n")  # the next sample shows what it has, and says what it lacks
    lacking = "no teacher: not dumped, no file of the step has this column · Δ ="
    await until_shown(pilot, "sample 71", lacking)


async def test_columns_that_nobody_knows_can_be_looked_at(tmp_path: Path) -> None:
    ones = [sample(at, my_scores=[0.5, -1.0, 2.0, 0.25, 0.0, 1.0]) for at in range(2)]
    truth = {"teacher_log_probs": [[-0.5] * 6] * 2, "values": [[0.1, 0.2, 0.3, 0.4, 0.5, 0.6]] * 2}
    write_step(tmp_path, 0, ones, truth=truth, mirror=False)
    async with opened(tmp_path, 0) as (app, pilot):
        line = token_lines(app)
        assert "teacher -0.500" in line and "value +0.100" in line and "my_scores 0.500" in line
        for name in ("my_scores", "teacher", "value"):
            await press(pilot, "m")
            await choose(pilot, name)
            await until_shown(pilot, f"{name} · scale of the step", f"{name} against position")


async def test_a_field_that_is_partial_says_what_is_missing(tmp_path: Path) -> None:
    write_step(tmp_path, 0, [sample(0, response_len=40)], layout=Layout(cp=2), drop=[1])
    async with opened(tmp_path, 0, size=(120, 30)) as (_, pilot):
        await until_shown(pilot, "Δ = trainer - engine · partial: cp rank 1 of 2 missing", "∅", "╱ missing")


# The token under the cursor ---------------------------------------------------------------------------------------


def token_lines(app: DumpTui) -> str:
    shown = lines(app)
    at = next(at for at, line in enumerate(shown) if re.match(r" #\d+ \"", line))
    return " ".join(line.strip() for line in shown[at : at + 2])


async def test_the_line_of_a_token_tells_everything(tmp_path: Path) -> None:
    spans = [
        [{"version": "7", "abs_start": 4, "abs_end": 8}],
        [{"version": "8", "abs_start": 12, "abs_end": 44}],
    ]
    mask = [1] * 4 + [0] * 4 + [1] * 32
    one = sample(0, response_len=40, loss_mask=mask, weight_versions=spans)
    write_step(tmp_path, 0, [one], layout=Layout(cp=2))
    async with opened(tmp_path, 0, size=(80, 24)) as (app, pilot):
        app.tokens.go_to(12)
        await until_shown(pilot, "#12 ")
        line = token_lines(app)
        statistics = ("Δ ", "ratio ", "trainer ", "engine ", "ref ", "H ", "adv ")
        for part in ("id ", *statistics, "v8", "turn 2", "cp rank 1 of 2"):
            assert f" {part}" in line, line
        app.tokens.go_to(9)
        await until_shown(pilot, "loss_mask = 0  turn 1  cp ")
        assert "Δ" not in token_lines(app)
        app.tokens.go_to(1)
        await until_shown(pilot, "prompt", "#1 ")


async def test_pieces_of_characters_and_special_tokens(tmp_path: Path) -> None:
    tokenizer: Tokenizer = byte_level()
    (tmp_path / "tokenizer").mkdir()
    (tmp_path / "tokenizer" / "tokenizer.json").write_text(tokenizer.to_str())
    ids = [*b"ab", *"🙂".encode(), 256, *b"<|im_end|>", 0x1B, 0xF0]
    write_step(tmp_path, 0, [sample(0, prompt_len=2, response_len=len(ids) - 2, tokens=ids)])
    async with opened(tmp_path, 0) as (app, pilot):
        await until_shown(pilot, "ab🙂⋯⋯⋯«<|im_end|>»<|im_end|>␛\\xf0")
        for at, words in (
            (2, '"🙂"  bytes f0  id 240'),
            (4, '⋯ of "🙂" at #2  bytes 99  id 153'),
            (6, '"<|im_end|>"  id 256  special'),
            (7, '"<"  id 60'),
            (17, '"␛"  id 27'),
            (18, '"\\xf0"  bytes f0  id 240'),
        ):
            app.tokens.go_to(at)
            await until_shown(pilot, f"#{at} {words}")


async def test_without_a_tokenizer_ids_are_shown(tmp_path: Path) -> None:
    one = sample(0)
    write_step(tmp_path, 0, [one])
    async with opened(tmp_path, 0, size=(120, 30)) as (_, pilot):
        await until_shown(pilot, "no tokenizer: ids shown", " ".join(map(str, one["tokens"])))


async def test_borders_are_marked_in_text_and_chart(tmp_path: Path) -> None:
    one = sample(0, response_len=40, loss_mask=[1] * 10 + [0] * 10 + [1] * 20)
    write_step(tmp_path, 0, [one], layout=Layout(cp=2))
    async with opened(tmp_path, 0, size=(120, 30)) as (app, pilot):
        await until_shown(pilot, "│ turn", "┊ chunk", "2 turns")
        assert shown(app).borders == ([24], [12, 23, 34])
        assert app.tokens.heat.flow.borders == {12: "┊", 23: "┊", 24: "│", 34: "┊"}


async def test_any_pane_can_lead_to_a_token(session: Session) -> None:
    app, pilot = session
    for position, reached in ((5, 5), (-3, 0), (10**9, len(shown(app).texts) - 1)):
        app.tokens.go_to(position)
        await until_shown(pilot, f"#{reached} ")
        assert app.tokens.chart.plot.cursor == reached


# Going to tokens --------------------------------------------------------------------------------------------------


async def test_go_to_a_position(session: Session) -> None:
    app, pilot = session
    last = len(shown(app).texts) - 1
    await press(pilot, "ctrl+g")
    await answer(pilot, "x")
    await until_shown(pilot, f"type a number from 0 to {last}")
    await answer(pilot, str(last + 1))
    await until_shown(pilot, f"type a number from 0 to {last}")
    await answer(pilot, "12")
    await until_shown(pilot, " #12 ")


async def test_worst_tokens_of_the_sample_then_of_the_step(session: Session) -> None:
    app, pilot = session
    tokens = worst(shown(app))
    await press(pilot, "]", "]", "]", "[")
    assert app.tokens.heat.cursor == tokens[1]
    app.tokens.walk.stand_on(tokens[-1])
    await press(pilot, "]")
    survey = app.tokens.surveys["lp_diff"]
    await until(pilot, lambda: app.tokens.position == survey.positions[0])
    await until_shown(pilot, f"#{survey.tokens[0]} ")


async def test_worst_tokens_of_the_step(session: Session) -> None:
    app, pilot = session
    survey = app.tokens.surveys["lp_diff"]
    places = list(zip(survey.positions.tolist(), survey.tokens.tolist(), strict=True))
    for key, at in (("}", 0), ("}", 1), ("}", 2), ("{", 1), ("{", 0), ("{", 0)):
        await press(pilot, key)
        await until(pilot, lambda at=at: (app.tokens.position, app.tokens.heat.cursor) == places[at])  # type: ignore[misc]
        assert f"#{places[at][1]} " in text(app)
    await press(pilot, "]")  # goes on within the sample
    ranks = worst(shown(app))
    assert app.tokens.heat.cursor == ranks[ranks.index(places[0][1]) + 1]


async def test_a_step_without_values_says_so(tmp_path: Path) -> None:
    write_step(tmp_path, 0, [sample(0, loss_mask=[0] * 6)])
    async with opened(tmp_path, 0) as (_, pilot):
        await press(pilot, "}")
        await until_shown(pilot, "no trained token has a value")


# Search -----------------------------------------------------------------------------------------------------------


async def test_search_goes_from_hit_to_hit(session: Session) -> None:
    app, pilot = session
    view = shown(app)
    app.tokens.go_to(0)
    await press(pilot, "/")
    await answer(pilot, r"\d+")
    await until_shown(pilot, r"/\d+/ 1 of ")
    hits = app.tokens.search.hits
    assert len(hits) > 2
    assert all(re.search(r"\d", "".join(view.texts[at] for at in hit)) for hit in hits)
    assert app.tokens.heat.cursor == hits[0].start
    for key, at in ((";", 1), (";", 2), (",", 1), (",", 0), (",", len(hits) - 1), (";", 0)):
        await press(pilot, key)
        assert app.tokens.heat.cursor == hits[at].start
        await until_shown(pilot, f"{at + 1} of {len(hits)} hits")
    await press(pilot, "n")
    await until_shown(pilot, "sample 71", r"/\d+/ ")  # the search goes on in the next sample, the cursor stays
    await until(pilot, lambda: app.tokens.search.sought)
    assert app.tokens.heat.cursor == shown(app).sample.prompt_length
    await press(pilot, "escape")
    await until(pilot, lambda: "hits" not in text(app))
    assert app.pane == "tokens"
    await press(pilot, "escape")
    assert app.pane == "rollout"
    await press(pilot, "3")


async def test_a_match_may_go_over_tokens(session: Session) -> None:
    app, pilot = session
    view = shown(app)
    words = "".join(view.texts[3:6])
    await press(pilot, "/")
    await answer(pilot, re.escape(words))
    await until(pilot, lambda: range(3, 6) in app.tokens.search.hits)
    assert "1 hit" in text(app) or " hits" in text(app)


async def test_a_bad_pattern_is_told_in_a_sentence(session: Session) -> None:
    app, pilot = session
    await press(pilot, "/")
    await answer(pilot, "(")
    await until_shown(pilot, "the pattern can't be parsed: unclosed group")
    await press(pilot, "escape")
    assert app.tokens.search.pattern == ""


async def test_no_hit_says_so(session: Session) -> None:
    app, pilot = session
    before = app.tokens.heat.cursor
    await press(pilot, "/")
    await answer(pilot, "no such words")
    await until_shown(pilot, "/no such words/ 0 hits")
    await press(pilot, ";")
    await until_shown(pilot, "no match in this sample")
    assert app.tokens.heat.cursor == before


# The chart --------------------------------------------------------------------------------------------------------


async def test_zoom_survives_another_statistic_and_ends_with_the_sample(session: Session) -> None:
    app, pilot = session
    plot = app.tokens.chart.plot
    await press(pilot, "+", "+")
    window = plot.window
    assert window is not None
    assert str(int(window[0])) in lines(app)[-2]
    await press(pilot, "m")
    await choose(pilot, "H ")
    await until_shown(pilot, "H against position")
    assert plot.window == window
    await press(pilot, "L")
    assert plot.window is not None and plot.window[0] > window[0]
    await press(pilot, "-", "-", "-")
    assert plot.window is None
    await press(pilot, "+", "0")
    assert plot.window is None
    await press(pilot, "+", "+", "n")
    await until_shown(pilot, "sample 71")
    await until(pilot, lambda: plot.window is None or plot.window[1] == len(shown(app).texts) - 1)


async def test_a_long_prompt_takes_a_third_of_the_chart(tmp_path: Path) -> None:
    write_step(tmp_path, 0, [sample(0, prompt_len=5000, response_len=100), sample(1)])
    async with opened(tmp_path, 0) as (app, pilot):
        assert app.tokens.chart.plot.window == (4950, 5099)
        await press(pilot, "0")
        await until(pilot, lambda: lines(app)[-2].split()[0] == "0")


# Sizes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [WIDE, NARROW, TINY], ids=lambda size: "x".join(map(str, size)))
async def test_what_matters_is_there_at_every_size(demo: Path, size: tuple[int, int]) -> None:
    async with opened(demo, 70, step=2, size=size) as (app, pilot):
        await press(pilot, "]")
        at = app.tokens.heat.cursor
        await until_shown(pilot, "sample 70", "Δ = trainer - engine", f"#{at} ")
        assert re.search(rf"\^{at}|{at}\^", text(app))


async def test_signs_can_be_read_without_colour(demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with opened(demo, 70, step=2) as (app, pilot):
        view, heat = shown(app), app.tokens.heat
        await press(pilot, "s")
        first = worst(view)[0]
        style = heat._token_style(first)
        below = (view.value("lp_diff", first) or 0) < 0
        assert (bool(style.underline), bool(style.bold)) == (below, not below)


async def test_a_run_of_placeholders_is_folded_where_nothing_was_trained(tmp_path: Path) -> None:
    """A picture takes thousands of one token; what the model repeats is shown token by token."""
    tokenizer = byte_level()
    (tmp_path / "tokenizer").mkdir()
    (tmp_path / "tokenizer/tokenizer.json").write_text(tokenizer.to_str(), encoding="utf-8")
    (pad,) = tokenizer.encode("<|im_end|>").ids
    tokens = [*b"see", *[pad] * 2000, *b"ok", *[pad] * 15, *b"so", *[pad] * 40]
    mask = [1] * 2 + [0] * 20 + [1] * 20
    write_step(tmp_path, 0, [sample(0, tokens=tokens, response_len=42, loss_mask=mask)], mirror=False)
    async with DumpTui(Run.open(tmp_path), pane="tokens").run_test(size=(120, 40)) as pilot:
        quoted = "«<|im_end|>»"
        await until_shown(pilot, f"see{quoted}×2,000ok{quoted}{quoted}")
        shown = text(pilot.app).replace("\n", "").replace(" ", "")
        assert f"so{quoted}×20" in shown and shown.count(quoted) == 1 + 15 + 1 + 20

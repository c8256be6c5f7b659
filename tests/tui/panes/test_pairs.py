"""Two samples beside each other: what is found in common, and that it is found in time."""

from __future__ import annotations

import time
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dumptui.core.diff import sequences as module
from dumptui.core.diff.sequences import Difference, Stretch, difference
from dumptui.core.diff.texts import compare, compare_words, side, words_in
from dumptui.core.files.step_files import StepKey
from dumptui.core.sample.comparison import pair
from dumptui.tui.panes.groups import GroupsPane
from dumptui.tui.widgets.diff.diff_view import Beside
from dumptui.tui.widgets.diff.hunks import Row, hunks, lay_out, wrap
from tests.support.reading import read
from tests.support.screen import lines, press, tab, text, until, until_shown
from tests.support.session import choose, go, opened
from tests.support.writer import sample, write_step

TAB = tab("groups")
few_symbols = st.lists(st.integers(0, 4), max_size=60)


def differ(left: list[int], right: list[int]) -> Difference:
    return difference(np.array(left, np.int64), np.array(right, np.int64))


def assert_covers(found: Difference, left: list[int], right: list[int]) -> None:
    """The stretches are both sequences in order, what is said to be the same is, and every gap is a gap."""
    assert [item for one in found.stretches for item in left[one.left]] == left
    assert [item for one in found.stretches for item in right[one.right]] == right
    assert all(left[one.left] == right[one.right] for one in found.stretches if one.same)
    kinds = [one.same for one in found.stretches]
    assert not any(a == b for a, b in pairwise(kinds))


@given(few_symbols, few_symbols)
def test_stretches_cover_both_sequences(left: list[int], right: list[int]) -> None:
    found = differ(left, right)
    assert_covers(found, left, right)
    first = next((at for at, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
    assert found.first_difference == (None if left == right else (first, first))


@given(st.lists(few_symbols, max_size=4), st.lists(few_symbols, max_size=4), few_symbols)
def test_stretches_cover_both_sequences_without_a_budget(
    left: list[list[int]], right: list[list[int]], common: list[int]
) -> None:
    one, other = (list(chain(*(part + common for part in parts))) for parts in (left, right))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "COMPARISON_BUDGET", 3)
        assert_covers(differ(one, other), one, other)


def test_passages_are_found_again_in_long_sequences() -> None:
    rng = np.random.default_rng(1)
    same = rng.integers(0, 50, 3000)
    left = np.concatenate([rng.integers(50, 60, 9000), same, rng.integers(50, 60, 9000)])
    right = np.concatenate([rng.integers(50, 60, 7000), same, rng.integers(50, 60, 9000)])
    found = difference(left, right)
    assert_covers(found, left.tolist(), right.tolist())
    assert found.shared >= 3000 and not found.complete


def test_what_is_not_wanted_any_more_is_not_searched_to_its_end() -> None:
    rng = np.random.default_rng(2)
    left, right = (rng.integers(0, 10, 1000) for _ in range(2))
    with pytest.raises(IndexError):
        difference(left, right, [1, 2, 3].pop)


LENGTH = 100_000


@pytest.mark.parametrize("kind", ["noise", "one symbol", "two symbols", "edited", "rotated"])
def test_long_sequences_take_bounded_time(kind: str) -> None:
    rng = np.random.default_rng(0)
    noise = (rng.pareto(1.0, LENGTH) * 50).astype(np.int64)
    edited = noise.copy()
    edited[rng.integers(0, LENGTH, 300)] = -1
    pairs = {
        "noise": (noise, (rng.pareto(1.0, LENGTH) * 50).astype(np.int64)),
        "one symbol": (np.zeros(LENGTH, np.int64), np.zeros(LENGTH - 7, np.int64)),
        "two symbols": (rng.integers(0, 2, LENGTH), rng.integers(0, 2, LENGTH)),
        "edited": (noise, edited),
        "rotated": (noise, np.roll(noise, 30_000)),
    }
    left, right = pairs[kind]
    before = time.process_time()
    found = difference(left, right)
    assert time.process_time() - before < 10  # 0.8 s at most on a quiet machine; difflib alone takes hours
    assert_covers(found, left.tolist(), right.tolist())
    if kind == "edited":
        assert found.shared > LENGTH - 400 and found.complete


def test_words_keep_blanks_and_lines() -> None:
    found = compare_words(words_in("so  2 + 2\nis 4"), words_in("so  2 + 3\n\nis 5"))
    texts = [found.left.texts[one.left] for one in found.difference.stretches if not one.same]
    assert texts == [[" 2"], [" 4"]]
    assert found.left.texts == ["so", "  2", " +", " 2", "⏎", "is", " 4"]
    assert compare_words([], []).difference.first_difference is None


def test_a_side_is_measured_as_it_is_shown() -> None:
    found = side(["漢", "\x1b", "a\n", "⋯"])
    assert found.texts == ["漢", "␛", "a⏎", "⋯"] and found.ends == [2, 3, 5, 6] and found.breaks == [3]


def test_two_samples_part_where_their_tokens_do(tmp_path: Path) -> None:
    prompt = [1, 2, 3]
    made = [
        sample(0, tokens=[*prompt, 10, 11, 12, 13], response_len=4, response="a b c d"),
        sample(1, tokens=[*prompt, 10, 11, 99, 13, 14], response_len=5, response="a b X d e"),
        sample(2, tokens=[*prompt, 10, 11], response_len=2, response="a b"),
    ]
    write_step(tmp_path, 0, made)
    step = read(tmp_path)
    found = pair(step, 0, 1, None)
    assert found.tokens.difference.first_difference == (5, 5)
    assert found.left.value("train_log_probs", 5) != found.right.value("train_log_probs", 5)
    assert found.words.difference.first_difference == (2, 2) and found.words.difference.shared == 3
    assert pair(step, 0, 2, None).tokens.difference.first_difference == (5, 5)
    assert pair(step, 1, 1, None).tokens.difference.first_difference is None


# On screen --------------------------------------------------------------------------------------------------------


@given(few_symbols, few_symbols, st.booleans(), st.integers(1, 40))
def test_every_item_is_on_a_row_or_folded(left: list[int], right: list[int], stacked: bool, width: int) -> None:
    common = list(range(100, 140))
    one, other = common + left + common + left, common + right + common + right
    ids = [np.array(items, np.int64) for items in (one, other)]
    shown = compare([f" {item}" for item in one], [f" {item}" for item in other], *ids)
    rows = list(lay_out(shown, width, stacked))
    assert [at for row in rows for at in range(row.left.start, row.left.stop)] == [*range(len(one))]
    assert [at for row in rows for at in range(row.right.start, row.right.stop)] == [*range(len(other))]
    different = [part for part in shown.difference.stretches if not part.same]
    assert all(not row.folded for row in rows if any(touches(row, part) for part in different))
    assert any(row.folded for row in rows)


def touches(row: Row, part: Stretch) -> bool:
    return bool(row.left.start < part.left.stop and part.left.start < row.left.stop)


def test_lines_end_where_the_text_does_or_the_screen() -> None:
    shown = side(["one", " two\n", " a very long one", " four", " five"])
    parts = [[*range(part.start, part.stop)] for part in wrap(shown, slice(0, 5), 10)]
    assert parts == [[0, 1], [2], [3, 4]]
    assert list(hunks([])) == []


async def test_the_first_token_where_two_samples_part(tmp_path: Path) -> None:
    made = [
        sample(0, tokens=[1, 2, 3, 10, 11, 12], response_len=3, reward=1.0, response="a b c"),
        sample(1, tokens=[1, 2, 3, 10, 99, 12], response_len=3, reward=0.0, response="a [/x] c\x1b[2J"),
        sample(2, tokens=[1, 2, 3, 10, 11, 12], response_len=3, reward=0.0, response="a b c"),
    ]
    scores = [[-0.5, -0.25, -0.125], [-1.0, -2.0, -3.0], [-0.5, -0.25, -0.125]]
    engine = [[-0.5, -0.5, -0.125], [-1.0, -1.75, -3.0], [-0.5, -0.5, -0.125]]
    for one, values in zip(made, engine, strict=True):
        one["rollout_log_probs"] = values
    write_step(tmp_path, 0, made, truth={"log_probs": scores, "rollout_log_probs": engine})
    async with opened(tmp_path, size=(120, 24)) as (app, pilot):
        await go(pilot, "enter", "d")
        await until_shown(pilot, "compare sample 0 with", "worst")
        await choose(pilot, "       1")
        await until_shown(pilot, "sample 0 vs 1", "differ at token 4 · 5 tokens in common (of 6 / 6) · 1 difference")
        shown = " ".join(text(app).split())
        assert '- 0 #4 (response token 1) " 11" id 11 trainer -0.250 engine -0.500 Δ 0.250' in shown
        assert '+ 1 #4 (response token 1) " 99" id 99 trainer -2.000 engine -1.750 Δ -0.250' in shown
        await go(pilot, "t")
        await until_shown(pilot, "first differ at word 1 · 1 words in common (of 3 / 3)", '" [/x]"', "␛[2J")
        await go(pilot, "t", "n")
        await until_shown(pilot, "sample 0 vs 2", "identical: 6 tokens")
        await go(pilot, "n", "p", "o")
        await until_shown(pilot, "sample 1 vs 0")
        await go(pilot, "i")
        await until_shown(pilot, "sample 1: all dumped fields")  # of the first one
        await go(pilot, "escape")
        await go(pilot, "enter")
        await until_shown(pilot, "sample 1 · step 0")
        await go(pilot, "escape", "escape")
        assert app.pane == "rollout"


async def test_a_pair_from_its_group_narrow_and_along_its_differences(demo: Path) -> None:
    async with opened(demo, key=StepKey(2), size=(60, 20)) as (app, pilot):
        await go(pilot, TAB, "down", "enter", "down", "d")
        await until_shown(pilot, "  best")
        await press(pilot, "enter")
        await until_shown(pilot, "sample 69 vs 68 (best)", "first differ at token", " identical ┈┈")
        assert {line[:2] for line in lines(app)} >= {"- ", "+ "}
        beside = app.query_one(Beside)
        for _ in range(len(beside._differences) + 1):
            before = text(app)
            await go(pilot, "]")
        assert beside.cursor == len(beside._differences) - 1 and text(app) == before
        await go(pilot, "home", "[", "end", "pageup", "j", "k")
        await pilot.resize_terminal(120, 30)
        await until_shown(pilot, " │ ")
        await go(pilot, "escape")
        assert app.pane == "groups" and app.panes.of(GroupsPane).members.has_focus
        await go(pilot, "d", "enter", "less_than_sign")
        await until_shown(pilot, "step 1 · 32 samples in 8 groups")


async def test_a_sample_alone_has_nothing_to_be_compared_with(tmp_path: Path) -> None:
    write_step(tmp_path, 0, [sample(0)])
    async with opened(tmp_path) as (_, pilot):
        await go(pilot, "enter", "d")
        await until_shown(pilot, "no other sample")


async def test_samples_of_many_tokens(tmp_path: Path) -> None:
    made = [sample(at, response_len=60_000, seed=at) for at in range(2)]
    write_step(tmp_path, 0, made, fields=["log_probs"], mirror=False)
    async with opened(tmp_path) as (app, pilot):
        await go(pilot, "d", "enter")
        await until_shown(pilot, "sample 0 vs 1", "at least 0 tokens in common (of 60,004")
        await until(pilot, lambda: app.query_one(Beside).virtual_size.height > 4000)
        await go(pilot, "end")
        await until(pilot, lambda: app.query_one(Beside).scroll_offset.y > 4000)

"""The column of blocks: what is folded, what is shown of long texts, and that none of them makes it wait."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.app import App, ComposeResult

from dumptui.core.text import cell_width
from dumptui.tui.cell_formats.wrapping import Lines
from dumptui.tui.widgets.blocks.block import Block, Passage
from dumptui.tui.widgets.blocks.blocks import Blocks
from dumptui.tui.widgets.blocks.folding import FOLDED_ROWS, SPARE_ROWS, Folds
from dumptui.tui.widgets.blocks.search import find
from tests.support.screen import lines, press, text, until, until_shown


def block(title: str, *texts: str, folded: bool = False, label: str = "") -> Block:
    return Block("first", title, "aside", [Passage("plain", label, Lines.of(one)) for one in texts], folded)


def rows(folds: Folds) -> list[str]:
    found = [folds.row(at) for at in range(folds.starts[-1])]
    return [f"[{folds.blocks[block].title}]" if row.what == "head" else row.text for block, row in found]


def folded(*blocks: Block, width: int = 20) -> Folds:
    folds = Folds()
    folds.wrap(width)
    folds.show(blocks)
    return folds


# Wrapping -----------------------------------------------------------------------------------------------------------


LINE = st.text(alphabet="ab 世é\u0301🤔x-", max_size=80)


@given(st.lists(LINE, min_size=1, max_size=6), st.integers(2, 30))
def test_wrapping_loses_no_character_and_fits(lines: list[str], width: int) -> None:
    text = Lines.of("\n".join(lines))
    height = text.height(width)
    rows = text.wrapped(width)
    assert height == len(rows) == text.height(width)
    made = [rows[at] for at in range(len(rows))]
    assert all(cell_width(row.removesuffix(" ")) <= width for row in made)
    starts = [*(rows.row_of(at) for at in range(len(lines))), len(rows)]
    assert ["".join(made[start:end]) for start, end in pairwise(starts)] == list(text.lines)
    assert not any(made[start] == "" and end > start + 1 for start, end in pairwise(starts))


@given(st.lists(LINE, min_size=1, max_size=6), st.integers(2, 30), st.integers(0, 30))
def test_the_first_rows_are_the_first_of_all(lines: list[str], width: int, most: int) -> None:
    text = Lines.of("\n".join(lines))
    rows = text.wrapped(width)
    assert text.first_rows(width, most) == [rows[at] for at in range(min(most, len(rows)))]
    assert text.count(width, most) == min(most, len(rows))


def test_a_row_ends_at_a_blank() -> None:
    for one, rows in {
        "one two three": ["one two ", "three"],
        "123456789 ": ["123456789 "],
        "世世世世 世世": ["世世世世 ", "世世"],
        "x" * 20: ["x" * 9, "x" * 9, "xx"],
        "": [""],
    }.items():
        assert Lines.of(one).first_rows(9, 5) == rows


# Folding ------------------------------------------------------------------------------------------------------------


def test_a_long_passage_shows_its_beginning_and_what_is_left() -> None:
    short, long = "\n".join("ab" for _ in range(FOLDED_ROWS + SPARE_ROWS)), "\n".join(str(at) for at in range(132))
    assert len(rows(folded(block("a", short)))) == 2 + FOLDED_ROWS + SPARE_ROWS
    assert rows(folded(block("a", long)))[-3:] == ["11", "… 120 more lines", ""]
    assert rows(folded(block("a", "x" * 1000)))[-2] == f"… {1000 - 20 * FOLDED_ROWS} more characters"
    mixed = rows(folded(block("a", "y\n" + "x" * 1000 + "\nz")))
    assert mixed[-2] == f"… {1000 - 20 * (FOLDED_ROWS - 1)} more characters and 1 more line"


def test_levels_go_from_folded_to_full_and_back() -> None:
    folds = folded(block("a", "\n".join("ab" for _ in range(50))), block("b", "short", folded=True))
    sizes = []
    for by in (1, 1, -1, -1, -1, 1):
        folds.step(0, by)
        sizes.append(folds.height(0))
    assert sizes == [52, 52, FOLDED_ROWS + 3, 1, 1, FOLDED_ROWS + 3]
    folds.step(1, 1)
    folds.step(1, -1)
    assert folds.is_folded(1), "a level that looks like the next is passed over"
    folds.unfold_all()
    assert folds.starts == [0, 52, 55]
    folds.unfold_all()
    assert folds.starts == [0, FOLDED_ROWS + 3, FOLDED_ROWS + 4]


@given(
    st.lists(st.lists(st.text(alphabet="ab \n世", max_size=120), max_size=3), min_size=1, max_size=4),
    st.integers(4, 40),
    st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 2)), max_size=6),
)
def test_as_many_rows_are_made_as_were_counted(
    texts: list[list[str]], width: int, steps: list[tuple[int, int]]
) -> None:
    folds = folded(*(block(str(at), *one, label="part") for at, one in enumerate(texts)), width=width)
    for at, by in steps:
        folds.step(at % len(texts), by)
    for at in range(len(texts)):
        found = [folds.row(row) for row in range(folds.starts[at], folds.starts[at + 1])]
        assert {block for block, _ in found} == {at} and len(found) == folds.height(at)
    folds.unfold_all()
    if all(folds.level(at) for at in range(len(texts))):
        folds.unfold_all()


def test_more_blocks_of_the_same_keep_what_is_folded() -> None:
    folds = folded(block("a", "x"), block("b", "y"))
    folds.set_level(0, 0)
    folds.show([block("a", "x"), block("b", "y"), block("c", "z", folded=True)], same=True)
    assert rows(folds) == ["[a]", "[b]", "y", "", "[c]"]


# On screen ----------------------------------------------------------------------------------------------------------


class Page(App[None]):
    def __init__(self, *blocks: Block) -> None:
        super().__init__()
        self.given = blocks

    def compose(self) -> ComposeResult:
        yield Blocks()

    def on_mount(self) -> None:
        self.query_one(Blocks).show(self.given)


async def test_keys_move_fold_and_scroll() -> None:
    page = Page(block("first", "alpha"), block("second", "\n".join(f"row {at}" for at in range(40)), folded=True))
    async with page.run_test(size=(40, 12)) as pilot:
        await until_shown(pilot, "▾ first", "▸ second  row 0", "aside")
        assert lines(page)[0].startswith("▌ ▾ first") or lines(page)[0].startswith("▌ ")
        await press(pilot, "j", "space")
        assert "row 11" not in text(page) or "… 28 more lines" in text(page)
        await press(pilot, "l")
        await press(pilot, "pagedown")
        await press(pilot, "G", "pagedown", "pagedown", "pagedown")
        assert "row 39" in text(page)
        await press(pilot, "z", "Z", "g", "h")
        await until_shown(pilot, "▸ first  alpha")


async def test_a_click_folds_and_unfolds() -> None:
    page = Page(block("first", "\n".join(f"row {at}" for at in range(40))))
    async with page.run_test(size=(40, 20)) as pilot:
        await until_shown(pilot, "… 28 more lines")
        await pilot.click(Blocks, offset=(5, FOLDED_ROWS + 1))
        await until_shown(pilot, "row 18")
        await pilot.click(Blocks, offset=(5, 0))
        await until_shown(pilot, "▸ first")


async def test_a_search_unfolds_and_goes_from_hit_to_hit() -> None:
    rows = "\n".join(f"row {at}" for at in range(40))
    page = Page(
        block("first", "nothing"), block("second", rows, label="part"), block("third", "ROW 33 too", folded=True)
    )
    async with page.run_test(size=(60, 12), notifications=True) as pilot:
        await until_shown(pilot, "▾ second")
        await press(pilot, "slash", *"row", "space", *"33")
        await until_shown(pilot, "search for a text", "2 lines")
        await press(pilot, "enter")
        await until_shown(pilot, "│ row 33")
        await press(pilot, "semicolon")
        await until_shown(pilot, "▾ third", "ROW 33 too")
        assert page.query_one(Blocks).current == 2
        await press(pilot, "comma")
        await until(pilot, lambda: page.query_one(Blocks).current == 1)
        await press(pilot, "slash", *["backspace"] * 6, *"xyz", "enter")
        await until_shown(pilot, "no match")


@given(st.lists(st.text(alphabet="ab \n世", max_size=80), min_size=1, max_size=3), st.integers(4, 30), st.booleans())
def test_a_hit_is_in_the_row_that_is_told(texts: list[str], width: int, fold: bool) -> None:
    folds = folded(block("x", "first"), block("y", *texts, label="part", folded=fold), width=width)
    for hit in find(re.compile("a"), folds.blocks):
        assert hit.block == 1 or hit.passage == 0
        row = folds.row_of(hit)
        line = folds.blocks[hit.block].passages[hit.passage].text.lines[hit.line]
        assert line.startswith(folds.row(row)[1].text) and folds.row(row)[0] == hit.block


@pytest.mark.parametrize("size", [(40, 12), (120, 40)])
async def test_hostile_text_stands_in_visibly(size: tuple[int, int]) -> None:
    page = Page(block("[red]t[/]", "[/x] \x1b[31mred\x07 \u202eright to left", label="[b]label"))
    async with page.run_test(size=size) as pilot:
        await until_shown(pilot, "[red]t[/]", "[/x] ␛[31mred␇", "[b]label")
        assert not [one for one in text(page) if one in "\x1b\x07\u202e"]

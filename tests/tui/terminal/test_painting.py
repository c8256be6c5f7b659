"""What is written is what changed: the pieces put over the old lines make the new ones, whatever overlaps."""

from __future__ import annotations

import pyte
from hypothesis import given
from hypothesis import strategies as st
from pyte.screens import Char
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual.app import ComposeResult
from textual.strip import Strip

from dumptui.tui.terminal.diff_painting import Changes, Row, Rows, Shown, Spans
from dumptui.tui.terminal.terminal_app import TerminalApp
from dumptui.tui.widgets.table.layout import Column
from dumptui.tui.widgets.table.table import Table
from tests.support.screen import until_shown

WIDTH, HEIGHT = 12, 3
CONSOLE = Console(width=WIDTH, color_system="truecolor", force_terminal=True)
STYLES = st.sampled_from([Style(), Style(bold=True), Style(color="red"), Style(bgcolor="#102030", underline=True)])
WORDS = st.sampled_from(["a", "b", " ", "ab", "漢", "x漢y", "│", "   "])
STRIPS = st.lists(st.tuples(WORDS, STYLES).map(lambda one: Segment(*one)), max_size=4).map(Strip)


def lined(strips: list[Strip]) -> Row:
    """Strips that come to the width of the screen."""
    row, left = [], WIDTH
    for strip in strips:
        row.append(strip.crop(0, left))
        left -= row[-1].cell_length
    return [*row, Strip.blank(left)]


ROWS = st.lists(STRIPS, max_size=5).map(lined)
FRAMES = st.lists(st.dictionaries(st.integers(0, HEIGHT - 1), ROWS), max_size=4)


def cells(screen: pyte.Screen) -> list[list[Char]]:
    return [[screen.buffer[y][x] for x in range(WIDTH)] for y in range(HEIGHT)]


@given(FRAMES)
def test_what_is_written_frame_after_frame_shows_the_last_lines(frames: list[dict[int, Row]]) -> None:
    glass, whole, shown = pyte.Screen(WIDTH, HEIGHT), pyte.Screen(WIDTH, HEIGHT), Shown()
    for frame in frames:
        update = shown.changes(Rows(frame, HEIGHT))
        pyte.Stream(glass).feed(update.render_segments(CONSOLE) if update else "")
        all_of_it = Changes([(0, y, Strip.join(row)) for y, row in frame.items()])
        pyte.Stream(whole).feed(all_of_it.render_segments(CONSOLE))
        assert cells(glass) == cells(whole)


@given(ROWS)
def test_a_line_that_is_the_same_writes_nothing(row: Row) -> None:
    again = [Strip(list(strip)) for strip in row]  # made anew, as by a widget that was refreshed
    shown = Shown()
    assert shown.changes(Rows({0: row}, 1)) is not None
    assert shown.changes(Rows({0: row}, 1)) is None
    assert shown.changes(Rows({0: again}, 1)) is None


@given(st.lists(st.tuples(st.integers(0, WIDTH), st.integers(0, WIDTH)), max_size=6))
def test_what_is_in_front_covers_what_is_behind(places: list[tuple[int, int]]) -> None:
    """Against painting over each other, from the back to the front."""
    widgets = [(min(place), max(place), str(at)) for at, place in enumerate(places)]
    expected = [" "] * WIDTH
    for start, end, sign in reversed(widgets):
        expected[start:end] = sign * (end - start)
    spans = Spans(WIDTH)
    for start, end, sign in widgets:
        seen = any(letter == sign for letter in expected[start:end])
        assert spans.is_open(start, end) == seen
        spans.fill(start, Strip([Segment(sign * (end - start))]))
    assert "".join(strip.text for strip in spans.row) == "".join(expected)


class Shell(TerminalApp):
    def compose(self) -> ComposeResult:
        yield Table(id="rows")


async def test_a_table_that_changes_as_it_is_shown_has_its_rows() -> None:
    app = Shell()
    async with app.run_test(size=(40, 12)) as pilot:
        table = app.query_one(Table)
        table.display = False
        await pilot.pause()
        table.show([Column("step", "step", 8)], 3, lambda row: [f"row {row}"])
        table.display = True
        table.refresh()
        app.screen._compositor.update_widgets({table})  # as a paint does that comes before the layout
        assert table.region.width == 0
        await until_shown(pilot, "row 0", "row 1", "row 2")

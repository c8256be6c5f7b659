from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.app import App, ComposeResult
from textual.events import MouseScrollDown
from textual.message import Message

from dumptui.tui.widgets.table.layout import GAP_CELLS, GUTTER_CELLS, Column, fit, lay_out
from dumptui.tui.widgets.table.table import Table

COLUMNS = [
    Column("sample", "sample", 6, exact=True),
    Column("reward", "reward", 6, tip="mean of the group"),
    Column("len", "len", 5),
    Column("prompt", "prompt", 20, right=False),
]
HOSTILE = [
    "[/]",
    "[/x]",
    "\x1b[2J",
    "a\x00b",
    "a\rb\nc",
    "\u202eabc",
    "\ud800",
    "x" * 20_000,
    "数" * 50,
    "\u0301",
]


def cells(row: int) -> Sequence[str]:
    return (str(100 + row), f"{row / 10:.1f}", str(row * 7), f"prompt {row}")


class TableApp(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Message] = []
        self.moves: list[tuple[str, int]] = []
        self.table = Table(empty="no sample matches the filter")

    def compose(self) -> ComposeResult:
        yield self.table

    def on_table_highlighted(self, message: Table.Highlighted) -> None:
        self.seen.append(message)
        self.moves.append(("to", message.row))

    def on_table_selected(self, message: Table.Selected) -> None:
        self.seen.append(message)
        self.moves.append(("open", message.row))

    def on_table_header_clicked(self, message: Table.HeaderClicked) -> None:
        self.seen.append(message)


def screen(app: App[None]) -> list[str]:
    return [strip.text for strip in app.screen._compositor.render_strips()]


def assert_fits(lines: list[str], width: int) -> None:
    assert {cell_len(line) for line in lines} == {width}
    assert all(line.isprintable() or "\u3000" in line for line in lines)


async def test_rows_line_up_under_their_header_with_the_cursor_row_pointed_at() -> None:
    app = TableApp()
    async with app.run_test(size=(60, 6)) as pilot:
        app.table.show(COLUMNS, 3, cells, sort=[("reward", True)])
        await pilot.press("down")
        assert [line.rstrip() for line in screen(app)] == [
            " sample ▼reward    len  prompt",
            "    100     0.0      0  prompt 0",
            ">   101     0.1      7  prompt 1",
            "    102     0.2     14  prompt 2",
            "",
            "",
        ]
        app.table.show(COLUMNS, 3, cells, sort=[("sample", False)])
        await pilot.pause()
        assert screen(app)[0].startswith("▲sample  reward")


# Case 32: Textualize/textual#1892, #4737, #5273, #5951, tables that grow slow


async def test_a_million_rows_are_never_all_asked_for() -> None:
    asked: set[int] = set()

    def record(row: int) -> Sequence[str]:
        asked.add(row)
        return cells(row)

    app = TableApp()
    async with app.run_test(size=(60, 10)) as pilot:
        app.table.show(COLUMNS, 1_000_000, record)
        await pilot.pause()
        await pilot.press("G")
        assert screen(app)[-1].startswith(">10000…")
        assert "prompt 999999" in screen(app)[-1]
        await pilot.press("home")
        assert screen(app)[1].startswith(">   100")
        assert len(asked) < 50


async def test_the_first_column_stays_while_the_others_scroll() -> None:
    app = TableApp()
    async with app.run_test(size=(25, 4)) as pilot:
        app.table.show(COLUMNS, 2, cells)
        await pilot.pause()
        assert [line.rstrip() for line in screen(app)[:2]] == [
            " sample  reward    len ›",
            ">   100     0.0      0",
        ]
        await pilot.press("right")
        assert screen(app)[0].rstrip() == " sample‹   len  prompt"
        await pilot.press("l")
        assert screen(app)[0].rstrip() == " sample‹ prompt"
        await pilot.press("l", "l")
        assert screen(app)[1].rstrip() == ">   100  prompt 0"
        await pilot.press("left", "h", "h")
        assert screen(app)[0].rstrip() == " sample  reward    len ›"


async def test_a_wider_pane_brings_columns_back() -> None:
    app = TableApp()
    async with app.run_test(size=(25, 4)) as pilot:
        app.table.show(COLUMNS, 2, cells)
        await pilot.press("right", "right")
        await pilot.resize_terminal(60, 4)
        await pilot.pause()
        assert screen(app)[0].rstrip() == " sample  reward    len  prompt"


async def test_the_cursor_reports_where_it_goes_and_stops_at_the_ends() -> None:
    app = TableApp()
    async with app.run_test(size=(60, 11)) as pilot:
        app.table.show(COLUMNS, 100, cells)
        rows = []
        for key in ("up", "j", "k", "pagedown", "pageup", "ctrl+d", "ctrl+u", "end", "down", "g"):
            await pilot.press(key)
            rows.append(app.table.cursor)
        assert rows == [0, 1, 0, 10, 0, 5, 0, 99, 99, 0]
        assert app.moves == [("to", row) for row in (1, 0, 10, 0, 5, 0, 99, 0)]
        assert all(isinstance(m, Table.Highlighted) and m.control is app.table for m in app.seen)


async def test_enter_opens_the_row_under_the_cursor_if_there_is_one() -> None:
    app = TableApp()
    async with app.run_test(size=(60, 6)) as pilot:
        app.table.show(COLUMNS, 0, cells)
        await pilot.press("enter", "down", "G")
        assert app.seen == []
        app.table.show(COLUMNS, 5, cells)
        await pilot.press("down", "enter")
        assert app.moves[-1] == ("open", 1)


async def test_a_click_moves_and_a_click_on_the_cursor_row_opens() -> None:
    app = TableApp()
    async with app.run_test(size=(60, 6)) as pilot:
        app.table.show(COLUMNS, 3, cells)
        await pilot.pause()
        await pilot.click(offset=(5, 2))
        assert app.moves == [("to", 1)]
        await pilot.click(offset=(5, 5))  # below the last row
        assert len(app.moves) == 1
        await pilot.click(offset=(5, 2))
        assert app.moves[1:] == [("open", 1)]


async def test_a_double_click_opens_once() -> None:
    app = TableApp()
    async with app.run_test(size=(60, 6)) as pilot:
        app.table.show(COLUMNS, 3, cells)
        await pilot.pause()
        await pilot.double_click(offset=(5, 3))
        assert app.moves == [("to", 2), ("open", 2)]
        await pilot.click(offset=(30, 5))
        await pilot.double_click(offset=(5, 3))
        assert app.moves[2:] == [("open", 2)]


async def test_what_is_chosen_of_rows_that_are_replaced_meanwhile_is_a_row_of_the_new_ones() -> None:
    app = TableApp()
    async with app.run_test(size=(60, 6)) as pilot:
        app.table.show(COLUMNS, 5, cells)
        app.table.cursor = 4
        app.table.action_select()
        app.table.show(COLUMNS, 2, cells)
        await pilot.pause()
        assert app.moves and all(row == 1 for _, row in app.moves)


async def test_a_header_says_which_column_was_clicked_and_what_it_holds() -> None:
    app = TableApp()
    async with app.run_test(size=(60, 6)) as pilot:
        app.table.show(COLUMNS, 3, cells)
        await pilot.pause()
        await pilot.click(offset=(12, 0))
        await pilot.click(offset=(3, 0))
        await pilot.click(offset=(58, 0))
        assert app.seen == [
            Table.HeaderClicked(app.table, "reward"),
            Table.HeaderClicked(app.table, "sample"),
        ]
        await pilot.hover(offset=(12, 0))
        assert str(app.table.tooltip) == "mean of the group"
        await pilot.hover(offset=(12, 2))
        assert app.table.tooltip is None


async def test_the_wheel_scrolls_three_lines_and_leaves_the_cursor() -> None:
    app = TableApp()
    async with app.run_test(size=(60, 6)) as pilot:
        app.table.show(COLUMNS, 100, cells)
        await pilot.pause()
        app.table.post_message(MouseScrollDown(app.table, 5, 3, 0, 1, 0, False, False, False))
        await pilot.pause()
        assert screen(app)[1].lstrip().startswith("103")
        assert app.table.cursor == 0
        await pilot.press("down")
        assert screen(app)[1].startswith(">   101")


async def test_no_rows_say_why() -> None:
    app = TableApp()
    async with app.run_test(size=(60, 7)) as pilot:
        app.table.show(COLUMNS, 0, cells)
        await pilot.pause()
        assert screen(app)[3].strip() == "no sample matches the filter"
        await pilot.resize_terminal(20, 7)
        await pilot.pause()
        assert " ".join(" ".join(screen(app)[1:]).split()) == "no sample matches the filter"


async def test_the_cursor_keeps_its_row_when_rows_come_and_go() -> None:
    app = TableApp()
    async with app.run_test(size=(60, 6)) as pilot:
        app.table.show(COLUMNS, 100, cells)
        await pilot.press("end")
        app.table.show(COLUMNS, 200, cells)
        assert app.table.cursor == 99
        app.table.show(COLUMNS, 10, cells)
        await pilot.pause()
        assert app.table.cursor == 9
        assert screen(app)[5].startswith(">   109")
        app.table.show(COLUMNS, 10, cells, keep_cursor=False)
        await pilot.pause()
        assert screen(app)[1].startswith(">   100")


@pytest.mark.parametrize("theme", ["textual-dark", "textual-light", "ansi-dark"])
async def test_hostile_cells_stay_in_their_column(theme: str) -> None:
    app = TableApp()
    async with app.run_test(size=(40, 12)) as pilot:
        app.theme = theme
        columns = [
            Column("a", "\x1b[2J[/]", 6),
            Column("b", "[/x]\u202e", 9),
            Column("c", "数学\n", 20, right=False),
        ]
        app.table.show(
            columns, len(HOSTILE), lambda row: [str(row), HOSTILE[row], HOSTILE[row]], style=lambda row: "bad"
        )
        await pilot.pause()
        lines = screen(app)
        assert_fits(lines, 40)
        assert "␛[2J" in lines[0]
        assert "[/]" in lines[1]
        assert "␛[2J" in lines[3]
        assert "xxxxxxxx…" in lines[8]


async def test_the_cursor_row_is_quieter_while_another_widget_has_the_focus() -> None:
    app = TableApp()
    async with app.run_test(size=(60, 6)) as pilot:
        app.table.show(COLUMNS, 4, cells)
        await pilot.pause()
        focused = next(iter(app.screen._compositor.render_strips()[1])).style
        app.screen.set_focus(None)
        await pilot.pause()
        assert next(iter(app.screen._compositor.render_strips()[1])).style != focused


async def test_a_bad_row_differs_by_more_than_hue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = TableApp()
    async with app.run_test(size=(60, 6)) as pilot:
        app.table.show(COLUMNS, 4, cells, style=lambda row: "bad" if row == 2 else None)
        await pilot.pause()
        styles = [next(iter(strip)).style for strip in app.screen._compositor.render_strips()]
        assert styles[3] is not None
        assert styles[3].bold
        assert styles[4] is not None
        assert not styles[4].bold


columns = st.lists(st.builds(Column, st.just("k"), st.just("l"), st.integers(1, 30), st.booleans()), max_size=8)


@settings(max_examples=200, deadline=None)
@given(columns, st.integers(0, 8), st.integers(1, 100))
def test_fields_stay_inside_apart_and_in_order(columns: list[Column], skipped: int, width: int) -> None:
    fields = lay_out(columns, skipped, width)
    assert [field.column for field in fields] == [0, *range(1 + skipped, len(columns))][: len(fields)]
    x = GUTTER_CELLS - GAP_CELLS
    for field in fields:
        assert field.x == x + GAP_CELLS
        assert 0 < field.width <= columns[field.column].width
        x = field.x + field.width
    if fields:
        assert x <= width - (fields[-1].column < len(columns) - 1)
        shortened = [field for field in fields if field.width < columns[field.column].width]
        assert shortened in ([], [fields[-1]])


UNITS = {"k": 1e3, "M": 1e6, "G": 1e9}


@given(st.floats(-1e8, 1e8), st.integers(0, 4), st.sampled_from(["", "~", "!", "!~"]), st.integers(6, 9))
def test_a_number_that_is_too_wide_is_rounded_and_never_cut(value: float, decimals: int, sign: str, width: int) -> None:
    text = f"{sign}{value:.{decimals}f}"
    shown = fit(text, width, right=True)
    assert len(shown) == width and "…" not in shown
    assert shown.strip().startswith(sign)
    digits = shown.strip().removeprefix(sign)
    found = float(digits.rstrip("kMG")) * UNITS.get(digits[-1], 1)
    assert found == pytest.approx(float(f"{value:.{decimals}f}"), rel=0.5, abs=0.5)


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [("~90.00123", 6, "~90.00"), ("100.0%", 5, " 100%"), ("131072", 5, " 131k"), ("0.00001", 5, " 1e-5")],
)
def test_numbers_in_narrow_columns(text: str, width: int, shown: str) -> None:
    assert fit(text, width, right=True) == shown


def test_the_number_of_a_row_is_a_name_and_is_not_rounded() -> None:
    assert fit("1234567", 6, right=True, exact=True) == "12345…"

import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.app import App, ComposeResult

from dumptui.tui.widgets.plot.axes import format_ends, format_number, scale, spanned
from dumptui.tui.widgets.plot.canvas import figure_class, thin, window
from dumptui.tui.widgets.plot.plot import Band, Plot, Series

NAN, INF = float("nan"), float("inf")


class PlotApp(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.clicks: list[float] = []
        self.plot = Plot()

    def compose(self) -> ComposeResult:
        yield self.plot

    def on_plot_clicked(self, message: Plot.Clicked) -> None:
        assert message.control is self.plot
        self.clicks.append(message.x)

    def lines(self) -> list[str]:
        return [strip.text for strip in self.screen._compositor.render_strips()]

    def canvas(self) -> list[str]:
        """The lines without the left gutter and the line of the x axis."""
        lines = self.lines()[:-1]
        edge = max(line.find("┤") for line in lines) + 1
        return [line[edge:] for line in lines]


def series(*y: float, style: Any = "line", component: str = "first") -> Series:
    return Series("y", np.arange(len(y)), np.array(y, float), component, style)


async def drawn(app: PlotApp, pilot: Any, *shown: Series, **options: Any) -> list[str]:
    app.plot.show(*shown, **options)
    await pilot.pause()
    await pilot.pause()  # the first plot of a process waits for plotext
    return app.canvas()


def filled(canvas: list[str]) -> list[bool]:
    """For each column, whether data is drawn in it."""
    return [any("\u2800" < char <= "\u28ff" for char in column) for column in zip(*canvas, strict=True)]


async def test_both_ends_of_both_axes_and_zero_are_labelled() -> None:
    app = PlotApp()
    async with app.run_test(size=(40, 8)) as pilot:
        await drawn(app, pilot, series(-1.25, 3.5, 0), x_label="step")
        lines = app.lines()
        assert lines[0].startswith("  3.5┤")
        assert lines[5].startswith("    0┤")
        assert lines[6].startswith("-1.25┤")
        assert lines[7].split() == ["0", "step", "2"]
        assert {cell_len(line) for line in lines} == {40}


async def test_a_gap_is_empty_and_a_lone_point_within_it_is_not() -> None:
    app = PlotApp()
    async with app.run_test(size=(63, 8)) as pilot:
        columns = filled(await drawn(app, pilot, series(0, 1, 1, NAN, NAN, 1, INF, -INF, 0, 1, 0)))
        cell = (len(columns) - 1) / 10
        assert all(columns[: int(2 * cell)])
        assert [index for index, seen in enumerate(columns) if seen and 2.1 * cell < index < 7.9 * cell] == [
            round(5 * cell)
        ]
        assert all(columns[int(8 * cell) + 1 :])


async def test_a_gap_among_many_points_is_as_wide_as_it_is() -> None:
    app = PlotApp()
    y = np.sin(np.arange(100_000) / 500)
    y[40_000:60_000] = NAN
    async with app.run_test(size=(103, 8)) as pilot:
        columns = filled(await drawn(app, pilot, series(*y)))
        empty = [index for index, seen in enumerate(columns) if not seen]
        assert empty == list(range(empty[0], empty[-1] + 1))
        assert abs(empty[0] - 0.4 * len(columns)) <= 1
        assert abs(empty[-1] + 1 - 0.6 * len(columns)) <= 1


async def test_a_short_spike_among_many_points_is_seen() -> None:
    app = PlotApp()
    y = np.zeros(100_000)
    y[77_777] = 5
    async with app.run_test(size=(103, 8)) as pilot:
        canvas = await drawn(app, pilot, series(*y))
        assert canvas[0].strip() != ""


@pytest.mark.parametrize(
    "y",
    [
        [1.0],
        [2.0] * 50,
        [0.0] * 50,
        [NAN, 5, NAN],
        [1e308, -1e308, 0],
        [1.7e308],
        [1e-320, 2e-320, 5e-324],
        [5e-324],
        [-INF, 1, 2, INF],
    ],
)
async def test_extreme_values_are_drawn(y: list[float]) -> None:
    app = PlotApp()
    async with app.run_test(size=(40, 6)) as pilot:
        assert any(filled(await drawn(app, pilot, series(*y))))
        assert any(filled(await drawn(app, pilot, series(*y, style="dots"))))


@pytest.mark.parametrize("y", [[], [NAN] * 5, [INF, -INF]])
async def test_nothing_to_draw_says_why(y: list[float]) -> None:
    app = PlotApp()
    async with app.run_test(size=(40, 5)) as pilot:
        app.plot.show(series(*y), cursor=1, empty="no reference log-probs in this step")
        await pilot.pause()
        app.plot.cursor = 2
        await pilot.click(offset=(20, 2))
        assert app.lines()[2].strip() == "no reference log-probs in this step"
        assert app.clicks == []


@pytest.mark.parametrize("theme", ["textual-dark", "ansi-dark"])
async def test_bands_and_borders_survive_without_colour(theme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = PlotApp()
    async with app.run_test(size=(43, 8)) as pilot:
        app.theme = theme
        y = [NAN] * 20 + [float(index % 2) for index in range(20)]
        bands = [
            Band(-5, 10, "prompt"),
            Band(10, 15, "masked"),
            Band(15, 20, "missing"),
            Band(90, 99, "masked"),
        ]
        canvas = await drawn(app, pilot, series(*y), bands=bands, marks=[30, 200])
        assert canvas[3].startswith("▒" * 10 + "░" * 5)
        assert "╱" in canvas[3]
        assert "\u2800" < canvas[3][25] <= "\u28ff"  # data goes over what lies behind
        flat = await drawn(app, pilot, series(*([0.0] * 39), 1), marks=[30, 200])
        assert flat[2].count("│") == 1
        legend = app.plot.legend().plain
        assert "▒" not in legend
        assert "y" in legend


async def test_the_cursor_shows_its_column_and_number_without_a_new_drawing() -> None:
    app = PlotApp()
    async with app.run_test(size=(60, 8)) as pilot:
        canvas = await drawn(app, pilot, series(*range(100)), cursor=50, x_label="position")
        frame = app.plot._frame()
        line = app.lines()[-1]
        assert "^50" in line
        assert "position" not in line
        assert canvas[0][line.index("^") - line.index("0")] == "│"
        app.plot.cursor = 99
        await pilot.pause()
        assert app.lines()[-1].rstrip().endswith("99^")
        app.plot.cursor = 0
        await pilot.pause()
        assert app.lines()[-1].split() == ["^0", "position", "99"]
        app.plot.cursor = None
        await pilot.pause()
        assert app.lines()[-1].split() == ["0", "position", "99"]
        assert "│" not in "".join(app.canvas())
        assert app.plot._frame() is frame


async def test_a_click_says_where_in_the_data_it_was() -> None:
    app = PlotApp()
    async with app.run_test(size=(60, 8)) as pilot:
        await drawn(app, pilot, series(*range(100)), x_range=(0, 99))
        await pilot.click(offset=(59, 3))
        await pilot.click(offset=(3, 3))
        await pilot.click(offset=(0, 3))  # the gutter
        assert app.clicks == [99, 0]


async def test_zooming_in_keeps_the_line_to_both_edges() -> None:
    app = PlotApp()
    async with app.run_test(size=(60, 8)) as pilot:
        canvas = await drawn(app, pilot, series(*range(100)), x_range=(10.5, 11.5), y_range=(0, 99))
        assert all(filled(canvas))
        assert app.lines()[-1].split() == ["10.5", "11.5"]


async def test_the_first_series_is_on_top() -> None:
    app = PlotApp()
    async with app.run_test(size=(40, 5)) as pilot:
        await drawn(app, pilot, series(0, 1), series(0, 1, component="second", style="dots"))
        strips = app.screen._compositor.render_strips()
        assert app.plot._style("first").color in {segment.style.color for segment in strips[3] if segment.style}
        assert app.plot._style("second").color not in {
            segment.style.color for strip in strips for segment in strip if segment.style
        }


@pytest.mark.parametrize("size", [(40, 6), (12, 3), (5, 2), (1, 1)])
async def test_small_panes_are_filled_exactly(size: tuple[int, int]) -> None:
    app = PlotApp()
    async with app.run_test(size=size) as pilot:
        app.plot.show(series(1, 2, NAN, -1), bands=[Band(0, 2, "prompt")], cursor=1, x_label="数学\x1b[2J")
        await pilot.pause()
        await pilot.pause()
        lines = app.lines()
        assert len(lines) == size[1]
        assert {cell_len(line) for line in lines} == {size[0]}
        assert all("\x1b" not in line for line in lines)


# Case 31: scikit-hep/uproot-browser#256, ai-dynamo/aisimulate#34, Textualize/textual-plotext#15 and #12, plotext 6


def test_the_version_of_plotext_is_pinned() -> None:
    project = Path(__file__).parents[3] / "pyproject.toml"
    assert '"plotext==5.3.2",' in project.read_text()


def test_plotext_is_not_imported_before_there_is_something_to_draw() -> None:
    program = "import sys, dumptui.tui.widgets.plot.plot; sys.exit('plotext' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


async def test_without_plotext_the_pane_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    figure_class.cache_clear()
    monkeypatch.setitem(sys.modules, "plotext._figure", None)
    app = PlotApp()
    async with app.run_test(size=(40, 5)) as pilot:
        app.plot.show(series(1, 2, 3))
        await pilot.pause()
        await pilot.pause()
        assert app.lines()[2].strip() == "plotext is not installed"
    figure_class.cache_clear()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (-0.0, "0"),
        (1.0, "1"),
        (0.012, "0.012"),
        (-3.14159, "-3.142"),
        (12345.678, "12346"),
        (100_000, "100000"),
        (123456789.0, "1.235e8"),
        (0.00001234, "1.234e-5"),
        (1e308, "1e308"),
        (NAN, "nan"),
        (INF, "inf"),
    ],
)
def test_numbers_are_short(value: float, text: str) -> None:
    assert format_number(value) == text


def test_ends_can_be_told_apart() -> None:
    assert format_ends(0.999981, 0.999984) == ("0.999981", "0.999984")
    assert format_ends(0, 1.5) == ("0", "1.5")


numbers = st.one_of(st.floats(), st.sampled_from([NAN, NAN, INF, -INF, 0.0, 1.0, 1e308, -1e308]))


@settings(max_examples=200, deadline=None)
@given(st.lists(numbers, min_size=1, max_size=120), st.integers(1, 40))
def test_thinning_keeps_extremes_and_gaps(values: list[float], dots: int) -> None:
    y = np.array(values)
    y[~np.isfinite(y)] = NAN
    position = scale(np.arange(len(y)), (0, max(1, len(y) - 1)), dots)
    kept = thin(position, y)
    assert np.all(np.diff(kept) > 0)
    column = np.floor(position + 0.5)
    for each in np.unique(column):
        here, there = y[column == each], y[kept][column[kept] == each]
        assert np.isfinite(there).sum() <= 2
        if np.isfinite(here).any():
            assert (np.nanmin(there), np.nanmax(there)) == (np.nanmin(here), np.nanmax(here))
    known = np.flatnonzero(np.isfinite(y))
    for left, right in pairwise(known):
        wide = right - left > 1 and position[right] - position[left] >= 1
        assert wide == bool(np.isnan(y[kept[(kept > left) & (kept < right)]]).any())


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=9), st.integers(2, 500))
def test_everything_in_range_falls_on_the_axis(values: list[float], dots: int) -> None:
    ends = spanned(values)
    assert ends is not None
    assert ends[0] < ends[1]
    at = scale(values, ends, dots)
    assert np.all((at >= 0) & (at <= dots - 1))


def test_a_line_is_cut_where_the_window_ends() -> None:
    x, y = window(np.array([0.0, 10, 20]), np.array([0.0, 10, NAN]), (5, 15))
    assert x.tolist() == [5, 10, 15]
    assert y[:2].tolist() == [5, 10]
    assert np.isnan(y[2])
    x, y = window(np.array([0.0, 10]), np.array([0.0, 10]), (4, 6))
    assert (x.tolist(), y.tolist()) == ([4, 6], [4, 6])

"""A plot looked at in parts."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from textual.app import App, ComposeResult
from textual.events import MouseScrollDown, MouseScrollUp

from dumptui.tui.widgets.plot.axes import Range, moved, zoomed
from dumptui.tui.widgets.plot.plot import Plot, Series
from dumptui.tui.widgets.plot.zoom_plot import ZoomPlot


class ZoomApp(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.plot = ZoomPlot(closest=8)
        self.clicks: list[float] = []

    def compose(self) -> ComposeResult:
        yield self.plot

    def on_plot_clicked(self, message: Plot.Clicked) -> None:
        self.clicks.append(message.x)

    def lines(self) -> list[str]:
        return [strip.text for strip in self.screen._compositor.render_strips()]


def ramp(count: int = 1000, **how: Any) -> Series:
    return Series("y", np.arange(count), np.arange(count, dtype=float), **how)


async def drawn(app: ZoomApp, pilot: Any, *series: Series, **options: Any) -> list[str]:
    app.plot.show(*series, **options)
    await pilot.pause()
    await pilot.pause()
    return app.lines()


async def test_zoom_is_about_the_cursor_and_fits_the_y_axis() -> None:
    app = ZoomApp()
    async with app.run_test(size=(60, 8)) as pilot:
        await drawn(app, pilot, ramp(), cursor=500)
        app.plot.zoom(0.5)
        await pilot.pause()
        assert app.plot.window == (250, 750)
        assert app.lines()[0].startswith("750┤")
        assert app.lines()[-1].split() == ["250", "^500", "750"]
        for _ in range(20):
            app.plot.zoom(0.5)
        assert app.plot.window == (496.0, 504.0)
        app.plot.zoom(1000)
        assert app.plot.window is None


async def test_the_window_stays_when_another_series_is_shown() -> None:
    app = ZoomApp()
    async with app.run_test(size=(60, 8)) as pilot:
        await drawn(app, pilot, ramp(), cursor=100)
        app.plot.zoom(0.1)
        window = app.plot.window
        shown = await drawn(app, pilot, Series("z", np.arange(1000), np.arange(1000) / 1000), cursor=100)
        assert app.plot.window == window
        assert shown[0].startswith("0.19┤")


async def test_panning_ends_at_the_ends_and_the_cursor_draws_the_window_along() -> None:
    app = ZoomApp()
    async with app.run_test(size=(60, 8)) as pilot:
        await drawn(app, pilot, ramp(), cursor=500)
        app.plot.pan(1)
        assert app.plot.window is None  # all of it is in view
        app.plot.zoom(0.2)
        app.plot.pan(0.5)
        assert app.plot.window is not None
        low = app.plot.window[0]
        assert low > 400
        for _ in range(20):
            app.plot.pan(1)
        assert app.plot.window[1] == 999
        app.plot.cursor = 10
        assert app.plot.window[0] == 0
        app.plot.window = None
        await pilot.pause()
        assert app.lines()[-1].split() == ["^10", "999"]


async def test_the_mouse_zooms_and_a_double_click_shows_all() -> None:
    app = ZoomApp()
    async with app.run_test(size=(104, 8)) as pilot:
        await drawn(app, pilot, ramp(), cursor=500)
        await pilot.mouse_down(app.plot, offset=(24, 3))
        await pilot.hover(app.plot, offset=(44, 3))
        assert any(segment.style and segment.style.reverse for segment in app.plot.render_line(3))
        await pilot.mouse_up(app.plot, offset=(44, 3))
        assert app.plot.window is not None
        assert 180 < app.plot.window[0] < 220
        assert 380 < app.plot.window[1] < 420
        assert app.clicks == []
        await pilot.click(app.plot, offset=(50, 3), times=2)
        assert app.plot.window is None
        assert len(app.clicks) == 1


async def test_the_wheel_zooms_about_the_mouse_and_pans_with_shift() -> None:
    app = ZoomApp()
    async with app.run_test(size=(104, 8)) as pilot:
        await drawn(app, pilot, ramp(), cursor=0)
        app.plot.post_message(MouseScrollUp(app.plot, 54, 3, 0, -1, 0, False, False, False))
        await pilot.pause()
        window = app.plot.window
        assert window is not None
        assert window[0] > 100 and window[1] < 900
        app.plot.post_message(MouseScrollDown(app.plot, 54, 3, 0, 1, 0, True, False, False))
        await pilot.pause()
        assert app.plot.window is not None
        assert app.plot.window[0] > window[0]


async def test_a_window_without_values_keeps_the_axes() -> None:
    app = ZoomApp()
    async with app.run_test(size=(60, 8)) as pilot:
        half = Series("y", np.arange(100), np.where(np.arange(100) < 50, np.nan, np.arange(100)))
        await drawn(app, pilot, half, cursor=10)
        app.plot.zoom(0.2)
        await pilot.pause()
        assert app.lines()[0].startswith("99┤")
        assert app.lines()[-1].split() == ["8", "^10", "28"]


async def test_two_axes_have_their_own_ends() -> None:
    app = ZoomApp()
    async with app.run_test(size=(60, 6)) as pilot:
        second = Series("z", np.arange(1000), np.linspace(-5, 5, 1000), "second", "dots", "right")
        shown = await drawn(app, pilot, ramp(), second)
        assert shown[0].startswith("999┤") and shown[0].rstrip().endswith("├5")
        assert shown[4].startswith("  0┤") and shown[4].rstrip().endswith("├-5")
        assert {len(line) for line in shown} == {60}


async def test_a_second_axis_without_values_is_left_out() -> None:
    app = ZoomApp()
    async with app.run_test(size=(60, 6)) as pilot:
        nothing = Series("z", np.arange(3), np.full(3, np.nan), "second", "dots", "right")
        shown = await drawn(app, pilot, ramp(), nothing)
        assert "├" not in "".join(shown)
        shown = await drawn(app, pilot, nothing._replace(axis="left"), ramp(axis="right"))
        assert "┤" not in "".join(shown)
        assert shown[0].rstrip().endswith("├999")


async def test_fine_marks_are_another_sign() -> None:
    app = ZoomApp()
    async with app.run_test(size=(60, 6)) as pilot:
        flat = Series("y", np.arange(100), np.zeros(100))
        shown = await drawn(app, pilot, flat, marks=[30], fine_marks=[30, 60])
        assert (shown[0].count("┊"), shown[0][4:].count("│")) == (1, 1)


ends = st.tuples(st.floats(-1e6, 1e6), st.floats(1, 1e6)).map(lambda pair: (pair[0], pair[0] + pair[1]))
shares = st.tuples(st.floats(0, 1), st.floats(0, 1)).map(sorted)


@given(ends, shares, st.floats(0.01, 100), st.floats(-1, 2))
def test_a_window_is_never_outside(full: Range, shares: list[float], factor: float, about: float) -> None:
    width = full[1] - full[0]
    view = (full[0] + shares[0] * width, full[0] + max(shares[1], shares[0] + 0.01) * width)
    for found in (
        zoomed(view, full, factor, full[0] + about * width, width / 50),
        moved((view[0] + about * width, view[1] + about * width), full),
    ):
        if found is not None:
            slack = 1e-6 * max(map(abs, full))
            assert full[0] - slack <= found[0] < found[1] <= full[1] + slack

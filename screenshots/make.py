"""The pictures of the README, from the demo run: `make shots`. Needs resvg-py and the fonts below."""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import resvg_py
from textual.pilot import Pilot

from dumptui.core.demo.write_demo import write_demo
from dumptui.core.run.run import Run
from dumptui.tui.app.app import DumpTui

FONTS = ("DejaVu Sans Mono", "WenQuanYi Zen Hei")
"""The second has the Chinese characters of the demo run."""
HERE = Path(__file__).parent
NOW = 1_790_000_000.0  # one moment for every run of this script, so that the pictures change only with the screen


def need_fonts() -> None:
    """Without them every text would be missing from the pictures."""
    known = subprocess.run(["fc-list", ":", "family"], capture_output=True, text=True, check=True).stdout
    missing = [font for font in FONTS if font not in known]
    if missing:
        raise SystemExit(f"no font {' and '.join(missing)} here")


async def until(pilot: Pilot[None], condition: Callable[[], bool]) -> None:
    for _ in range(600):
        await pilot.pause(0.05)
        if condition():
            return
    raise SystemExit("the screen never got there")


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "demo-grpo-8gpu"
        write_demo(root, now=NOW)
        app = DumpTui(Run.open(root))
        async with app.run_test(size=(120, 40)) as pilot:
            await until(pilot, lambda: len(app.rollout.rows) == len(app.steps.run.steps))
            await pilot.press("down")
            await until(pilot, lambda: app.loaded is not None and app.loaded.key.step == 22)
            await pilot.press("enter")
            await until(pilot, lambda: app.rollout.overview.is_complete)
            await pilot.pause(0.5)
            save(app, "rollout")
            await pilot.press("2")
            await pilot.pause(0.5)
            save(app, "batch")
            await pilot.press("1", *["down"] * 7, "enter")
            await until(pilot, lambda: app.pane == "tokens")
            await pilot.press("right_square_bracket")
            await pilot.pause(0.5)
            save(app, "tokens")
            await pilot.press("d")
            await pilot.pause(0.5)
            await pilot.press("enter")
            await until(pilot, lambda: app.pane == "pair")
            await pilot.pause(0.5)
            save(app, "pair")
            await pilot.press("4")
            await until(pilot, lambda: app.pane == "conversation")
            await pilot.pause(0.5)
            save(app, "conversation")


def save(app: DumpTui, name: str) -> None:
    drawing = app.export_screenshot(title=" ").replace("Fira Code", FONTS[0])  # which has ligatures for <| and the like
    picture = resvg_py.svg_to_bytes(svg_string=drawing)
    (HERE / f"{name}.png").write_bytes(bytes(picture))


if __name__ == "__main__":
    need_fonts()
    asyncio.run(main())

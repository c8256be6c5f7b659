"""Time and memory, in one table: `make bench`. Every figure stands beside what it is measured against, in one run.

The runs BIG (1.2 GB) and MANY (1,200 files) are written to bench/ once by the generator beside the shared runs, and
LONG (5,000 steps) is made of links to the files of MANY. The lines of the command line come from the shared bench.py.
"""

from __future__ import annotations

import asyncio
import compileall
import os
import resource
import select
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from dumptui.core.files.step_files import StepKey
from dumptui.core.process import gc_tuning
from dumptui.core.run.run import Run
from dumptui.tui.app.app import DumpTui
from tests.benchmarks.bench_live import idle, landing
from tests.support.screen import Terminal, press, until

ROOT = Path(__file__).parents[2]
CHECK = ROOT.parent / "shared" / "check"
RUNS = ROOT / "bench"
EMPTY = """
from textual.app import App
from textual.widgets import Static
class Empty(App):
    def compose(self): yield Static("|Δ|")
Empty().run()
"""
TIMES = 9


def main() -> None:
    gc_tuning.postpone()  # as the command does
    compileall.compile_dir(ROOT / "core", quiet=1)  # as pip does when it installs: where Python is told to write no
    compileall.compile_dir(ROOT / "tui", quiet=1)  # bytecode, half of a start would be compiling
    RUNS.mkdir(exist_ok=True)
    big, many = made("big"), made("many")
    long = linked(many, RUNS / "long", 5000)
    subprocess.run([sys.executable, CHECK / "bench.py", big, many, "--python", sys.executable], check=True)
    print(f"\n{'in the app, at 120x40':44}{'measured':>18}{'budget':>14}")
    paints(big, many, long)
    keys(big)
    asyncio.run(inside(big))
    idle(many, line)
    idle(long, line)
    landing(line)
    asyncio.run(wide(made("wide", "--steps", "1", "--samples", "8", "--low", "100000", "--high", "100001")))


def made(name: str, *size: str) -> Path:
    """A run of a given size, by default the preset of that name."""
    if not (RUNS / name).exists():
        words = size or ("--preset", name)
        subprocess.run([sys.executable, CHECK / "make_run.py", RUNS / name, *words], check=True)
    return RUNS / name


def linked(source: Path, target: Path, steps: int) -> Path:
    """A run of any number of steps without its bytes; the numbers inside its files are those of `source`."""
    if not target.exists():
        have = len(Run.open(source).steps)
        for folder in ("rollout_data", "train_data"):
            (target / folder).mkdir(parents=True)
            for path in (source / folder).iterdir():
                step, _, rest = path.stem.partition("_")
                for number in range(int(step), steps, have):
                    os.link(path, target / folder / f"{number}{'_' * bool(rest)}{rest}.pt")
    return target


def line(name: str, measured: str, budget: str) -> None:
    print(f"{name:44}{measured:>18}{budget:>14}", flush=True)


# In a real terminal ---------------------------------------------------------------------------------------------


def paints(*runs: Path) -> None:
    """From the start of the process to the first paint of its content, beside a Textual app that shows one line: in
    turns, as the machine is faster in one second than in the next.
    """
    times: dict[Path | None, list[float]] = {run: [] for run in (None, *runs)}
    with tempfile.TemporaryDirectory() as cache:
        for _ in range(TIMES):
            for run, found in times.items():
                found.append(first_paint([run] if run else [], "" if run else EMPTY, cache))
    empty = statistics.median(times[None])
    line("first paint, an empty Textual app", f"{empty:.0f} ms", "")
    for run in runs:
        line(
            f"first paint of {run.name.upper()}, over that",
            f"{statistics.median(times[run]) - empty:+.0f} ms",
            "+200 ms",
        )


def first_paint(words: list[Path], code: str, cache: str) -> float:
    begun = time.perf_counter()
    with Terminal(*words, env={"XDG_CACHE_HOME": cache}, code=code) as terminal:
        terminal.until("|Δ|")
        return (time.perf_counter() - begun) * 1000


def keys(big: Path) -> None:
    """From a key to the last byte it makes dumptui write, while a step of BIG is read and afterwards."""
    with tempfile.TemporaryDirectory() as cache, Terminal(big, env={"XDG_CACHE_HOME": cache}) as terminal:
        terminal.until("|Δ|")
        line("a key typed at the first paint", f"{cost(terminal, 'm', first=2)[0] * 1000:.0f} ms", "")
        line("key while BIG loads, median, worst of 20", spread(terminal, ["m", "2", "1", "5", "1"] * 4), "50 ms")
        terminal.until("samples in")
        line("key in Rollout, median, worst of 20", spread(terminal, ["tab", "down", "a", "m"] * 5), "50 ms")
        terminal.press("enter", "enter")
        terminal.until("scale of the step")
        line("key in Tokens, median, worst of 30", spread(terminal, ["down", "]", "[", "s", "+", "0"] * 5), "50 ms")
        line("page in Tokens, median, worst of 10", spread(terminal, ["pagedown", "pageup"] * 5), "50 ms 30 kB")
        line("another pane, median, worst of 24", spread(terminal, ["4", "2", "6", "5", "1", "3"] * 4), "50 ms 30 kB")


def spread(terminal: Terminal, pressed: list[str]) -> str:
    """Keys that each write something: what comes without them would be taken for theirs."""
    times, sizes = [], []
    for key in pressed:
        took, size = cost(terminal, key)
        times.append(took)
        sizes.append(size)
    return f"{statistics.median(times) * 1000:.0f}, {max(times) * 1000:.0f} ms {max(sizes) / 1000:.0f} kB"


def cost(terminal: Terminal, key: str, first: float = 0.3, quiet: float = 0.04) -> tuple[float, int]:
    """Seconds to the last byte that a key made it write, and how many: what comes after a pause of two frames is of
    what is being read. The emulator is slow, so it is fed later.
    """
    begun = last = time.perf_counter()
    terminal.press(key)
    written = 0
    while select.select([terminal.master], [], [], quiet if written else first)[0]:
        piece = os.read(terminal.master, 1 << 16)
        last = time.perf_counter()
        written += len(piece)
        terminal.raw += piece
    return last - begun, written


# In this process ------------------------------------------------------------------------------------------------


async def inside(big: Path) -> None:
    with stalls() as worst_stall:
        await asyncio.sleep(3)
    line("event loop with nothing to do, worst stall", f"{worst_stall():.0f} ms", "")
    app = DumpTui(Run.open(big), StepKey(0))
    async with app.run_test(size=(120, 40)) as pilot:
        with stalls() as worst_stall:
            await until(pilot, lambda: app.loaded is not None)
            await asyncio.sleep(1)  # it is shown, and the other steps are read
        line("event loop, worst stall while BIG loads", f"{worst_stall():.0f} ms", "30 ms")
        await press(pilot, "2")
        begun = time.perf_counter()
        app.simulate_key("4")
        await until(pilot, lambda: app.conversation.shown is not None)
        line("conversation, while Batch counts the step", f"{(time.perf_counter() - begun) * 1000:.0f} ms", "100 ms")
        await press(pilot, "1", "enter")
        opening = []
        for _ in range(8):
            begun = time.perf_counter()
            before = app.tokens.opened
            app.simulate_key("enter" if app.pane == "rollout" else "n")
            await until(pilot, lambda before=before: app.tokens.opened is not before)  # type: ignore[misc]
            opening.append((time.perf_counter() - begun) * 1000)
        line("first sample of a loaded step", f"{opening[0]:.0f} ms", "60 ms")
        line("next sample of a loaded step, median", f"{statistics.median(opening):.0f} ms", "60 ms")
    line("memory after it", f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB", "")


async def wide(run: Path) -> None:
    """Samples of 100,000 tokens."""
    app = DumpTui(Run.open(run), StepKey(0))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.loaded is not None)
        await press(pilot, "enter", "enter")
        await until(pilot, lambda: app.tokens.opened is not None)
        await asyncio.sleep(2)  # the survey of the step is another line's
        opening = []
        with stalls() as worst_stall:
            for _ in range(5):
                begun, before = time.perf_counter(), app.tokens.opened
                app.action_sample(1)
                await until(pilot, lambda before=before: app.tokens.opened is not before)  # type: ignore[misc]
                await pilot.pause()
                opening.append((time.perf_counter() - begun) * 1000)
        line("a sample of 100,000 tokens, to its first paint", f"{statistics.median(opening):.0f} ms", "300 ms")
        line("event loop, worst stall meanwhile", f"{worst_stall():.0f} ms", "30 ms")


@contextmanager
def stalls() -> Iterator[Callable[[], float]]:
    """The longest that the event loop did not come round, beyond the 5 ms it was asked to sleep."""
    lags = [0.0]

    async def tick() -> None:
        while True:
            begun = time.perf_counter()
            await asyncio.sleep(0.005)
            lags.append((time.perf_counter() - begun - 0.005) * 1000)

    task = asyncio.ensure_future(tick())
    try:
        yield lambda: float(np.max(lags))
    finally:
        task.cancel()


if __name__ == "__main__":
    main()

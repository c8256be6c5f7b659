"""What following a run costs and how late it is: lines for bench.py."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.support.screen import Terminal
from tests.support.writer import Layout, sample, write_step

Say = Callable[[str, str, str], None]
SCANNED = 300.0  # seconds that the first look at all steps of a long run may take here
TIMES = 8


def idle(run: Path, say: Say, seconds: float = 60.0) -> None:
    """A followed run that nothing happens in, once all its steps are known."""
    with tempfile.TemporaryDirectory() as cache, Terminal(run, "--follow", env={"XDG_CACHE_HOME": cache}) as terminal:
        terminal.until("samples in")
        at_rest(terminal)
        before = cpu(terminal.process.pid)
        written = len(terminal.read(seconds))
        used = (cpu(terminal.process.pid) - before) / seconds
        say(f"idle --follow of {run.name.upper()} over {seconds:.0f} s", f"{used:.2%} cpu", "1 %")
        say("  bytes written meanwhile", f"{written} B", "0 B")


def at_rest(terminal: Terminal) -> None:
    """Wait until it neither writes nor reads: none of its processes takes more than a twentieth of a core for 3 s."""
    end = time.monotonic() + SCANNED
    pids = [terminal.process.pid, *children(terminal.process.pid)]
    while time.monotonic() < end:
        before = sum(map(cpu, pids))
        if not terminal.read(3.0) and sum(map(cpu, pids)) - before < 0.15:
            return
    raise AssertionError("it never comes to rest")


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def cpu(pid: int) -> float:
    """Seconds that a process has computed."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def landing(say: Say) -> None:
    """From the moment that a step's last file is whole to its row on screen, its mean |Δ| in it."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as cache:
        root, times = Path(folder) / "run", []
        write(root, 0)
        with Terminal(root, "--follow", env={"XDG_CACHE_HOME": cache}) as terminal:
            terminal.until("step 0, 1 of 1")
            for step in range(1, TIMES + 1):
                write(root, step)
                begun = time.perf_counter()
                terminal.until(f"step {step}, {step + 1} of {step + 1}  |Δ| 0.0", f"> {step:>6}    32")
                times.append(time.perf_counter() - begun)
    say("a step complete, to its row on screen", f"{statistics.median(times):.1f} s", "")
    say(f"  the latest of {TIMES}", f"{max(times):.1f} s", "2.5 s")


def write(root: Path, step: int) -> None:
    samples = [sample(32 * step + at, group_index=at // 4, response_len=300) for at in range(32)]
    write_step(root, step, samples, Layout(dp=4), age=0)

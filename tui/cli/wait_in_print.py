"""`--follow --print` beside a job that has not begun: wait for its first step, and say so on standard error."""

from __future__ import annotations

import sys
from pathlib import Path

from dumptui.core.files.step_files import StepKey
from dumptui.core.run.run import Run
from dumptui.core.text import visible
from dumptui.tui.app.waiting import look, subject
from dumptui.tui.cli.follow_steps import wait


def wait_in_print(root: Path, key: StepKey | None) -> Run:
    """Say on standard error what is waited for, once for each reason."""
    said = ""
    while isinstance(found := look(root, key), str):
        if found != said:
            print(f"dumptui: {visible(subject(root, key))}: {visible(found)}", file=sys.stderr, flush=True)
            said = found
        wait()
    return found

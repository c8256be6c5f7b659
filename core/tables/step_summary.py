"""A step's row in the steps table, read from its files."""

from __future__ import annotations

from dumptui.core.errors import DumpError
from dumptui.core.files.step_files import StepFiles
from dumptui.core.step.load import load
from dumptui.core.step.step import Step
from dumptui.core.tables import steps
from dumptui.core.types import Record


def summarise(files: StepFiles, reward_key: str | None) -> tuple[Record, bool]:
    """A step's row, and whether it stays true as long as the files do not change."""
    try:
        step = load(files)
    except DumpError as error:
        return steps.unreadable_step(files, error), False
    return steps.step_row(step, steps.samples(step, reward_key, brief=True)), is_whole(step)


def is_whole(step: Step) -> bool:
    """No file of the step is damaged: what a young one lacks may be there tomorrow."""
    return not step.broken and step.rollout_problem is None

"""`--follow --print steps`: a line a step as it completes, for logs and scripts."""

from __future__ import annotations

import argparse
import select
import sys
from collections.abc import Callable, Iterable
from typing import NamedTuple, NoReturn

from dumptui.core.errors import DumpError
from dumptui.core.files.step_files import Entry, StepFiles, StepKey
from dumptui.core.live import Follow, PollResult
from dumptui.core.run.run import Run
from dumptui.core.tables import steps
from dumptui.core.tables.columns import STEP_COLUMNS, TEXT
from dumptui.core.text import visible
from dumptui.core.types import Record
from dumptui.tui.cell_formats.tables import TableWriter, to_csv, to_json
from dumptui.tui.presentation.signs import with_partial_signs

POLL_SECONDS = 2.0  # seconds between two looks at a live run
TEXT_WIDTHS = {"state": 11, "reason": 40, "again": 9}
COLUMN_WIDTHS = {
    **{column.name: max(6, len(column.name)) for column in STEP_COLUMNS if column.followed and column.format != TEXT},
    **TEXT_WIDTHS,
}
"""The cells of each column, numbers first."""
REWRITTEN = "rewritten"  # by an attempt that begins or resumes in the same folder
UPDATED = "updated"  # more of it is there than when it was printed, partial or unreadable
WRITE_SECONDS = 10.0  # the time of a file moves by less than this while its writer, or a file server, completes it


class Line(NamedTuple):
    """A step's row, and the rollout file and state that it was worked out from."""

    row: Record
    files: StepFiles

    @property
    def is_complete(self) -> bool:
        return bool(self.row["state"] == "ok")

    def says_again(self, before: Line) -> str | None:
        """Why it is printed after this one was, None where it says nothing new."""
        if is_rewritten(before.files.rollout, self.files.rollout):
            return REWRITTEN
        return None if to_json(self.row) == to_json(before.row) else UPDATED  # in JSON, NaN is equal to itself


def is_rewritten(before: Entry | None, after: Entry | None) -> bool:
    """A file whose time alone is set back, or moves while it is completed, is not."""
    if before is None or after is None:
        return before is not after
    ours, theirs = (entry._replace(mtime=0, readable=0) for entry in (before, after))
    return ours != theirs or after.mtime > before.mtime + WRITE_SECONDS


class Lines:
    """Each step when it is complete, or when a newer one is and it never will be.

    It comes again, marked as such, when it was rewritten or more of it was written.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        self._args = args
        self._table = TableWriter(sys.stdout, COLUMN_WIDTHS)
        self._printed: dict[StepKey, Line] = {}
        self._begun = False
        self.pending: dict[StepKey, Line] = {}

    def take(self, files: StepFiles, row: Record) -> None:
        key, line = files.key, Line(row, files)
        before = self._printed.get(key)
        if before is not None and line.says_again(before) is None:
            self.pending.pop(key, None)
            return
        self.pending[key] = line
        # While its train files are those of the earlier attempt, a step that is being rewritten is not complete.
        if line.is_complete and not (before is not None and files.outdated):
            for done in sorted(one for one in self.pending if one <= key):
                self._print(done, self.pending.pop(done))

    def forget(self, gone: Iterable[StepKey]) -> None:
        for key in gone:
            self.pending.pop(key, None)

    def _print(self, key: StepKey, line: Line) -> None:
        before = self._printed.get(key)
        self._printed[key] = line
        self._write({**line.row, "again": None if before is None else line.says_again(before)})

    def _write(self, row: Record) -> None:
        if self._args.json:
            sys.stdout.write(to_json(row) + "\n")
        elif self._args.csv:
            heading, _, line = to_csv([{name: row.get(name) for name in COLUMN_WIDTHS}]).partition("\n")
            sys.stdout.write(line if self._begun else f"{heading}\n{line}")
        else:
            self._table.write(with_partial_signs(row))
        self._begun = True
        sys.stdout.flush()


def follow_steps(
    run: Run,
    known: Iterable[tuple[StepKey, Record]],
    args: argparse.Namespace,
    dated: Callable[[StepKey, Record], Record] = lambda key, row: row,
) -> NoReturn:
    """Print the `known` rows, then what comes, each `dated`: with its staleness. Ends by BrokenPipeError,
    KeyboardInterrupt or a signal only.
    """
    lines = Lines(args)
    follow = Follow(run.root, run=run)
    for key, row in known:
        lines.take(run.steps[key], dated(key, row))
    unfinished, problem = list(lines.pending), ""
    while True:
        look = follow.look()
        problem = report(look, problem)
        lines.forget(look.gone)
        for key in sorted({*unfinished, *look.changed, *look.waiting} & look.run.steps.keys()):
            row = read_row(follow, look.run.steps[key], args.reward_key)
            lines.take(look.run.steps[key], dated(key, row))
        unfinished = []
        wait()


def report(look: PollResult, before: str) -> str:
    """Say on standard error, once, why a folder can't be seen; the problem that was said last."""
    problem = "" if look.problem is None else str(look.problem)
    if problem and problem != before:
        print(f"dumptui: {visible(problem)}", file=sys.stderr, flush=True)
    return problem


def read_row(follow: Follow, files: StepFiles, reward_key: str | None) -> Record:
    try:
        step = follow.load(files.key)
    except DumpError as error:
        return steps.unreadable_step(files, error)
    return steps.step_row(step, steps.samples(step, reward_key, brief=True))


def wait() -> None:
    """Until the next look. Raises BrokenPipeError as soon as who reads the lines is gone, not with the next of them."""
    reader = select.poll()
    reader.register(sys.stdout, 0)
    if reader.poll(POLL_SECONDS * 1000):
        raise BrokenPipeError

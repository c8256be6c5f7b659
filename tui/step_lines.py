"""`--follow --print steps`: a line a step as it completes, for logs and scripts."""

from __future__ import annotations

import argparse
import select
import sys
from collections.abc import Callable, Iterable
from typing import NoReturn

from dumptui.core import tables
from dumptui.core.errors import DumpError
from dumptui.core.follow import Follow
from dumptui.core.record import Record
from dumptui.core.run import Run, StepKey
from dumptui.tui.alarms import with_partial_signs
from dumptui.tui.output import TableWriter, to_csv, to_json

POLL = 2.0  # seconds between two looks at a live run
WIDTHS = {
    "step": 6,
    "evaluation": 10,
    "samples": 7,
    "train_samples": 13,
    "reward_mean": 11,
    "response_length_mean": 20,
    "mean_abs_lp_diff": 16,
    "mean_entropy": 12,
    "state": 11,
    "reason": 40,
}


class Lines:
    """Each step once: when it is complete, or a newer one is and it never will be."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._args = args
        self._table = TableWriter(sys.stdout, WIDTHS)
        self._printed: set[StepKey] = set()
        self._begun = False
        self.pending: dict[StepKey, Record] = {}

    def take(self, key: StepKey, row: Record) -> None:
        if key in self._printed:
            return
        self.pending[key] = row
        if row["state"] == "ok":
            for done in sorted(one for one in self.pending if one <= key):
                self._printed.add(done)
                self._write(self.pending.pop(done))

    def _write(self, row: Record) -> None:
        if self._args.json:
            sys.stdout.write(to_json(row) + "\n")
        elif self._args.csv:
            heading, _, line = to_csv([{name: row.get(name) for name in WIDTHS}]).partition("\n")
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
        lines.take(key, dated(key, row))
    unfinished = list(lines.pending)
    while True:
        look = follow.look()
        for key in sorted({*unfinished, *look.changed, *look.waiting}):
            lines.take(key, dated(key, read_row(follow, key, args.reward_key)))
        unfinished = []
        wait()


def read_row(follow: Follow, key: StepKey, reward_key: str | None) -> Record:
    try:
        step = follow.load(key)
    except DumpError as error:
        return {**key._asdict(), "samples": None, "state": error.state, "reason": error.problem}
    return tables.step_row(step, tables.samples(step, reward_key, brief=True))


def wait() -> None:
    """Until the next look. Raises BrokenPipeError as soon as who reads the lines is gone, not with the next of them."""
    reader = select.poll()
    reader.register(sys.stdout, 0)
    if reader.poll(POLL * 1000):
        raise BrokenPipeError

"""`--print VIEW`: the rows of a view on standard output."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence

from dumptui.core import tables, views
from dumptui.core.errors import DumpError
from dumptui.core.join import Step
from dumptui.core.run import Run, StepKey
from dumptui.core.tables import Record
from dumptui.core.tokens import Vocabulary
from dumptui.tui.output import to_csv, to_json, to_table


def print_view(run: Run, key: StepKey | None, args: argparse.Namespace) -> None:
    """Raises DumpError for an unknown step or sample."""
    if args.print == "steps":
        rows = list(views.steps(run, args.reward_key))
        return write(args, rows, {"run": str(run.root), "rows": rows})
    PRINTERS[args.print](run, views.open_step(run, key), args)


def write(args: argparse.Namespace, rows: Sequence[Record], document: Mapping[str, object]) -> None:
    if args.json:
        sys.stdout.write(to_json(document) + "\n")
    else:
        sys.stdout.write(to_csv(rows) if args.csv else to_table(rows))


def head(step: Step) -> Record:
    return {"step": step.files.key.step, "evaluation": step.files.key.evaluation}


def print_samples(run: Run, step: Step, args: argparse.Namespace) -> None:
    rows = tables.samples(step, args.reward_key)
    write(args, rows, {**head(step), "rows": rows})


def print_groups(run: Run, step: Step, args: argparse.Namespace) -> None:
    rows = tables.groups(tables.samples(step, args.reward_key), evaluation=step.files.key.evaluation)
    write(args, rows, {**head(step), "rows": rows})


def print_batch(run: Run, step: Step, args: argparse.Namespace) -> None:
    rows = tables.batch(step)
    write(args, rows, {"step": step.files.key.step, "rows": rows, "coverage": tables.coverage(step)})


def print_tokens(run: Run, step: Step, args: argparse.Namespace) -> None:
    chosen = list(step.samples) if args.sample is None else [views.find_sample(step, *args.sample)]
    documents = list(views.tokens(step, vocabulary(run), chosen))
    if args.json:
        return write(args, [], documents[0] if args.sample is not None else {**head(step), "rows": documents})
    write(args, [row for document in documents for row in views.position_rows(document)], {})


def vocabulary(run: Run) -> Vocabulary | None:
    try:
        return Vocabulary.load(run.tokenizer)
    except DumpError:  # ids are shown instead, which the document says with null
        return None


PRINTERS = {"samples": print_samples, "groups": print_groups, "batch": print_batch, "tokens": print_tokens}

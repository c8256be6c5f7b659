"""`--print VIEW`: the rows of a view on standard output."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from dumptui.core import tables, views
from dumptui.core.errors import DumpError
from dumptui.core.join import Step
from dumptui.core.record import Record
from dumptui.core.run import Run, StepKey
from dumptui.core.sample import Sample
from dumptui.core.single import load_single
from dumptui.core.summaries import WORTH_WORKERS, Summaries
from dumptui.core.text import visible
from dumptui.core.tokens import NoTokenizer, Vocabulary
from dumptui.tui.output import TableWriter, to_csv, to_json, to_table

# What a single view needs is imported by it: a tenth of the time of the shortest ones.

if TYPE_CHECKING:
    from pathlib import Path

    from dumptui.core.telemetry import Telemetry

BRIEF = 60  # characters of a message in a table


@dataclass(frozen=True)
class Request:
    """What was asked for on the command line. `key` is None for the newest step that can be read."""

    run: Run
    summaries: Summaries
    key: StepKey | None
    args: argparse.Namespace


def print_view(request: Request) -> int:
    """Print it; the exit code. Raises DumpError for an unknown step or sample."""
    return VIEWS[request.args.print](request)


def write(args: argparse.Namespace, rows: Sequence[Record], document: Mapping[str, object]) -> int:
    if args.json:
        sys.stdout.write(to_json(document) + "\n")
    else:
        sys.stdout.write(to_csv(rows, safe=sys.stdout.isatty()) if args.csv else to_table(rows))
    return 0


def print_steps(request: Request) -> int:
    if request.args.follow:
        from dumptui.tui.step_lines import follow_steps

        return follow_steps(request.run, step_rows(request), request.args)
    rows = [row for _, row in step_rows(request)]
    return write(request.args, rows, {"run": str(request.run.root), "rows": rows})


def step_rows(request: Request) -> Iterator[tuple[StepKey, Record]]:
    """As they are worked out, by several processes where there are many."""
    from dumptui.core.workers import Workers

    run, summaries = request.run, request.summaries
    unknown = sum(summaries.known(key) is None for key in run.steps)
    workers = Workers.begin() if unknown >= WORTH_WORKERS else None
    try:
        yield from summaries.rows(run.steps, workers)
    finally:
        if workers is not None:
            workers.close()


def print_samples(request: Request) -> int:
    key, rows = table(request)
    if request.args.where is not None:
        from dumptui.core.filter import select  # polars takes 0.2 s to import

        rows = [rows[at] for at in select(rows, request.args.where)]
    return write(request.args, rows, {**key._asdict(), "rows": rows})


def print_groups(request: Request) -> int:
    key, samples = table(request)
    rows = tables.groups(samples, evaluation=key.evaluation)
    return write(request.args, rows, {**key._asdict(), "rows": rows})


def table(request: Request) -> tuple[StepKey, list[Record]]:
    """The samples table of the step asked for, by default of the newest that can be read and has samples."""
    if request.key is not None:
        return request.key, request.summaries.samples(request.key)
    problem: DumpError | None = None
    for key in views.newest_first(request.run):
        try:
            rows = request.summaries.samples(key)
        except DumpError as error:
            problem = problem or error
            continue
        if rows:
            return key, rows
    raise problem or DumpError(request.run.root, "no step has samples")


def print_batch(request: Request) -> int:
    step = views.open_step(request.run, request.key)
    rows = tables.batch(step)
    document = {"step": step.files.key.step, "rows": rows, "coverage": tables.coverage(step)}
    return write(request.args, rows, document)


def print_tokens(request: Request) -> int:
    args = request.args
    step, chosen = step_of_samples(request)
    documents = list(views.tokens(step, vocabulary(request.run), chosen))
    if args.json:
        whole = {**step.files.key._asdict(), "rows": documents}
        return write(args, [], documents[0] if args.sample is not None else whole)
    return write(args, [row for document in documents for row in views.position_rows(document)], {})


def step_of_samples(request: Request) -> tuple[Step, list[Sample]]:
    """The step and the samples asked for; of one sample, where that is enough, a step that holds it alone."""
    asked = request.args.sample
    if asked is not None and asked[0] is not None and request.key in request.run.steps and asked[1] == 0:
        single = load_single(request.run.steps[request.key], asked[0])
        if single is not None:
            return single, list(single.samples)
    step = views.open_step(request.run, request.key)
    return step, list(step.samples) if asked is None else [views.find_sample(step, *asked)]


def print_pair(request: Request) -> int:
    from dumptui.core import pairs

    args = request.args
    if args.sample is None or args.partner is None:
        raise DumpError("--print pair", "give the two samples with --sample I[.K] --with J[.K]")
    step = views.open_step(request.run, request.key)
    left, right = (views.find_sample(step, *one).position for one in (args.sample, args.partner))
    document = pairs.document(pairs.pair(step, left, right, vocabulary(request.run)), args.words)
    rows = document["rows"]
    assert isinstance(rows, list)
    return write(args, rows, {**step.files.key._asdict(), **document})


def print_conversation(request: Request) -> int:
    from dumptui.core import conversation

    args = request.args
    if args.sample is None:
        raise DumpError("--print conversation", "give the sample with --sample I[.K]")
    step, [sample] = step_of_samples(request)
    if step.alone and not conversation.is_recorded(step, sample):
        step = views.open_step(request.run, request.key)
        sample = views.find_sample(step, *args.sample)
    sidecar = conversation.open_sidecar(step)
    talk = conversation.read_conversation(step, sample, sidecar, vocabulary(request.run))
    place = {**step.files.key._asdict(), "sample_index": sample.index, "occurrence": sample.occurrence}
    rows = list(conversation.rows(talk))
    if not args.csv and not args.json:
        rows = [{name: brief(value) for name, value in row.items()} for row in rows]
    return write(args, rows, {**place, **conversation.document(talk)})


def print_facts(request: Request) -> int:
    from dumptui.core import facts
    from dumptui.core.lifecycle import read_lifecycle
    from dumptui.core.telemetry import Telemetry

    if request.args.sample is None:
        raise DumpError("--print facts", "give the sample with --sample I[.K]")
    step = views.open_step(request.run, request.key)
    sample = views.find_sample(step, *request.args.sample)
    life = read_lifecycle(Telemetry(request.run.root), step.files.key, sample.index)
    rows = facts.rows(facts.sample_facts(step, sample, life))
    place = {**step.files.key._asdict(), "sample_index": sample.index, "occurrence": sample.occurrence}
    return write(request.args, rows, {**place, "rows": rows})


def brief(value: object) -> object:
    """The beginning of a text in a table, with the length of a longer one."""
    if not isinstance(value, str) or len(value) <= BRIEF:
        return value
    return f"{value[:BRIEF]}… ({len(value):,} characters)"


def vocabulary(run: Run) -> Vocabulary | None:
    try:
        return Vocabulary.load(run.tokenizer)
    except NoTokenizer:  # ids are shown instead, which the document says with null
        return None
    except DumpError as error:
        tell(f"{error}: token ids are shown")
        return None


def tell(problem: str) -> None:
    """On standard error: what is printed lacks something."""
    print(f"dumptui: {visible(problem)}", file=sys.stderr)


def tell_unread(telemetry: Telemetry, paths: Callable[[Path], bool]) -> None:
    """What can't be read of these files. That the last line of a live run is not whole yet is no news."""
    for path, problem in telemetry.problems():
        if paths(path) and not problem.startswith("ends in the middle of a record"):
            tell(f"{path}: {problem}")


def print_health(request: Request) -> int:
    """Row by row as they are found: the first are there at once, however long the run is."""
    from dumptui.core import health

    found: list[Record] = []
    rows = keep(chain(health.health(request.run), health.stream_problems(request.run.root)), found)
    if request.args.json or request.args.csv:
        write(request.args, list(rows), {"rows": found})
    else:
        writer = TableWriter(sys.stdout, {"step": 8, "level": 7, "file": 16, "problem": 60})
        for row in rows:
            writer.write(row)
    return health.exit_code(found)


def keep(rows: Iterable[Record], kept: list[Record]) -> Iterable[Record]:
    for row in rows:
        kept.append(row)
        yield row


def print_metrics(request: Request) -> int:
    from dumptui.core.telemetry import Telemetry

    telemetry = Telemetry(request.run.root)
    rows = list(telemetry.metrics.rows(request.args.key))
    read = {log.tail.path for log in telemetry.metrics.logs}
    tell_unread(telemetry, lambda path: path in read)
    return write(request.args, rows, {"rows": rows})


def print_lanes(request: Request) -> int:
    from dumptui.core.telemetry import Telemetry

    telemetry = Telemetry(request.run.root)
    rows = list(telemetry.lane_rows())
    tell_unread(telemetry, lambda path: True)
    return write(request.args, rows, {"rows": rows})


Printer: TypeAlias = Callable[[Request], int]

VIEWS: dict[str, Printer] = {
    "steps": print_steps,
    "samples": print_samples,
    "groups": print_groups,
    "batch": print_batch,
    "tokens": print_tokens,
    "pair": print_pair,
    "conversation": print_conversation,
    "facts": print_facts,
    "health": print_health,
    "metrics": print_metrics,
    "lanes": print_lanes,
}

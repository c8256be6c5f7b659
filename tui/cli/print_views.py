"""`--print VIEW`: the rows of a view on standard output."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from dumptui.core.errors import DumpError
from dumptui.core.fields.ratio_limits import LARGEST_RATIO
from dumptui.core.fields.registry import FIELDS
from dumptui.core.files.step_files import StepKey
from dumptui.core.formats.sample import Sample
from dumptui.core.formats.values import as_list
from dumptui.core.run.run import Run
from dumptui.core.step.single_sample import load_single
from dumptui.core.step.step import Step
from dumptui.core.store.summaries import WORTH_WORKERS, Summaries
from dumptui.core.tables import steps, tokens
from dumptui.core.tables.columns import STEP_COLUMNS, names_of
from dumptui.core.tables.step_summary import summarise
from dumptui.core.text import visible
from dumptui.core.types import Record
from dumptui.core.vocabulary import NoTokenizer, Vocabulary
from dumptui.tui.cell_formats.tables import TableWriter, ratio_number, to_csv, to_json, to_table
from dumptui.tui.presentation.signs import with_partial_signs

# What a single view needs is imported by it: a tenth of the time of the shortest ones.

if TYPE_CHECKING:
    from pathlib import Path

    from dumptui.core.telemetry.telemetry import Telemetry

PLACE_NAMES = ("sample_index", "occurrence", "token")
"""The columns of Health that its text names too."""
PRINTED_PROMPTS = 100_000  # prompts of each kind
MESSAGE_CHARACTERS = 60  # characters of a message in a table
OF_A_SAMPLE = ("tokens", "pair", "conversation", "facts")
"""The views that show the sample asked for, and so say themselves that there is none."""


@dataclass(frozen=True)
class Request:
    """What was asked for on the command line. `key` is None for the newest step that can be read."""

    run: Run
    summaries: Summaries
    key: StepKey | None
    args: argparse.Namespace


def print_view(request: Request) -> int:
    """Print it; the exit code. Raises DumpError for an unknown step or sample."""
    return PRINTERS[request.args.print](request)


def check_sample(request: Request) -> None:
    """Raises DumpError for an unknown sample, also where the view shows more than it: an error must not be lost."""
    args = request.args
    if args.sample is not None and args.print not in OF_A_SAMPLE:
        tokens.find_sample(tokens.open_step(request.run, request.key), *args.sample)


def write(args: argparse.Namespace, rows: Sequence[Record], document: Mapping[str, object]) -> int:
    if args.json:
        sys.stdout.write(to_json(document) + "\n")
    else:
        sys.stdout.write(to_csv(rows, safe=sys.stdout.isatty()) if args.csv else to_table(rows))
    return 0


def print_steps(request: Request) -> int:
    staleness = request.summaries.staleness
    if request.args.follow:
        from dumptui.tui.cli.follow_steps import follow_steps

        return follow_steps(request.run, checked_rows(request), request.args, staleness.of_step)
    known = list(checked_rows(request))
    for key, row in known:
        staleness.learn(key, row)
    rows = [staleness.of_step(key, row) for key, row in known]
    if request.args.where is not None:
        rows = matching_steps(rows, request.args.where)
    document = {"run": str(request.run.root), "rows": rows}
    return write(request.args, rows if request.args.csv else [with_partial_signs(row) for row in rows], document)


def matching_steps(rows: Sequence[Record], where: str) -> list[Record]:
    """Return the steps that match a filter. Raises DumpError, which names the columns."""
    from dumptui.tui.session.sample_order import StepArrangement

    blank = dict.fromkeys(names_of(column for column in STEP_COLUMNS if column.recorded))
    try:
        found = StepArrangement(where=where).select([{**blank, **row} for row in rows])
    except DumpError as error:
        raise DumpError(error.path, f"{error.problem}; {step_column_words()}") from None
    return [rows[at] for at in found]


def step_column_words() -> str:
    """Return the columns of the steps table with their labels and units, such as "mean_abs_lp_diff (|Δ|, nats)"."""
    words = []
    for column in STEP_COLUMNS:
        if column.recorded:
            facts = [fact for fact in (column.label, column.unit) if fact and fact != column.name]
            words.append(f"{column.name} ({', '.join(facts)})" if facts else column.name)
    return f"the columns are {', '.join(words)}"


def checked_rows(request: Request) -> Iterator[tuple[StepKey, Record]]:
    """The rows of the steps table. Raises DumpError after them where no reward has the chosen entry."""
    found = []
    for key, row in step_rows(request):
        found.append(row)
        yield key, row
    check_reward_key(request, found)


def step_rows(request: Request) -> Iterator[tuple[StepKey, Record]]:
    """As they are worked out, by several processes where there are many."""
    from dumptui.core.process.workers import Workers

    run, summaries = request.run, request.summaries
    unknown = sum(summaries.known(key) is None for key in run.steps)
    workers = Workers.begin() if unknown >= WORTH_WORKERS else None
    try:
        yield from summaries.rows(run.steps, workers)
    finally:
        if workers is not None:
            workers.close()


def check_reward_key(request: Request, rows: Iterable[Record]) -> None:
    """Raises DumpError where no reward of these steps has the chosen entry."""
    key, steps = request.args.reward_key, [row for row in rows if row["samples"] is not None]
    entries = list(dict.fromkeys(name for row in steps for name in as_list(row.get("reward_entries")) or ()))
    if key is not None and steps and key not in entries:
        known = f"there are {', '.join(map(str, entries))}" if entries else "the rewards are not dicts"
        raise DumpError("--reward-key", f"no reward has the entry {key}: {known}")


def print_samples(request: Request) -> int:
    key, rows = chosen_table(request)
    if request.args.where is not None:
        from dumptui.tui.session.sample_order import Arrangement

        rows = [rows[position] for position in Arrangement(where=request.args.where).select(rows)]
    return write(request.args, rows, {**key._asdict(), "rows": rows})


def print_groups(request: Request) -> int:
    key, samples = chosen_table(request)
    rows = steps.groups(samples, evaluation=key.evaluation)
    return write(request.args, rows, {**key._asdict(), "rows": rows})


def print_prompts(request: Request) -> int:
    """The prompts of all steps, or of one."""
    from dumptui.core.process.workers import Workers
    from dumptui.core.tables.prompts import PromptHistory

    keys = list(request.run.steps) if request.key is None else [request.key]
    workers = Workers.begin() if len(keys) >= WORTH_WORKERS else None
    history = PromptHistory()
    try:
        for key, prompts in request.summaries.prompts().all(keys, workers):
            history.add(key, prompts)
    finally:
        if workers is not None:
            workers.close()
    rows, counts = history.rows(limit=PRINTED_PROMPTS)
    return write(request.args, rows, {"run": str(request.run.root), "counts": counts, "rows": rows})


def print_tools(request: Request) -> int:
    """By tool; the document has the samples too."""
    from dumptui.core.tables import tools
    from dumptui.core.telemetry.lifecycle import read_lifecycles
    from dumptui.core.telemetry.telemetry import Telemetry

    key, samples = chosen_table(request)
    step = tokens.open_step(request.run, key)
    indices = [sample.index for sample in step.samples if sample.index is not None]
    lives = read_lifecycles(Telemetry(request.run.root), key, indices)
    uses = tools.tool_uses(step, samples, lives)
    rows = tools.by_tool(uses)
    return write(request.args, rows, {**key._asdict(), "rows": rows, "samples": tools.by_sample(uses)})


def chosen_table(request: Request) -> tuple[StepKey, list[Record]]:
    """The table of the step asked for. Raises DumpError where no reward in it has the chosen entry."""
    key, rows = table(request)
    names = (("reward", "reward_chosen"), ("raw_reward", "raw_chosen"))
    chosen = any(row[flag] and row[name] is not None for row in rows for name, flag in names)
    if request.args.reward_key is not None and not chosen:
        row, _ = summarise(request.run.files(key), request.args.reward_key)
        check_reward_key(request, [row])
    return key, rows


def table(request: Request) -> tuple[StepKey, list[Record]]:
    """The samples table of the step asked for, by default of the newest that can be read and has samples."""
    if request.key is not None:
        return request.key, request.summaries.samples(request.key)
    problem: DumpError | None = None
    for key in request.run.newest_first:
        try:
            rows = request.summaries.samples(key)
        except DumpError as error:
            problem = problem or error
            continue
        if rows:
            return key, rows
    raise problem or DumpError(request.run.root, "no step has samples")


def print_batch(request: Request) -> int:
    step = tokens.open_step(request.run, request.key)
    rows = steps.batch(step)
    document = {"step": step.files.key.step, "rows": rows, "coverage": steps.coverage(step)}
    return write(request.args, rows, document)


def print_tokens(request: Request) -> int:
    args = request.args
    step, chosen = step_of_samples(request)
    documents = list(tokens.tokens(step, vocabulary(request.run), chosen))
    if args.json:
        whole = {**step.files.key._asdict(), "rows": documents}
        return write(args, [], documents[0] if args.sample is not None else whole)
    rows = [row for document in documents for row in tokens.position_rows(document)]
    return write(args, rows if args.csv else [readable(row) for row in rows], {})


def readable(row: Record) -> Record:
    """A ratio as it is shown: what overflows is no number to read."""
    ratios = {field.name: row.get(field.name) for field in FIELDS if field.scale == "ratio"}
    too_large = {name: ratio for name, ratio in ratios.items() if isinstance(ratio, float) and ratio > LARGEST_RATIO}
    return {**row, **{name: ratio_number(ratio) for name, ratio in too_large.items()}}


def print_worst(request: Request) -> int:
    from dumptui.core.tables import worst_tokens

    run, limit, words = request.run, request.args.limit, vocabulary(request.run)
    if request.key is not None:
        step = tokens.open_step(run, request.key)
        *_, found = worst_tokens.of_step(step, words, limit)
    else:
        known = dict(checked_rows(request))
        *_, found = worst_tokens.worst_of_run(known, lambda key: tokens.open_step(run, key), words, limit)
    for problem in found.problems:
        report(str(problem))
    rows = found.rows if request.args.csv else [readable(row) for row in found.rows]
    return write(request.args, rows, {"run": str(run.root), "steps_read": found.read, "rows": found.rows})


def step_of_samples(request: Request) -> tuple[Step, list[Sample]]:
    """The step and the samples asked for; of one sample, where that is enough, a step that holds it alone."""
    asked = request.args.sample
    if asked is not None and asked[0] is not None and request.key in request.run.steps and asked[1] == 0:
        single = load_single(request.run.steps[request.key], asked[0])
        if single is not None:
            return single, list(single.samples)
    step = tokens.open_step(request.run, request.key)
    return step, list(step.samples) if asked is None else [tokens.find_sample(step, *asked)]


def print_pair(request: Request) -> int:
    from dumptui.core.sample import comparison

    args = request.args
    if args.sample is None or args.partner is None:
        raise DumpError("--print pair", "give the two samples with --sample I[.K] --with J[.K]")
    step = tokens.open_step(request.run, request.key)
    left, right = (tokens.find_sample(step, *one).position for one in (args.sample, args.partner))
    document = comparison.document(comparison.pair(step, left, right, vocabulary(request.run)), args.words)
    rows = document["rows"]
    assert isinstance(rows, list)
    return write(args, rows, {**step.files.key._asdict(), **document})


def print_conversation(request: Request) -> int:
    from dumptui.core.sample import conversation

    args = request.args
    if args.sample is None:
        raise DumpError("--print conversation", "give the sample with --sample I[.K]")
    step, [sample] = step_of_samples(request)
    if step.alone and not conversation.is_recorded(step, sample):
        step = tokens.open_step(request.run, request.key)
        sample = tokens.find_sample(step, *args.sample)
    sidecar = conversation.open_sidecar(step)
    talk = conversation.read_conversation(step, sample, sidecar, vocabulary(request.run))
    place = {**step.files.key._asdict(), "sample_index": sample.index, "occurrence": sample.occurrence}
    rows = list(conversation.rows(talk))
    if not args.csv and not args.json:
        rows = [{name: brief(value) for name, value in row.items()} for row in rows]
    return write(args, rows, {**place, **conversation.document(talk)})


def print_facts(request: Request) -> int:
    from dumptui.core.sample import facts
    from dumptui.core.telemetry.lifecycle import read_lifecycle
    from dumptui.core.telemetry.telemetry import Telemetry

    if request.args.sample is None:
        raise DumpError("--print facts", "give the sample with --sample I[.K]")
    step = tokens.open_step(request.run, request.key)
    sample = tokens.find_sample(step, *request.args.sample)
    life = read_lifecycle(Telemetry(request.run.root), step.files.key, sample.index)
    rows = facts.rows(facts.sample_facts(step, sample, life))
    place = {**step.files.key._asdict(), "sample_index": sample.index, "occurrence": sample.occurrence}
    return write(request.args, rows, {**place, "rows": rows})


def brief(value: object) -> object:
    """The beginning of a text in a table, with the length of a longer one."""
    if not isinstance(value, str) or len(value) <= MESSAGE_CHARACTERS:
        return value
    return f"{value[:MESSAGE_CHARACTERS]}… ({len(value):,} characters)"


def vocabulary(run: Run) -> Vocabulary | None:
    try:
        return Vocabulary.load(run.tokenizer)
    except NoTokenizer:  # ids are shown instead, which the document says with null
        return None
    except DumpError as error:
        report(f"{error}: token ids are shown")
        return None


def report(problem: str) -> None:
    """On standard error: what is printed lacks something."""
    print(f"dumptui: {visible(problem)}", file=sys.stderr)


def tell_unread(telemetry: Telemetry, paths: Callable[[Path], bool]) -> None:
    """What can't be read of these files. That the last line of a live run is not whole yet is no news."""
    for path, problem in telemetry.problems():
        if paths(path) and not problem.startswith("ends in the middle of a record"):
            report(f"{path}: {problem}")


def print_health(request: Request) -> int:
    """Row by row as they are found: the first are there at once, however long the run is."""
    from dumptui.core.health import run_health

    found: list[Record] = []
    rows = keep(run_health.whole_health(request.run), found)
    if request.args.json or request.args.csv:
        write(request.args, list(rows), {"rows": found})
    else:
        writer = TableWriter(sys.stdout, {"step": 8, "level": 7, "file": 16, "problem": 60})
        for row in rows:
            writer.write({name: value for name, value in row.items() if name not in PLACE_NAMES})
    return run_health.exit_code(found)


def print_overview(request: Request) -> int:
    from dumptui.core.health import overview, run_health

    rows = dict(checked_rows(request))
    findings = [*run_health.health(request.run), *run_health.stream_problems(request.run.root)]
    issues = overview.overview(rows, findings, complete=True)
    printed = [overview.record_of(issue) for issue in issues]
    write(request.args, printed, {"run": str(request.run.root), "rows": printed})
    return int(any(issue.severity == "error" for issue in issues))


def keep(rows: Iterable[Record], kept: list[Record]) -> Iterable[Record]:
    for row in rows:
        kept.append(row)
        yield row


def print_metrics(request: Request) -> int:
    from dumptui.core.telemetry.telemetry import Telemetry

    telemetry = Telemetry(request.run.root)
    metrics = telemetry.metrics
    if request.args.key is not None:
        metrics.check(request.args.key)
    rows = list(metrics.rows(request.args.key))
    read = {log.tail.path for log in metrics.logs}
    tell_unread(telemetry, lambda path: path in read)
    return write(request.args, rows, {"rows": rows})


def print_lanes(request: Request) -> int:
    from dumptui.core.telemetry.telemetry import Telemetry

    telemetry = Telemetry(request.run.root)
    rows = list(telemetry.lane_rows())
    tell_unread(telemetry, lambda path: True)
    return write(request.args, rows, {"rows": rows})


Printer: TypeAlias = Callable[[Request], int]

PRINTERS: dict[str, Printer] = {
    "overview": print_overview,
    "steps": print_steps,
    "samples": print_samples,
    "groups": print_groups,
    "prompts": print_prompts,
    "tools": print_tools,
    "batch": print_batch,
    "tokens": print_tokens,
    "worst": print_worst,
    "pair": print_pair,
    "conversation": print_conversation,
    "facts": print_facts,
    "health": print_health,
    "metrics": print_metrics,
    "lanes": print_lanes,
}

"""Everything missing, partial, unreadable or contradictory in a run, and the parallel layout that its files show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import TypeAlias

from dumptui.core.errors import DumpError, NotHere, unexpected
from dumptui.core.files.retry import is_young
from dumptui.core.files.step_files import StepFiles, StepKey
from dumptui.core.health.finding import Finding, record_of, size_of
from dumptui.core.health.step_health import read
from dumptui.core.process.isolated_reader import read_isolated
from dumptui.core.run.run import Run, tokenizer_of
from dumptui.core.step.ranks import Ranks, changes, in_words, missing_ranks, ranks_of
from dumptui.core.tables.steps import EARLIER_ATTEMPT
from dumptui.core.telemetry.telemetry import Telemetry
from dumptui.core.text import listed, plural
from dumptui.core.types import Record
from dumptui.core.vocabulary import tokenizer_problem

StepRow: TypeAlias = tuple[Record, frozenset[str]]
"""A row of a step, and the findings in it that are reported once per run; an empty set if it is always reported."""

NOT_COMPLETED = "check not completed"
"""How a row begins that says that a defect, or too little memory, ended a check."""

# Step sizes vary with the responses, seldom by more than a factor of two.
_ODD_SIZE = 4
_ENOUGH_STEPS = 5


def health(run: Run) -> Iterator[Record]:
    """Yield a row per finding: first those of the file listing, then those of each step, whose files are read.

    `file` is relative to the run folder; `step` is None for what concerns the whole run.
    """
    missing = missing_ranks(run)
    yield from (record_of(run.root, finding) for finding in listing_findings(run, missing))
    seen: set[str] = set()
    for files in run.steps.values():
        rows = step_rows(run.root, files, missing.get(files.key, frozenset()), lambda: None)
        yield from new_rows(rows, seen)


def step_rows(root: Path, files: StepFiles, missing: Ranks, pause: Callable[[], object]) -> list[StepRow]:
    """Return the rows of a step, whose files are read; `pause` is called about ten times a second."""
    rows: list[StepRow] = []
    once: set[str] = set()
    try:
        for finding in read(files, missing, once, pause):
            rows.append((record_of(root, finding), frozenset(once)))
            once.clear()
    except Exception as error:  # a defect or no memory: the other steps are still checked
        defect = Finding("warning", f"{NOT_COMPLETED}: {unexpected(error)}", files.key)
        rows.append((record_of(root, defect), frozenset()))
    return rows


def new_rows(step_rows: Iterable[StepRow], seen: set[str]) -> list[Record]:
    """Return the rows without those that an earlier step reported, and add what these report to `seen`."""
    unreported = []
    for row, once in step_rows:
        if not once or not once <= seen:
            unreported.append(row)
            seen |= once
    return unreported


def whole_health(run: Run) -> Iterator[Record]:
    """Yield every row of a run: those of its dumps, of its telemetry and of its tokenizer."""
    yield from health(run)
    yield from stream_problems(run.root)
    yield from tokenizer_problems(run.root)


def stream_problems(root: Path) -> list[Record]:
    """Return a row for each truncated or unreadable telemetry file, which is no fault of the dumps."""
    try:
        problems = Telemetry(root).problems(everything=True)
    except Exception as error:
        problems = [(root / "dashboard", f"{NOT_COMPLETED}: {unexpected(error)}")]
    return [record_of(root, Finding("warning", problem, None, path)) for path, problem in problems]


def tokenizer_problems(root: Path) -> list[Record]:
    """Return a row for a tokenizer that can't be read, else none."""
    tokenizer = tokenizer_of(root)
    try:
        problem = read_isolated(tokenizer_problem, tokenizer)  # a large one would keep other threads waiting for 0.2 s
    except NotHere:  # no process can be had: reading JSON can't end this one either
        problem = tokenizer_problem(tokenizer)
    except DumpError as error:
        problem = error.problem
    return [] if problem is None else [record_of(root, Finding("warning", problem, None, tokenizer))]


def exit_code(rows: Iterable[Record]) -> int:
    """Return 1 when a row is an error (something unreadable, missing or contradictory), else 0."""
    return int(any(row["level"] == "error" for row in rows))


# Findings of the listing ----------------------------------------------------------------------------------------------


def listing_findings(run: Run, missing: dict[StepKey, Ranks]) -> Iterator[Finding]:
    yield from (Finding("error", error.problem, file=Path(error.path)) for error in run.problems)
    yield from _other_files(run)
    steps = list(run.steps.values())
    yield from _without_rollout(steps)
    yield from _without_train(steps)
    yield from _lost_ranks(run, missing)
    yield from _changed_ranks(run)
    yield from _odd_sizes(steps)
    yield from _stale(steps)
    yield from _earlier(run)


def _other_files(run: Run) -> Iterator[Finding]:
    for folder, paths in groupby(run.strays, key=lambda path: path.parent):
        names = [path.name for path in paths]
        yield Finding("info", f"{plural(len(names), 'unrecognised file')} ignored: {listed(names)}", file=folder)
    for path in run.leftovers:
        yield Finding("info", "left over from an earlier attempt of the run", file=path)


def _without_rollout(steps: Sequence[StepFiles]) -> Iterator[Finding]:
    without = [files for files in steps if files.rollout is None]
    if len(without) == len(steps) and not any(files.mirror for files in steps):
        yield Finding("info", "no rollout files: the samples are read from the train files")
        return
    for files in without:
        instead = "parquet mirror" if files.mirror else "train files" if files.shards else None
        reading = f": read from its {instead}, without rewards, status and text" if instead else ""
        yield Finding("error", f"the rollout file is missing{reading}", files.key)


def _without_train(steps: Sequence[StepFiles]) -> Iterator[Finding]:
    trained = [files.key for files in steps if files.shards]
    for files in steps if trained else ():
        if files.key.evaluation or files.shards:
            continue
        if files.key > trained[-1]:
            yield Finding("info", "no train files yet", files.key)
        else:
            yield Finding("warning", "no train files, though other steps have them", files.key)


def _lost_ranks(run: Run, missing: dict[StepKey, Ranks]) -> Iterator[Finding]:
    for key, ranks in missing.items():
        files = run.steps[key]
        what = f"no train file of {in_words(ranks)}, only of {in_words(ranks_of(files))}"
        if any(is_young(entry.path) for _, entry in files.shards):
            yield Finding("info", f"still being written: {what}", key)
        else:
            yield Finding("error", what, key)


def _changed_ranks(run: Run) -> Iterator[Finding]:
    for key, before, after in changes(run):
        change = f"from this step on {in_words(after)} write train files; before it, {in_words(before)} did"
        yield Finding("info", change, key)


def _odd_sizes(steps: Sequence[StepFiles]) -> Iterator[Finding]:
    for evaluation in (False, True):
        sized = [
            (files.key, files.rollout)
            for files in steps
            if files.key.evaluation == evaluation and files.rollout is not None and files.rollout.size
        ]
        if len(sized) < _ENOUGH_STEPS:
            continue
        usual = median(entry.size for _, entry in sized)
        for key, entry in sized:
            if entry.size > usual * _ODD_SIZE or entry.size * _ODD_SIZE < usual:
                yield Finding("info", f"{size_of(entry.size)}, while the median is {size_of(usual)}", key, entry.path)


def _stale(steps: Sequence[StepFiles]) -> Iterator[Finding]:
    """Yield the steps whose train files are older than the rollout file: an earlier attempt wrote them."""
    pairs = [files for files in steps if files.rollout is not None and files.shards]
    stale = [files for files in pairs if files.outdated]
    if len(stale) > max(1, len(pairs) / 2):
        extent = f"in {len(stale)} of {len(pairs)} steps train files are older than the rollout file"
        yield Finding("info", f"{extent}: was the run copied without its file times?")
        return
    for files in stale:
        yield Finding("warning", EARLIER_ATTEMPT, files.key)


def _earlier(run: Run) -> Iterator[Finding]:
    if not run.earlier:
        return
    evals = [key.step for key in run.earlier if key.evaluation]
    trained = [key.step for key in run.earlier if not key.evaluation]
    subjects = [in_words(numbers, noun) for numbers, noun in ((trained, "step"), (evals, "eval")) if numbers]
    verb = "belongs" if len(run.earlier) == 1 else "belong"
    newest = f"older than {run.newest_first[0]}, which was written last"
    yield Finding("warning", f"{' and '.join(subjects)} {verb} to an earlier attempt of the run: {newest}")

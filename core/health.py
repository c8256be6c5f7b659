"""What is missing, partial, unreadable or contradictory in a run, and the parallel layout that its files tell of."""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from dumptui.core.errors import BeingWritten, DumpError
from dumptui.core.join import Step, load, read_shards
from dumptui.core.mirror import mirror_index
from dumptui.core.ranks import Ranks, changes, describe_layout, in_words, missing_ranks, ranks_of
from dumptui.core.record import Record
from dumptui.core.run import Run, StepFiles, StepKey, is_young
from dumptui.core.tables import EARLIER_ATTEMPT
from dumptui.core.telemetry import Telemetry

Level: TypeAlias = Literal["error", "warning", "info"]

# Step sizes vary with the responses, seldom by more than a factor of two.
_ODD_SIZE = 4
_ENOUGH_STEPS = 5
_NAMED = 5
_CHUNK = 64  # samples gathered at once: bounds the memory of a step of long responses


class Finding(NamedTuple):
    level: Level
    problem: str
    key: StepKey | None = None
    file: Path | None = None


def health(run: Run) -> Iterator[Record]:
    """A row a finding: what the listing tells at once, then step by step what the files tell when they are read.

    `file` is relative to the run folder; `step` is None for what concerns the whole run.
    """
    missing = missing_ranks(run)
    for finding in listed(run, missing):
        yield _record(run.root, finding)
    seen: set[str] = set()
    for files in run.steps.values():
        for finding in read(files, missing.get(files.key, frozenset()), seen):
            yield _record(run.root, finding)


def stream_problems(root: Path) -> Iterator[Record]:
    """A row for each telemetry file that is torn or can't be read: told, but no fault of the dumps."""
    for path, problem in Telemetry(root).problems(everything=True):
        yield _record(root, Finding("warning", problem, None, path))


def exit_code(rows: Iterable[Record]) -> int:
    """1 when something is unreadable, missing or contradictory, else 0."""
    return int(any(row["level"] == "error" for row in rows))


def _record(root: Path, finding: Finding) -> Record:
    key, file = finding.key, finding.file
    name = None if file is None else os.path.relpath(file, root)
    return {
        "step": None if key is None else key.step,
        "evaluation": None if key is None else key.evaluation,
        "file": None if name is None else _printable(name),
        "level": finding.level,
        "problem": _printable(finding.problem),
    }


def _printable(text: str) -> str:
    """A file name need not be text: bytes of it that are none become replacement marks."""
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


# What the listing tells ----------------------------------------------------------------------------------------------


def listed(run: Run, missing: dict[StepKey, Ranks]) -> Iterator[Finding]:
    yield from (Finding("error", error.problem, file=Path(error.path)) for error in run.problems)
    yield from _other_files(run)
    steps = list(run.steps.values())
    yield from _without_rollout(steps)
    yield from _without_train(steps)
    yield from _lost_ranks(run, missing)
    yield from _changed_ranks(run)
    yield from _odd_sizes(steps)
    yield from _stale(steps)


def _other_files(run: Run) -> Iterator[Finding]:
    for folder, paths in groupby(run.strays, key=lambda path: path.parent):
        names = [path.name for path in paths]
        files = "1 file with a foreign name is" if len(names) == 1 else f"{len(names)} files with foreign names are"
        yield Finding("info", f"{files} ignored: {_some(names)}", file=folder)
    for path in run.leftovers:
        yield Finding("info", "left over: what an earlier attempt of the run had written", file=path)


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
        change = f"from here on {in_words(after)} write train files, before it was {in_words(before)}"
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
                yield Finding("info", f"{_bytes(entry.size)}, while the median is {_bytes(usual)}", key, entry.path)


def _stale(steps: Sequence[StepFiles]) -> Iterator[Finding]:
    """A train file is written after the rollout file of its step, so an older one is of an earlier attempt."""
    pairs = [files for files in steps if files.rollout is not None and files.shards]
    stale = [files for files in pairs if files.outdated]
    if len(stale) > max(1, len(pairs) / 2):
        said = f"in {len(stale)} of {len(pairs)} steps train files are older than the rollout file"
        yield Finding("info", f"{said}: a copy that did not keep the times of its files?")
        return
    for files in stale:
        yield Finding("warning", EARLIER_ATTEMPT, files.key)


# What the files tell -------------------------------------------------------------------------------------------------


def read(files: StepFiles, missing: Ranks, seen: set[str]) -> Iterator[Finding]:
    """Read a step and say what is wrong with it. `seen` keeps what is told of a run only once."""
    yield from _torn(files)
    try:
        step = load(files)
    except DumpError as error:
        found = [error] if files.rollout is not None else []
        yield from (_unreadable(files.key, error) for error in found + read_shards(files, None)[1])
        return
    if step.rollout_problem is not None and files.rollout is not None:
        problem = f"{step.rollout_problem.problem}; read from its parquet mirror instead"
        yield Finding("error", problem, files.key, files.rollout.path)
    yield from _mirror(step)
    yield from (_unreadable(files.key, error) for error in step.broken)
    yield from _contents(step)
    yield from _coverage(step, missing)
    yield from _fields(step)
    layout = None if missing or step.broken else describe_layout(step)
    if layout is not None and layout not in seen:
        seen.add(layout)
        written = f"train files of {in_words(ranks_of(files))}" if ranks_of(files) else "one train file a step"
        yield Finding("info", f"layout: {layout}; {written}", files.key)


def _unreadable(key: StepKey, error: DumpError) -> Finding:
    return Finding("info" if isinstance(error, BeingWritten) else "error", error.problem, key, Path(error.path))


def _mirror(step: Step) -> Iterator[Finding]:
    mirror = step.files.mirror
    if mirror is None or step.rollout.path == mirror.path:
        return
    try:
        mirrored = list(mirror_index(mirror.path).iter_rows())
    except DumpError as error:
        yield _unreadable(step.files.key, error)
        return
    if mirrored != [(one.index, one.response_length, one.total_length) for one in step.samples]:
        yield Finding("error", "mirrors other samples than the rollout file holds", step.files.key, mirror.path)


def _torn(files: StepFiles) -> Iterator[Finding]:
    if files.trajectory is not None and files.trajectory.size and not is_young(files.trajectory.path):
        try:
            with open(files.trajectory.path, "rb") as lines:
                lines.seek(-1, os.SEEK_END)
                torn = lines.read(1) != b"\n"
        except OSError as error:
            yield Finding("error", f"can't be read: {error.strerror}", files.key, files.trajectory.path)
            return
        if torn:
            yield Finding("warning", "its last line is cut", files.key, files.trajectory.path)


def _contents(step: Step) -> Iterator[Finding]:
    """Where the content of a file contradicts its name, the rollout file, or the other files."""
    key = step.files.key
    if step.rollout_problem is None:
        yield from (Finding("error", note, key, step.rollout.path) for note in step.rollout.notes)
    if not step.samples:
        yield Finding("info", "holds no samples", key, step.rollout.path)
    notes = dict.fromkeys((shard.path, note) for shard in step.shards for note in shard.notes)
    yield from (Finding("error", note, key, path) for path, note in notes)
    for shard in step.shards:
        if shard.path.stem.isdecimal() and "format_version" not in shard.file.root:
            yield Finding("warning", "no rank in its name: ranks may have overwritten each other", key, shard.path)
    if step.orphans:
        yield Finding("error", f"{_count(len(step.orphans), 'train row')} without a sample: {step.orphans[0]}", key)
    yield from _sample_notes(step)


def _sample_notes(step: Step) -> Iterator[Finding]:
    told = Counter(note for sample in step.samples for note in sample.notes if note not in step.rollout.notes)
    for note, count in told.items():
        yield Finding("warning", f"{_count(count, 'sample')}: {note}", step.files.key, step.rollout.path)


def _coverage(step: Step, missing: Ranks) -> Iterator[Finding]:
    key, all_samples, lost = step.files.key, len(step.samples), _lost(step, missing)
    if step.trained < all_samples and step.files.shards and not key.evaluation:
        why = ", ".join(lost) or "the others were dropped by the schedule"
        have = f"{step.trained} of {all_samples} samples have train data"
        yield Finding("warning" if lost else "info", f"{have}: {why}", key)
    for shard in step.shards:
        held = _length(shard.columns.get("raw_reward"))
        if held > all_samples or (held not in (0, all_samples, step.trained) and not lost):
            yield Finding("error", f"raw_reward has {held} entries for {all_samples} samples", key, shard.path)


def _lost(step: Step, missing: Ranks) -> list[str]:
    """Why samples may lack their train row, other than that they were not trained on."""
    states = Counter(error.state for error in step.broken)
    shards = Counter({"missing": len(missing)}) + states
    lost = [f"{_count(number, 'shard')} {what}" for what, number in shards.items()]
    return lost + ([f"{_count(len(step.orphans), 'row')} of other samples"] if step.orphans else [])


def _length(column: object) -> int:
    return len(column) if isinstance(column, (list, tuple)) else 0


def _fields(step: Step) -> Iterator[Finding]:
    """Per reason, the fields that are not whole and in how many samples."""
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    first: dict[tuple[str, str], str] = {}
    for name, state, reason in _states(step):
        same = state, re.sub(r"\d+", "", reason)
        counts[same][name] += 1
        first.setdefault(same, reason)
    for same, fields in counts.items():
        level: Level = "warning" if same[0] == "partial" else "error"
        extent = f"{same[0]} in {max(fields.values())} of {_count(len(step.samples), 'sample')}"
        yield Finding(level, f"{', '.join(fields)} {extent}: {first[same]}", step.files.key)


def _states(step: Step) -> Iterator[tuple[str, str, str]]:
    """(field, state, reason) of everything that is partial or unreadable."""
    names = [name for name in step.fields if name not in ("lp_diff", "imp_ratio")]
    for start in range(0, len(step.samples), _CHUNK):
        chunk = np.arange(start, min(start + _CHUNK, len(step.samples)))
        for flat in (step.masks(chunk), *(step.gather(name, chunk) for name in names)):
            for state, reason in zip(flat.states, flat.reasons, strict=True):
                if state in ("partial", "unreadable"):
                    yield flat.name, state, reason or ""


# Words ---------------------------------------------------------------------------------------------------------------


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _bytes(size: float) -> str:
    for unit in ("B", "KB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"

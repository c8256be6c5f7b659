"""Everything missing, partial, unreadable or contradictory in one step, whose files are read for it."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import numpy as np

from dumptui.core.arrays import Ints
from dumptui.core.errors import BeingWritten, DumpError, NotHere
from dumptui.core.fields.registry import definition
from dumptui.core.fields.token_field import TokenField
from dumptui.core.files.retry import is_young
from dumptui.core.files.step_files import StepFiles, StepKey
from dumptui.core.formats.format import readers_of
from dumptui.core.formats.sample import WEIGHTED_MASK, Sample
from dumptui.core.formats.values import is_other_shape
from dumptui.core.health.finding import Finding, Level
from dumptui.core.health.odd_values import OddValues
from dumptui.core.step.copies import Contradiction, contradictions
from dumptui.core.step.field_survey import parts
from dumptui.core.step.load import load, read_shards
from dumptui.core.step.ranks import Ranks, describe_layout, in_words, ranks_of
from dumptui.core.step.schedule import lost_rollouts
from dumptui.core.step.step import Step
from dumptui.core.text import plural


def read(files: StepFiles, missing: Ranks, seen: set[str], pause: Callable[[], object]) -> Iterator[Finding]:
    """Read a step and yield what is wrong with it. `seen` collects the findings that are reported once per run."""

    def on_read(done: int, total: int) -> None:
        pause()

    yield from _trajectory(files)
    try:
        step = load(files, on_read)
    except DumpError as error:
        errors = (
            [] if error.path == str(files.key) else [error]
        )  # that the rollout file is missing is found in the listing
        yield from (_unreadable(files.key, error) for error in errors + read_shards(files, on_read)[1])
        return
    if step.rollout_problem is not None and files.rollout is not None:
        problem = f"{step.rollout_problem.problem}; read from its parquet mirror instead"
        yield Finding("error", problem, files.key, files.rollout.path)
    yield from _mirror(step, seen)
    yield from (_unreadable(files.key, error) for error in step.broken)
    yield from _contents(step)
    yield from _coverage(step, missing)
    yield from _fields(step, bool(missing or step.broken), pause)
    yield from _copies(step, pause)
    layout = None if missing or step.broken else describe_layout(step)
    if layout is not None and layout not in seen:
        seen.add(layout)
        written = f"train files of {in_words(ranks_of(files))}" if ranks_of(files) else "one train file per step"
        yield Finding("info", f"layout: {layout}; {written}", files.key)


def _unreadable(key: StepKey, error: DumpError) -> Finding:
    return Finding(
        "info" if isinstance(error, (BeingWritten, NotHere)) else "error", error.problem, key, Path(error.path)
    )


def _mirror(step: Step, seen: set[str]) -> Iterator[Finding]:
    mirror = step.files.mirror
    if mirror is None or step.rollout.path == mirror.path:
        return
    readers = readers_of(step.files)
    try:
        mirrored = list(readers.mirror_index(mirror.path))
        if mirrored != [(sample.index, sample.response_length, sample.total_length) for sample in step.samples]:
            yield Finding("error", "mirrors different samples than the rollout file", step.files.key, mirror.path)
            return
        pairs = zip(step.samples, readers.read_mirror(mirror.path), strict=True)
        differing = sum(not _same_lists(sample, copy) for sample, copy in pairs)
    except DumpError as error:
        if isinstance(error, NotHere):
            if error.problem in seen:  # the same package is missing for all steps
                return
            seen.add(error.problem)
        yield _unreadable(step.files.key, error)
        return
    if differing:
        extent = f"{differing} of {plural(len(step.samples), 'sample')}"
        problem = f"tokens, masks or log-probs differ from the rollout file in {extent}"
        yield Finding("error", problem, step.files.key, mirror.path)


def _same_lists(sample: Sample, copy: Sample) -> bool:
    pairs = (
        (sample.tokens, copy.tokens),
        (sample.loss_mask, copy.loss_mask),
        (sample.rollout_log_probs, copy.rollout_log_probs),
    )
    return all(
        dumped is mirrored
        or (dumped is not None and mirrored is not None and np.array_equal(dumped, mirrored, equal_nan=True))
        for dumped, mirrored in pairs
    )


def _trajectory(files: StepFiles) -> Iterator[Finding]:
    if files.trajectory is None or is_young(files.trajectory.path):
        return
    path = files.trajectory.path
    try:
        faults = readers_of(files).sidecar_faults(path)
    except DumpError as error:
        yield _unreadable(files.key, error)
        return
    yield from (Finding("warning", fault, files.key, path) for fault in faults)


def _contents(step: Step) -> Iterator[Finding]:
    """Yield where the content of a file contradicts its name, the rollout file, or the other files."""
    key = step.files.key
    if step.rollout_problem is None:
        yield from (Finding("error", note, key, step.rollout.path) for note in step.rollout.notes)
    if not step.samples:
        yield Finding("info", "holds no samples", key, step.rollout.path)
    notes = dict.fromkeys((shard.path, note) for shard in step.shards for note in shard.notes)
    yield from (Finding("error", note, key, path) for path, note in notes)
    for shard in step.shards:
        if shard.path.stem.isdecimal() and "format_version" not in shard.file.root:
            yield Finding("warning", "no rank in the file name: ranks may have overwritten each other", key, shard.path)
    if orphans := step.alignment.orphans:
        yield Finding("error", f"{plural(len(orphans), 'train row')} without a sample: {orphans[0]}", key)
    yield from _sample_notes(step)
    yield from _rewards(step)


def _sample_notes(step: Step) -> Iterator[Finding]:
    notes = Counter(note for sample in step.samples for note in sample.notes if note not in step.rollout.notes)
    for note, number in notes.items():
        yield Finding("warning", f"{plural(number, 'sample')}: {note}", step.files.key, step.rollout.path)


def _rewards(step: Step) -> Iterator[Finding]:
    columns = {"reward": [sample.reward for sample in step.samples], "raw_reward": step.alignment.raw_rewards or []}
    for name, rewards in columns.items():
        parts = [list(reward.values()) if isinstance(reward, Mapping) else [reward] for reward in rewards]
        odd = sum(any(isinstance(value, float) and not math.isfinite(value) for value in values) for values in parts)
        if odd:
            yield Finding("error", f"{name} is NaN or infinite in {plural(odd, 'sample')}", step.files.key)


def _coverage(step: Step, missing: Ranks) -> Iterator[Finding]:
    key, all_samples, lost = step.files.key, len(step.samples), _lost(step, missing)
    if step.trained < all_samples and step.files.shards and not key.evaluation:
        have = f"{step.trained} of {all_samples} samples have train data"
        gone = None if lost else lost_rollouts(step)
        why = ", ".join(lost) or gone or "the others were dropped by the schedule"
        yield Finding(_unless_young(step, "error") if gone else "warning" if lost else "info", f"{have}: {why}", key)
    for shard in step.shards:
        held = _length(shard.columns.get("raw_reward"))
        if held > all_samples or (held not in (0, all_samples, step.trained) and not lost):
            yield Finding("error", f"raw_reward has {held} entries for {all_samples} samples", key, shard.path)


def _lost(step: Step, missing: Ranks) -> list[str]:
    """Return why samples may lack their train row although they were trained on."""
    states = Counter(error.state for error in step.broken)
    shards = Counter({"missing": len(missing)}) + states
    lost = [f"{plural(number, 'shard')} {what}" for what, number in shards.items()]
    return lost + ([f"{plural(len(step.alignment.orphans), 'row')} of other samples"] if step.alignment.orphans else [])


def _unless_young(step: Step, level: Level) -> Level:
    """Return `level`, or "info" while a train file of the step may still be being written."""
    return "info" if any(is_young(entry.path) for _, entry in step.files.shards) else level


def _length(column: object) -> int:
    return len(column) if isinstance(column, (list, tuple)) else 0


def _fields(step: Step, reported: bool, pause: Callable[[], object]) -> Iterator[Finding]:
    """Yield, per reason, the incomplete fields and in how many samples; `reported` if the missing parts are known."""
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    first: dict[tuple[str, str], str] = {}
    odd = OddValues(step)
    for name, state, reason in _states(step, pause, odd):
        same = state, re.sub(r"\d+", "", reason)
        counts[same][name] += 1
        first.setdefault(same, reason)
    levels: dict[str, Level] = {"partial": "warning" if reported else _unless_young(step, "error"), "odd": "warning"}
    for same, fields in counts.items():
        level: Level = "info" if is_other_shape(first[same]) else levels.get(same[0], "error")
        extent = f"{same[0]} in {max(fields.values())} of {plural(len(step.samples), 'sample')}"
        yield Finding(level, f"{', '.join(fields)} {extent}: {first[same]}", step.files.key)
    yield from odd.findings()


def _copies(step: Step, pause: Callable[[], object]) -> Iterator[Finding]:
    """Yield, per column, the files that contradict each other and in how many samples."""
    samples: dict[str, dict[int, Contradiction]] = {}
    for contradiction in contradictions(step):
        pause()
        samples.setdefault(contradiction.name, {}).setdefault(contradiction.position, contradiction)
    for name, contradicted in samples.items():
        first = next(iter(contradicted.values()))
        where = f"{first.other} contradicts {first.shown}, whose values are shown"
        problem = f"copies of {name} differ in {len(contradicted)} of {plural(len(step.samples), 'sample')}: {where}"
        yield Finding("error", problem, step.files.key)


def _states(step: Step, pause: Callable[[], object], odd: OddValues) -> Iterator[tuple[str, str, str]]:
    """Yield (field, state, reason) of everything partial or unreadable; `odd` counts odd values in the rest."""
    gather: dict[str, Callable[[Ints], TokenField]] = {
        name: partial(step.gather, name) for name in step.fields if not definition(name).inputs
    }
    for positions in parts(step):  # bounds the memory of a step of long responses
        mask = step.masks(positions)
        for name in ("loss_mask", *gather):
            pause()
            flat = gather[name](positions) if name in gather else mask
            if flat is not mask:
                odd.look(flat, mask)
            for state, reason in zip(flat.states, flat.reasons, strict=True):
                if state in ("partial", "unreadable"):
                    yield name, state, reason or ""
                elif reason == WEIGHTED_MASK:
                    yield name, "odd", reason

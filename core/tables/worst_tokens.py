"""The worst tokens of a step and of a run: where trainer and engine differ most, with what stands around them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from dumptui.core.errors import DumpError
from dumptui.core.files.step_files import StepKey
from dumptui.core.formats.sample import Sample
from dumptui.core.step.field_survey import survey
from dumptui.core.step.step import Step
from dumptui.core.types import Record
from dumptui.core.vocabulary import Vocabulary

STATISTIC = "lp_diff"
MOST_TOKENS = 20
FIELD_NAMES = (STATISTIC, "imp_ratio", "train_log_probs", "rollout_log_probs")
BEFORE_TOKENS, AFTER_TOKENS = 12, 4
"""Tokens of context on either side."""


class RunSearch(NamedTuple):
    """The worst tokens of a run as far as steps were read: `rows`, how many of the `steps` were `read`, and why some
    could not be.
    """

    rows: list[Record]
    read: int
    steps: int
    problems: tuple[DumpError, ...] = ()
    complete: bool = False


def worst_of_step(step: Step, vocabulary: Vocabulary | None, limit: int = MOST_TOKENS) -> list[Record]:
    """Return a row for each of the worst unmasked response tokens, the worst first: NaN and infinite differences,
    then by |trainer - engine|.
    """
    found = survey(step, STATISTIC)
    positions, tokens = found.positions[:limit], found.tokens[:limit]
    chosen, owners = np.unique(positions, return_inverse=True)
    fields = {name: step.gather(name, chosen) for name in FIELD_NAMES}
    rows = []
    for position, owner, token in zip(positions.tolist(), owners.tolist(), tokens.tolist(), strict=True):
        sample = step.samples[position]
        at = token - sample.prompt_length
        values = {name: float(field.one(owner)[0][at]) for name, field in fields.items()}
        rows.append({**place_of(step, sample, token), **values, **text_around(sample, token, vocabulary)})
    return rows


def of_step(step: Step, vocabulary: Vocabulary | None, limit: int = MOST_TOKENS) -> Iterator[RunSearch]:
    """Yield what `worst_of_run` yields, of one step."""
    yield RunSearch(worst_of_step(step, vocabulary, limit), 1, 1, complete=True)


def place_of(step: Step, sample: Sample, token: int) -> Record:
    row = step.alignment.rows[sample.position]
    versions = set(sample.versions)
    return {
        "step": step.files.key.step,
        "evaluation": step.files.key.evaluation,
        "sample_index": sample.index,
        "occurrence": sample.occurrence,
        "group_index": sample.group,
        "rank": None if row is None else row.group.first.rank,
        "version": versions.pop() if len(versions) == 1 else sample.version_at(token),
        "position": token,
    }


def text_around(sample: Sample, token: int, vocabulary: Vocabulary | None) -> Record:
    """Return the id and text of a token, and the text before and after it; no texts without a tokenizer."""
    first = max(token - BEFORE_TOKENS, 0)
    ids = sample.tokens[first : token + 1 + AFTER_TOKENS].tolist()
    texts = None if vocabulary is None else vocabulary.texts(ids)
    at = token - first
    return {
        "token_id": ids[at],
        "text": None if texts is None else texts[at],
        "before": None if texts is None else "".join(texts[:at]),
        "after": None if texts is None else "".join(texts[at + 1 :]),
    }


def worst_of_run(
    rows: Mapping[StepKey, Record],
    read: Callable[[StepKey], Step],
    vocabulary: Vocabulary | None,
    limit: int = MOST_TOKENS,
) -> Iterator[RunSearch]:
    """Yield what is known after each step that is read. `rows` are those of the steps table.

    A step holds no token worse than its largest |difference|, so the steps are read in that order, and only until the
    next one can't add any: for 20 tokens at most 20 steps, however long the run is.
    """
    bounds = {key: bound for key, row in rows.items() if (bound := bound_of(row)) is not None}
    worst: list[Record] = []
    problems: list[DumpError] = []
    count = 0
    for count, key in enumerate(sorted(bounds, key=lambda key: -bounds[key]), 1):
        if len(worst) == limit and magnitude(worst[-1]) >= bounds[key]:
            count -= 1
            break
        try:
            worst = sorted([*worst, *worst_of_step(read(key), vocabulary, limit)], key=magnitude, reverse=True)[:limit]
        except DumpError as error:
            problems.append(error)
        yield RunSearch(worst, count, len(bounds), tuple(problems))
    yield RunSearch(worst, count, len(bounds), tuple(problems), complete=True)


def bound_of(row: Record) -> float | None:
    """Return what no |difference| of a step exceeds; None for a step without any difference."""
    largest = row.get("max_abs_lp_diff")
    if row.get("not_finite"):
        return math.inf
    return largest if isinstance(largest, float) else None


def magnitude(row: Record) -> float:
    value = row[STATISTIC]
    assert isinstance(value, float)
    return math.inf if math.isnan(value) else abs(value)

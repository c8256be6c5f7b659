"""Which samples of a step answer the same prompt: by group_index, and by what tells groups apart that share one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

from dumptui.core.errors import DumpError
from dumptui.core.formats.miles.train_file import as_list
from dumptui.core.formats.sample import Sample, datasets
from dumptui.core.formats.values import alike, as_int, as_mapping, as_text

if TYPE_CHECKING:
    from dumptui.core.step.step import Step

RUN_TIME = frozenset(
    [
        "raw_reward",
        "round_number",
        "start_rollout_id",
        "lifecycle",
        "tito_session_mismatch",
        "accumulated_token_ids",
        "max_trim_tokens",
        "leaf",
        "tree",
        "agent",
        "agent_metrics",
        "messages",
        "opd_student_top_logprobs",
        "rollout_log_probs_source",
    ]
)
"""Metadata that generation adds to a sample: not of its question."""


# Training -------------------------------------------------------------------------------------------------------


def group_parts(step: Step) -> list[int]:
    """Which of the groups of its group_index each sample is in, counted from 0: adapters may each count from zero.

    The file's prompt_group_sizes tell where they cover the step, else the samples' adapters.
    """
    blocks = recorded_blocks(step)
    parts: list[object] = [adapter_name(one) for one in step.samples] if blocks is None else list(blocks)
    seen: dict[int | None, list[object]] = {}
    found = []
    for sample, part in zip(step.samples, parts, strict=True):
        known = seen.setdefault(sample.group, [])
        if part not in known:
            known.append(part)
        found.append(0 if sample.group is None else known.index(part))
    return found


def recorded_blocks(step: Step) -> list[int] | None:
    """The prompt group of each sample by the sizes that the rollout file records; None where they don't cover it."""
    sizes = [as_int(size) for size in as_list(step.rollout.metadata.get("prompt_group_sizes")) or ()]
    counts = [size for size in sizes if size is not None and size > 0]
    if not counts or len(counts) < len(sizes) or sum(counts) != len(step.samples):
        return None
    return [at for at, size in enumerate(counts) for _ in range(size)]


def adapter_name(sample: Sample) -> str | None:
    """The LoRA adapter that a sample trains; None without one that has a name."""
    adapter = sample.extra.get("adapter")
    name = None if adapter is None else as_mapping(adapter).get("name")
    return None if name is None else as_text(name)


def mates(step: Step, position: int) -> list[Sample]:
    """The samples of a sample's prompt group, itself among them; none where it is in no group."""
    group, parts = step.samples[position].group, group_parts(step)
    if group is None:
        return []
    return [one for one in step.samples if one.group == group and parts[one.position] == parts[position]]


# Evaluations ----------------------------------------------------------------------------------------------------


def prompt_groups(samples: Sequence[Sample]) -> list[int | None]:
    """The groups of an eval file, which dumps none: a run of samples of one question within a dataset.

    None where there is no prompt.
    """
    starts = {0, *question_starts(samples)}
    found: list[int | None] = []
    number = -1
    for at, sample in enumerate(samples):
        number += at in starts
        found.append(None if sample.prompt is None else number)
    return found


def question_starts(samples: Sequence[Sample]) -> Iterator[int]:
    """Where another question begins, by its dataset, prompt, label and media; then, in runs of those, by metadata."""
    for dataset in runs_of(samples):
        edges = [at for at in dataset[1:] if not same_question(samples[at - 1], samples[at])]
        bounds = [dataset.start, *edges, dataset.stop]
        runs = [range(first, last) for first, last in pairwise(bounds)]
        single = any(len(run) == 1 for run in runs)
        yield from bounds[:-1]
        for run in runs:
            yield from metadata_starts(samples, run, single)


def runs_of(samples: Sequence[Sample]) -> list[range]:
    """The positions of each dataset."""
    numbers = enumerate(datasets(samples))
    each = [[at for at, _ in run] for _, run in groupby(numbers, key=lambda one: one[1])]
    return [range(one[0], one[-1] + 1) for one in each]


def same_question(one: Sample, other: Sample) -> bool:
    return alike(one.prompt, other.prompt) and alike(one.label, other.label) and same_media(one, other)


def same_media(one: Sample, other: Sample) -> bool:
    """By the raw media where they are dumped, else by what a processor made of them."""
    for name in ("multimodal_inputs", "multimodal_train_inputs"):
        mine, theirs = one.extra.get(name), other.extra.get(name)
        if mine is not None or theirs is not None:
            try:
                return alike(mine, theirs)
            except DumpError:  # a tensor that can't be read tells nothing
                return True
    return True


def metadata_starts(samples: Sequence[Sample], run: range, single: bool) -> list[int]:
    """Where metadata tells apart questions that are otherwise equal: a key of the data set is the same in all samples
    of a question, so that it cuts the run into stretches of equal length. Stretches of one sample are only believed
    where the data set is known to ask a question once (`single`): else a key may be of each generation.
    """
    if len(run) < 2:
        return []
    names = {name for at in run for name in samples[at].metadata} - RUN_TIME
    found: list[list[int]] = []
    for name in names:
        values = [samples[at].metadata.get(name) for at in run]
        edges = [at for at in range(1, len(run)) if not alike(values[at - 1], values[at])]
        lengths = {last - first for first, last in pairwise([0, *edges, len(run)])}
        if edges and len(lengths) == 1 and (single or lengths != {1}):
            found.append([run.start + at for at in edges])
    return max(found, key=len, default=[])

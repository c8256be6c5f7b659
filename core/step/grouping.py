"""Groups of samples that answer the same prompt: by group_index, and by what distinguishes groups with the same one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

from dumptui.core.errors import DumpError
from dumptui.core.formats.sample import Sample, datasets
from dumptui.core.formats.values import alike, as_int, as_list, as_mapping, as_text

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
"""Metadata that generation adds to a sample, so that it says nothing about the question."""


# Training -------------------------------------------------------------------------------------------------------


def group_parts(step: Step) -> list[int]:
    """Return which group of its group_index each sample is in, counted from 0: adapters may each count from 0.

    The file's prompt_group_sizes decide if they cover the step, else the samples' adapters.
    """
    blocks = recorded_blocks(step)
    parts: list[object] = [adapter_name(sample) for sample in step.samples] if blocks is None else list(blocks)
    by_group: dict[int | None, list[object]] = {}
    numbers = []
    for sample, part in zip(step.samples, parts, strict=True):
        known = by_group.setdefault(sample.group, [])
        if part not in known:
            known.append(part)
        numbers.append(0 if sample.group is None else known.index(part))
    return numbers


def recorded_blocks(step: Step) -> list[int] | None:
    """Return the prompt group of each sample by the recorded group sizes; None if these don't cover the step."""
    sizes = [as_int(size) for size in as_list(step.rollout.metadata.get("prompt_group_sizes")) or ()]
    counts = [size for size in sizes if size is not None and size > 0]
    if not counts or len(counts) < len(sizes) or sum(counts) != len(step.samples):
        return None
    return [number for number, size in enumerate(counts) for _ in range(size)]


def adapter_name(sample: Sample) -> str | None:
    """Return the name of the LoRA adapter that a sample trains; None without one."""
    adapter = sample.extra.get("adapter")
    name = None if adapter is None else as_mapping(adapter).get("name")
    return None if name is None else as_text(name)


def mates(step: Step, position: int) -> list[Sample]:
    """Return the samples of a sample's prompt group, itself among them; none if it is in no group."""
    group, parts = step.samples[position].group, group_parts(step)
    if group is None:
        return []
    return [mate for mate in step.samples if mate.group == group and parts[mate.position] == parts[position]]


# Evaluations ----------------------------------------------------------------------------------------------------


def prompt_groups(samples: Sequence[Sample]) -> list[int | None]:
    """Return the groups of an eval file, which dumps none: runs of samples of one question within a dataset.

    None for a sample without a prompt.
    """
    starts = {0, *question_starts(samples)}
    groups: list[int | None] = []
    number = -1
    for position, sample in enumerate(samples):
        number += position in starts
        groups.append(None if sample.prompt is None else number)
    return groups


def question_starts(samples: Sequence[Sample]) -> Iterator[int]:
    """Yield where another question begins: by dataset, prompt, label and media, within these by metadata."""
    for dataset in runs_of(samples):
        edges = [start for start in dataset[1:] if not same_question(samples[start - 1], samples[start])]
        bounds = [dataset.start, *edges, dataset.stop]
        runs = [range(first, last) for first, last in pairwise(bounds)]
        single = any(len(run) == 1 for run in runs)
        yield from bounds[:-1]
        for run in runs:
            yield from metadata_starts(samples, run, single)


def runs_of(samples: Sequence[Sample]) -> list[range]:
    """Return the positions of each dataset."""
    numbers = enumerate(datasets(samples))
    runs = [[position for position, _ in run] for _, run in groupby(numbers, key=lambda pair: pair[1])]
    return [range(run[0], run[-1] + 1) for run in runs]


def same_question(sample: Sample, other: Sample) -> bool:
    return alike(sample.prompt, other.prompt) and alike(sample.label, other.label) and same_media(sample, other)


def same_media(sample: Sample, other: Sample) -> bool:
    """Whether two samples have equal media: raw if dumped, else as a processor made them."""
    for name in ("multimodal_inputs", "multimodal_train_inputs"):
        media, other_media = sample.extra.get(name), other.extra.get(name)
        if media is not None or other_media is not None:
            try:
                return alike(media, other_media)
            except DumpError:  # a tensor that can't be read shows no difference
                return True
    return True


def metadata_starts(samples: Sequence[Sample], run: range, single: bool) -> list[int]:
    """Return where metadata distinguishes questions that are otherwise equal.

    A key of the data set is the same in all samples of a question, so that it cuts the run into parts of equal length.
    Parts of one sample only count if the data set is known to ask a question once (`single`): else a key may belong to
    each generation.
    """
    if len(run) < 2:
        return []
    names = {name for position in run for name in samples[position].metadata} - RUN_TIME
    starts: list[list[int]] = []
    for name in names:
        values = [samples[position].metadata.get(name) for position in run]
        edges = [index for index in range(1, len(run)) if not alike(values[index - 1], values[index])]
        lengths = {last - first for first, last in pairwise([0, *edges, len(run)])}
        if edges and len(lengths) == 1 and (single or lengths != {1}):
            starts.append([run.start + index for index in edges])
    return max(starts, key=len, default=[])

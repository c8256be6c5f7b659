"""What `--print` answers, as plain values: the documents of the command line contract."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from dumptui.core.arrays import Array, Bools
from dumptui.core.errors import DumpError
from dumptui.core.fields.registry import field_names
from dumptui.core.fields.token_field import TokenField, shown
from dumptui.core.files.step_files import StepKey
from dumptui.core.formats.sample import Sample
from dumptui.core.formats.values import as_text, preview
from dumptui.core.parallel.shard_group import ENGINE_COLUMN
from dumptui.core.run.run import Run
from dumptui.core.step.copies import contradictions, in_words
from dumptui.core.step.load import load
from dumptui.core.step.step import Step
from dumptui.core.text import plural
from dumptui.core.types import Record
from dumptui.core.vocabulary import Vocabulary

# What holds float32 log-probs as they were.
EXACT_DTYPES = frozenset(("float32", "float64"))


def newest(run: Run) -> Step:
    """The newest train step that can be read and has samples, else the newest such eval step."""
    problem: DumpError | None = None
    for key in run.newest_first:
        try:
            step = load(run.steps[key])
        except DumpError as error:
            problem = problem or error
            continue
        if step.samples:
            return step
    raise problem or DumpError(run.root, "no step has samples")


def open_step(run: Run, key: StepKey | None) -> Step:
    """Raises DumpError for a step that is not there or can't be read."""
    if key is None:
        return newest(run)
    return load(run.files(key))


def find_sample(step: Step, index: int | None, occurrence: int) -> Sample:
    for sample in step.samples:
        if sample.index == index and sample.occurrence == occurrence:
            return sample
    raise DumpError(step.rollout.path, f"no sample {index}{f'.{occurrence}' if occurrence else ''} in {step.files.key}")


# Tokens ---------------------------------------------------------------------------------------------------------


def tokens(step: Step, vocabulary: Vocabulary | None, chosen: list[Sample]) -> Iterator[Record]:
    """The tokens document of each chosen sample, in order."""
    positions = np.array([sample.position for sample in chosen], np.int64)
    mask = step.masks(positions)
    names = [name for name in field_names() if name not in step.fields] + step.fields
    fields = {name: step.gather(name, positions) for name in names}
    for at, sample in enumerate(chosen):
        yield {
            "step": step.files.key.step,
            "evaluation": step.files.key.evaluation,
            "sample_index": sample.index,
            "occurrence": sample.occurrence,
            "total_length": sample.total_length,
            "prompt_length": sample.prompt_length,
            "response_length": sample.response_length,
            "token_ids": sample.tokens.tolist(),
            "token_text": None if vocabulary is None else vocabulary.texts(sample.tokens.tolist()),
            "loss_mask": mask.one(at)[0].tolist() if mask.states[at] == "ok" else None,
            "fields": {name: field_document(flat, at, shown(flat, mask, at)) for name, flat in fields.items()},
            "notes": notes(step, sample, mask.reasons[at], vocabulary),
            "metadata": None if step.alone else previews(sample.metadata),
            "extra": None if step.alone else previews(sample.extra),
        }


def previews(values: Mapping[str, Any]) -> dict[str, Any]:
    return {as_text(key): preview(value) for key, value in values.items()}


def field_document(flat: TokenField, at: int, where: Bools) -> Record:
    state = flat.states[at]
    has_values = state in ("ok", "partial")
    values = numbers(flat.one(at)[0], where) if has_values else None
    reason = flat.reasons[at] or ("no file has the column" if state == "not dumped" else None)
    return {"state": state, "reason": reason, "values": values}


def numbers(values: Array, where: Bools) -> list[Any]:
    """Python numbers, None where there is none to show."""
    out: list[Any] = values.tolist()
    for at in np.flatnonzero(~where):
        out[at] = None
    return out


def notes(step: Step, sample: Sample, mask_reason: str | None, vocabulary: Vocabulary | None = None) -> list[str]:
    """What has to be known to read the sample's values, and of its text where the `vocabulary` is known."""
    from dumptui.core.sample.response_text import text_note  # 2 % of a short view that does without

    found = [*sample.notes, *filter(None, [mask_reason, text_note(sample, vocabulary)])]
    row = step.alignment.rows[sample.position]
    if row is None:
        if not step.files.key.evaluation:
            refusal = step.alignment.refused.get(sample.position)
            found.append("no train data for this sample" + (f": {refusal.reason}" if refusal else ""))
        return found
    shard = row.group.first
    if expanded := int(shard.totals[row.row]) - sample.total_length:
        found.append(f"train side expanded by {expanded} tokens")
    alignment = row.group.token_alignments.get(row.row)
    if alignment is not None and (runs := int((~alignment.own).sum())):
        found.append(f"{plural(runs, 'token')} of the response stand for runs of media, of which no value is shown")
    if row.tied:
        found.append("train row matched by order: another sample has the same index and tokens")
    found += in_words(contradictions(step, [sample.position]))
    rounded = {tensor.dtype for one in row.group.shards if (tensor := one.tensor(ENGINE_COLUMN, row.row)) is not None}
    for dtype in sorted(rounded - EXACT_DTYPES):
        found.append(f"the train files hold {ENGINE_COLUMN} rounded to {dtype}")
    return found


def position_rows(document: Record) -> Iterator[Record]:
    """One row per position of a tokens document."""
    ids, texts, mask, fields = (document[name] for name in ("token_ids", "token_text", "loss_mask", "fields"))
    assert isinstance(ids, list) and isinstance(fields, dict)
    prompt, response = int(str(document["prompt_length"])), int(str(document["response_length"]))
    for position in range(max(len(ids), prompt + response)):
        at = position - prompt
        there = position < len(ids)
        row: Record = {
            "sample_index": document["sample_index"],
            "occurrence": document["occurrence"],
            "position": position,
            "token_id": ids[position] if there else None,
            "text": texts[position] if there and isinstance(texts, list) else None,
            "loss_mask": mask[at] if isinstance(mask, list) and at >= 0 else None,
        }
        for name, field in fields.items():
            if field["values"] is not None:
                row[name] = field["values"][at] if at >= 0 else None
        yield row

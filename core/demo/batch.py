"""One step of a demo run: its samples, the scores of trainer and engine, and the shards for training.

The run has a story to discover: the reward climbs, then sags; in more and more groups all rewards are equal; the
entropy falls; |lp_diff| is steady until step 15, then rises; the outliers of step 11 are in one data-parallel shard.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dumptui.core.demo import text as demo_text
from dumptui.core.demo.text import Answer, Question
from dumptui.core.parallel.context_parallel import spans

Floats = npt.NDArray[np.float32]

GROUPS, GROUP_SIZE = 8, 4
SAMPLES = GROUPS * GROUP_SIZE
MATH_GROUPS = 5
CP, DP = 2, 2
MAX_RESPONSE = 400
RAMBLING = 60
"""Sentences of a response that is cut at MAX_RESPONSE."""
DRIFT_FROM = 15
BAD_SHARD_STEP, BAD_SHARD = 11, 1
EVAL_SETS = {"math": 12, "tools": 8}
EVAL_GROUP_SIZE = 2


def success_rate(step: int) -> float:
    return 0.25 + 0.4 * min(step / 16, 1) - 0.04 * min(max(step - 17, 0), 10)


def unanimity(step: int) -> float:
    """Return the share of groups whose samples all get the same reward."""
    return min(0.05 + 0.025 * step, 0.7)


def entropy_level(step: int) -> float:
    return 0.75 * float(np.exp(-step / 26))


def divergence_level(step: int) -> float:
    """Return the mean |trainer - engine| log-prob of the trained tokens, outliers aside."""
    rise = min(max(step - DRIFT_FROM + 1, 0) / 9, 1.0)
    return 0.0055 + 0.0001 * step + 0.042 * float(rise**1.3)


@dataclass(frozen=True)
class Sample:
    """A sample with the per-token values that training computed.

    `record` is its entry in the rollout file. Arrays have the length of the response, `tokens` that of prompt and
    response.
    """

    record: dict[str, Any]
    messages: list[demo_text.Message] | None
    tokens: npt.NDArray[np.int64]
    mask: npt.NDArray[np.int32]
    engine: Floats
    trainer: Floats
    reference: Floats
    entropy: Floats

    @property
    def reward(self) -> float | None:
        reward: float | None = self.record["reward"]
        return reward


@dataclass(frozen=True)
class Batch:
    step: int
    samples: list[Sample]
    shards: list[list[int]]
    """Rollout positions of the samples of each data-parallel shard; the aborted sample is in none."""
    advantages: list[Floats]


def train_batch(seed: int, step: int) -> Batch:
    rng = np.random.default_rng([seed, step])
    texts_rng = random.Random(f"{seed} {step}")
    outcomes = _outcomes(rng, step)
    distinct = [demo_text.question(texts_rng, group >= MATH_GROUPS) for group in range(GROUPS)]
    questions = [distinct[position // GROUP_SIZE] for position in range(SAMPLES)]
    drafts = _drafts(texts_rng, questions, outcomes, step)
    aborted = {13} if step % 8 == 5 else set()
    order = rng.permutation([position for position in range(SAMPLES) if position not in aborted]).tolist()
    shards = [order[dp_rank::DP] for dp_rank in range(DP)]
    records = []
    for position, (question, draft) in enumerate(zip(questions, drafts, strict=True)):
        record = _record(texts_rng, question, draft, step) | _place(step, position)
        records.append(_aborted(record) if position in aborted else record)
    samples = _scored(rng, records, drafts, step, _outlier_counts(rng, shards, step))
    return Batch(step, samples, shards, _advantages(samples))


def eval_samples(seed: int, step: int) -> list[Sample]:
    """Return the samples of both eval sets, without groups; `index` starts again at 0 in the second."""
    rng = np.random.default_rng([seed, step, 1])
    texts_rng = random.Random(f"{seed} {step} eval")
    questions, indices = [], []
    for name, count in EVAL_SETS.items():
        distinct = [demo_text.question(texts_rng, name == "tools") for _ in range(count // EVAL_GROUP_SIZE)]
        questions += [distinct[index // EVAL_GROUP_SIZE] for index in range(count)]
        indices += list(range(count))
    right = [bool(hit) for hit in rng.random(len(questions)) < success_rate(step) + 0.05]
    drafts = _drafts(texts_rng, questions, right, step)
    records = [
        _record(texts_rng, question, draft, step) | {"index": index, "group_index": None}
        for question, draft, index in zip(questions, drafts, indices, strict=True)
    ]
    return _scored(rng, records, drafts, step, {})


@dataclass(frozen=True)
class _Draft:
    answer: Answer
    text: str
    prompt_ids: list[int]
    ids: list[int]
    mask: list[int]
    reward: float
    truncated: bool


def _outcomes(rng: np.random.Generator, step: int) -> list[bool]:
    """Return whether each sample is right, group after group; stratified, so that eight groups suffice for a trend."""
    rate, right = success_rate(step), []
    spread = (np.arange(GROUPS) + rng.random()) / GROUPS
    for luck, agreement in zip(rng.permutation(spread), rng.permutation(spread), strict=True):
        if agreement < unanimity(step):
            group = [bool(luck < rate)] * GROUP_SIZE
        else:
            hits = int(np.clip(rng.binomial(GROUP_SIZE, rate), 1, GROUP_SIZE - 1))
            group = rng.permutation([True] * hits + [False] * (GROUP_SIZE - hits)).tolist()
        right += group
    return right


def _drafts(rng: random.Random, questions: Sequence[Question], right: Sequence[bool], step: int) -> list[_Draft]:
    answers = []
    for question, is_right in zip(questions, right, strict=True):
        rambles = not is_right and rng.random() < 0.06 + 0.004 * step
        thoughts = RAMBLING if rambles else rng.randint(2, 10 + step // 3)
        answers.append(demo_text.answer(rng, question, is_right, thoughts))
    texts = {piece for answer in answers for piece, _ in answer.pieces} | {question.text for question in questions}
    encoded = demo_text.tokenizer().encode_batch_fast(sorted(texts), add_special_tokens=False)
    ids = {text: encoding.ids for text, encoding in zip(sorted(texts), encoded, strict=True)}
    rows = zip(questions, answers, right, strict=True)
    return [_draft(ids[question.text], answer, is_right, ids) for question, answer, is_right in rows]


def _draft(prompt_ids: list[int], answer: Answer, right: bool, encoded: dict[str, list[int]]) -> _Draft:
    ids: list[int] = []
    mask: list[int] = []
    for piece, written in answer.pieces:
        ids += encoded[piece]
        mask += [int(written)] * len(encoded[piece])
    truncated = len(ids) > MAX_RESPONSE
    text = "".join(piece for piece, _ in answer.pieces)
    if truncated:
        text = demo_text.tokenizer().decode(ids[:MAX_RESPONSE], skip_special_tokens=False)
    return _Draft(answer, text, prompt_ids, ids[:MAX_RESPONSE], mask[:MAX_RESPONSE], float(right), truncated)


def _record(rng: random.Random, question: Question, draft: _Draft, step: int) -> dict[str, Any]:
    """Return a record with the keys of Sample.to_dict(), without the log-probs."""
    turns, length = draft.answer.turns, len(draft.ids)
    stale = rng.randint(1, turns - 1) if turns > 1 and rng.random() < 0.4 else 0
    accepted = rng.uniform(0.62, 0.8) - 0.01 * max(step - DRIFT_FROM, 0)
    spec_info = {"spec_accept_token_num": int(accepted * length), "spec_draft_token_num": length}
    cached, prompted = (turns - 1) * len(draft.prompt_ids), turns * (len(draft.prompt_ids) + 40)
    return {
        "rollout_id": None,
        "prompt": question.prompt,
        "multimodal_inputs": None,
        "multimodal_train_inputs": None,
        "tokens": draft.prompt_ids + draft.ids,
        "response": draft.text,
        "response_length": length,
        "label": str(question.answer),
        "reward": draft.reward,
        "loss_mask": draft.mask if question.uses_tools else None,
        "weight_versions": [str(step)] * stale + [str(step + 1)] * (turns - stale),
        "rollout_routed_experts": None,
        "rollout_indexer_topk": None,
        "remove_sample": False,
        "teacher_log_probs": None,
        "opd_reverse_kl": None,
        "status": "truncated" if draft.truncated else "completed",
        "metadata": {"tools": demo_text.TOOLS} if question.uses_tools else {},
        "generate_function_path": None,
        "train_metadata": None,
        "adapter": None,
        "reward_spec": None,
        "routing_key": None,
        "non_generation_time": round(rng.uniform(0.2, 1.5) * (turns - 1), 3),
        "spec_info": spec_info | {"spec_verify_ct": length // 3, "completion_token_num": sum(draft.mask)},
        "prefix_cache_info": {"cached_tokens": cached, "total_prompt_tokens": prompted},
    }


def _place(step: int, position: int) -> dict[str, int]:
    index = step * SAMPLES + position
    return {"index": index, "group_index": index // GROUP_SIZE}


def _aborted(record: dict[str, Any]) -> dict[str, Any]:
    """Return the record of a sample whose request was lost: it has no response and is not trained."""
    empty = {"tokens": [], "response": "", "response_length": 0, "loss_mask": None, "weight_versions": []}
    unused = {key: dict.fromkeys(record[key], 0) for key in ("spec_info", "prefix_cache_info")}
    return record | empty | unused | {"reward": None, "status": "aborted"}


def _outlier_counts(rng: np.random.Generator, shards: Sequence[Sequence[int]], step: int) -> dict[int, int]:
    """Return, by rollout position, how many tokens have log-probs that differ by 3 to 6."""
    if step == BAD_SHARD_STEP:
        return dict.fromkeys(shards[BAD_SHARD], 2)
    trained = [position for shard in shards for position in shard]
    return dict.fromkeys(rng.choice(trained, int(rng.integers(0, 3)), replace=False).tolist(), 1)


def _scored(
    rng: np.random.Generator,
    records: list[dict[str, Any]],
    drafts: Sequence[_Draft],
    step: int,
    outliers: dict[int, int],
) -> list[Sample]:
    """Score all samples at once in one flat array, then split it. Sets `rollout_log_probs` in the records."""
    lengths = [record["response_length"] for record in records]
    masks = [np.array(draft.mask[:length], np.int32) for draft, length in zip(drafts, lengths, strict=True)]
    mask = np.concatenate(masks)
    n, level = len(mask), entropy_level(step)
    engine = -level * rng.gamma(0.4, 1.6, n)
    spread = rng.normal(size=n) * (0.15 + np.sqrt(-engine)) * np.repeat(rng.lognormal(0, 0.2, len(lengths)), lengths)
    spread *= divergence_level(step) / np.abs(spread[mask == 1]).mean()
    trainer = engine + np.where(engine + spread > 0, -np.abs(spread), spread)
    starts = np.cumsum([0, *lengths])
    for position, count in outliers.items():
        trained = starts[position] + np.flatnonzero(masks[position])
        for token in rng.choice(trained, count, replace=False):
            worse = engine if rng.random() < 0.5 else trainer
            worse[token] = min(engine[token], trainer[token]) - rng.uniform(3, 6)
    trainer = np.where(mask == 1, trainer, -rng.exponential(2.5, n))
    engine = np.where(mask == 1, engine, 0)
    reference = np.minimum(trainer + rng.normal(0, 0.02 + 0.004 * step, n), 0)
    entropy = 0.4 * level * rng.gamma(0.6, 1.6, n) - 0.3 * trainer
    columns = [engine, trainer, reference, entropy]
    cut = [np.split(column.astype(np.float32), starts[1:-1]) for column in columns]
    samples = []
    for record, draft, own_mask, *scores in zip(records, drafts, masks, *cut, strict=True):
        record["rollout_log_probs"] = scores[0].tolist() if record["tokens"] else None
        tokens = np.array(record["tokens"], np.int64)
        samples.append(Sample(record, draft.answer.messages, tokens, own_mask, *scores))
    return samples


def _advantages(samples: Sequence[Sample]) -> list[Floats]:
    """Return GRPO's advantages: the reward normalised within its group, equal for every token, masked or not."""
    advantages = []
    for first in range(0, len(samples), GROUP_SIZE):
        group = samples[first : first + GROUP_SIZE]
        rewards = np.array([np.nan if sample.reward is None else sample.reward for sample in group])
        scalars = (rewards - np.nanmean(rewards)) / (np.nanstd(rewards) + 1e-6)
        advantages += [
            np.full(len(sample.mask), scalar, np.float32) for sample, scalar in zip(group, scalars, strict=True)
        ]
    return advantages


def shard_columns(batch: Batch, dp_rank: int, cp_rank: int) -> dict[str, Any]:
    """Return the `rollout_data` of one rank's train file."""
    shard = batch.shards[dp_rank]
    rows = [batch.samples[position] for position in shard]
    advantages = [batch.advantages[position] for position in shard]
    totals, responses = [len(sample.tokens) for sample in rows], [len(sample.mask) for sample in rows]
    cp_slices = spans(totals, responses, CP, cp_rank)

    def slices(column: Iterable[Floats]) -> list[Floats]:
        return _packed(
            [values[span] for row, values in enumerate(column) for span in cp_slices.at(row)], cp_slices.width
        )

    advantage_slices = slices(advantages)
    micro_batches = [list(range(len(rows)))[first : first + 4] for first in range(0, len(rows), 4)]
    return {
        "tokens": _packed([sample.tokens for sample in rows], totals),
        "response_lengths": responses,
        "rewards": [float(values[0]) for values in advantages],
        "truncated": [int(sample.record["status"] == "truncated") for sample in rows],
        "loss_masks": _packed([sample.mask for sample in rows], responses),
        "sample_indices": [sample.record["index"] for sample in rows],
        "rollout_ids": [sample.record["index"] for sample in rows],
        "rollout_mask_sums": np.array([sample.mask.sum() for sample in rows], np.float32),
        "rollout_log_probs": slices(sample.engine for sample in rows),
        "weight_versions": [sample.record["weight_versions"] for sample in rows],
        "raw_reward": [sample.reward for sample in batch.samples],
        "total_lengths": totals,
        "num_microbatches": [len(micro_batches)],
        "micro_batch_indices": micro_batches,
        "num_rollouts": [sum(map(len, batch.shards))],
        "log_probs": slices(sample.trainer for sample in rows),
        "entropy": slices(sample.entropy for sample in rows),
        "ref_log_probs": slices(sample.reference for sample in rows),
        "advantages": advantage_slices,
        "returns": advantage_slices,
    }


def _packed(parts: Sequence[npt.NDArray[Any]], widths: npt.ArrayLike) -> list[npt.NDArray[Any]]:
    """Return one view of a shared array per row: a storage per column takes a third of the time of one per row."""
    return np.split(np.concatenate(parts), np.cumsum(widths)[:-1])

"""The columns of the tables on screen: label, width, how a value is written, and what it means."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TypeAlias

from dumptui.core.text import visible
from dumptui.core.types import Record
from dumptui.tui.cell_formats.tables import number
from dumptui.tui.widgets.table.layout import Column

Write = Callable[[object], str]


@dataclass(frozen=True, slots=True)
class Field:
    """A column of records: `key` names the entry, `default` whether it is shown before all are asked for."""

    key: str
    label: str
    width: int
    write: Write
    tip: str
    default: bool = True
    right: bool = True

    @property
    def column(self) -> Column:
        return Column(self.key, self.label, self.width, self.right, self.tip)


def fixed(decimals: int, sign: str = "") -> Write:
    """`decimals` places, so that a column lines up; an exponent where that would show nothing of the number."""

    def write(value: object) -> str:
        if value is None:
            return "-"
        if not isinstance(value, (int, float)):
            return str(value)
        if not math.isfinite(value) or abs(value) >= 1e5 or 0 < abs(value) < 0.5 * 10**-decimals:
            return number(float(value)) if value == 0 or not math.isfinite(value) else f"{value:.0e}"
        return f"{value:{sign}.{decimals}f}"

    return write


def significant(value: object) -> str:
    """Four decimals, of large and of small numbers four digits."""
    if not isinstance(value, (int, float)):
        return "-" if value is None else str(value)
    return f"{value:.4f}" if value == 0 or 1e-3 <= abs(value) < 1e3 else f"{value:.3g}"


def spread(value: object) -> str:
    """A standard deviation: of equal float32 values it is the residue of rounding, and reads 0."""
    return fixed(3)(0.0 if isinstance(value, float) and value < 1e-6 else value)


def whole(value: object) -> str:
    return "-" if value is None else str(value)


def percent(value: object) -> str:
    return "-" if value is None else f"{float(value):.0%}" if isinstance(value, (int, float)) else str(value)


def odd_count(value: object) -> str:
    """How many values are NaN or infinite: nothing for none, so that others catch the eye."""
    return "-" if value is None else str(value) if value else ""


def yes(value: object) -> str:
    return "-" if value is None else "yes" if value else ""


def size(value: object) -> str:
    if not isinstance(value, (int, float)):
        return "-"
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    raise AssertionError


def listed(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, (list, tuple)) else whole(value)


def reward(value: object) -> str:
    """A reward as a number, or the keys of a dict from which none is chosen."""
    if isinstance(value, Mapping):
        return "{" + visible(",".join(map(str, value))) + "}"
    return fixed(2)(value)


def reward_in_full(value: object) -> str:
    """A reward as a number, or the entries of a dict with their values."""
    if not isinstance(value, Mapping):
        return reward(value)
    return "{" + visible(", ".join(f"{name} {fixed(2)(one)}" for name, one in value.items())) + "}"


STEPS = (
    Field("label", "step", 7, whole, "the rollout id; an eval follows the train step with the same number"),
    Field("samples", "n", 4, whole, "samples in the rollout file"),
    Field(
        "reward_mean",
        "reward",
        6,
        fixed(3),
        "mean raw reward of the samples with a reward (evals: reward; of dicts: the chosen entry)",
    ),
    Field(
        "mean_abs_lp_diff",
        "|Δ|",
        7,
        fixed(4),
        "mean over samples of mean |train - rollout log-prob|, unmasked tokens",
    ),
    Field("response_length_mean", "len", 5, fixed(0), "mean response length in tokens, tool output included"),
    Field("truncated_frac", "trunc", 5, percent, "share of samples cut by the length limit"),
    Field("mean_entropy", "H", 5, fixed(3), "mean over samples of the mean entropy, unmasked tokens"),
    Field(
        "zero_std_frac",
        "0-std",
        5,
        percent,
        "share of prompt groups whose rewards are all equal, which give no advantage",
    ),
    Field(
        "staleness_mean",
        "stale",
        5,
        fixed(1),
        "mean over samples of the trainer's weight version at the step - the oldest that wrote a sample",
    ),
    Field(
        "reward_episode_mean",
        "episode",
        7,
        fixed(3),
        "mean over executions of their samples' mean reward: leaves forked from one execution count once",
        False,
    ),
    Field("max_abs_lp_diff", "max |Δ|", 8, fixed(3), "largest |train - rollout log-prob| of an unmasked token"),
    Field("mixed_version_frac", "mixed", 5, percent, "share of samples written by more than one weight version"),
    Field("train_samples", "train", 5, whole, "samples with a train row"),
    Field(
        "not_finite",
        "NaN inf",
        7,
        odd_count,
        "NaN and infinite values among rewards, |Δ| and entropy of unmasked tokens: they are in no mean",
    ),
    Field("state", "state", 10, whole, "whether the step's files are complete and readable", right=False),
)

SAMPLES = (
    Field("label", "sample", 6, whole, "Sample.index, with .K for the K-th of a repeated index"),
    Field("group_index", "group", 5, whole, "prompt group"),
    Field("shown_reward", "reward", 6, reward, "Sample.reward as dumped"),
    Field("response_length", "len", 5, whole, "response tokens, tool output included"),
    Field(
        "flags",
        "flags",
        8,
        whole,
        "truncated, removed from training, aborted, failed, without train data",
        right=False,
    ),
    Field("mean_abs_lp_diff", "|Δ|", 6, fixed(4), "mean |train - rollout log-prob| over unmasked tokens"),
    Field("max_abs_lp_diff", "max |Δ|", 7, fixed(3), "largest |train - rollout log-prob| of an unmasked token"),
    Field(
        "mean_imp_ratio",
        "ratio",
        6,
        fixed(4),
        "mean of exp(train - rollout log-prob) over unmasked tokens, differences clamped to ±20",
    ),
    Field("mean_entropy", "H", 5, fixed(3), "mean entropy over unmasked tokens"),
    Field("adv_mean", "adv", 6, fixed(3, "+"), "mean advantage over unmasked tokens"),
    Field("turns", "turns", 5, whole, "generate calls"),
    Field(
        "staleness",
        "stale",
        5,
        whole,
        "the trainer's weight version at this step - the oldest that wrote the sample",
    ),
    Field(
        "tool_calls",
        "tools",
        5,
        whole,
        "tool calls that the model made, counted in the recorded messages; - where none are, or in more than 32 MB",
    ),
    Field("non_generation_time", "env s", 6, fixed(1), "seconds spent in tools and environment"),
    Field("raw_reward", "raw", 7, fixed(2), "the trainer's raw reward, before normalisation"),
    Field("truncated", "trunc", 5, yes, "cut by the length limit"),
    Field(
        "not_finite",
        "NaN inf",
        7,
        odd_count,
        "NaN and infinite values, in no statistic: reward, and |Δ|, entropies, advantages, returns of unmasked tokens",
    ),
    Field("versions", "weights", 9, whole, "the weight version that wrote it; of several, the oldest and the newest"),
    Field("status", "status", 10, whole, "Sample.status", False, right=False),
    Field("dataset", "set", 3, whole, "evals: the dataset's number, from 0; each dataset restarts the indices", False),
    Field("remove_sample", "removed", 7, yes, "masked out of training by a filter", False),
    Field("total_length", "total", 6, whole, "prompt and response tokens", False),
    Field("effective_length", "trained", 7, whole, "response tokens with loss mask 1", False),
    Field("normalized_reward", "norm", 7, fixed(3, "+"), "the reward after group normalisation", False),
    Field("weight_version", "v last", 7, whole, "weight version of the last call", False),
    Field("weight_version_min", "v min", 6, whole, "oldest weight version", False),
    Field("prefill_weight_version_min", "v fill", 6, whole, "oldest weight version whose KV cache a prompt has", False),
    Field(
        "prefill_lag", "fill lag", 8, whole, "newest version of a call's output - oldest of its prefill, at most", False
    ),
    Field("mixed_version", "mixed", 5, yes, "written by more than one weight version", False),
    Field("spec_accept_rate", "spec", 6, fixed(3), "accepted / drafted tokens of speculative decoding", False),
    Field("prefix_cache_hit_rate", "cache", 6, fixed(3), "cached / all prompt tokens", False),
    Field("max_entropy", "max H", 7, fixed(3), "largest entropy of an unmasked token", False),
    Field("ref_entropy_mean", "ref H", 6, fixed(3), "mean entropy of the reference model", False),
    Field("adv_std", "adv std", 7, spread, "standard deviation (n-1) of the advantages", False),
    Field("return_mean", "return", 7, fixed(3, "+"), "mean return over unmasked tokens", False),
    Field("dumped_rank", "rank", 5, whole, "rank of the first train file that holds the row", False),
    Field("micro_batch", "mb", 3, whole, "its micro-batch within the dp shard, counted from 0", False),
    Field("optimizer_step", "opt", 3, whole, "its optimizer step within the rollout, counted from 0", False),
)


def chosen(*keys: str) -> tuple[Field, ...]:
    """Columns of the samples table, in this order."""
    by_key = {field.key: field for field in SAMPLES}
    return tuple(by_key[key] for key in keys)


GROUPS = (
    Field("label", "group", 5, whole, "prompt group; evals: a run of equal prompts, numbered over the file"),
    Field(
        "strip",
        "rewards",
        16,
        whole,
        "of the samples, best to worst: + success, - failure, ? no reward; else values, or bars over the step's range",
        right=False,
    ),
    Field(
        "spread",
        "spread",
        8,
        whole,
        "zero-std: all rewards are equal; single: one reward, nothing to compare; unknown: no reward",
        right=False,
    ),
    Field("n", "n", 2, whole, "samples; those of one execution, such as forked leaves, are one attempt"),
    Field(
        "reward_mean",
        "reward",
        6,
        fixed(2),
        "mean raw reward of the attempts with a reward (evals: reward; of dicts: the chosen entry)",
    ),
    Field("reward_std", "std", 6, spread, "standard deviation (n-1) of the rewards"),
    Field("pass_at_1", "pass@1", 6, fixed(2), "share of attempts that succeed; binary rewards only"),
    Field("pass_at_k", "pass@k", 6, fixed(2), "1 if any attempt succeeds, else 0; k counts the attempts with a reward"),
    Field("response_length_mean", "len", 5, fixed(0), "mean response length in tokens, tool output included"),
    Field("truncated_frac", "trunc", 5, percent, "share of samples cut by the length limit"),
    Field("mean_abs_lp_diff", "|Δ|", 7, fixed(4), "mean over samples of mean |train - rollout log-prob|"),
    Field("not_finite", "NaN inf", 7, odd_count, "NaN and infinite values of its samples; statistics leave them out"),
    Field("dataset", "set", 3, whole, "evals: the dataset's number, from 0"),
)

MEMBERS = (
    *chosen("label"),
    Field(
        "compared_reward",
        "reward",
        6,
        reward,
        "the trainer's raw reward if dumped, else Sample.reward; of dicts the chosen entry",
    ),
    *chosen("response_length", "flags", "mean_abs_lp_diff", "max_abs_lp_diff", "adv_mean", "turns"),
)

BATCH_FILES = (
    Field("file", "file", 12, whole, "train file", right=False),
    Field("rank", "rank", 5, whole, "rank in the file name"),
    Field("dp_shard", "dp", 3, whole, "data-parallel shard, counted by first rank"),
    Field("cp", "cp", 6, whole, "context-parallel rank, and how many there are"),
    Field("rows", "rows", 5, whole, "samples in the file"),
    Field("tokens", "tokens", 9, whole, "prompt and response tokens of its samples"),
    Field("bytes", "size", 9, size, "size of the file"),
    Field("status", "state", 12, whole, "whether the file is readable and fits its step", right=False),
    Field("fields", "per-token fields", 60, listed, "the per-token columns in this rank's file", right=False),
)

BATCH_COLUMNS = (
    Field("name", "column", 17, whole, "per-token column; statistics use the step's unmasked tokens", right=False),
    Field("mean", "mean", 9, significant, "mean over tokens, so long samples weigh more than in the samples table"),
    Field("std", "std", 9, significant, "standard deviation (n-1) over tokens"),
    Field("low", "min", 9, significant, "smallest value"),
    Field("median", "p50", 9, significant, "median: half of the values are smaller"),
    Field("p99", "p99", 9, significant, "99 of 100 values are smaller"),
    Field("high", "max", 9, significant, "largest value"),
    Field("count", "tokens", 9, whole, "unmasked tokens with a value"),
    Field("samples", "samples", 7, whole, "samples with values of the column"),
    Field("not_finite", "NaN inf", 7, whole, "NaN and infinite values, which no statistic includes"),
    Field("reason", "why not", 30, whole, "why no sample has values", right=False),
)

BATCH_SAMPLES = chosen(
    "label",
    "group_index",
    "raw_reward",
    "flags",
    "dumped_rank",
    "micro_batch",
    "optimizer_step",
    "normalized_reward",
    "effective_length",
    "mean_abs_lp_diff",
    "max_abs_lp_diff",
    "mean_imp_ratio",
    "mean_entropy",
    "max_entropy",
    "ref_entropy_mean",
    "adv_mean",
    "adv_std",
    "return_mean",
)


HEALTH = (
    Field("label", "step", 9, whole, "the step, or the whole run", right=False),
    Field("level", "level", 7, whole, "error: unreadable, missing or contradictory; warning: partial", right=False),
    Field("file", "file", 22, whole, "the file", right=False),
    Field("problem", "problem", 70, whole, "the problem", right=False),
)


def cells(fields: Sequence[Field], record: Record) -> list[str]:
    return [field.write(record.get(field.key)) for field in fields]


Shown: TypeAlias = list[str] | str
"""Which columns of a table are shown: "default", "all" or a list of keys."""


def chosen_fields(fields: Sequence[Field], shown: Shown) -> list[Field]:
    """The first field, which names the row, is always there."""
    if isinstance(shown, list):
        return [field for at, field in enumerate(fields) if not at or field.key in shown]
    return [field for field in fields if field.default or shown == "all"]


DIVERGENCE = ("mean_abs_lp_diff", "max_abs_lp_diff", "mean_imp_ratio")
"""What is made of the difference between trainer and engine."""

Sort: TypeAlias = tuple[tuple[str, bool], ...]
"""Columns to sort by, the most important first, each with whether it descends."""


def order(records: Sequence[Record], sort: Sort) -> list[int]:
    """Row numbers in the order of `sort`; rows that are equal in all of it stay in file order."""
    found = list(range(len(records)))
    for key, descending in reversed(sort):
        found = order_by(found, [sort_value(records[at], key) for at in found], descending)
    return found


def sort_value(record: Record, key: str) -> object:
    """A divergence that is NaN or infinite at some token is larger than any other."""
    return math.inf if key in DIVERGENCE and record.get("diff_not_finite") else record.get(key)


def order_by(rows: Sequence[int], values: Sequence[object], descending: bool) -> list[int]:
    """Numbers, then texts, blanks and NaN last in both directions; rows with equal values stay as they are."""
    numbers: list[tuple[float, int]] = []
    texts: list[tuple[str, int]] = []
    blank: list[int] = []
    for row, value in zip(rows, values, strict=True):
        if isinstance(value, (bool, int, float)) and value == value:
            numbers.append((value, row))
        elif value is None or value == "" or value != value:
            blank.append(row)
        else:
            texts.append((str(value), row))
    numbers.sort(key=itemgetter(0), reverse=descending)
    texts.sort(key=itemgetter(0), reverse=descending)
    return [row for _, row in numbers] + [row for _, row in texts] + blank

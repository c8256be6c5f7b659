"""The columns of the steps and samples tables: what each is, how it is computed, written and judged.

The tables on screen, the filter, the list to sort by, the alarms, the printed steps of a live run, the stamp of the
cache and COLUMNS.md read these entries. The first screen imports this module, so it does without numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from dumptui.core.fields.registry import definition
from dumptui.core.types import Record

if TYPE_CHECKING:
    from dumptui.core.formats.sample import Sample

FormatKind: TypeAlias = Literal[
    "whole",
    "text",
    "fixed",
    "spread",
    "percent",
    "flag",
    "odd count",
    "reward",
    "significant",
    "size",
    "list",
]
Severity: TypeAlias = Literal["error", "warning", "note"]
StatisticName: TypeAlias = Literal["mean", "mean_abs", "max", "max_abs", "std"]
ReductionName: TypeAlias = Literal["mean", "max", "share", "sum"]


class Format(NamedTuple):
    """How a value is written: `fixed` with some decimals, `signed` with a plus sign before positive numbers."""

    kind: FormatKind
    decimals: int = 0
    signed: bool = False


WHOLE = Format("whole")
TEXT = Format("text")
PERCENT = Format("percent")
FLAG = Format("flag")
ODD_COUNT = Format("odd count")


class Statistic(NamedTuple):
    """A statistic of a per-token field over the unmasked tokens of a sample."""

    field: str
    name: StatisticName

    @property
    def formula(self) -> str:
        inner = f"|{self.field}|" if self.name.endswith("_abs") else self.field
        return f"{self.name.removesuffix('_abs')}({inner})"


class Reduction(NamedTuple):
    """How a column of the samples table becomes one of the steps table."""

    column: str
    name: ReductionName

    @property
    def formula(self) -> str:
        return f"{self.name}({self.column})"


class ColumnDefinition(NamedTuple):
    """A column. `name` is its key in the records, in the filter and in what is printed, `label` its name on screen.

    A column of the samples table is computed by `of_sample` or is a `statistic`; one of the steps table may be a
    `reduction`; others are computed by the code of the table. A step whose value is at `alarm_limit` or beyond it, in
    the direction that is `worse`, is marked.
    """

    name: str
    tip: str
    label: str = ""
    formula_words: str = ""
    unit: str = ""
    format: Format = WHOLE
    shown: Literal["at first", "on request", "never"] = "on request"
    recorded: bool = True
    """Whether records have it. Others are made for the screen, from several columns."""
    of_sample: Callable[[Sample], object] | None = None
    statistic: Statistic | None = None
    reduction: Reduction | None = None
    worse: Literal["high", "low"] | None = None
    alarm_limit: float | None = None
    alarm_words: str = ""
    """What a value at the limit or beyond it is, in the words of the help."""
    alarm_severity: Severity = "warning"
    """How bad a value at the limit is, and one at `error_limit` or beyond it is an error."""
    error_limit: float | None = None
    alarm_sentence: str = ""
    """What the overview says of such a value, with `{}` for it."""
    covers: Literal["all", "trained", "rewarded"] = "all"
    """The samples that a number of a step covers."""
    trend: int | None = None
    """Its place among the columns that are plotted over the steps."""
    followed: bool = False
    """Whether `--follow --print steps` prints it."""

    @property
    def formula(self) -> str:
        computed = self.statistic or self.reduction
        return self.formula_words if computed is None else computed.formula

    def severity(self, value: object) -> Severity | None:
        """Return how bad a value at the limit or beyond it is; None for one within."""
        if not self.alarms(value):
            return None
        is_error = self.error_limit is not None and isinstance(value, (int, float)) and value >= self.error_limit
        return "error" if is_error else self.alarm_severity

    def alarms(self, value: object) -> bool:
        """Whether a value is at the limit or beyond it."""
        if self.alarm_limit is None or not isinstance(value, (int, float)):
            return False
        return value <= self.alarm_limit if self.worse == "low" else value >= self.alarm_limit


def fixed(decimals: int, *, signed: bool = False) -> Format:
    return Format("fixed", decimals, signed)


STEP_COLUMNS = (
    ColumnDefinition(
        name="label",
        label="step",
        tip="the rollout id; an eval follows the train step with the same number",
        shown="at first",
        recorded=False,
    ),
    ColumnDefinition(name="step", tip="the rollout id", shown="never", followed=True),
    ColumnDefinition(name="evaluation", tip="whether it is an eval", format=FLAG, shown="never", followed=True),
    ColumnDefinition(
        name="samples", label="n", tip="samples in the rollout file", unit="samples", shown="at first", followed=True
    ),
    ColumnDefinition(
        name="train_samples",
        label="train",
        tip="samples with a train row",
        unit="samples",
        shown="at first",
        worse="low",
        followed=True,
    ),
    ColumnDefinition(
        name="state",
        label="state",
        tip="whether the step's files are complete and readable",
        format=TEXT,
        shown="at first",
        followed=True,
    ),
    ColumnDefinition(name="reason", tip="why it is not complete", format=TEXT, shown="never", followed=True),
    ColumnDefinition(name="groups", tip="prompt groups", unit="groups", shown="never"),
    ColumnDefinition(name="rewarded", tip="samples with a finite reward", unit="samples", shown="never"),
    ColumnDefinition(
        name="reward_mean",
        label="reward",
        tip="mean raw reward of the samples with a reward (evals: reward; of dicts: the chosen entry)",
        formula_words="mean(raw_reward)",
        format=fixed(3),
        shown="at first",
        worse="low",
        covers="rewarded",
        trend=2,
        followed=True,
    ),
    ColumnDefinition(
        name="reward_std",
        tip="standard deviation (n-1) of the same rewards",
        formula_words="std(raw_reward)",
        format=Format("spread", 3),
        shown="never",
        covers="rewarded",
    ),
    ColumnDefinition(
        name="reward_episode_mean",
        label="episode",
        tip="mean over executions of their samples' mean reward: leaves forked from one execution count once",
        formula_words="mean(mean(raw_reward) of an execution)",
        format=fixed(3),
        worse="low",
        covers="rewarded",
    ),
    ColumnDefinition(
        name="response_length_mean",
        label="len",
        tip="mean response length in tokens, tool output included",
        unit="tokens",
        format=fixed(0),
        shown="at first",
        reduction=Reduction("response_length", "mean"),
        trend=3,
        followed=True,
    ),
    ColumnDefinition(
        name="truncated_frac",
        label="trunc",
        tip="share of samples cut by the length limit",
        unit="share",
        format=PERCENT,
        shown="at first",
        reduction=Reduction("truncated", "share"),
        worse="high",
        alarm_limit=0.25,  # where the miles dashboard warns
        alarm_words="a quarter of the samples truncated",
        alarm_severity="note",
        alarm_sentence="{} of the samples truncated",
        trend=5,
    ),
    ColumnDefinition(
        name="zero_std_frac",
        label="0-std",
        tip="share of prompt groups whose rewards are all equal, which give no advantage",
        formula_words="share(std(raw_reward) of a group = 0)",
        unit="share",
        format=PERCENT,
        shown="at first",
        worse="high",
        alarm_limit=0.5,  # where the miles dashboard warns
        alarm_words="half of the groups with equal rewards",
        alarm_severity="note",
        alarm_sentence="{} of the groups have equal rewards",
        trend=6,
    ),
    ColumnDefinition(
        name="mixed_version_frac",
        label="mixed",
        tip="share of samples written by more than one weight version",
        unit="share",
        format=PERCENT,
        shown="at first",
        reduction=Reduction("mixed_version", "share"),
        worse="high",
    ),
    ColumnDefinition(
        name="staleness_mean",
        label="stale",
        tip="mean over samples of the trainer's weight version at the step - the oldest that wrote a sample",
        unit="versions",
        format=fixed(1),
        shown="at first",
        reduction=Reduction("staleness", "mean"),
        worse="high",
    ),
    ColumnDefinition(name="staleness_reason", tip="why staleness is not known", format=TEXT, shown="never"),
    ColumnDefinition(
        name="weight_version_begun", tip="the newest weight version that a sample begins with", shown="never"
    ),
    ColumnDefinition(name="weight_version_max", tip="the newest weight version of all samples", shown="never"),
    ColumnDefinition(
        name="weight_version_min_mean",
        tip="mean over samples of the oldest weight version that wrote a sample",
        unit="versions",
        format=fixed(1),
        shown="never",
        reduction=Reduction("weight_version_min", "mean"),
    ),
    ColumnDefinition(
        name="mean_abs_lp_diff",
        label="|Δ|",
        tip="mean over samples of mean |trainer - engine log-prob|, unmasked tokens",
        unit="nats",
        format=fixed(4),
        shown="at first",
        reduction=Reduction("mean_abs_lp_diff", "mean"),
        worse="high",
        alarm_limit=0.03,  # what the checks of miles allow between trainer and engine
        alarm_words="|Δ| of 0.03 or more",
        error_limit=0.3,
        alarm_sentence="|Δ| {}",
        covers="trained",
        trend=1,
        followed=True,
    ),
    ColumnDefinition(
        name="max_abs_lp_diff",
        label="max |Δ|",
        tip="largest |trainer - engine log-prob| of an unmasked token",
        unit="nats",
        format=fixed(3),
        shown="at first",
        reduction=Reduction("max_abs_lp_diff", "max"),
        worse="high",
        covers="trained",
        trend=7,
    ),
    ColumnDefinition(
        name="mean_entropy",
        label="H",
        tip="mean over samples of the mean entropy, unmasked tokens",
        unit="nats",
        format=fixed(3),
        shown="at first",
        reduction=Reduction("mean_entropy", "mean"),
        covers="trained",
        trend=4,
        followed=True,
    ),
    ColumnDefinition(
        name="not_finite",
        label="NaN inf",
        tip="NaN and infinite values among rewards, |Δ| and entropy of unmasked tokens: they are in no mean",
        unit="values",
        format=ODD_COUNT,
        shown="at first",
        reduction=Reduction("step_not_finite", "sum"),
        worse="high",
        alarm_limit=1,
        alarm_words="any NaN or infinite value",
        alarm_severity="error",
        alarm_sentence="{} NaN or inf",
    ),
    ColumnDefinition(
        name="token_mean_abs_lp_diff",
        label="tok |Δ|",
        tip="mean |trainer - engine log-prob| over all unmasked tokens of the step, so long samples weigh more",
        formula_words="sum(|lp_diff|) / its tokens",
        unit="nats",
        format=fixed(4),
        worse="high",
        covers="trained",
    ),
    ColumnDefinition(
        name="worst_token_share",
        label="1 token",
        tip="share of the sum of |trainer - engine log-prob| that the largest one has",
        formula_words="max(|lp_diff|) / sum(|lp_diff|)",
        unit="share",
        format=PERCENT,
        worse="high",
        covers="trained",
    ),
    ColumnDefinition(name="worst_sample", tip="Sample.index of the sample with the largest |Δ|", shown="never"),
    ColumnDefinition(name="worst_occurrence", tip="its number among those with its index, from 0", shown="never"),
    ColumnDefinition(name="worst_token", tip="position of the token with the largest |Δ|", shown="never"),
    ColumnDefinition(name="not_finite_sample", tip="Sample.index of the first with NaN or inf", shown="never"),
    ColumnDefinition(name="not_finite_occurrence", tip="its number among those with its index", shown="never"),
    ColumnDefinition(name="not_finite_token", tip="position of its first token with NaN or inf", shown="never"),
    ColumnDefinition(name="statuses", tip="samples by Sample.status", format=TEXT, shown="never"),
    ColumnDefinition(name="reward_entries", tip="the entries of rewards that are dicts", format=TEXT, shown="never"),
    ColumnDefinition(
        name="datasets",
        tip="of an eval with several datasets, the samples, rewards, lengths and truncated share of each",
        format=TEXT,
        shown="never",
    ),
)
"""In the order of the records."""


SAMPLE_COLUMNS = (
    ColumnDefinition(
        name="label",
        label="sample",
        tip="Sample.index, with .K for the K-th of a repeated index",
        shown="at first",
        recorded=False,
    ),
    ColumnDefinition(
        name="shown_reward",
        label="reward",
        tip="Sample.reward; of a dict the chosen entry, which the title above the table names",
        format=Format("reward"),
        shown="at first",
        recorded=False,
    ),
    ColumnDefinition(
        name="flags",
        label="flags",
        tip="truncated, removed from training, aborted, failed, without train data",
        format=TEXT,
        shown="at first",
        recorded=False,
    ),
    ColumnDefinition(
        name="sample_index",
        label="sample",
        tip="Sample.index",
        shown="never",
        of_sample=lambda sample: sample.index,
    ),
    ColumnDefinition(
        name="occurrence",
        tip="number of the sample among those with its index, from 0",
        shown="never",
        of_sample=lambda sample: sample.occurrence,
    ),
    ColumnDefinition(
        name="group_index",
        label="group",
        tip="prompt group: the samples of one prompt",
        shown="at first",
        of_sample=lambda sample: sample.group,
    ),
    ColumnDefinition(
        name="execution",
        tip="Sample.rollout_id, which samples forked from one execution share",
        shown="never",
        of_sample=lambda sample: sample.execution,
    ),
    ColumnDefinition(name="status", label="status", tip="Sample.status", format=TEXT, of_sample=lambda s: s.status),
    ColumnDefinition(
        name="remove_sample",
        label="removed",
        tip="masked out of training by a filter",
        format=FLAG,
        of_sample=lambda sample: sample.removed,
    ),
    ColumnDefinition(
        name="response_length",
        label="len",
        tip="response tokens, tool output included",
        unit="tokens",
        shown="at first",
        of_sample=lambda sample: sample.response_length,
    ),
    ColumnDefinition(
        name="total_length",
        label="total",
        tip="prompt and response tokens",
        unit="tokens",
        of_sample=lambda sample: sample.total_length,
    ),
    ColumnDefinition(
        name="reward",
        label="reward",
        tip="Sample.reward, of a dict the chosen entry",
        format=fixed(2),
        shown="never",
        worse="low",
    ),
    ColumnDefinition(name="reward_note", tip="the kind of a reward that is not a number", format=TEXT, shown="never"),
    ColumnDefinition(
        name="reward_entry", label="entry", tip="the entry of a dict that is used as the reward", format=TEXT
    ),
    ColumnDefinition(
        name="reward_chosen", tip="whether the reward is the chosen entry of a dict", format=FLAG, shown="never"
    ),
    ColumnDefinition(name="weight_version", label="v last", tip="weight version of the last call"),
    ColumnDefinition(name="weight_version_min", label="v min", tip="oldest weight version"),
    ColumnDefinition(name="weight_version_max", tip="newest weight version", shown="never"),
    ColumnDefinition(
        name="prefill_weight_version_min",
        label="v fill",
        tip="oldest weight version whose KV cache a prompt has",
        of_sample=lambda sample: sample.prefill_version_min,
    ),
    ColumnDefinition(
        name="prefill_lag",
        label="fill lag",
        tip="newest version of a call's output - oldest of its prefill, at most",
        unit="versions",
        worse="high",
        of_sample=lambda sample: sample.prefill_lag,
    ),
    ColumnDefinition(
        name="versions",
        label="weights",
        tip="the weight version that wrote it; of several, the oldest and the newest",
        shown="at first",
    ),
    ColumnDefinition(
        name="mixed_version",
        label="mixed",
        tip="written by more than one weight version",
        format=FLAG,
        worse="high",
    ),
    ColumnDefinition(
        name="staleness",
        label="stale",
        tip="the trainer's weight version at this step - the oldest that wrote the sample",
        unit="versions",
        shown="at first",
        worse="high",
    ),
    ColumnDefinition(name="staleness_reason", tip="why staleness is not known", format=TEXT, shown="never"),
    ColumnDefinition(
        name="turns",
        label="turns",
        tip="generate calls",
        unit="calls",
        shown="at first",
        of_sample=lambda sample: len(sample.calls) or None,
    ),
    ColumnDefinition(
        name="tool_calls",
        label="tools",
        tip="tool calls that the model made, or their results if there are more, counted in the recorded messages; "
        "- where none are recorded, or in more than 32 MB; the Tools pane lists them by tool",
        unit="calls",
        shown="at first",
    ),
    ColumnDefinition(
        name="non_generation_time",
        label="env s",
        tip="seconds spent in tools and environment",
        unit="s",
        format=fixed(1),
        shown="at first",
        worse="high",
        of_sample=lambda sample: sample.non_generation_time,
    ),
    ColumnDefinition(
        name="spec_accept_rate",
        label="spec",
        tip="accepted / drafted tokens of speculative decoding",
        unit="share",
        format=fixed(3),
        worse="low",
        of_sample=lambda sample: sample.spec_accept_rate,
    ),
    ColumnDefinition(
        name="prefix_cache_hit_rate",
        label="cache",
        tip="cached / all prompt tokens",
        unit="share",
        format=fixed(3),
        worse="low",
        of_sample=lambda sample: sample.prefix_cache_hit_rate,
    ),
    ColumnDefinition(
        name="raw_reward",
        label="raw",
        tip="the trainer's raw reward, before normalisation",
        format=fixed(2),
        shown="at first",
        worse="low",
    ),
    ColumnDefinition(
        name="raw_chosen", tip="whether the raw reward is the chosen entry of a dict", format=FLAG, shown="never"
    ),
    ColumnDefinition(
        name="normalized_reward",
        label="norm",
        tip="the reward after group normalisation",
        format=fixed(3, signed=True),
    ),
    ColumnDefinition(
        name="truncated", label="trunc", tip="cut by the length limit", format=FLAG, shown="at first", worse="high"
    ),
    ColumnDefinition(name="dumped_rank", label="rank", tip="rank of the first train file that holds the row, from 0"),
    ColumnDefinition(name="trained", tip="whether it has a train row", format=FLAG, shown="never"),
    ColumnDefinition(
        name="dataset", label="set", tip="evals: the dataset's number, from 0; each dataset restarts the indices"
    ),
    ColumnDefinition(name="prompt_group", tip="evals: number of the run of equal prompts", shown="never"),
    ColumnDefinition(name="group_part", tip="which of the groups that share a group_index", shown="never"),
    ColumnDefinition(name="adapter", tip="the adapter that wrote it, where there are any", format=TEXT, shown="never"),
    ColumnDefinition(
        name="mean_abs_lp_diff",
        label="|Δ|",
        tip="mean |trainer - engine log-prob| over unmasked tokens",
        unit="nats",
        format=fixed(4),
        shown="at first",
        statistic=Statistic("lp_diff", "mean_abs"),
        worse="high",
    ),
    ColumnDefinition(
        name="max_abs_lp_diff",
        label="max |Δ|",
        tip="largest |trainer - engine log-prob| of an unmasked token",
        unit="nats",
        format=fixed(3),
        shown="at first",
        statistic=Statistic("lp_diff", "max_abs"),
        worse="high",
    ),
    ColumnDefinition(
        name="mean_imp_ratio",
        label="ratio",
        tip="mean of exp(trainer - engine log-prob) over unmasked tokens, differences clamped to ±20",
        format=fixed(4),
        shown="at first",
        statistic=Statistic("imp_ratio", "mean"),
    ),
    ColumnDefinition(
        name="mean_entropy",
        label="H",
        tip="mean entropy over unmasked tokens",
        unit="nats",
        format=fixed(3),
        shown="at first",
        statistic=Statistic("entropy", "mean"),
    ),
    ColumnDefinition(
        name="max_entropy",
        label="max H",
        tip="largest entropy of an unmasked token",
        unit="nats",
        format=fixed(3),
        statistic=Statistic("entropy", "max"),
    ),
    ColumnDefinition(
        name="ref_entropy_mean",
        label="ref H",
        tip="mean entropy of the reference model",
        unit="nats",
        format=fixed(3),
        statistic=Statistic("ref_entropy", "mean"),
    ),
    ColumnDefinition(
        name="adv_mean",
        label="adv",
        tip="mean advantage over unmasked tokens",
        format=fixed(3, signed=True),
        shown="at first",
        statistic=Statistic("advantages", "mean"),
    ),
    ColumnDefinition(
        name="adv_std",
        label="adv std",
        tip="standard deviation (n-1) of the advantages",
        format=Format("spread", 3),
        statistic=Statistic("advantages", "std"),
    ),
    ColumnDefinition(
        name="return_mean",
        label="return",
        tip="mean return over unmasked tokens",
        format=fixed(3, signed=True),
        statistic=Statistic("returns", "mean"),
    ),
    ColumnDefinition(name="effective_length", label="trained", tip="response tokens with loss mask 1", unit="tokens"),
    ColumnDefinition(name="micro_batch", label="mb", tip="its micro-batch within the dp shard, counted from 0"),
    ColumnDefinition(name="optimizer_step", label="opt", tip="its optimizer step within the rollout, counted from 0"),
    ColumnDefinition(name="alignment_failed", tip="whether its train data can't be placed", format=FLAG, shown="never"),
    ColumnDefinition(
        name="train_state",
        tip="ok, partial, unreadable or not dumped: the worst state of the fields above",
        format=TEXT,
        shown="never",
    ),
    ColumnDefinition(name="train_reason", tip="why", format=TEXT, shown="never"),
    ColumnDefinition(
        name="not_finite",
        label="NaN inf",
        tip="NaN and infinite values, in no statistic: reward, and |Δ|, entropies, advantages, returns of unmasked "
        "tokens",
        unit="values",
        format=ODD_COUNT,
        shown="at first",
        worse="high",
    ),
    ColumnDefinition(
        name="diff_not_finite", tip="how many of them are differences", unit="values", format=ODD_COUNT, shown="never"
    ),
    ColumnDefinition(
        name="step_not_finite",
        tip="how many of them are values that the steps table has statistics of",
        unit="values",
        format=ODD_COUNT,
        shown="never",
    ),
    ColumnDefinition(
        name="not_finite_token", tip="position of the first of these that is a token's", unit="tokens", shown="never"
    ),
    ColumnDefinition(
        name="lp_diff_tokens", tip="unmasked tokens with a finite difference", unit="tokens", shown="never"
    ),
    ColumnDefinition(
        name="sum_abs_lp_diff",
        tip="sum of |trainer - engine log-prob| over unmasked tokens",
        formula_words="sum(|lp_diff|)",
        unit="nats",
        shown="never",
    ),
    ColumnDefinition(
        name="max_abs_lp_diff_token", tip="position of the token with the largest |Δ|", unit="tokens", shown="never"
    ),
)
"""In the order of the records."""


ENTRY_PREFIX = "reward."
"""Before the name of an entry of rewards that are dicts: the column of that entry, in steps that have it."""


def entry_column(entry: str) -> str:
    return ENTRY_PREFIX + entry


def label_of(columns: Iterable[ColumnDefinition], name: str) -> str:
    return next(column.label for column in columns if column.name == name)


def names_of(columns: Iterable[ColumnDefinition]) -> tuple[str, ...]:
    return tuple(column.name for column in columns)


def in_order(names: Iterable[str], row: Record) -> Record:
    """Return a row with its values in the order of the columns' names, those without a column last."""
    return {**{name: row[name] for name in names if name in row}, **row}


def is_of_difference(column: ColumnDefinition) -> bool:
    """Whether a column is a statistic of the difference between trainer and engine, or of what is derived from it."""
    return column.statistic is not None and descends(column.statistic.field, "lp_diff")


def descends(field: str, source: str) -> bool:
    return field == source or any(descends(name, source) for name in definition(field).inputs)


@cache
def reduced_columns() -> frozenset[str]:
    """The columns of the samples table that the steps table reduces."""
    return frozenset(column.reduction.column for column in STEP_COLUMNS if column.reduction is not None)


def alarm_words() -> str:
    """Return in words what marks a step with `!`."""
    words = {column.name: column.alarm_words for column in STEP_COLUMNS if column.alarm_words}
    *first, last = [words[name] for name in dict.fromkeys((*trend_columns(), *words)) if name in words]
    return f"{', '.join(first)}, or {last}"


def trend_columns() -> tuple[str, ...]:
    """Return the columns of the steps table that are plotted over the steps, the first one first."""
    places = {column.name: column.trend for column in STEP_COLUMNS if column.trend is not None}
    return tuple(sorted(places, key=lambda name: places[name]))

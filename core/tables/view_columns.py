"""The columns of the groups, batch and health tables: what each is, and how it is written."""

from __future__ import annotations

from dumptui.core.tables.columns import FLAG, ODD_COUNT, PERCENT, TEXT, ColumnDefinition, Format, Reduction, fixed

SIGNIFICANT = Format("significant", 4)
LIST = Format("list")

GROUP_COLUMNS = (
    ColumnDefinition(
        name="label",
        label="group",
        tip="prompt group; evals: a run of equal prompts, numbered over the file",
        recorded=False,
    ),
    ColumnDefinition(
        name="strip",
        label="rewards",
        tip="of the samples, best to worst: + success, - failure, ? no reward; else values, or bars over the step's "
        "range",
        format=TEXT,
        recorded=False,
    ),
    ColumnDefinition(
        name="spread",
        label="spread",
        tip="all correct, all wrong: of binary rewards; zero-std: all "
        "rewards are equal; single: one reward, nothing to compare; unknown: no reward",
        format=TEXT,
        recorded=False,
    ),
    ColumnDefinition(name="group_index", tip="prompt group", shown="never"),
    ColumnDefinition(name="dataset", label="set", tip="evals: the dataset's number, from 0"),
    ColumnDefinition(name="group_part", tip="which of the groups that share a group_index", shown="never"),
    ColumnDefinition(
        name="adapter", tip="the adapter that wrote its samples, where there are any", format=TEXT, shown="never"
    ),
    ColumnDefinition(
        name="n",
        label="n",
        tip="samples; those of one execution, such as forked leaves, are one attempt",
        unit="samples",
    ),
    ColumnDefinition(name="attempts", tip="executions, each of which is one attempt", shown="never"),
    ColumnDefinition(
        name="reward_mean",
        label="reward",
        tip="mean raw reward of the attempts with a reward (evals: reward; of dicts: the chosen entry)",
        format=fixed(2),
        worse="low",
        covers="rewarded",
    ),
    ColumnDefinition(
        name="reward_std",
        label="std",
        tip="standard deviation (n-1) of the rewards",
        format=Format("spread", 3),
        worse="low",
        covers="rewarded",
    ),
    ColumnDefinition(
        name="response_length_mean",
        label="len",
        tip="mean response length in tokens, tool output included",
        unit="tokens",
        format=fixed(0),
        reduction=Reduction("response_length", "mean"),
    ),
    ColumnDefinition(
        name="truncated_frac",
        label="trunc",
        tip="share of samples cut by the length limit",
        unit="share",
        format=PERCENT,
        reduction=Reduction("truncated", "share"),
        worse="high",
    ),
    ColumnDefinition(
        name="zero_std", tip="whether all rewards are equal, also of a single one", format=FLAG, shown="never"
    ),
    ColumnDefinition(name="zero_std_known", tip="whether there are two rewards to compare", format=FLAG, shown="never"),
    ColumnDefinition(name="rewarded", tip="attempts with a finite reward", shown="never"),
    ColumnDefinition(
        name="pass_at_1",
        label="pass@1",
        tip="share of attempts that succeed; binary rewards only",
        format=fixed(2),
        worse="low",
        covers="rewarded",
    ),
    ColumnDefinition(
        name="pass_at_k",
        label="pass@k",
        tip="1 if any attempt succeeds, else 0; k counts the attempts with a reward",
        format=fixed(2),
        worse="low",
        covers="rewarded",
    ),
    ColumnDefinition(
        name="mean_abs_lp_diff",
        label="|Δ|",
        tip="mean over samples of mean |trainer - engine log-prob|",
        unit="nats",
        format=fixed(4),
        reduction=Reduction("mean_abs_lp_diff", "mean"),
        worse="high",
    ),
    ColumnDefinition(
        name="not_finite",
        label="NaN inf",
        tip="NaN and infinite values of its samples; statistics leave them out",
        unit="values",
        format=ODD_COUNT,
        reduction=Reduction("not_finite", "sum"),
        worse="high",
    ),
    ColumnDefinition(
        name="diff_not_finite",
        tip="how many of them are differences",
        unit="values",
        shown="never",
        reduction=Reduction("diff_not_finite", "sum"),
    ),
    ColumnDefinition(name="samples", tip="Sample.index of its samples", format=LIST, shown="never"),
)
"""In the order of the records."""

TRAIN_FILE_COLUMNS = (
    ColumnDefinition(
        name="cp", label="cp", tip="context-parallel rank, counted from 0, and how many there are", recorded=False
    ),
    ColumnDefinition(
        name="status",
        label="state",
        tip="whether the file is readable and fits its step",
        format=TEXT,
        recorded=False,
    ),
    ColumnDefinition(name="file", label="file", tip="train file", format=TEXT),
    ColumnDefinition(name="rank", label="rank", tip="rank in the file name, counted from 0"),
    ColumnDefinition(name="cp_rank", tip="context-parallel rank, counted from 0", shown="never"),
    ColumnDefinition(name="cp_size", tip="context-parallel ranks", shown="never"),
    ColumnDefinition(
        name="dp_shard", label="dp", tip="data-parallel shard, counted from 0 in the order of first ranks"
    ),
    ColumnDefinition(name="rows", label="rows", tip="samples in the file", unit="samples"),
    ColumnDefinition(name="tokens", label="tokens", tip="prompt and response tokens of its samples", unit="tokens"),
    ColumnDefinition(
        name="micro_batch_tokens",
        tip="tokens of each micro-batch of its dp shard",
        unit="tokens",
        format=LIST,
        shown="never",
    ),
    ColumnDefinition(name="num_microbatches", tip="micro-batches of each optimizer step", format=LIST, shown="never"),
    ColumnDefinition(name="bytes", label="size", tip="size of the file", unit="bytes", format=Format("size")),
    ColumnDefinition(
        name="fields",
        label="per-token fields",
        tip="the per-token columns in this rank's file",
        format=LIST,
    ),
    ColumnDefinition(name="state", tip="ok or unreadable", format=TEXT, shown="never"),
    ColumnDefinition(name="reason", tip="why it is unreadable, or what was inferred", format=TEXT, shown="never"),
)
"""In the order of the records."""

DISTRIBUTION_COLUMNS = (
    ColumnDefinition(
        name="name",
        label="column",
        tip="per-token column; statistics use the step's unmasked tokens",
        format=TEXT,
    ),
    ColumnDefinition(
        name="mean",
        label="mean",
        tip="mean over tokens, so long samples weigh more than in the samples table",
        format=SIGNIFICANT,
    ),
    ColumnDefinition(name="std", label="std", tip="standard deviation (n-1) over tokens", format=SIGNIFICANT),
    ColumnDefinition(name="low", label="min", tip="smallest value", format=SIGNIFICANT),
    ColumnDefinition(name="median", label="p50", tip="median: half of the values are smaller", format=SIGNIFICANT),
    ColumnDefinition(name="p99", label="p99", tip="99 of 100 values are smaller", format=SIGNIFICANT),
    ColumnDefinition(name="high", label="max", tip="largest value", format=SIGNIFICANT),
    ColumnDefinition(name="count", label="tokens", tip="unmasked tokens with a value", unit="tokens"),
    ColumnDefinition(name="samples", label="samples", tip="samples with values of the column", unit="samples"),
    ColumnDefinition(name="not_finite", label="NaN inf", tip="NaN and infinite values, which no statistic includes"),
    ColumnDefinition(name="reason", label="why not", tip="why no sample has values", format=TEXT),
)

FINDING_COLUMNS = (
    ColumnDefinition(name="label", label="step", tip="the step, or the whole run", format=TEXT, recorded=False),
    ColumnDefinition(
        name="level",
        label="level",
        tip="error: unreadable, missing or contradictory; warning: partial",
        format=TEXT,
    ),
    ColumnDefinition(name="file", label="file", tip="the file", format=TEXT),
    ColumnDefinition(name="problem", label="problem", tip="the problem", format=TEXT),
    ColumnDefinition(name="sample_index", tip="the first sample that has it", shown="never"),
    ColumnDefinition(name="occurrence", tip="its number among those with its index, from 0", shown="never"),
    ColumnDefinition(name="token", tip="its first token that has it, by position", shown="never"),
)

OVERVIEW_COLUMNS = (
    ColumnDefinition(name="severity", tip="error, warning or note", format=TEXT),
    ColumnDefinition(name="steps", tip="all steps that it is about; blank for the whole run", format=TEXT),
    ColumnDefinition(name="step", tip="the worst of them"),
    ColumnDefinition(name="evaluation", tip="whether they are evals", format=FLAG),
    ColumnDefinition(name="sample_index", tip="the sample to look at, in that step"),
    ColumnDefinition(name="occurrence", tip="its number among those with its index, from 0"),
    ColumnDefinition(name="token", tip="the token to look at, by position"),
    ColumnDefinition(name="reason", tip="what is wrong, with its number and limit", format=TEXT),
)

TOOL_COLUMNS = (
    ColumnDefinition(
        name="tool",
        label="tool",
        tip="the tool by its recorded name; the last rows are all samples that called any, none, or are not recorded",
        format=TEXT,
    ),
    ColumnDefinition(name="scope", tip="tool, any, none or unknown: which samples", format=TEXT, shown="never"),
    ColumnDefinition(
        name="calls",
        label="calls",
        tip="calls that the model made; those of the prompt do not count",
        unit="calls",
    ),
    ColumnDefinition(
        name="failed",
        label="failed",
        tip="calls whose result is an error: a traceback, an error or timeout at the start of the text, or an entry "
        "that says so",
        unit="calls",
        worse="high",
    ),
    ColumnDefinition(name="no_result", label="no result", tip="calls without a result", unit="calls", worse="high"),
    ColumnDefinition(name="samples", label="samples", tip="samples that called it", unit="samples"),
    ColumnDefinition(name="rewarded", tip="those with a finite reward", unit="samples", shown="never"),
    ColumnDefinition(
        name="reward_mean",
        label="reward",
        tip="mean reward of these samples, the same reward as in the Groups pane; ~ if some have none",
        format=fixed(3),
        worse="low",
    ),
    ColumnDefinition(
        name="reward_failed",
        label="if failed",
        tip="mean reward of the samples in which a call of it failed",
        format=fixed(3),
        worse="low",
    ),
    ColumnDefinition(
        name="samples_failed", label="n failed", tip="samples in which a call of it failed", unit="samples"
    ),
    ColumnDefinition(
        name="reward_ok",
        label="if ok",
        tip="mean reward of the samples in which every call of it has a result without an error",
        format=fixed(3),
        worse="low",
    ),
    ColumnDefinition(
        name="samples_ok",
        label="n ok",
        tip="samples in which every call of it has a result without an error",
        unit="samples",
    ),
    ColumnDefinition(
        name="seconds_per_call",
        label="s/call",
        tip="mean seconds of a call, by the recorded spans of turns in which no other tool was called",
        unit="s",
        format=fixed(2),
        worse="high",
    ),
    ColumnDefinition(name="timed_calls", label="timed", tip="calls that s/call covers", unit="calls"),
    ColumnDefinition(name="turns_mean", label="turns", tip="mean number of generate calls", format=fixed(1)),
    ColumnDefinition(
        name="env_seconds_mean",
        label="env s",
        tip="mean seconds that these samples spent in tools and environment (non_generation_time)",
        unit="s",
        format=fixed(1),
        worse="high",
    ),
    ColumnDefinition(name="aborted", label="aborted", tip="samples with the status aborted", unit="samples"),
)
"""In the order of the records."""

TIMELINE_COLUMNS = (
    ColumnDefinition(name="label", label="sample", tip="Sample.index, with .K for the K-th of a repeated index"),
    ColumnDefinition(name="reward", label="reward", tip="the same reward as in the Groups pane", format=fixed(2)),
    ColumnDefinition(name="status", label="status", tip="Sample.status", format=TEXT),
    ColumnDefinition(name="turns", label="turns", tip="generate calls", unit="calls"),
    ColumnDefinition(name="tool_calls", label="tools", tip="tool calls that the model made", unit="calls"),
    ColumnDefinition(name="failed", label="failed", tip="tool calls whose result is an error", unit="calls"),
    ColumnDefinition(
        name="span_calls",
        label="timed",
        tip="tool calls by the recorded spans; they may cover calls whose messages are not recorded",
        unit="calls",
    ),
    ColumnDefinition(
        name="ended",
        label="end s",
        tip="when it ended, in seconds after the first sample of the step began",
        unit="s",
        format=fixed(1),
    ),
    ColumnDefinition(name="generating", label="gen s", tip="seconds of generation", unit="s", format=fixed(1)),
    ColumnDefinition(name="in_tools", label="tool s", tip="seconds in tools", unit="s", format=fixed(1)),
    ColumnDefinition(
        name="waiting",
        label="wait s",
        tip="seconds of its attempts outside of generation, tools and other recorded spans",
        unit="s",
        format=fixed(1),
    ),
    ColumnDefinition(
        name="env_seconds",
        label="env s",
        tip="seconds spent in tools and environment (non_generation_time)",
        unit="s",
        format=fixed(1),
    ),
    ColumnDefinition(
        name="lane",
        label="lifecycle",
        tip="of all samples on one time axis",
        format=TEXT,
    ),
)

PROMPT_COLUMNS = (
    ColumnDefinition(
        name="change",
        label="over the steps",
        tip="never, newly, sometimes or always solved, or forgotten: solved before, but not at its newest step",
        format=TEXT,
    ),
    ColumnDefinition(
        name="rates",
        label="solve rate",
        tip="share of attempts with a reward above 0 at its newest steps, the newest last; binary rewards only",
        format=TEXT,
    ),
    ColumnDefinition(name="last_label", label="step", tip="the newest step with the prompt", format=TEXT),
    ColumnDefinition(name="steps", label="steps", tip="steps with the prompt", unit="steps"),
    ColumnDefinition(name="solved", label="solved", tip="attempts with a reward above 0", unit="attempts"),
    ColumnDefinition(name="rewarded", label="of", tip="attempts with a reward", unit="attempts"),
    ColumnDefinition(name="reward_mean", label="reward", tip="mean reward of its attempts", format=fixed(3)),
    ColumnDefinition(name="prompt", label="prompt", tip="the beginning of the prompt", format=TEXT),
)

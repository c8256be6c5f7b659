"""The words of the interface that are no column: signs, states, and the field's terms as they are used here."""

from __future__ import annotations

from dumptui.core.fields.registry import FIELDS
from dumptui.core.tables.columns import STEP_COLUMNS, alarm_words
from dumptui.core.tables.meanings import Meaning, of_field, step_column

LABELLED = ("Δ", "ratio", "H", "ref", "adv")
"""Statistics that the glossary repeats, since their labels are short."""
SIGNS = (
    Meaning("~", "before a number: it covers only a part of the step or group: what has train data or a reward"),
    Meaning("!", f"before a step or a number: above the threshold ({alarm_words()})"),
    Meaning("-", "no value: not dumped, masked, or nothing to compute it from"),
    Meaning("∅", "a token without a value of the statistic, since train data is missing"),
)
FLAGS = (
    Meaning("trunc", "flag of a sample: cut by the length limit", bad="its answer is incomplete"),
    Meaning("removed", "flag of a sample: masked out of training by a filter (Sample.remove_sample)"),
    Meaning("aborted, failed", "flags of a sample: Sample.status as dumped, if it is neither completed nor truncated"),
    Meaning("no train", "flag of a sample: the step's train files have no row of it"),
    Meaning("unplaced", "flag of a sample: its train data can't be placed, so none of it is shown"),
    Meaning("NaN", "flag of a sample: NaN or infinite values, which are in no statistic"),
)
TERMS = (
    Meaning("step", "one rollout and what was trained on it, by its rollout id, counted from 0"),
    Meaning("sample", "one prompt with one response, by Sample.index; .K is the K-th with the same index, from 0"),
    Meaning("group", "the samples of one prompt, whose rewards are compared with each other"),
    Meaning("execution", "one attempt at a prompt; samples forked from it share its Sample.rollout_id"),
    Meaning("turn", "one generate call of a conversation, or a run of trained tokens where calls are not recorded"),
    Meaning("loss mask", "1 for a token that is trained, 0 for one that is not, such as tool output"),
    Meaning("log-prob", "natural logarithm of a token's probability", unit="nats", range="0 or less"),
    Meaning("nats", "unit of log-probs and entropy: natural logarithm"),
    Meaning("trainer", "the process that trains the model, which computes the log-prob of each token again"),
    Meaning("engine", "the inference engine that sampled the response, with the log-probs it used"),
    Meaning(
        "scale of the step",
        "full shade is at the 0.5 and 99.5 percentiles of the whole step, so samples of a step compare and one outlier "
        "doesn't flatten the rest; of ratio at e and 1/e. r switches to the range of the sample or of the window",
    ),
    Meaning("worst", "the tokens with the largest |value| of the statistic; of ratio, with the largest |log|"),
    Meaning("rank", "one training process, counted from 0; a train file is what one rank wrote"),
    Meaning("cp rank", "context-parallel rank, counted from 0: it trains a part of each sample's tokens"),
    Meaning(
        "chunk", "a run of tokens that one cp rank trained; each trained two of a sample, and ┊ marks where one starts"
    ),
    Meaning("dp shard", "the samples of one data-parallel rank, counted from 0"),
    Meaning(
        "norm",
        "the trainer's reward after group normalisation; advantages are made of it",
        name="normalized_reward",
    ),
    Meaning("zero-std", "a group whose rewards are all equal: no sample of it has an advantage"),
    Meaning(
        "pass@k",
        "chance that one of k attempts succeeds, where rewards are binary",
        formula="1 - C(n-c, k) / C(n, k), for n attempts with c successes",
        range="0 to 1",
    ),
    Meaning("weights", "the version of the model's weights that wrote a sample, counted by weight updates"),
    Meaning("partial", "state of a step or field: some train files or slices are missing; the others are shown"),
    Meaning("unreadable", "state of a file or field: it can't be read, with the reason"),
    Meaning("not dumped", "state of a field: no file of the step has it"),
)


def glossary() -> list[Meaning]:
    """Return every entry: signs first, then the short labels, flags and terms."""
    labelled = [of_field(field.name) for field in FIELDS if field.label in LABELLED]
    stale, episode = step_column("staleness_mean"), step_column("reward_episode_mean")
    difference = next(step_column(column.name) for column in STEP_COLUMNS if column.label == "|Δ|")
    return [*SIGNS, difference, *labelled, stale, episode, *FLAGS, *TERMS]

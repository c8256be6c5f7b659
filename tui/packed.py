"""How a step was packed, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from dumptui.core import tables
from dumptui.core.join import Step
from dumptui.core.packing import LeftOut, Load, imbalance, worst_imbalance
from dumptui.core.record import Record
from dumptui.core.text import visible
from dumptui.tui.panes.samples import count

FEW = 4  # shards whose tokens are told one by one
NAMED = 8  # samples that are named one by one


def shards_text(found: Sequence[Load]) -> Text:
    """The tokens of the data-parallel shards, and how much larger the largest is than their mean."""
    text = Text().append("tokens", "bold")
    tokens = [load.tokens for load in found]
    if not tokens:
        return text.append(" -: no train files")
    if len(tokens) <= FEW:
        text.append("".join(f"  dp {at} {one:,}" for at, one in enumerate(tokens)))
    else:
        text.append(f" per DP shard {span(tokens)}")
    return text.append(f" · {max_over_mean(imbalance(tokens))}" if len(tokens) > 1 else "")


def micro_text(found: Sequence[Load]) -> Text:
    """The micro-batches, or why nothing is known of them."""
    reasons = list(dict.fromkeys(load.reason for load in found if load.reason is not None))
    sizes = [size for load in found for size in load.micro_batches or ()]
    if not sizes:
        return Text().append("micro-batches", "bold").append(f" -: {reasons[0] if reasons else 'no train files'}")
    counts = [len(load.micro_batches) for load in found if load.micro_batches is not None]
    noun = "micro-batch" if max(counts) == 1 else "micro-batches"
    text = Text().append(f"{span(counts)} {noun}", "bold").append(" per DP shard")
    steps = {len(load.steps) for load in found if load.steps is not None}
    if len(steps) == 1:
        text.append(f" in {(number := steps.pop())} optimizer step{'s' * (number != 1)}")
    text.append(f" · tokens {span(sizes)}" + f", {max_over_mean(imbalance(sizes))}" * (len(sizes) > 1))
    if any(load.steps is not None and len(load.steps) > 1 for load in found):
        text.append(f" · worst step across DP shards {max_over_mean(worst_imbalance(found))}")
    return text.append(f" · {reasons[0]}" if reasons else "", "bold")


def left_out_text(found: Sequence[LeftOut], table: Sequence[Record]) -> Text:
    """What was not learnt from; `table` are the rows of the samples as the screen has them."""
    text = Text().append("not trained", "bold")
    if not found:
        return text.append("  none")
    told = []
    for one in found:
        names = [str(table[at]["label"]) for at in one.positions[:NAMED]]
        more = " …" if len(one.positions) > NAMED else ""
        told.append(f"{len(one.positions)} {one.fact}: {visible(' '.join(names))}{more}")
    return text.append("  " + " · ".join(told))


def span(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,}-{high:,}"


def max_over_mean(excess: float) -> str:
    return f"max/mean {1 + excess:.2f}"


def cp_text(row: Record) -> str:
    return "-" if row["cp_size"] is None else f"{row['cp_rank']} of {row['cp_size']}"


def summary(step: Step) -> Text:
    """What was trained, from how many files, under which layout."""
    text = Text().append(str(step.files.key), "bold")
    if step.files.key.evaluation:
        return text.append(" · evals have no train batch")
    text.append(
        f" · trained on {step.trained} of {len(step.samples)} samples · {count(len(step.files.shards), 'file')}"
    )
    if step.peers:
        sizes = sorted({peers.cp_size for peers in step.peers})
        formats = sorted({shard.qkv_format or "format not recorded" for shard in step.shards})
        known = "layout inferred" if any(peers.inferred for peers in step.peers) else "layout recorded"
        text.append(
            f": dp {len(step.peers)} x cp {'/'.join(map(str, sizes))} ({known}) · {', '.join(map(visible, formats))}"
        )
    if reason := tables.train_reason(step):
        text.append(f" · {visible(reason)}", "bold")
    if step.orphans:
        text.append(f" · {len(step.orphans)} train rows match no sample: {visible(step.orphans[0])}", "bold")
    return text

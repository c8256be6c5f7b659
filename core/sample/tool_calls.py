"""The number of tool calls of the model in each sample of a step, counted in the recorded messages."""

from __future__ import annotations

from dumptui.core.formats.sample import Sample
from dumptui.core.step.step import Step

# What reads messages is imported where there are some: with it, a short view executes 7 % more instructions.

LARGEST_BYTES = 32 << 20
"""A larger trajectory file is not read for a table column: 10,000 messages in 32 MB take 0.6 s, and pictures may make a
file a hundred times as large.
"""


def tool_calls(step: Step) -> list[int | None]:
    """Return the number of calls by sample; None without recorded messages, as a plain text may also quote calls."""
    file = step.files.trajectory
    if file is not None and file.size > LARGEST_BYTES:
        return [None] * len(step.samples)
    if file is None and not any("messages" in sample.metadata for sample in step.samples):
        return [None] * len(step.samples)
    from dumptui.core.query.text_search import read_recorded

    recorded = read_recorded(step.files, step.samples)
    counts = []
    for sample, messages in zip(step.samples, recorded, strict=True):
        step.pause()
        counts.append(written_calls(sample, messages))
    return counts


def written_calls(sample: Sample, recorded: object) -> int | None:
    from dumptui.core.sample.conversation import prompt_messages
    from dumptui.core.sample.messages import count_calls
    from dumptui.core.sample.reconstruction import as_messages

    messages = as_messages(recorded) or as_messages(sample.metadata.get("messages"))
    if not messages:
        return None
    written = messages[prompt_messages(sample, messages) :]
    return sum(count_calls(message) for message in written if message.get("role") == "assistant")

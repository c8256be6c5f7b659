"""Which place in the trainer's response each token of a rollout response has: nearly always its own.

The trainer may expand media: one token of the rollout file then stands for a run of the same token. Whatever else
differs between the two makes them other sequences.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dumptui.core.arrays import Array, Bools, Ints

# A response of so many tokens tells a sample by itself: its prompt may be rewritten around media.
TELLING_TOKENS = 8


class Alignment(NamedTuple):
    """`at` has the place of each token of a rollout response in the trainer's, where a run begins for one that stands
    for it. `own` is False for these: none of the values of a run is theirs.
    """

    at: Ints
    own: Bools


def align(
    train: Array, train_response: int, tokens: Array, response: int, mask: Array | None, media: bool
) -> Alignment | None:
    """None for sequences that differ in more than expanded media. `mask` is the trainer's loss mask, `media` whether
    the sample is known to hold some.
    """
    prompt, written = tokens[: len(tokens) - response], tokens[len(tokens) - response :]
    train_prompt, train_written = train[: len(train) - train_response], train[len(train) - train_response :]
    untrained = None if mask is None or len(mask) != train_response else mask == 0
    found = align_part(train_written, written, untrained, media)
    if found is None or np.array_equal(train_prompt, prompt):
        return found
    if media and train_response == response >= TELLING_TOKENS and len(train_prompt) > len(prompt):
        return found
    return found if align_part(train_prompt, prompt, np.ones(len(train_prompt), bool), media) else None


def align_part(train: Array, tokens: Array, untrained: Bools | None, media: bool) -> Alignment | None:
    """Run by run: a longer one of the trainer's is of media where the sample has some, or where it is not trained on.

    Negative ids are of media too, which no text has: they may be missing in the rollout file.
    """
    if len(train) == len(tokens):
        same = np.array_equal(train, tokens)
        return Alignment(np.arange(len(tokens)), np.ones(len(tokens), bool)) if same else None
    if len(train) < len(tokens):
        return None
    text, train_text = np.flatnonzero(tokens >= 0), np.flatnonzero(train >= 0)
    starts, train_starts = run_starts(tokens[text]), run_starts(train[train_text])
    if not np.array_equal(tokens[text[starts]], train[train_text[train_starts]]):
        return None
    lengths, train_lengths = np.diff(starts, append=len(text)), np.diff(train_starts, append=len(train_text))
    grown = train_lengths > lengths
    if (train_lengths < lengths).any() or not (media or all_untrained(grown, train_lengths, train_text, untrained)):
        return None
    run = np.repeat(np.arange(len(starts)), lengths)
    at, own = np.zeros(len(tokens), np.int64), np.zeros(len(tokens), bool)
    at[text] = train_text[train_starts[run] + np.arange(len(text)) - starts[run]]
    own[text] = ~grown[run]
    return Alignment(behind(at, text, len(train)), own)


def run_starts(tokens: Array) -> Ints:
    return np.flatnonzero(np.diff(tokens, prepend=tokens[:1] - 1))


def all_untrained(grown: Bools, lengths: Ints, places: Ints, untrained: Bools | None) -> bool:
    """Whether no token of the runs that grew is trained on: the model wrote none of them."""
    if not grown.any():
        return True
    return untrained is not None and bool(untrained[places[np.repeat(grown, lengths)]].all())


def behind(at: Ints, text: Ints, length: int) -> Ints:
    """A token of negative id is where the text before it ends."""
    if len(text) < len(at):
        before = np.full(len(at), -1)
        before[text] = at[text]
        before = np.maximum.accumulate(before)
        media = np.ones(len(at), bool)
        media[text] = False
        at[media] = np.minimum(before[media] + 1, length - 1)
    return at

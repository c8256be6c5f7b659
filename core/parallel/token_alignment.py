"""The position in the trainer's response of each token of a rollout response, nearly always its own.

The trainer may expand media: one token of the rollout file then stands for a run of the same token. With any other
difference the two are not the same sequence.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dumptui.core.arrays import Array, Bools, Ints

# A response of so many tokens identifies a sample by itself: its prompt may be rewritten around media.
TELLING_TOKENS = 8


class TokenAlignment(NamedTuple):
    """The tokens of a rollout response in the trainer's response.

    `positions` is the position of each token; for a token that stands for a run of media it is the start of the run.
    `own` is False for such a token: no value of the run belongs to it.
    """

    positions: Ints
    own: Bools


def align(
    train: Array, train_response: int, tokens: Array, response: int, mask: Array | None, media: bool
) -> TokenAlignment | None:
    """Return the alignment of a response; None if the sequences differ in more than expanded media.

    `train` and `tokens` are whole sequences, with their response lengths; `mask` is the trainer's loss mask, `media`
    whether the sample is known to hold media.
    """
    prompt, written = tokens[: len(tokens) - response], tokens[len(tokens) - response :]
    train_prompt, train_written = train[: len(train) - train_response], train[len(train) - train_response :]
    untrained = None if mask is None or len(mask) != train_response else mask == 0
    aligned = align_part(train_written, written, untrained, media)
    if aligned is None or np.array_equal(train_prompt, prompt):
        return aligned
    if media and train_response == response >= TELLING_TOKENS and len(train_prompt) > len(prompt):
        return aligned
    return aligned if align_part(train_prompt, prompt, np.ones(len(train_prompt), bool), media) else None


def align_part(train: Array, tokens: Array, untrained: Bools | None, media: bool) -> TokenAlignment | None:
    """Return the alignment of a prompt or a response, which are compared by runs of equal tokens.

    A longer run of the trainer's is media if the sample has media, or if it is not trained on. Negative ids are media
    too, since no text has them, and may be missing in the rollout file.
    """
    if len(train) == len(tokens):
        same = np.array_equal(train, tokens)
        return TokenAlignment(np.arange(len(tokens)), np.ones(len(tokens), bool)) if same else None
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
    positions, own = np.zeros(len(tokens), np.int64), np.zeros(len(tokens), bool)
    positions[text] = train_text[train_starts[run] + np.arange(len(text)) - starts[run]]
    own[text] = ~grown[run]
    return TokenAlignment(after_text(positions, text, len(train)), own)


def run_starts(tokens: Array) -> Ints:
    """Return the index at which each run of equal tokens starts."""
    return np.flatnonzero(np.diff(tokens, prepend=tokens[:1] - 1))


def all_untrained(grown: Bools, lengths: Ints, positions: Ints, untrained: Bools | None) -> bool:
    """Whether no token of the runs that grew is trained on, so that the model wrote none of them."""
    if not grown.any():
        return True
    return untrained is not None and bool(untrained[positions[np.repeat(grown, lengths)]].all())


def after_text(positions: Ints, text: Ints, length: int) -> Ints:
    """Return the positions with each token of negative id, which is not in `text`, right after the text before it."""
    if len(text) < len(positions):
        before = np.full(len(positions), -1)
        before[text] = positions[text]
        before = np.maximum.accumulate(before)
        media = np.ones(len(positions), bool)
        media[text] = False
        positions[media] = np.minimum(before[media] + 1, length - 1)
    return positions

"""A comparison of two samples, token by token and word by word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from dumptui.core.diff.sequences import Pause, Stretch
from dumptui.core.diff.texts import Comparison, compare, compare_words, words_in
from dumptui.core.fields.registry import FIELDS
from dumptui.core.formats.sample import Sample
from dumptui.core.sample.view import SampleView, view_sample
from dumptui.core.step.step import Step
from dumptui.core.types import Record
from dumptui.core.vocabulary import CONTINUATION_MARK, Vocabulary


@dataclass(frozen=True, slots=True)
class Pair:
    """Two samples of a step. `tokens` compares their whole sequences, `words` the texts of their responses.

    `dumped_words` are the words of both as dumped, with characters that a screen must not show.
    """

    left: SampleView
    right: SampleView
    tokens: Comparison
    words: Comparison
    dumped_words: tuple[Sequence[str], Sequence[str]]

    def comparison(self, words: bool) -> Comparison:
        return self.words if words else self.tokens

    def texts(self, words: bool) -> tuple[Sequence[str], Sequence[str]]:
        """Return the words or token texts of both sides, as dumped."""
        return self.dumped_words if words else (self.left.texts, self.right.texts)


def pair(step: Step, left: int, right: int, vocabulary: Vocabulary | None, pause: Pause = lambda: None) -> Pair:
    """Compare the samples at two positions of the rollout file. `pause` is called regularly and may raise to cancel."""
    first, second = view_sample(step, left, vocabulary), view_sample(step, right, vocabulary)
    tokens = compare(first.texts, second.texts, first.sample.tokens, second.sample.tokens, pause=pause)
    words = words_in(response_text(first)), words_in(response_text(second))
    return Pair(first, second, tokens, compare_words(*words, pause), words)


def response_text(view: SampleView) -> str:
    return view.sample.response or "".join(view.texts[view.sample.prompt_length :])


# As rows --------------------------------------------------------------------------------------------------------


def document(compared: Pair, words: bool) -> Record:
    """Return the names of the samples, where they first differ, and a row for each pair of facing items."""
    first_difference = compared.comparison(words).difference.first_difference
    return {
        "left": name_of(compared.left.sample),
        "right": name_of(compared.right.sample),
        "compared": "words" if words else "tokens",
        "parting": None if first_difference is None else list(first_difference),
        "rows": list(rows(compared, words)),
    }


def name_of(sample: Sample) -> Record:
    return {"sample_index": sample.index, "occurrence": sample.occurrence}


def rows(compared: Pair, words: bool) -> Iterator[Record]:
    """Yield a row per pair of facing items; in a difference, the n-th item of one side faces the n-th of the other."""
    left, right = compared.texts(words)
    for stretch in compared.comparison(words).difference.stretches:
        positions = (range(side.start, side.stop) for side in (stretch.left, stretch.right))
        for left_position, right_position in zip_longest(*positions):
            yield {
                "same": stretch.same,
                **item("left", None if words else compared.left, left, left_position),
                **item("right", None if words else compared.right, right, right_position),
            }


def item(name: str, view: SampleView | None, texts: Sequence[str], position: int | None) -> Record:
    """Return one side of a row: position and text and, where a `view` is given, token id and COMPARED_FIELDS."""
    values: Record = {"position": position, "text": None if position is None else texts[position]}
    if view is not None:
        values["token_id"] = None if position is None else int(view.sample.tokens[position])
        values |= {
            field.name: None if position is None else view.value(field.name, position)
            for field in FIELDS
            if field.compared and view.fields[field.name].usable
        }
    return {f"{name}_{key}": value for key, value in values.items()}


def difference_row(compared: Pair, words: bool, stretch: Stretch) -> Record:
    """Return one row for a whole difference."""
    left, right = compared.texts(words)
    return {
        "left_position": stretch.left.start,
        "left_text": joined(left[stretch.left]),
        "right_position": stretch.right.start,
        "right_text": joined(right[stretch.right]),
    }


def marked_text(compared: Pair, words: bool) -> str:
    """Return both sides as one text with the differences marked, as `git diff --word-diff` does."""
    left, right = compared.texts(words)
    parts = []
    for stretch in compared.comparison(words).difference.stretches:
        removed, added = joined(left[stretch.left]), joined(right[stretch.right])
        parts += [removed] if stretch.same else [f"[-{removed}-]" if removed else "", f"{{+{added}+}}" if added else ""]
    return "".join(parts)


def joined(texts: Sequence[str]) -> str:
    return "".join(text for text in texts if text != CONTINUATION_MARK)

"""Two samples beside each other, token by token and word by word."""

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

    `dumped_words` are the words of both as they are dumped, which is not for the screen.
    """

    left: SampleView
    right: SampleView
    tokens: Comparison
    words: Comparison
    dumped_words: tuple[Sequence[str], Sequence[str]]

    def comparison(self, words: bool) -> Comparison:
        return self.words if words else self.tokens

    def texts(self, words: bool) -> tuple[Sequence[str], Sequence[str]]:
        """What is compared, as it is dumped."""
        return self.dumped_words if words else (self.left.texts, self.right.texts)


def pair(step: Step, left: int, right: int, vocabulary: Vocabulary | None, pause: Pause = lambda: None) -> Pair:
    """The samples at two positions of the rollout file; what `pause` raises, called now and then, ends it."""
    one, other = view_sample(step, left, vocabulary), view_sample(step, right, vocabulary)
    tokens = compare(one.texts, other.texts, one.sample.tokens, other.sample.tokens, pause=pause)
    words = words_in(response_text(one)), words_in(response_text(other))
    return Pair(one, other, tokens, compare_words(*words, pause), words)


def response_text(view: SampleView) -> str:
    return view.sample.response or "".join(view.texts[view.sample.prompt_length :])


# As rows --------------------------------------------------------------------------------------------------------


def document(found: Pair, words: bool) -> Record:
    """The samples, where they part, and a row for each two items that are the same or face each other."""
    parting = found.comparison(words).difference.first_difference
    return {
        "left": name_of(found.left.sample),
        "right": name_of(found.right.sample),
        "compared": "words" if words else "tokens",
        "parting": None if parting is None else list(parting),
        "rows": list(rows(found, words)),
    }


def name_of(sample: Sample) -> Record:
    return {"sample_index": sample.index, "occurrence": sample.occurrence}


def rows(found: Pair, words: bool) -> Iterator[Record]:
    """Within a difference the first items of both face each other, then the second ones, until both end."""
    left, right = found.texts(words)
    for one in found.comparison(words).difference.stretches:
        for at, to in zip_longest(range(one.left.start, one.left.stop), range(one.right.start, one.right.stop)):
            yield {
                "same": one.same,
                **item("left", None if words else found.left, left, at),
                **item("right", None if words else found.right, right, to),
            }


def item(name: str, view: SampleView | None, texts: Sequence[str], at: int | None) -> Record:
    """One of the two, by position and text; of a token, which has a `view`, its id and log-probs too."""
    found: Record = {"position": at, "text": None if at is None else texts[at]}
    if view is not None:
        found["token_id"] = None if at is None else int(view.sample.tokens[at])
        found |= {
            field.name: None if at is None else view.value(field.name, at)
            for field in FIELDS
            if field.compared and view.fields[field.name].usable
        }
    return {f"{name}_{key}": value for key, value in found.items()}


def difference_row(found: Pair, words: bool, one: Stretch) -> Record:
    """A difference as a whole."""
    left, right = found.texts(words)
    return {
        "left_position": one.left.start,
        "left_text": joined(left[one.left]),
        "right_position": one.right.start,
        "right_text": joined(right[one.right]),
    }


def marked_text(found: Pair, words: bool) -> str:
    """Both as one text with the differences marked, as `git diff --word-diff` does."""
    left, right = found.texts(words)
    parts = []
    for one in found.comparison(words).difference.stretches:
        gone, come = joined(left[one.left]), joined(right[one.right])
        parts.append(gone if one.same else f"[-{gone}-]" * bool(gone) + f"{{+{come}+}}" * bool(come))
    return "".join(parts)


def joined(texts: Sequence[str]) -> str:
    return "".join(text for text in texts if text != CONTINUATION_MARK)

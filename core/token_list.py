"""The text of each token id, from the lists in a `tokenizer.json`.

The library that wrote the file can read it too, but takes twice as long, for parts that are not needed here, and its
panics appear on the screen if such a part is damaged.
"""

from __future__ import annotations

from typing import Any

JSON_ERRORS = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
"""The exceptions raised by reading a document that is not JSON, or not a tokenizer."""


class TokenList:
    """The tokens of a tokenizer by id."""

    def __init__(self, document: dict[str, Any]) -> None:
        """Read the lists of a document. Raises one of JSON_ERRORS if it is not a tokenizer."""
        self.added = {token_id(token["id"]): text(token["content"]) for token in document.get("added_tokens") or ()}
        """The tokens added to the vocabulary, such as those that begin and end a message."""
        self._vocabulary = vocabulary_of(document["model"])
        self._texts = self._vocabulary | self.added
        self._added_tokens = document.get("added_tokens") or ()

    def id_to_token(self, token: int) -> str | None:
        return self._texts.get(token)

    def in_vocabulary(self, token: int) -> bool:
        """Whether an id is in the vocabulary of the model, not only among the added tokens."""
        return token in self._vocabulary

    def flagged(self, flag: str) -> frozenset[int]:
        """Return the ids of the added tokens for which a flag such as "special" is set."""
        return frozenset(token_id(token["id"]) for token in self._added_tokens if token.get(flag))


def vocabulary_of(model: dict[str, Any]) -> dict[int, str]:
    """Return the text by id. In a Unigram model, the id is the position in a list; in others, the value of the text."""
    vocabulary = model["vocab"]
    if isinstance(vocabulary, list):
        return {token: text(entry[0]) for token, entry in enumerate(vocabulary)}
    ids = set(map(type, vocabulary.values()))
    if ids - {int}:
        raise ValueError("an id of the vocabulary is not a whole number")
    return dict(zip(vocabulary.values(), vocabulary, strict=True))


def token_id(value: object) -> int:
    if type(value) is not int:
        raise ValueError("the id of an added token is not a whole number")
    return value


def text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("a token is not a text")
    return value

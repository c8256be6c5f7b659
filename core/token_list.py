"""Which text each token id stands for, as a `tokenizer.json` lists them.

The library that wrote the file would read it too, but takes twice as long, for parts that no text needs, and panics
over the screen where such a part is damaged.
"""

from __future__ import annotations

from typing import Any

JSON_ERRORS = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
"""What reading a document raises that is none, or another one."""


class TokenList:
    def __init__(self, document: dict[str, Any]) -> None:
        """Raises one of JSON_ERRORS for a document that is no tokenizer."""
        self.added = {token_id(one["id"]): text(one["content"]) for one in document.get("added_tokens") or ()}
        """The tokens that stand beside the vocabulary, such as those that begin and end a message."""
        self._vocabulary = vocabulary_of(document["model"])
        self._texts = self._vocabulary | self.added
        self._added_tokens = document.get("added_tokens") or ()

    def id_to_token(self, token: int) -> str | None:
        return self._texts.get(token)

    def in_vocabulary(self, token: int) -> bool:
        """Whether the model's own vocabulary holds an id, beside the added tokens."""
        return token in self._vocabulary

    def flagged(self, flag: str) -> frozenset[int]:
        """Return the ids of the added tokens for which a flag such as "special" is set."""
        return frozenset(token_id(token["id"]) for token in self._added_tokens if token.get(flag))


def vocabulary_of(model: dict[str, Any]) -> dict[int, str]:
    """Of a Unigram model the place in a list is the id, of all others the number beside the text."""
    vocabulary = model["vocab"]
    if isinstance(vocabulary, list):
        return {at: text(entry[0]) for at, entry in enumerate(vocabulary)}
    ids = set(map(type, vocabulary.values()))
    if ids - {int}:
        raise ValueError("an id of its vocabulary is no whole number")
    return dict(zip(vocabulary.values(), vocabulary, strict=True))


def token_id(value: object) -> int:
    if type(value) is not int:
        raise ValueError("the id of an added token is no whole number")
    return value


def text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("a token is no text")
    return value

"""Whether the text of a response is that of its tokens: it may end earlier, where it was cut at a stop string."""

from __future__ import annotations

from collections.abc import Sequence

from dumptui.core.finding import count
from dumptui.core.sample import Sample
from dumptui.core.tokens import Vocabulary

TELLING_CHARACTERS = 16  # that two texts begin with, by no chance


def text_notes(sample: Sample, vocabulary: Vocabulary | None) -> list[str]:
    """What is to be said where the one goes on behind the other; nothing of texts that differ in other ways, as
    tokenizers spell some characters otherwise than the engine did.
    """
    response = sample.response.strip()
    if vocabulary is None or not response or not 0 < sample.response_length <= sample.total_length:
        return []
    ids = sample.tokens[sample.prompt_length :].tolist()
    spelled = [spell(vocabulary, ids), spell(vocabulary, [one for one in ids if one not in vocabulary.added])]
    if response in spelled:
        return []
    for text in spelled[::-1]:
        if text.startswith(response):
            more = count(len(text) - len(response), "character")
            return [f"the response text ends {more} before its tokens do, as if it was cut at a stop string"]
        if len(text) >= TELLING_CHARACTERS and response.startswith(text):
            return [f"the response text goes on for {count(len(response) - len(text), 'character')} behind its tokens"]
    return []


def spell(vocabulary: Vocabulary, ids: Sequence[int]) -> str:
    """Without white space around it, and a last character of which only a part was written."""
    pieces = vocabulary.pieces(ids)
    whole = b"".join(piece if isinstance(piece, bytes) else piece.encode(errors="replace") for piece in pieces)
    return whole.decode(errors="replace").rstrip("\ufffd").strip()

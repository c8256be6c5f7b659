"""Whether the text of a response is that of its tokens: the engine cuts it at a stop string, an agent may rewrite it.

Blanks, special tokens and what is no character don't count, nor does what the model did not write: a text leaves out
the chat template around the results of tools.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dumptui.core.formats.sample import Sample
from dumptui.core.sample.turns import find_turns
from dumptui.core.text import clip, visible
from dumptui.core.vocabulary import Vocabulary

LONGEST_STOP = 64
"""Characters of a stop string that a turn may lack before others."""
SHOWN_CHARACTERS = 40


def text_note(sample: Sample, vocabulary: Vocabulary | None) -> str | None:
    """What has to be said of a response's text beside its tokens; None where they agree or one isn't known."""
    if vocabulary is None or not sample.response:
        return None
    ids = sample.tokens.tolist()
    known = list(set(ids))
    encoded = dict(zip(known, map(as_bytes, vocabulary.pieces(known)), strict=True))
    special = [encoded[token].decode() for token in vocabulary.added.intersection(known)]
    turns = [one for one in find_turns(sample.loss_mask, sample.prompt_length, sample.total_length) if one.trained]
    texts = [b"".join(map(encoded.__getitem__, ids[one.start : one.stop])).decode("utf-8", "replace") for one in turns]
    if texts == [sample.response]:
        return None
    begins = bool(turns) and turns[0].start == sample.prompt_length
    ends = not turns or turns[-1].stop == sample.total_length
    return compare(bare(sample.response, special), [without(text, special) for text in texts], begins, ends)


def as_bytes(piece: bytes | str) -> bytes:
    return piece if isinstance(piece, bytes) else piece.encode("utf-8", "replace")


def without(text: str, special: Iterable[str]) -> str:
    """The text without special tokens and what is no character."""
    for one in ("\ufffd", *special):
        text = text.replace(one, "")
    return text


def bare(text: str, special: Iterable[str] = ()) -> str:
    """Without blanks, too."""
    return "".join(without(text, special).split())


def ending(text: str, length: int) -> str:
    """The end of a text, `length` characters long but for its blanks."""
    start = len(text)
    while length > 0 and start > 0:
        start -= 1
        length -= not text[start].isspace()
    return text[start:]


def compare(text: str, turns: Sequence[str], begins: bool, ends: bool) -> str | None:
    """Look for the turns in a text, one behind the other; it `begins` with the first and `ends` with the last."""
    at = 0
    for number, whole in enumerate(turns, 1):
        turn = bare(whole)
        exact, last = begins and number == 1, ends and number == len(turns)
        start = place_of(turn, text, at, exact)
        if start is None:
            rest = lacking(turn, text, at, exact, last)
            which = "the text" if len(turns) == 1 else f"the text of turn {number}"
            if rest is None:
                return f"{which} is not that of its tokens"
            return (
                f'{which} is cut: its tokens go on with "{clip(visible(ending(whole, len(rest))), SHOWN_CHARACTERS)}"'
            )
        at = start + len(turn)
    return "the text goes on after its tokens end" if ends and at < len(text) else None


def place_of(turn: str, text: str, at: int, exact: bool) -> int | None:
    found = (at if text.startswith(turn, at) else -1) if exact else text.find(turn, at)
    return None if found < 0 else found


def lacking(turn: str, text: str, at: int, exact: bool, last: bool) -> str | None:
    """What a turn has that the text lacks, if that is only its end."""
    if exact and last and turn.startswith(text[at:]):
        return turn[len(text) - at :]
    for stop in range(len(turn) - 1, max(0, len(turn) - LONGEST_STOP - 1), -1):
        start = place_of(turn[:stop], text, at, exact)
        if start is not None and (not last or start + stop == len(text)):
            return turn[stop:]
    return None

"""A check that the text of a response agrees with its tokens: an engine cuts it at a stop string, an agent rewrites it.

The check ignores blanks, special tokens and undecodable bytes. It compares only the tokens that the model wrote, as the
text may lack the chat template around the results of tools.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dumptui.core.formats.sample import Sample
from dumptui.core.sample.turns import find_turns
from dumptui.core.text import clip, visible
from dumptui.core.vocabulary import Vocabulary

LONGEST_STOP = 64
"""A text may lack at most this many characters at the end of a turn that is not the last: a stop string."""
SHOWN_CHARACTERS = 40


def text_note(sample: Sample, vocabulary: Vocabulary | None) -> str | None:
    """Return how a response's text differs from its tokens; None where they agree or one of them isn't known."""
    if vocabulary is None or not sample.response:
        return None
    ids = sample.tokens.tolist()
    known = list(set(ids))
    encoded = dict(zip(known, map(as_bytes, vocabulary.pieces(known)), strict=True))
    special = [encoded[token].decode() for token in vocabulary.added.intersection(known)]
    all_turns = find_turns(sample.loss_mask, sample.prompt_length, sample.total_length)
    turns = [turn for turn in all_turns if turn.trained]
    pieces = [b"".join(map(encoded.__getitem__, ids[turn.start : turn.stop])) for turn in turns]
    texts = [piece.decode("utf-8", "replace") for piece in pieces]
    if texts == [sample.response]:
        return None
    begins = bool(turns) and turns[0].start == sample.prompt_length
    ends = not turns or turns[-1].stop == sample.total_length
    return compare(bare(sample.response, special), [without(text, special) for text in texts], begins, ends)


def as_bytes(piece: bytes | str) -> bytes:
    return piece if isinstance(piece, bytes) else piece.encode("utf-8", "replace")


def without(text: str, special: Iterable[str]) -> str:
    """Return the text without special tokens and replacement characters."""
    for token in ("\ufffd", *special):
        text = text.replace(token, "")
    return text


def bare(text: str, special: Iterable[str] = ()) -> str:
    """Return the text without special tokens, replacement characters and blanks."""
    return "".join(without(text, special).split())


def ending(text: str, length: int) -> str:
    """Return the end of a text that has `length` characters, not counting blanks."""
    start = len(text)
    while length > 0 and start > 0:
        start -= 1
        length -= not text[start].isspace()
    return text[start:]


def compare(text: str, turns: Sequence[str], begins: bool, ends: bool) -> str | None:
    """Return how a bare text differs from the turns in it, which must follow each other; None if it does not.

    With `begins`, the text must begin with the first turn; with `ends`, end with the last.
    """
    end = 0
    for number, full_turn in enumerate(turns, 1):
        turn = bare(full_turn)
        exact, last = begins and number == 1, ends and number == len(turns)
        start = find_turn(turn, text, end, exact)
        if start is None:
            rest = missing_end(turn, text, end, exact, last)
            which = "the text" if len(turns) == 1 else f"the text of turn {number}"
            if rest is None:
                return f"{which} differs from its tokens"
            shown = clip(visible(ending(full_turn, len(rest))), SHOWN_CHARACTERS)
            return f'{which} is truncated: its tokens continue with "{shown}"'
        end = start + len(turn)
    return "the text continues after its tokens end" if ends and end < len(text) else None


def find_turn(turn: str, text: str, start: int, exact: bool) -> int | None:
    """Return the position of a turn from `start` on, at `start` itself if `exact`; None if it is missing."""
    if exact:
        return start if text.startswith(turn, start) else None
    position = text.find(turn, start)
    return None if position < 0 else position


def missing_end(turn: str, text: str, start: int, exact: bool, last: bool) -> str | None:
    """Return the end of a turn that the text lacks; None if it lacks more than the end."""
    if exact and last and turn.startswith(text[start:]):
        return turn[len(text) - start :]
    for stop in range(len(turn) - 1, max(0, len(turn) - LONGEST_STOP - 1), -1):
        position = find_turn(turn[:stop], text, start, exact)
        if position is not None and (not last or position + stop == len(text)):
            return turn[stop:]
    return None

"""Token ids as text, token by token, from a `tokenizer.json` alone: no code of the dump is run, no network is used."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from dumptui.core.errors import DumpError
from dumptui.core.ptfile.snapshot import read_bounded
from dumptui.core.text import visible
from dumptui.core.token_list import JSON_ERRORS, TokenList

T = TypeVar("T")

MAX_FILE_BYTES = 256 << 20
"""Larger files are not read; one of 260,000 tokens has 33 MB."""
LONGEST_REASON = 100
# The text of a token that only has further bytes of a character that an earlier token begins.
CONTINUATION_MARK = "⋯"


def byte_characters() -> dict[str, int]:
    """Return the bytes of GPT-2's byte-level alphabet: printable latin-1 is its own byte, others are U+0100 and up."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    unprintable = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + n): byte for n, byte in enumerate(unprintable)}


_BYTE_CHARACTERS = byte_characters()
_LONE_BYTE = re.compile("<0x([0-9A-Fa-f]{2})>")


class NoTokenizer(DumpError):
    """A missing tokenizer, which is not a fault of the dump."""


class _Known(dict[int, T]):
    """Values by token id, looked up once: a sample of 100,000 tokens repeats most ids."""

    def __init__(self, look_up: Callable[[int], T]) -> None:
        super().__init__()
        self._look_up = look_up

    def __missing__(self, token: int) -> T:
        self[token] = self._look_up(token)
        return self[token]


class Vocabulary:
    """The texts of a tokenizer's tokens: bytes where a token may be part of a character, else text."""

    def __init__(self, tokenizer: TokenList, decoder: str) -> None:
        self._tokenizer = tokenizer
        self._decoder = decoder
        self.added = frozenset(tokenizer.added)
        """The tokens added to the vocabulary, such as those that begin and end a message."""
        self._normalized, self._special = tokenizer.flagged("normalized"), tokenizer.flagged("special")
        self._pieces = _Known(self._look_up)
        self._wholes = _Known(lambda token: whole_text(self._pieces[token]))

    @classmethod
    def load(cls, path: Path) -> Vocabulary:
        """Read a `tokenizer.json`. Raises DumpError when it is not a tokenizer, NoTokenizer when it is missing."""
        try:
            content = read_bounded(path, MAX_FILE_BYTES)
        except FileNotFoundError as error:
            raise NoTokenizer(path, "no tokenizer in the dump: token ids are shown") from error
        except OSError as error:
            raise DumpError(path, f"can't be read: {error.strerror or error}") from error
        try:
            document = json.loads(content.decode("utf-8"))
            return cls(TokenList(document), json.dumps(document.get("decoder")))
        except JSON_ERRORS as error:
            reason = visible(str(error))[:LONGEST_REASON]
            raise DumpError(path, f"unreadable tokenizer: {type(error).__name__}: {reason}") from error

    def texts(self, ids: Sequence[int]) -> list[str]:
        """Return one text per token.

        A character over several tokens is the text of its first; the others are CONTINUATION_MARK. Lone bytes are hex.
        """
        texts: list[str] = []
        run: list[bytes] = []  # since the last token of complete characters, which no character crosses
        for token, text in zip(ids, map(self._wholes.__getitem__, ids), strict=True):
            if text is None:
                run.append(self._pieces[token])  # type: ignore[arg-type]
                continue
            if run:
                texts += spread(run)
                run = []
            texts.append(text)
        return texts + list(spread(run))

    def pieces(self, ids: Iterable[int]) -> list[bytes | str]:
        """Return the text of each token by itself: bytes where these may be part of a character."""
        return list(map(self._pieces.__getitem__, ids))

    def _look_up(self, token: int) -> bytes | str:
        piece = self._tokenizer.id_to_token(token) if 0 <= token < 2**32 else None
        if piece is None:
            return f"<id {token}>"
        if token in self.added:
            return piece.replace("▁", " ") if self._has_marks(token) else piece
        if "ByteLevel" in self._decoder:
            return bytes(_BYTE_CHARACTERS[c] for c in piece) if all(c in _BYTE_CHARACTERS for c in piece) else piece
        if match := _LONE_BYTE.fullmatch(piece):
            return bytes.fromhex(match[1])
        if "WordPiece" in self._decoder:
            return piece[2:] if piece.startswith("##") else " " + piece
        return " " + piece if self._decoder == "null" else piece.replace("▁", " ").encode()

    def _has_marks(self, token: int) -> bool:
        """Whether an added token has sentencepiece's marks for blanks.

        Most added tokens occur in a text unchanged. Those with the flag "normalized" went through the normalizer, and
        so did those that are in the vocabulary too, such as Gemma's runs of blanks.
        """
        if r"\u2581" not in self._decoder:
            return False
        in_vocabulary = token not in self._special and self._tokenizer.in_vocabulary(token)
        return token in self._normalized or in_vocabulary


def tokenizer_problem(path: Path) -> str | None:
    """Why a tokenizer can't be read; None of one that can, or is not there."""
    try:
        Vocabulary.load(path)
    except NoTokenizer:
        return None
    except DumpError as error:
        return error.problem
    return None


def whole_text(piece: bytes | str) -> str | None:
    """Return the text of a piece of complete characters; None for one that may hold part of a character."""
    try:
        return piece if isinstance(piece, str) else piece.decode() or None
    except UnicodeDecodeError:
        return None


def spread(pieces: Sequence[bytes]) -> Iterator[str]:
    """Yield the text of each piece of a run of bytes: a character belongs to the piece with its first byte."""
    starts = list(characters(b"".join(pieces)))
    position = end = 0
    for piece in pieces:
        end += len(piece)
        text = ""
        first = position
        while position < len(starts) and starts[position][0] < end:
            text += starts[position][1]
            position += 1
        yield text if position > first or not piece else CONTINUATION_MARK


def characters(data: bytes) -> Iterator[tuple[int, str]]:
    """Yield (offset, character) of UTF-8 `data`; a byte outside of any character becomes its hex form."""
    offset = 0
    while offset < len(data):
        size = next((size for low, size in ((0xF0, 4), (0xE0, 3), (0xC0, 2)) if data[offset] >= low), 1)
        try:
            yield offset, data[offset : offset + size].decode("utf-8")
            offset += size
        except UnicodeDecodeError:
            yield offset, f"\\x{data[offset]:02x}"
            offset += 1

"""Small tokenizers."""

from __future__ import annotations

from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from dumptui.core.vocabulary import byte_characters

LETTERS = {byte: letter for letter, byte in byte_characters().items()}


def byte_level(extra: list[bytes] | None = None) -> Tokenizer:
    """Every byte is a token of its number; `extra` pieces come after, then two special tokens."""
    vocabulary = {LETTERS[byte]: byte for byte in range(256)}
    vocabulary |= {"".join(LETTERS[byte] for byte in piece): 256 + at for at, piece in enumerate(extra or [])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|im_end|>", "<think>"])
    return tokenizer

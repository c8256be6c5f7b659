"""Token ids as text, from a tokenizer.json alone."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers

from dumptui.core.errors import DumpError
from dumptui.core.token_list import TokenList
from dumptui.core.vocabulary import CONTINUATION_MARK, Vocabulary
from tests.support.tokenizer_files import byte_level

EMOJI, WORD = "🙂".encode(), "好".encode()


def load(folder: Path, tokenizer: Tokenizer) -> Vocabulary:
    path = folder / "tokenizer.json"
    path.write_text(tokenizer.to_str(), encoding="utf-8")
    return Vocabulary.load(path)


@pytest.fixture(scope="module")
def letters(tmp_path_factory: pytest.TempPathFactory) -> Vocabulary:
    return load(tmp_path_factory.mktemp("bytes"), byte_level())


# Case 28: huggingface/tokenizers#1811, antonellof/ferrox#124, characters over several tokens --------------


def test_a_character_over_several_tokens_stands_on_its_first(letters: Vocabulary) -> None:
    assert letters.texts(EMOJI) == ["🙂", CONTINUATION_MARK, CONTINUATION_MARK, CONTINUATION_MARK]
    assert letters.texts([*b"a", *WORD, *b"b"]) == ["a", "好", CONTINUATION_MARK, CONTINUATION_MARK, "b"]


def test_pieces_of_several_bytes(tmp_path: Path) -> None:
    vocabulary = load(tmp_path, byte_level([EMOJI[:2], EMOJI[2:], b"a" + WORD[:1], WORD[1:] + EMOJI[:1], b" the"]))
    assert vocabulary.texts([256, 257]) == ["🙂", CONTINUATION_MARK]
    assert vocabulary.texts([258, 259, *EMOJI[1:]]) == [
        "a好",
        "🙂",
        CONTINUATION_MARK,
        CONTINUATION_MARK,
        CONTINUATION_MARK,
    ]
    assert vocabulary.texts([260]) == [" the"]


def test_a_character_that_is_cut_is_shown_as_bytes(letters: Vocabulary) -> None:
    assert letters.texts(EMOJI[:2]) == ["\\xf0", "\\x9f"]
    assert letters.texts([*EMOJI[2:], *b"x"]) == ["\\x99", "\\x82", "x"]
    assert letters.texts([EMOJI[0], 256, *EMOJI[1:]]) == ["\\xf0", "<|im_end|>", "\\x9f", "\\x99", "\\x82"]


def test_ids_beyond_the_vocabulary_are_named(letters: Vocabulary) -> None:
    """verl-project/verl#1826: ids come out of the padding of the embedding."""
    assert letters.texts([151700, -101, 2**40, 258]) == ["<id 151700>", "<id -101>", f"<id {2**40}>", "<id 258>"]
    assert letters.texts([256, 257]) == ["<|im_end|>", "<think>"]


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=30))
def test_texts_joined_are_the_text(letters: Vocabulary, text: str) -> None:
    texts = letters.texts(text.encode())
    assert len(texts) == len(text.encode())
    assert "".join("" if one == CONTINUATION_MARK else one for one in texts) == text.replace(CONTINUATION_MARK, "")


@given(st.binary(max_size=40))
def test_any_bytes_have_a_text_each(letters: Vocabulary, data: bytes) -> None:
    texts = letters.texts(data)
    assert len(texts) == len(data) and "\ufffd" not in "".join(texts)
    "".join(texts).encode()  # no lone surrogates


def test_sentencepiece_bytes_and_spaces(tmp_path: Path) -> None:
    vocabulary = {
        "<unk>": 0,
        **{f"<0x{byte:02X}>": 1 + byte for byte in range(256)},
        "▁the": 257,
        "cat": 258,
        "<0xzz>": 259,
    }
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token="<unk>", byte_fallback=True))
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    texts = load(tmp_path, tokenizer).texts([257, 258, *(1 + byte for byte in EMOJI)])
    assert texts == [" the", "cat", "🙂", CONTINUATION_MARK, CONTINUATION_MARK, CONTINUATION_MARK]
    assert load(tmp_path, tokenizer).texts([259]) == ["<0xzz>"]


@pytest.mark.parametrize("decoder", [decoders.Replace("▁", " "), decoders.Metaspace()])
def test_an_added_token_has_the_text_that_it_stands_for(tmp_path: Path, decoder: Any) -> None:
    """The normalizer goes over a token that is `normalized`, and not over others: these hold a mark as it is."""
    vocabulary = {"<unk>": 0, "▁": 1, "▁▁": 2}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[("▁", "▁")], unk_token="<unk>"))
    tokenizer.normalizer, tokenizer.decoder = normalizers.Replace(" ", "▁"), decoder
    added = [
        AddedToken("of two", normalized=True),
        AddedToken("▁▁", normalized=False),
        AddedToken("▁raw", normalized=False),
    ]
    tokenizer.add_tokens(added)
    tokenizer.add_special_tokens([AddedToken("<a▁b>", normalized=False)])
    words = load(tmp_path, tokenizer)
    assert words.texts(tokenizer.encode("of two  ▁raw<a▁b>").ids) == ["of two", "  ", "▁raw", "<a▁b>"]


# Case 34: thinking-machines-lab/tinker-cookbook#604, verl-project/verl#865, tokenizers that want code -------


def test_code_of_the_dump_is_never_run(tmp_path: Path) -> None:
    (tmp_path / "tokenization_evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    config = {"auto_map": {"AutoTokenizer": ["tokenization_evil.Evil", None]}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    with pytest.raises(DumpError, match="no tokenizer in the dump: token ids are shown"):
        Vocabulary.load(tmp_path / "tokenizer.json")
    assert load(tmp_path, byte_level()).texts(b"ok") == ["o", "k"]
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("text", ["", "{}", "null", "[1]", '{"model": {"type": "Unknown"}}', "\udcff"])
def test_a_file_that_is_no_tokenizer_is_one_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "tokenizer.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(DumpError, match="unreadable tokenizer") as caught:
        Vocabulary.load(tmp_path / "tokenizer.json")
    assert "\n" not in str(caught.value)


def test_a_folder_in_place_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").mkdir()
    with pytest.raises(DumpError, match="is not a file"):
        Vocabulary.load(tmp_path / "tokenizer.json")


def test_neither_a_pipe_nor_a_file_without_end_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    os.mkfifo(path)
    with pytest.raises(DumpError, match="is not a file"):
        Vocabulary.load(path)
    path.unlink()
    path.symlink_to("/dev/zero")
    with pytest.raises(DumpError, match="is not a file"):
        Vocabulary.load(path)
    path.unlink()
    with path.open("wb") as sparse:
        sparse.truncate(1 << 40)
    with pytest.raises(DumpError, match="can't be read: it has more than 256 MiB"):
        Vocabulary.load(path)


def test_a_normalizer_that_is_damaged_costs_nothing(tmp_path: Path) -> None:
    """huggingface/tokenizers panics on a `Precompiled` map that is cut, past every `except Exception`."""
    document = json.loads(byte_level().to_str())
    document["normalizer"] = {"type": "Precompiled", "precompiled_charsmap": "//////8="}
    (tmp_path / "tokenizer.json").write_text(json.dumps(document))
    assert Vocabulary.load(tmp_path / "tokenizer.json").texts(b"ok") == ["o", "k"]


def test_every_flipped_bit_is_a_tokenizer_or_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    whole = byte_level([EMOJI[:2], WORD]).to_str().encode()
    for bit in range(0, 8 * len(whole), 37):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        try:
            texts = Vocabulary.load(path).texts(range(262))
        except DumpError as error:
            assert "\n" not in str(error)
        else:
            assert len(texts) == 262


@pytest.mark.parametrize("name", ["plain", "multiturn", "shard_once"])
def test_ids_are_those_of_the_library_that_wrote_the_file(shared: Path, name: str) -> None:
    path = shared / "runs" / name / "tokenizer" / "tokenizer.json"
    written, read = Tokenizer.from_file(str(path)), TokenList(json.loads(path.read_text()))
    size = written.get_vocab_size() + 2
    assert [read.id_to_token(at) for at in range(size)] == [written.id_to_token(at) for at in range(size)]
    assert set(read.added) == set(written.get_added_tokens_decoder())


@pytest.mark.parametrize("model", ["Unigram", "WordPiece", "WordLevel"])
def test_ids_of_every_kind_of_model(model: str) -> None:
    made: dict[str, Callable[[], Any]] = {
        "Unigram": lambda: models.Unigram([("<unk>", 0.0), ("▁a", -1.0), ("b", -2.0)], 0, False),
        "WordPiece": lambda: models.WordPiece({"[UNK]": 0, "a": 1, "##b": 2}),
        "WordLevel": lambda: models.WordLevel({"<unk>": 2, "a": 0, "b": 1}, unk_token="<unk>"),
    }
    written = Tokenizer(made[model]())
    written.add_special_tokens(["<s>", "a"])
    read = TokenList(json.loads(written.to_str()))
    assert [read.id_to_token(at) for at in range(5)] == [written.id_to_token(at) for at in range(5)]

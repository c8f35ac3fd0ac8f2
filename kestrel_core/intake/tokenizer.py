"""Text to token ids and back. Owns the vocabulary; the ids that steer the model come from its config.

A user's text never becomes a special token: `<|endoftext|>` is encoded as letters. Decoding works on the
tokens' bytes, so that a stream neither cuts a character nor decodes a line twice.
"""

import json
from codecs import utf_8_decode
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

from tokenizers import Tokenizer as Vocabulary

from kestrel_core.moondream.config import MoondreamConfig
from kestrel_core.protocol.errors import BadCheckpoint, PromptTooLong

Piece = tuple[str, str]  # a part of an answer: what of it may be shown now, and what waits for the next part
SILENCE: Piece = ("", "")


class Tokenizer:
    def __init__(self, document: str, config: MoondreamConfig) -> None:
        """`document` is the text of a `tokenizer.json`."""
        try:
            fields = json.loads(document)
            control = set(config.tokenizer.control_ids)
            special = {token["id"] for token in fields["added_tokens"] if token["special"]} | control
            _require(fields["decoder"]["type"] == "ByteLevel", "it is not a byte-level tokenizer")
            whole = Vocabulary.from_str(document)
            fields["added_tokens"] = [t for t in fields["added_tokens"] if t["id"] not in special]
            self._plain = _forgetful(json.dumps(fields))
            fields["normalizer"] = None
            self._document = json.dumps(fields)
        except BadCheckpoint:
            raise
        except Exception as error:  # the library raises bare Exceptions
            raise BadCheckpoint(f"tokenizer.json cannot be used: {error}") from None
        size = max(whole.get_vocab(with_added_tokens=True).values()) + 1
        _require(
            size <= config.text.vocab_size, f"its {size} ids exceed the model's {config.text.vocab_size}"
        )
        end = whole.token_to_id("<|endoftext|>")
        _require(
            end in (None, config.tokenizer.eos_id),
            f"its <|endoftext|> is {end}, the model's is {config.tokenizer.eos_id}; "
            "releases since 2025-06-21 need the tokenizer of moondream/starmie-v1",
        )
        self._special = frozenset(special)
        self._bytes = _token_bytes(whole, size, self._special)
        self._longest = max(map(len, self._bytes))
        self._max_context = max(config.text.max_context, config.text.usable_context)

    @classmethod
    def from_file(cls, path: Path, config: MoondreamConfig) -> "Tokenizer":
        try:
            document = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise BadCheckpoint(f"tokenizer.json cannot be read: {error}") from None
        return cls(document, config)

    @classmethod
    def of_bytes(cls, config: MoondreamConfig) -> "Tokenizer":
        """A vocabulary of single bytes, for models with random weights and no words of their own."""
        return cls(byte_document(config), config)

    def encode(self, text: str) -> list[int]:
        """Token ids of a user's words; none of them special, whatever the words are.

        Raises `PromptTooLong` if so many bytes cannot fit the context, however few tokens they make.
        """
        num_bytes = len(text.encode("utf-8", "surrogatepass"))
        if num_bytes > self._max_context * self._longest:
            raise PromptTooLong(
                f"the text has {num_bytes:,} bytes, and {self._max_context:,} positions of up to "
                f"{self._longest} bytes cannot hold it; shorten the text"
            )
        return self._ids(self._plain, text)

    def encode_answer(self, text: str) -> list[int]:
        """Token ids that are decoded to exactly this text, for training.

        A user's words may be normalised first, made lower-case for example; what a model says never is.
        """
        return self._ids(self._exact, text)

    def _ids(self, vocabulary: Vocabulary, text: str) -> list[int]:
        # `encode` keeps the GIL: 960 kB of English stopped all threads for 1.14 s of its 1.23 s. A batch of
        # one gives the same ids in 0.92 s and stops them for 0.02 s (tokenizers 0.23.3, 2 cores).
        [found] = vocabulary.encode_batch_fast([text], add_special_tokens=False)
        ids: list[int] = found.ids
        if self._special.isdisjoint(ids):
            return ids
        # The vocabulary has the spelling of a special token as one entry. Letter by letter it is not found.
        letters = vocabulary.encode_batch_fast(list(text), add_special_tokens=False)
        return [token_id for letter in letters for token_id in letter.ids]

    @cached_property
    def pieces(self) -> dict[int, Piece]:
        """What tokens of whole characters say, for `TextStream`, which fills it in as they come."""
        return {}

    @cached_property
    def _exact(self) -> Vocabulary:
        return _forgetful(self._document)

    def decode(self, ids: Iterable[int]) -> str:
        """Text of whole output. Special tokens are silent, broken UTF-8 reads as U+FFFD."""
        return b"".join(map(self.bytes_of, ids)).decode("utf-8", "replace")

    def bytes_of(self, token_id: int) -> bytes:
        """Nothing for special ids, and for ids beyond the tokenizer's last, which a model may emit."""
        return self._bytes[token_id] if token_id < len(self._bytes) else b""


def byte_document(config: MoondreamConfig) -> str:
    """A `tokenizer.json` of single bytes and the control tokens of `config`."""
    names = {token_id: f"<|control_{token_id}|>" for token_id in config.tokenizer.control_ids}
    free = (i for i in range(config.text.vocab_size) if i not in names)
    vocabulary = {letter: next(free) for letter in _byte_letters()} | {n: i for i, n in names.items()}
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    document = {
        "version": "1.0",
        "added_tokens": [{"id": i, "content": name, **plain} for i, name in sorted(names.items())],
        "pre_tokenizer": level,
        "decoder": level,
        "model": {"type": "BPE", "vocab": vocabulary, "merges": []},
    }
    return json.dumps(document)


class TextStream:
    """Cuts one answer into chunks at spaces, line ends and CJK characters; they add up to the whole text."""

    __slots__ = ("_bytes_of", "_cut", "_held", "_pieces")

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._bytes_of = tokenizer.bytes_of
        self._pieces = tokenizer.pieces
        self._cut = b""  # the first bytes of a character
        self._held = ""

    def feed(self, token_id: int) -> str:
        """The text that may be shown now, often none."""
        piece = self._pieces.get(token_id)
        if piece is None or self._cut:
            piece = self._decode(token_id)
        shown, rest = piece
        if not shown:
            self._held += rest
            return ""
        shown = self._held + shown
        self._held = rest
        return shown

    def _decode(self, token_id: int) -> Piece:
        """The characters that end in this token. One that only begins there is kept for the next."""
        data = self._cut + self._bytes_of(token_id)
        text, used = utf_8_decode(data, "replace", False)
        before, self._cut = self._cut, data[used:]
        piece = _cut_at_words(text, not self._cut) if text else SILENCE
        if not before and not self._cut:
            self._pieces[token_id] = piece
        return piece

    @property
    def held(self) -> str:
        """Whole characters that were fed and are not shown."""
        return self._held

    def finish(self) -> str:
        """What is left, a half character included."""
        rest = self._held + self._cut.decode("utf-8", "replace")
        self._held, self._cut = "", b""
        return rest


def _cut_at_words(text: str, is_whole: bool) -> Piece:
    """`is_whole`: no character has begun behind the text."""
    last = text[-1:]
    if is_whole and (last == "\n" or (last > "\u33ff" and _is_cjk(last))):
        return text, ""
    if " " not in text:
        return "", text
    words, space, rest = text.rpartition(" ")
    return words + space, rest


def _is_cjk(character: str) -> bool:
    return (
        "\u4e00" <= character <= "\u9fff"
        or "\u3400" <= character <= "\u4dbf"
        or "\U0002f800" <= character <= "\U0002fa1f"
    )


def _forgetful(document: str) -> Vocabulary:
    """A vocabulary that keeps nothing of the texts it encodes.

    By itself it keeps 10,000 words for each thread that encodes, for good: 8 kB for one of 250 letters, as
    callers may write it, and as every text is in a vocabulary of bytes. So eight threads keep up to 650 MB,
    and save little with it: a question takes 42 us, and 48 if nothing is kept (tokenizers 0.23.3).
    """
    vocabulary = Vocabulary.from_str(document)
    resize_cache = getattr(vocabulary.model, "_resize_cache", None)  # not every kind of model has one
    if resize_cache is not None:
        resize_cache(0)
    return vocabulary


def _require(true: bool, problem: str) -> None:
    if not true:
        raise BadCheckpoint(f"tokenizer.json does not fit this model: {problem}")


def _token_bytes(vocabulary: Vocabulary, size: int, special: frozenset[int]) -> list[bytes]:
    byte_of = {letter: byte for byte, letter in enumerate(_byte_letters())}
    table = [b""] * size
    for token, token_id in vocabulary.get_vocab(with_added_tokens=True).items():
        if token_id not in special:
            known = all(letter in byte_of for letter in token)
            # The spelling of an added token is plain text, not letters that stand for bytes.
            table[token_id] = bytes(byte_of[letter] for letter in token) if known else token.encode()
    return table


def _byte_letters() -> list[str]:
    """The printable letter that stands for each byte in a byte-level vocabulary (GPT-2's table)."""
    itself = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(byte if byte in itself else next(others)) for byte in range(256)]

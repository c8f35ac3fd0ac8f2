"""The tiny tokenizer in plain Python, for machines that have torch and nothing else.

Reads the same `tokenizer.json` as the server and gives the same ids (a test compares them). Questions are
lower-cased, as the file's normaliser does; answers keep their case.
"""

import json
import re
from functools import cache
from itertools import pairwise
from pathlib import Path

TOKENIZER = Path(__file__).parents[2] / "kestrel_core/bundled/moondream-tiny/tokenizer.json"

# Lower-case words with the space before them. All else letter by letter, as printed words are read.
PIECES = r" ?[a-z]+|[A-Z]|[0-9]|[^a-zA-Z0-9]"


class Words:
    def __init__(self) -> None:
        model = json.loads(TOKENIZER.read_text(encoding="utf-8"))["model"]
        self._ids: dict[str, int] = model["vocab"]
        self._ranks = {tuple(pair): rank for rank, pair in enumerate(model["merges"])}
        self._letters = byte_letters()
        self._text = {i: token for token, i in self._ids.items()}
        self._bytes = {letter: byte for byte, letter in enumerate(self._letters)}
        self.piece = cache(self._piece)

    def encode(self, text: str) -> list[int]:
        """Ids of a user's words."""
        return self.encode_answer(text.lower())

    def encode_answer(self, text: str) -> list[int]:
        return [i for piece in re.findall(PIECES, text) for i in self.piece(piece)]

    def decode(self, ids: list[int]) -> str:
        return bytes(self._bytes[c] for i in ids if i > 9 for c in self._text[i]).decode("utf-8", "replace")

    def _piece(self, piece: str) -> tuple[int, ...]:
        parts = [self._letters[byte] for byte in piece.encode()]
        while len(parts) > 1:
            pairs = list(pairwise(parts))
            best = min(pairs, key=lambda pair: self._ranks.get(pair, 1 << 30))
            if best not in self._ranks:
                break
            at = pairs.index(best)
            parts[at : at + 2] = ["".join(best)]
        return tuple(self._ids[part] for part in parts)


def byte_letters() -> list[str]:
    """The printable letter that stands for each byte in a byte-level vocabulary (GPT-2's table)."""
    itself = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(byte if byte in itself else next(others)) for byte in range(256)]

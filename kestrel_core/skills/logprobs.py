"""Log probabilities of an answer's tokens, and which of them belong to the text that is shown.

They are natural logarithms of the model's own distribution: before temperature, top_p, top_k and tokens that
cannot be chosen. A token may be a part of a character, so each entry has the bytes of its token as well.
Where a stop string ends the answer, the last entry is that of the last token that begins before it.
"""

from codecs import utf_8_decode
from collections import deque
from typing import Any

from kestrel_core.intake.tokenizer import Tokenizer
from kestrel_core.loop.step import Sample

# Of a token: letters before the one that it begins in, and letters up to its end, half of one included.
Place = tuple[int, int]


class Logprobs:
    def __init__(self, tokenizer: Tokenizer) -> None:
        self.entries: list[dict[str, Any]] = []
        self._tokenizer = tokenizer
        self._num_letters = 0  # of the tokens so far
        self._cut = b""  # the first bytes of the letter behind these
        self._untold: deque[Place] = deque()  # of the tokens that are not told
        self._num_shown = 0  # letters

    def add(self, sample: Sample) -> None:
        """The next token."""
        assert sample.token is not None and sample.logprob is not None
        top = [self._entry(token, logprob) for token, logprob in sample.top]
        self.entries.append({**self._entry(sample.token, sample.logprob), "top": top})
        self._untold.append(self._place(self._tokenizer.bytes_of(sample.token)))

    def _place(self, data: bytes) -> Place:
        begin = self._num_letters
        if self._cut and data:  # it goes on with that letter, or shows that it is broken and begins another
            begin += len((self._cut + data[:1]).decode("utf-8", "replace")) - 1
        data = self._cut + data
        text, used = utf_8_decode(data, "replace", False)
        self._num_letters, self._cut = self._num_letters + len(text), data[used:]
        return begin, self._num_letters + bool(self._cut)

    def shown(self, text: str) -> tuple[dict[str, Any], ...]:
        """The tokens that are shown whole, now that `text` is shown too, and were not before.

        One without letters waits for the letter behind it: a stop string there would drop it.
        """
        self._num_shown = shown = self._num_shown + len(text)
        places = enumerate(self._untold)
        count = next((at for at, (begin, end) in places if end > shown or begin == shown), len(self._untold))
        return self._take(count)

    def rest_before(self, text: str) -> tuple[dict[str, Any], ...]:
        """The others, if the answer ends with `text`: tokens that begin behind it are forgotten."""
        num_letters = self._num_shown + len(text)
        while self._untold and self._untold[-1][0] >= num_letters:
            self._untold.pop()
            self.entries.pop()
        return self.rest()

    def rest(self) -> tuple[dict[str, Any], ...]:
        return self._take(len(self._untold))

    def _take(self, count: int) -> tuple[dict[str, Any], ...]:
        begin = len(self.entries) - len(self._untold)
        for _ in range(count):
            self._untold.popleft()
        return tuple(self.entries[begin : begin + count])

    def _entry(self, token: int, logprob: float) -> dict[str, Any]:
        data = self._tokenizer.bytes_of(token)
        return {
            "token_id": token,
            "token": data.decode("utf-8", "replace"),
            "bytes": list(data),
            "logprob": logprob,
        }

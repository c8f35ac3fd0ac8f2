"""Log probabilities of an answer's tokens, and which of them belong to the text that is shown.

They are natural logarithms of the model's own distribution: before temperature, top_p, top_k and tokens that
cannot be chosen. A token may be a part of a character, so each entry has the bytes of its token as well.
"""

from collections import deque
from typing import Any

from kestrel_core.intake.tokenizer import Tokenizer
from kestrel_core.loop.step import Sample


class Logprobs:
    def __init__(self, tokenizer: Tokenizer) -> None:
        self.entries: list[dict[str, Any]] = []
        self._tokenizer = tokenizer
        self._ends: deque[int] = deque()  # of tokens that are not told: letters of the answer up to each
        self._num_shown = 0  # letters

    def add(self, sample: Sample, num_letters: int) -> None:
        """The next token. With it, the answer has so many letters, one that is not whole included."""
        assert sample.token is not None and sample.logprob is not None
        top = [self._entry(token, logprob) for token, logprob in sample.top]
        self.entries.append({**self._entry(sample.token, sample.logprob), "top": top})
        self._ends.append(num_letters)

    def shown(self, text: str) -> tuple[dict[str, Any], ...]:
        """The tokens that are shown whole, now that `text` is shown too, and were not before."""
        self._num_shown += len(text)
        count = next((at for at, end in enumerate(self._ends) if end > self._num_shown), len(self._ends))
        return self._take(count)

    def rest(self) -> tuple[dict[str, Any], ...]:
        return self._take(len(self._ends))

    def _take(self, count: int) -> tuple[dict[str, Any], ...]:
        begin = len(self.entries) - len(self._ends)
        for _ in range(count):
            self._ends.popleft()
        return tuple(self.entries[begin : begin + count])

    def _entry(self, token: int, logprob: float) -> dict[str, Any]:
        data = self._tokenizer.bytes_of(token)
        return {
            "token_id": token,
            "token": data.decode("utf-8", "replace"),
            "bytes": list(data),
            "logprob": logprob,
        }

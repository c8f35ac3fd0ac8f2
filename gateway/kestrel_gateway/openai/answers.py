"""What OpenAI's answers have in common: who gave them, what they cost, how likely each token was."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from kestrel_core.protocol.about import own_version
from kestrel_core.protocol.messages import EngineResult, Usage

Document = dict[str, Any]
DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True)
class Head:
    """What every document of one answer begins with."""

    id: str
    model: str
    created: int = field(default_factory=lambda: int(time.time()))

    def document(self, kind: str) -> Document:
        return {
            "id": self.id,
            "object": kind,
            "created": self.created,
            "model": self.model,
            "system_fingerprint": fingerprint(),
        }


@cache
def fingerprint() -> str:
    return f"kc-{own_version()}"


def finish_reason(result: EngineResult) -> str:
    """OpenAI has no word for an answer that was broken off; like one at its limit, it is not whole."""
    return "stop" if result.finish_reason == "stop" else "length"


def usage(metrics: Usage) -> Document:
    return {
        "prompt_tokens": metrics.input_tokens,
        "completion_tokens": metrics.output_tokens,
        "total_tokens": metrics.input_tokens + metrics.output_tokens,
        "prompt_tokens_details": {
            "cached_tokens": metrics.cached_tokens,
            "image_tokens": metrics.image_tokens,
            "text_tokens": metrics.input_tokens - metrics.image_tokens,
        },
        "completion_tokens_details": {"reasoning_tokens": metrics.reasoning_tokens},
    }


def logprob_items(tokens: Iterable[Mapping[str, Any]], num_top: int) -> list[Document]:
    """Natural logarithms of the model's own probabilities, before temperature and top_p."""
    return [
        {**_logprob(token), "top_logprobs": [_logprob(one) for one in token["top"][:num_top]]}
        for token in tokens
    ]


def _logprob(token: Mapping[str, Any]) -> Document:
    return {name: token[name] for name in ("token", "logprob", "bytes")}

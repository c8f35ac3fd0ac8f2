"""The documents of a response: the response itself, its items (thoughts, then a message) and their parts."""

from dataclasses import dataclass
from typing import Any

from kestrel_core.protocol.errors import KestrelError
from kestrel_core.protocol.messages import EngineResult, Usage
from kestrel_gateway.openai.answers import Document, Head, finish_reason, logprob_items
from kestrel_gateway.openai.asking import Asked
from kestrel_gateway.openai.response_body import ResponseBody

ERROR_CODES = {400: "invalid_prompt", 413: "invalid_prompt", 429: "rate_limit_exceeded"}


@dataclass(frozen=True, slots=True)
class Answered:
    """What was asked, and so what the answer's documents say."""

    head: Head
    body: ResponseBody
    asked: Asked

    def begun(self) -> Document:
        return self._document("in_progress", [])

    def whole(self, result: EngineResult) -> Document:
        is_whole = finish_reason(result) == "stop"
        items = [self.message(result)]
        if thoughts := self.asked.thoughts(result):
            items.insert(0, self.reasoning(thoughts))
        return self._document(
            "completed" if is_whole else "incomplete",
            items,
            incomplete_details=None if is_whole else {"reason": "max_output_tokens"},
            usage=_usage(result.metrics),
        )

    def failed(self, error: KestrelError) -> Document:
        code = ERROR_CODES.get(error.status, "server_error")
        return self._document("failed", [], error={"code": code, "message": str(error)})

    def message(self, result: EngineResult | None) -> Document:
        """With its text, or as it is when it begins."""
        is_whole = result is not None and finish_reason(result) == "stop"
        status = "in_progress" if result is None else "completed" if is_whole else "incomplete"
        return {
            "id": f"msg_{self.head.id}",
            "type": "message",
            "role": "assistant",
            "status": status,
            "content": [] if result is None else [self.text_part(result)],
        }

    def text_part(self, result: EngineResult) -> Document:
        logprobs = logprob_items(result.output.get("logprobs", ()), self.asked.num_top)
        return text_part(self.asked.content(result), logprobs)

    def reasoning(self, thoughts: str | None) -> Document:
        return {
            "id": f"rs_{self.head.id}",
            "type": "reasoning",
            "status": "in_progress" if thoughts is None else "completed",
            "summary": [],
            "content": [] if thoughts is None else [thought_part(thoughts)],
        }

    def _document(self, status: str, output: list[Document], **more: Any) -> Document:
        body = self.body
        effort = body.reasoning.effort if body.reasoning else None
        return {
            "id": f"resp_{self.head.id}",
            "object": "response",
            "created_at": self.head.created,
            "status": status,
            "error": None,
            "incomplete_details": None,
            "model": self.head.model,
            "output": output,
            "instructions": body.instructions,
            "max_output_tokens": body.max_output_tokens,
            "temperature": body.temperature,
            "top_p": body.top_p,
            "top_logprobs": body.top_logprobs or 0,
            "reasoning": {"effort": effort, "summary": None},
            "text": {"format": {"type": "text"}},
            "metadata": body.metadata or {},
            "prompt_cache_key": body.prompt_cache_key,
            "background": False,
            "store": False,  # nothing is kept, whatever was asked
            "previous_response_id": None,
            "parallel_tool_calls": False,
            "tool_choice": "none",
            "tools": [],
            "truncation": "disabled",
            "usage": None,
            **more,
        }


def text_part(text: str, logprobs: list[Document]) -> Document:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": logprobs}


def thought_part(text: str) -> Document:
    return {"type": "reasoning_text", "text": text}


def _usage(metrics: Usage) -> Document:
    return {
        "input_tokens": metrics.input_tokens,
        "input_tokens_details": {"cached_tokens": metrics.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": metrics.output_tokens,
        "output_tokens_details": {"reasoning_tokens": metrics.reasoning_tokens},
        "total_tokens": metrics.input_tokens + metrics.output_tokens,
    }

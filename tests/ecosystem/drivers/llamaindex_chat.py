"""LlamaIndex's OpenAILike with a picture: `llamaindex_chat.py ADDRESS PICTURE`."""

import json
import sys
from pathlib import Path

from llama_index.core.llms import ChatMessage, ImageBlock, TextBlock
from llama_index.llms.openai_like import OpenAILike

address, path = sys.argv[1:]
model = OpenAILike(
    model="moondream",
    api_base=f"{address}/v1",
    api_key="none",
    is_chat_model=True,
    context_window=2048,
    max_tokens=128,
    temperature=0.0,
)


def asked(question: str) -> list[ChatMessage]:
    return [ChatMessage(role="user", blocks=[ImageBlock(path=Path(path)), TextBlock(text=question)])]


answer = model.chat(asked("How many circles are there?"))
pieces = [chunk.delta for chunk in model.stream_chat(asked("Describe the picture.")) if chunk.delta]
usage = {
    "input_tokens": answer.raw.usage.prompt_tokens,
    "output_tokens": answer.raw.usage.completion_tokens,
    "total_tokens": answer.raw.usage.total_tokens,
}
print(json.dumps({"answer": answer.message.content, "usage": usage, "pieces": pieces}))

"""LangChain's ChatOpenAI with a picture, by both of OpenAI's ways: `langchain_chat.py ADDRESS PICTURE`."""

import base64
import json
import sys
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessageChunk, HumanMessage
from langchain_openai import ChatOpenAI

address, path = sys.argv[1:]
DATA = base64.b64encode(Path(path).read_bytes()).decode()


def asked(question: str) -> list[HumanMessage]:
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DATA}"}}
    return [HumanMessage([{"type": "text", "text": question}, picture])]


def told(**more: Any) -> dict[str, Any]:
    model = ChatOpenAI(
        base_url=f"{address}/v1", api_key="none", model="moondream", temperature=0, stream_usage=True, **more
    )
    answer = model.invoke(asked("How many circles are there?"))
    chunks = list(model.stream(asked("Describe the picture.")))
    whole = sum(chunks[1:], chunks[0])
    assert isinstance(whole, AIMessageChunk)
    return {
        "answer": answer.text,
        "usage": answer.usage_metadata,
        "pieces": [chunk.text for chunk in chunks if chunk.text],
        "stream_usage": whole.usage_metadata,
    }


print(json.dumps({"chat": told(), "responses": told(use_responses_api=True)}))

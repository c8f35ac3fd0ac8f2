"""LiteLLM's completion with a picture: `litellm_chat.py ADDRESS PICTURE`."""

import base64
import json
import sys
from pathlib import Path
from typing import Any

import litellm

address, path = sys.argv[1:]
DATA = base64.b64encode(Path(path).read_bytes()).decode()


def ask(question: str, model: str = "moondream", **more: Any) -> Any:
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DATA}"}}
    return litellm.completion(
        model=f"openai/{model}",
        api_base=f"{address}/v1",
        api_key="none",
        messages=[{"role": "user", "content": [{"type": "text", "text": question}, picture]}],
        temperature=0.0,
        num_retries=0,
        **more,
    )


def usage(of: Any) -> dict[str, int]:
    return {
        "input_tokens": of.prompt_tokens,
        "output_tokens": of.completion_tokens,
        "total_tokens": of.total_tokens,
    }


answer = ask("How many circles are there?")
chunks = list(ask("Describe the picture.", stream=True, stream_options={"include_usage": True}))
try:
    ask("How many?", model="gpt-4o")
except litellm.NotFoundError as error:
    refusal = error.status_code
else:
    refusal = 200
print(
    json.dumps(
        {
            "answer": answer.choices[0].message.content,
            "usage": usage(answer.usage),
            "pieces": [
                text for chunk in chunks if chunk.choices and (text := chunk.choices[0].delta.content)
            ],
            "stream_usage": usage(next(chunk.usage for chunk in chunks if getattr(chunk, "usage", None))),
            "refusal": refusal,
        }
    )
)

"""OpenAI's own Python client: `openai_python.py ADDRESS PICTURE`."""

import asyncio
import base64
import json
import sys
from pathlib import Path
from typing import Any

from openai import APIStatusError, AsyncOpenAI, OpenAI

address, path = sys.argv[1:]
URL = f"data:image/png;base64,{base64.b64encode(Path(path).read_bytes()).decode()}"
QUESTION = "How many circles are there?"

client = OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0)


def asked(text: str, url: str = URL) -> Any:
    picture = {"type": "image_url", "image_url": {"url": url, "detail": "auto"}}
    return [{"role": "user", "content": [picture, {"type": "text", "text": text}]}]


def chat(text: str = QUESTION, **more: Any) -> Any:
    messages = asked(text, more.pop("url", URL))
    return client.chat.completions.create(
        **{"model": "moondream", "messages": messages, "temperature": 0.0, **more}
    )


def refusal(**more: Any) -> dict[str, Any]:
    return refusal_of(lambda: chat(**more))


def refusal_of(call: Any) -> dict[str, Any]:
    try:
        call()
    except APIStatusError as error:
        return {
            "error": type(error).__name__,
            "status": error.status_code,
            "code": error.code,
            "param": error.param,
            "message": error.message,
        }
    return {"error": None}


def chunks(stream: Any) -> list[Any]:
    return [chunk.to_dict() for chunk in stream]


def response(**more: Any) -> Any:
    parts = [{"type": "input_image", "image_url": URL}, {"type": "input_text", "text": QUESTION}]
    return client.responses.create(
        model="moondream", input=[{"role": "user", "content": parts}], temperature=0.0, **more
    )


async def chat_async() -> Any:
    async with AsyncOpenAI(base_url=f"{address}/v1", api_key="none") as one:
        answers = await asyncio.gather(
            *(one.chat.completions.create(model="moondream", messages=asked(QUESTION)) for _ in range(4))
        )
    return [answer.choices[0].message.content for answer in answers]


events = list(response(stream=True))
told = {
    "chat": chat().to_dict(),
    "thinking": chat(extra_body={"reasoning": True}).to_dict(),
    "async": asyncio.run(chat_async()),
    "logprobs": chat(logprobs=True, top_logprobs=2).to_dict(),
    "stopped": chat("Describe the picture.", stop=["circle"]).to_dict(),
    "stream": chunks(chat("Describe the picture.", stream=True)),
    "stream_usage": chunks(chat(stream=True, stream_options={"include_usage": True})),
    "detect": chat('/detect {"object": "green circle"}').to_dict(),
    "detect_stream": chunks(chat('/detect {"object": "green circle"}', stream=True)),
    "models": [model.to_dict() for model in client.models.list()],
    "model": client.models.retrieve(client.models.list().data[0].id).to_dict(),
    "response": response().to_dict(),
    "response_text": response().output_text,
    "response_events": [event.type for event in events],
    "response_deltas": [event.delta for event in events if event.type == "response.output_text.delta"],
    "response_end": events[-1].to_dict(),
    "completion": client.completions.create(model="moondream", prompt=QUESTION, max_tokens=16).to_dict(),
    "completion_stream": chunks(
        client.completions.create(model="moondream", prompt=QUESTION, max_tokens=16, stream=True)
    ),
    "no_such_model": refusal(model="gpt-4o"),
    "no_such_model_listed": refusal_of(lambda: client.models.retrieve("a/b@1")),
    "bad_field": refusal(temperature=9),
    "tools": refusal(tools=[{"type": "function", "function": {"name": "f", "parameters": {}}}]),
    "bad_picture": refusal(url="data:image/png;base64,bm90IGEgcGljdHVyZQ=="),
    "far_picture": refusal(url="https://example.com/cat.png"),
}
print(json.dumps(told))

"""Moondream's own Python client, every call that it has: `moondream_python.py ADDRESS PICTURE`."""

import json
import sys
from urllib.error import HTTPError

import moondream
from PIL import Image

address, path = sys.argv[1:]
QUESTION = "How many circles are there?"
OBJECT = "green circle"
GREEDY = {"temperature": 0.0}

client = moondream.vl(endpoint=f"{address}/v1")
picture = Image.open(path)
encoded = client.encode_image(picture)
messages = [
    {
        "role": "user",
        "content": [
            {"type": "image_url", "image_url": {"url": encoded.image_url}},
            {"type": "text", "text": QUESTION},
        ],
    }
]
named = moondream.vl(endpoint=f"{address}/v1", model="moondream")
stranger = moondream.vl(endpoint=f"{address}/v1", model="moondream/nobody@1")


def status_of_stranger() -> int:
    try:
        stranger.detect(picture, OBJECT)
    except HTTPError as error:
        return error.code
    return 200


told = {
    "query": client.query(picture, QUESTION, settings=GREEDY),
    "query_stream": list(client.query(picture, QUESTION, stream=True, settings=GREEDY)["answer"]),
    "reasoning": client.query(picture, QUESTION, reasoning=True, settings=GREEDY),
    "without_picture": client.query(question=QUESTION, settings=GREEDY),
    "caption": client.caption(picture, settings=GREEDY)["caption"],
    "caption_short": client.caption(picture, length="short", settings=GREEDY)["caption"],
    "caption_stream": list(client.caption(picture, stream=True, settings=GREEDY)["caption"]),
    "detect": client.detect(picture, OBJECT, settings={"max_objects": 3}),
    "detect_encoded": client.detect(encoded, OBJECT),
    "point": client.point(picture, OBJECT),
    "point_nothing": client.point(picture, "black cross"),
    "segment": client.segment(picture, OBJECT),
    "segment_stream": list(client.segment(picture, OBJECT, stream=True)),
    "chat": client.chat(messages, settings=GREEDY | {"max_tokens": 64}),
    "chat_thinking": client.chat(messages, reasoning=True),
    "chat_stream": list(named.chat(messages, stream=True)["message"]),
    "named": named.detect(picture, OBJECT),
    "stranger": status_of_stranger(),
}
print(json.dumps(told))

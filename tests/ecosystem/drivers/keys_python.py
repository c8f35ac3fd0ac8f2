"""OpenAI's and Moondream's Python clients where keys are asked for: `keys_python.py ADDRESS KEY...`.

The keys: one that may do anything, one that may only query, one that has a single request a minute.
"""

import json
import sys
from typing import Any
from urllib.error import HTTPError

import moondream
from openai import APIStatusError, OpenAI

address, free, narrow, rare = sys.argv[1:]


def ask(key: str, text: str = "How many?") -> dict[str, Any]:
    client = OpenAI(base_url=f"{address}/v1", api_key=key, max_retries=0)
    try:
        client.chat.completions.create(model="moondream", messages=[{"role": "user", "content": text}])
    except APIStatusError as error:
        headers = error.response.headers
        return {
            "error": type(error).__name__,
            "status": error.status_code,
            "retry_after": headers.get("retry-after"),
        }
    return {"error": None}


def moondream_status(key: str | None) -> int:
    try:
        moondream.vl(endpoint=f"{address}/v1", api_key=key).query(question="How many?")
    except HTTPError as error:
        return error.code
    return 200


told = {
    "free": ask(free),
    "wrong": ask("wrong"),
    "narrow": ask(narrow),
    "not_for_narrow": ask(narrow, '/caption {"length": "short"}'),
    "rare": [ask(rare), ask(rare)],
    "moondream": moondream_status(free),
    "moondream_wrong": moondream_status("wrong"),
    "moondream_none": moondream_status(None),
}
print(json.dumps(told))

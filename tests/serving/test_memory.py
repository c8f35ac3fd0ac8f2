"""Memory does not grow with the number of requests.

As a program it asks ten thousand, or as many as it is told, and prints what it saw:

    python tests/serving/test_memory.py 10000
"""

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from triton_server import Served, picture, save_talkative, served

pytestmark = pytest.mark.triton


def mixed(number: int) -> dict[str, Any]:
    """Of every kind, good and bad, with and without pictures, a thirtieth of them new."""
    image = picture(number // 30, (200 + number % 7 * 20, 150))
    kinds: tuple[dict[str, Any], ...] = (
        {"SKILL": "query", "QUESTION": f"what is {number}?", "MAX_TOKENS": 4},
        {"SKILL": "query", "QUESTION": "what?", "IMAGE": image, "MAX_TOKENS": 4, "STREAM": True},
        {"SKILL": "caption", "IMAGE": image, "MAX_TOKENS": 4},
        {"SKILL": "detect", "OBJECT": "bird", "IMAGE": image, "MAX_OBJECTS": 1},
        {"SKILL": "point", "OBJECT": f"{number}", "IMAGE": image, "MAX_OBJECTS": 1},
        {"SKILL": "caption", "IMAGE": b"no picture"},
        {"SKILL": "query"},
    )
    return kinds[number % len(kinds)]


def memory(server: Served) -> dict[str, int]:
    """Bytes of the server, of its stub, and of the memory they share."""
    server_id = server.children()[0]
    [stub] = server.children(server_id)
    regions = {word for word in Path(f"/proc/{stub}/maps").read_text().split() if "/dev/shm/triton" in word}
    shared = sum(Path(region).stat().st_size for region in regions)
    return {"server": resident(server_id), "stub": resident(stub), "shared": shared}


def resident(process: int) -> int:
    [line] = [line for line in Path(f"/proc/{process}/status").read_text().splitlines() if "RssAnon" in line]
    return int(line.split()[1]) * 1024


def ask_many(server: Served, begin: int, end: int) -> None:
    for first in range(begin, end, 16):
        answers = server.ask_all([mixed(number) for number in range(first, min(first + 16, end))])
        for number, answer in enumerate(answers, first):
            assert isinstance(answer, list) == (number % 7 < 5), answer


def test_five_hundred_requests_later_memory_is_where_it_was(server: Served) -> None:
    ask_many(server, 0, 200)
    before = memory(server)
    ask_many(server, 200, 500)
    after = memory(server)
    assert after["server"] + after["stub"] - before["server"] - before["stub"] < 40 * 2**20
    assert after["shared"] - before["shared"] <= 2 * 2**20


def main(total: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        model = save_talkative(Path(folder) / "model")
        with served(
            Path(folder) / "log", KESTREL_MODEL_PATH=str(model), KESTREL_MAX_BATCH_SIZE="8"
        ) as server:
            seen, began = {0: memory(server)}, time.monotonic()
            for end in range(1000, total + 1, 1000):
                ask_many(server, end - 1000, end)
                seen[end] = memory(server)
                megabytes = {name: round(value / 2**20, 1) for name, value in seen[end].items()}
                print(json.dumps({"requests": end, "s": round(time.monotonic() - began), "MB": megabytes}))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)

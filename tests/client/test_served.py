"""The client and its command against the real Triton with the tiny model."""

import asyncio
import json
import os
import queue
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as triton
from PIL import Image
from triton_server import served

from kestrel_client import (
    AsyncClient,
    Cancelled,
    Client,
    InvalidRequest,
    UnknownAdapter,
)

pytestmark = pytest.mark.triton

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "client/samples/shapes.png"
# Greedy and short, so that the same comes back every time, and soon.
TEXT: dict[str, Any] = {"temperature": 0.0, "max_tokens": 12}
ASKED: dict[str, Mapping[str, Any]] = {
    "query": {"question": "what is this?", **TEXT},
    "caption": {"length": "short", **TEXT},
    "detect": {"object": "circle", "max_objects": 3},
    "point": {"object": "circle", "max_objects": 3},
}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where `kestrel serve --demo` answers."""
    with served(tmp_path_factory.mktemp("serve") / "log", "--demo") as server:
        yield f"localhost:{server.grpc_port}"


@pytest.fixture(scope="module")
def plain(url: str) -> dict[str, dict[str, Any]]:
    """What a client without any of our code gets, written straight from the contract."""
    types = {"temperature": ("FP32", np.float32), "max_tokens": ("INT32", np.int32)}
    types["max_objects"] = types["max_tokens"]
    documents = {}
    with triton.InferenceServerClient(url) as client:
        for skill, keywords in ASKED.items():
            inputs = []
            for name, value in {"SKILL": skill, "IMAGE": SAMPLE.read_bytes(), **keywords}.items():
                datatype, dtype = types.get(name, ("BYTES", np.object_))
                inputs.append(triton.InferInput(name.upper(), [1], datatype))
                inputs[-1].set_data_from_numpy(np.array([value], dtype=dtype))
            arrived: queue.Queue[tuple[Any, Any]] = queue.Queue()
            client.start_stream(lambda result, error, arrived=arrived: arrived.put((result, error)))
            client.async_stream_infer("moondream", inputs)
            result, error = arrived.get(timeout=60)
            client.stop_stream()
            assert error is None
            documents[skill] = json.loads(result.as_numpy("TEXT_OUTPUT")[0])
    return documents


def answer(document: Mapping[str, Any]) -> dict[str, Any]:
    """Without what differs from one time to the next, or belongs to a stream."""
    fleeting = ("request_id", "finish_reason", "metrics", "chunk", "completed")
    return {name: value for name, value in document.items() if name not in fleeting}


def test_every_skill_gives_what_plain_tritonclient_gets(url: str, plain: dict[str, dict[str, Any]]) -> None:
    with Client(url) as client:
        for skill, keywords in ASKED.items():
            result = getattr(client, skill)(SAMPLE, **keywords)
            assert answer(result.output) == answer(plain[skill])
            assert result.finish_reason == plain[skill]["finish_reason"]
            assert result.metrics.output_tokens == plain[skill]["metrics"]["output_tokens"]


def test_the_asynchronous_client_gets_the_same_all_at_once(
    url: str, plain: dict[str, dict[str, Any]]
) -> None:
    async def ask_all() -> list[Any]:
        async with AsyncClient(url) as client:
            return await asyncio.gather(
                *(getattr(client, skill)(SAMPLE, **keywords) for skill, keywords in ASKED.items())
            )

    for skill, result in zip(ASKED, asyncio.run(ask_all()), strict=True):
        assert answer(result.output) == answer(plain[skill])


@pytest.mark.parametrize("skill", ["query", "caption"])
def test_streamed_text_adds_up_to_the_same_answer(
    url: str, plain: dict[str, dict[str, Any]], skill: str
) -> None:
    async def stream_async() -> str:
        async with AsyncClient(url) as client:
            return "".join(
                [
                    chunk.text
                    async for chunk in await getattr(client, skill)(SAMPLE, stream=True, **ASKED[skill])
                ]
            )

    with Client(url) as client, getattr(client, skill)(SAMPLE, stream=True, **ASKED[skill]) as stream:
        text = "".join(chunk.text for chunk in stream)
        assert text == stream.result().text == plain[skill][{"query": "answer"}.get(skill, skill)]
    assert asyncio.run(stream_async()) == stream.result().text


def test_a_pil_image_and_a_file_of_the_same_pixels_are_answered_alike(
    url: str, plain: dict[str, dict[str, Any]]
) -> None:
    with Client(url) as client, Image.open(SAMPLE) as picture:
        assert answer(client.point(picture, **ASKED["point"]).output) == answer(plain["point"])


def test_the_bundled_model_tells_the_truth(url: str) -> None:
    with Client(url) as client:
        assert client.query(SAMPLE, "What color is the big star?", temperature=0.0).text == "green"
        assert client.query(SAMPLE, "How many shapes are there?", temperature=0.0).text == "6"
        [box] = client.detect(SAMPLE, "red circle").objects
        assert (box.x_min, box.y_min) == (pytest.approx(0.0725, abs=0.02), pytest.approx(0.1, abs=0.02))
        assert (box.x_max, box.y_max) == (pytest.approx(0.3275, abs=0.02), pytest.approx(0.44, abs=0.02))
        assert client.point(SAMPLE, "black ring").points == ()


def test_every_other_keyword_is_taken(url: str) -> None:
    keywords: dict[str, Any] = {
        "top_p": 0.9,
        "seed": 7,
        "priority": -1,
        "stop": ["never said"],
        "logprobs": 2,
    }
    with Client(url) as client:
        one, two = (
            client.query(SAMPLE, "why?", temperature=1.0, max_tokens=6, request_id=name, **keywords)
            for name in ("one", "two")
        )
    assert (one.request_id, two.request_id) == ("one", "two")
    assert one.text == two.text  # by the seed
    assert len(one.output["logprobs"][0]["top"]) == 2


def test_chunks_carry_their_log_probabilities(url: str) -> None:
    with Client(url) as client:
        stream = client.query(SAMPLE, "why?", temperature=1.0, seed=7, max_tokens=30, logprobs=1, stream=True)
        told = [entry for chunk in stream for entry in chunk.logprobs]
        assert told == stream.result().output["logprobs"] and len(told) > 0


def test_points_and_boxes_are_taken_as_references(url: str) -> None:
    refs = [(0.2, 0.3), (0.1, 0.1, 0.4, 0.5)]
    with Client(url) as client:
        assert client.point(SAMPLE, "circle", spatial_refs=refs, max_objects=1).finish_reason
        with pytest.raises(InvalidRequest, match="SPATIAL_REFS has a row of 3 numbers"):
            client.point(SAMPLE, "circle", spatial_refs=[(0.1, 0.2, 0.3)])


def test_refusals_have_their_types(url: str) -> None:
    with Client(url) as client:
        with pytest.raises(InvalidRequest, match="damaged or in no accepted format"):
            client.caption(b"\x00\x01 this is no picture \x00\x01")
        with pytest.raises(InvalidRequest, match="LENGTH"):
            client.caption(SAMPLE, "endless")  # type: ignore[call-overload]
        with pytest.raises((UnknownAdapter, InvalidRequest), match=r"(?i)adapter"):
            client.query(SAMPLE, "why?", adapter="nobody/nothing@1")


def test_the_server_ends_what_takes_too_long(url: str) -> None:
    with Client(url) as client, pytest.raises(Cancelled, match="deadline passed"):
        client.query(SAMPLE, "Describe the picture.", timeout_s=0.001)  # 25 tokens


def test_a_cancelled_stream_leaves_the_client_working(url: str, plain: dict[str, dict[str, Any]]) -> None:
    with Client(url) as client:
        with client.query(SAMPLE, "tell me everything", stream=True) as unread:
            pass
        with pytest.raises(Cancelled, match="by its caller"):
            unread.result()
        assert answer(client.detect(SAMPLE, **ASKED["detect"]).output) == answer(plain["detect"])


def test_run_py_asks_every_skill_and_draws(url: str, tmp_path: Path) -> None:
    drawn = tmp_path / "out.png"
    done = subprocess.run(
        [
            ROOT / "client/run.py",
            "--url",
            url,
            "--image",
            SAMPLE,
            "--draw",
            drawn,
            "--json",
            "--max-tokens",
            "9",
        ],
        capture_output=True,
        text=True,
        timeout=100,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
    )
    assert (done.returncode, done.stderr) == (0, "")
    skills = json.loads(done.stdout)["skills"]
    assert [name for name, told in skills.items() if "response" in told] == [*ASKED, "segment"]
    with Image.open(drawn) as copy, Image.open(SAMPLE) as picture:
        assert copy.size == picture.size

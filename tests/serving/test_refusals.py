"""Every kind of request that cannot be served: its code, a sentence that helps, and nobody else disturbed."""

from typing import Any

import numpy as np
import pytest
import tritonclient.grpc.aio as grpcclient
from triton_server import ROOT, Served, base64_of, picture, refusal, until
from tritonclient.utils import InferenceServerException

pytestmark = pytest.mark.triton

PICTURE = picture(2)
QUERY = {"SKILL": "query", "QUESTION": "what?"}
SEEN = QUERY | {"IMAGE": PICTURE}

BAD: dict[str, tuple[dict[str, Any], str, str]] = {
    "no skill": ({"QUESTION": "what?"}, "INVALID_ARG", "SKILL is required"),
    "an empty skill": ({"SKILL": ""}, "INVALID_ARG", "SKILL is required"),
    "an unknown skill": ({"SKILL": "dance"}, "INVALID_ARG", "query"),
    "no question": ({"SKILL": "query"}, "INVALID_ARG", "QUESTION is required for query"),
    "an empty question": ({"SKILL": "query", "QUESTION": " "}, "INVALID_ARG", "QUESTION is empty"),
    "no object to detect": (
        {"SKILL": "detect", "IMAGE": PICTURE},
        "INVALID_ARG",
        "OBJECT is required for detect",
    ),
    "no object to point at": (
        {"SKILL": "point", "IMAGE": PICTURE},
        "INVALID_ARG",
        "OBJECT is required for point",
    ),
    "no picture to caption": ({"SKILL": "caption"}, "INVALID_ARG", "IMAGE is required for caption"),
    "no picture to look at": (
        {"SKILL": "detect", "OBJECT": "x"},
        "INVALID_ARG",
        "IMAGE is required for detect",
    ),
    "segment": ({"SKILL": "segment", "OBJECT": "x", "IMAGE": PICTURE}, "INVALID_ARG", "use detect"),
    "an unknown length": ({"SKILL": "caption", "IMAGE": PICTURE, "LENGTH": "tiny"}, "INVALID_ARG", "short"),
    "an empty picture": (QUERY | {"IMAGE": ""}, "INVALID_ARG", "IMAGE is empty"),
    "a picture that is none": (QUERY | {"IMAGE": b"\x00\x01 no picture"}, "INVALID_ARG", "send JPEG, PNG"),
    "half a picture": (
        QUERY | {"IMAGE": PICTURE[: len(PICTURE) // 2]},
        "INVALID_ARG",
        "damaged or cut short",
    ),
    "an address": (QUERY | {"IMAGE": "https://localhost/a.png"}, "INVALID_ARG", "never fetched"),
    "a data URL without base64": (QUERY | {"IMAGE": "data:image/png,abc"}, "INVALID_ARG", "base64"),
    "too cold": (QUERY | {"TEMPERATURE": -0.5}, "INVALID_ARG", "TEMPERATURE is -0.5; it can be from 0"),
    "too large a share": (QUERY | {"TOP_P": 1.5}, "INVALID_ARG", "TOP_P is 1.5; it can be from 0 to 1"),
    "no tokens": (QUERY | {"MAX_TOKENS": 0}, "INVALID_ARG", "MAX_TOKENS is 0; it can be from 1"),
    "negative tokens": (QUERY | {"MAX_TOKENS": -5}, "INVALID_ARG", "MAX_TOKENS is -5; it can be from 1"),
    "no objects": (QUERY | {"MAX_OBJECTS": 0}, "INVALID_ARG", "MAX_OBJECTS is 0; it can be from 1"),
    "too many log probabilities": (
        QUERY | {"LOGPROBS": 50},
        "INVALID_ARG",
        "LOGPROBS is 50; it can be from 0 to 20",
    ),
    "an empty stop": (QUERY | {"STOP": [""]}, "INVALID_ARG", "STOP has an empty string"),
    "too many stops": (QUERY | {"STOP": ["x"] * 17}, "INVALID_ARG", "at most 16"),
    "a stream of boxes": (
        {"SKILL": "detect", "OBJECT": "x", "IMAGE": PICTURE, "STREAM": True},
        "INVALID_ARG",
        "STREAM is for query and caption",
    ),
    "an unknown adapter": (QUERY | {"ADAPTER": "nobody@7"}, "NOT_FOUND", "nobody@7"),
    "too long a question": (
        SEEN | {"QUESTION": "long " * 1000},
        "INVALID_ARG",
        "max_context is 4,096; shorten the text",
    ),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_request_is_told_what_is_wrong(server: Served, kind: str) -> None:
    inputs, code, hint = BAD[kind]
    with pytest.raises(InferenceServerException) as raised:
        server.ask(**inputs)
    as_json = {
        name: base64_of(value) if isinstance(value, bytes) else value for name, value in inputs.items()
    }
    status, answer = server.post(as_json)
    streamed_status, events = server.post(as_json, "generate_stream")
    assert status == streamed_status == 400
    for message in (refusal(raised.value), refusal(answer), refusal(events[-1])):
        assert message.startswith(f"{code}: ") and hint in message
        assert "Traceback" not in message and ".py" not in message and str(ROOT) not in message


@pytest.mark.parametrize(
    ("inputs", "hint"),
    [
        (QUERY | {"QUESTION": b"\xff\xfe"}, "QUESTION is not UTF-8 text"),
        (QUERY | {"TEMPERATURE": float("nan")}, "TEMPERATURE is nan"),
        (SEEN | {"SPATIAL_REFS": [[0.1, 0.2, 0.3]]}, "a point has 2, a box has 4"),
        (SEEN | {"SPATIAL_REFS": [[0.1, 1.2]]}, "from 0 to 1"),
        (QUERY | {"SPATIAL_REFS": [[0.1, 0.2]]}, "SPATIAL_REFS need an IMAGE"),
    ],
)
def test_what_only_tensors_can_get_wrong(server: Served, inputs: dict[str, Any], hint: str) -> None:
    with pytest.raises(InferenceServerException) as raised:
        server.ask(**inputs)
    assert refusal(raised.value).startswith("INVALID_ARG: ") and hint in refusal(raised.value)


@pytest.mark.parametrize(
    ("fields", "hint"),
    [
        ({"max_tokens": 5}, "send the input MAX_TOKENS"),
        ({"spatial_refs": "0.1, 0.2"}, "a JSON string such as"),
        ({"timeout": -5}, "timeout is -5; it is a number of microseconds"),
        ({"timeout": "soon"}, "timeout is 'soon'"),
    ],
)
def test_what_only_json_can_get_wrong(server: Served, fields: dict[str, Any], hint: str) -> None:
    status, answer = server.post(QUERY | fields)
    assert status == 400 and answer["error"].startswith("INVALID_ARG: ") and hint in answer["error"]


def test_what_triton_itself_refuses_leaves_the_model_unharmed(server: Served) -> None:
    for body in (QUERY | {"MAX_TOKENS": "three"}, QUERY | {"TEMPERATURE": None}, b"{", QUERY | {"x": [1]}):
        status, _ = server.post(body)
        assert status in (400, 500)
    broken = grpcclient.InferInput("QUESTION", [1], "BYTES")
    broken.set_data_from_numpy(np.array([b"what?"], dtype=np.object_))
    broken._raw_content = b"\xff\xff\xff\x7fabc"  # announces two gigabytes
    with pytest.raises(InferenceServerException):
        server.ask(SKILL="query", QUESTION=broken)
    with pytest.raises(InferenceServerException):
        server.ask(SKILL="query", QUESTION=["two", "texts"])
    assert server.ask(**QUERY, MAX_TOKENS=2)[0]["metrics"]["output_tokens"] == 2


def test_refusals_are_counted_by_code(server: Served) -> None:
    before = server.metrics()
    for _ in range(3):
        server.post({"SKILL": "dance"})
    name = 'kestrel_refusals_total{code="INVALID_ARG",engine="0"}'
    until(lambda: server.metrics()[name] >= before.get(name, 0) + 3)

"""The wire: tensor values to a request, results to JSON, and what is wrong said in so many words."""

import base64
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kestrel_core.protocol.errors import BadImage, InvalidRequest, KestrelError
from kestrel_core.protocol.fields import BY_NAME, PARAMETERS
from kestrel_core.protocol.messages import Chunk, EngineResult, Request, Usage
from kestrel_core.protocol.wire import decode_image_input, decode_request, encode_chunk, encode_result

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
USAGE = Usage(745, 64, 0, 1.0, 12.5, 45.2, 15.0)


def tensors(**values: Any) -> dict[str, Any]:
    """As Triton gives them: arrays, strings as bytes."""
    return {
        name: np.array([value.encode() if isinstance(value, str) else value], dtype=object)
        if isinstance(value, str | bytes)
        else np.array([value] if not isinstance(value, list) else value)
        for name, value in values.items()
    }


def decode(parameters: dict[str, Any] | None = None, timeout_us: int = 0, **values: Any) -> Request:
    return decode_request(tensors(**values), "id-1", timeout_us, parameters)


def test_a_request_with_everything() -> None:
    request = decode(
        SKILL="query",
        QUESTION="où?",
        IMAGE=PNG,
        TEMPERATURE=np.float32(0.5),
        TOP_P=np.float32(0.25),
        MAX_TOKENS=np.int32(7),
        MAX_OBJECTS=np.int32(3),
        REASONING=True,
        STREAM=True,
        SPATIAL_REFS=[[0.25, 0.5]],
        ADAPTER="mine@3",
        SEED=np.int64(2**62),
        LOGPROBS=np.int32(2),
        PRIORITY=np.int32(-4),
        timeout_us=1_500_000,
    )
    assert (request.skill, request.image, request.request_id) == ("query", PNG, "id-1")
    assert request.arguments == {"question": "où?", "reasoning": True, "spatial_refs": [[0.25, 0.5]]}
    settings = request.settings
    assert (settings.temperature, settings.top_p, settings.max_tokens, settings.max_objects) == (
        0.5,
        0.25,
        7,
        3,
    )
    assert (settings.adapter, settings.seed, settings.logprobs) == ("mine@3", 2**62, 2)
    assert (request.stream, request.priority, request.timeout_s) == (True, -4, 1.5)


def test_what_is_absent_is_the_default() -> None:
    request = decode(SKILL="caption")
    assert request == Request("caption", request_id="id-1")


def test_stops_are_many() -> None:
    inputs = tensors(SKILL="query", QUESTION="?") | {"STOP": np.array([b"a", "é".encode()], dtype=object)}
    assert decode_request(inputs, "").settings.stop == ("a", "é")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"SKILL": "query", "QUESTION": b"\xff"}, "QUESTION is not UTF-8"),
        ({"SKILL": "query", "MAX_TOKENS": 0}, "MAX_TOKENS is 0"),
        ({"SKILL": "query", "MAX_TOKENS": [1, 2]}, "MAX_TOKENS has 2 values; it takes one"),
        ({"SKILL": "query", "TEMPERATURE": float("nan")}, "TEMPERATURE is nan"),
        ({"SKILL": "query", "IMAGE": b""}, "IMAGE is empty"),
    ],
)
def test_what_is_wrong_is_said(values: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        decode(**values)


@pytest.mark.parametrize("name", [*BY_NAME])
def test_a_tensor_of_another_rank_is_refused(name: str) -> None:
    shapes = [(), (1,), (1, 1), (1, 3), (1, 0), (2, 3, 4)]
    for shape in (shape for shape in shapes if len(shape) != len(BY_NAME[name].dims)):
        check_rank_is_refused(name, shape)


def check_rank_is_refused(name: str, shape: tuple[int, ...]) -> None:
    inputs = tensors(SKILL="query", QUESTION="?") | {name: np.zeros(shape)}
    with pytest.raises(InvalidRequest) as caught:
        decode_request(inputs, "id-1")
    if name == "SPATIAL_REFS":
        assert "must be rows of numbers" in str(caught.value)
    else:
        assert f"{name} has the shape {[*shape]}; it takes [{BY_NAME[name].dims[0]}]" in str(caught.value)


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"MODLE": "x"}, 'there is no input "MODLE"'),
        ({"QUESTOIN": "x"}, "did you mean QUESTION"),
        ({"n": 2}, "n is not served yet"),
        ({"max_tokens": 5}, "max_tokens is no parameter; send the input MAX_TOKENS"),
        ({"Image": "x"}, "Image is no parameter; send the input IMAGE"),
        ({"spatial_refs": "[[0.1"}, "a JSON string such as"),
        ({"spatial_refs": 3}, "a JSON string such as"),
        ({"spatial_refs": "[" * 50_000}, "a JSON string such as"),
        ({"spatial_refs": "[" * 100_000}, "100,000 letters; at most 100 rows"),
        ({"spatial_refs": "[[1" + "0" * 400 + "]]"}, "a JSON string such as"),
        ({"cache_salt": 7}, "CACHE_SALT is 7; it must be a string"),
        ({"cache_salt": "é" * 65}, "CACHE_SALT has more than 128 bytes"),
        ({"cache_salt": "\ud800"}, "CACHE_SALT is not UTF-8"),
        ({"timeout": -1}, "timeout is -1"),
        ({"timeout": True}, "timeout is True"),
        ({"timeout": float("inf")}, "timeout is inf"),
        ({"timeout": 10**400}, "timeout is 1000"),
        ({"timeout": "soon" * 10_000}, "timeout is 'soon"),
    ],
)
def test_a_parameter_that_means_nothing_is_an_error(parameters: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        decode(parameters, SKILL="query", QUESTION="?")


def test_parameters_of_json_mean_what_tensors_mean() -> None:
    asked = {"spatial_refs": "[[0.1, 0.2]]", "timeout": 250_000, "id": "r-1"}
    request = decode(asked, SKILL="query", QUESTION="?")
    assert request.arguments["spatial_refs"] == [[0.1, 0.2]] and request.timeout_s == 0.25


@pytest.mark.parametrize(
    "given",
    [
        None,
        7,
        "",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\n",
    ],
)
def test_a_caller_s_span_that_cannot_be_read_is_ignored(given: object) -> None:
    assert decode({"traceparent": given}, SKILL="query").traceparent == ""


def test_the_timeout_of_the_request_wins_over_the_parameter() -> None:
    assert decode({"timeout": 250_000}, 500_000, SKILL="query").timeout_s == 0.5


@pytest.mark.parametrize(
    "magic", [PNG, b"\xff\xd8\xff\xe0" + bytes(40), b"RIFF1234WEBPVP8 ", b"GIF89a\x01\x00 "]
)
def test_a_picture_comes_as_bytes_as_base64_and_as_a_data_url(magic: bytes) -> None:
    text = base64.b64encode(magic)
    wrapped = b"\n".join(text[i : i + 20] for i in range(0, len(text), 20))
    for form in (magic, text, wrapped, b"data:image/png;base64," + text):
        assert decode_image_input(form) == magic


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (b"data:image/png,abc", "not of the form"),
        (b"data:image/png;base64", "not of the form"),
        (b"https://example.org/a.png", "never fetched"),
        (b"file:///etc/passwd", "never fetched"),
        (b"QUJDREVGR0hJSktMTU5P!", "nor valid base64"),
    ],
)
def test_what_is_no_picture_is_refused_before_it_is_decoded(value: bytes, said: str) -> None:
    with pytest.raises(BadImage, match=said):
        decode_image_input(value)


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(), st.binary(max_size=40), st.text()
)


@given(
    inputs=st.dictionaries(st.sampled_from(list(BY_NAME)), st.lists(VALUES, min_size=1, max_size=2)),
    parameters=st.dictionaries(st.sampled_from((*BY_NAME, *PARAMETERS, "id")), VALUES),
)
def test_whatever_comes_is_a_request_or_an_error_of_ours(
    inputs: dict[str, Any], parameters: dict[str, Any]
) -> None:
    try:
        request = decode_request({"SKILL": ["query"]} | inputs, "", 0, parameters)
    except KestrelError as error:
        assert str(error)
    else:
        assert isinstance(request.skill, str) and isinstance(request.priority, int)


def test_the_one_response() -> None:
    result = EngineResult("42", "stop", {"answer": "é 🦅"}, USAGE)
    text = encode_result(result)
    assert "🦅" in text
    document = json.loads(text)
    assert list(document) == ["request_id", "finish_reason", "answer", "metrics"]
    assert document["metrics"]["output_tokens"] == 64


def test_the_responses_of_a_stream() -> None:
    assert json.loads(encode_chunk(Chunk("a ", 5))) == {"chunk": "a ", "completed": False, "token_index": 5}
    result = EngineResult("42", "stop", {"answer": "a b"}, USAGE)
    last = json.loads(encode_result(result, Chunk("b", 6)))
    assert (last["chunk"], last["completed"], last["answer"]) == ("b", True, "a b")

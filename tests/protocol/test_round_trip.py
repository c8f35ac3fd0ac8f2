"""What one side writes the other reads: requests, chunks, results and errors."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kestrel_core.protocol import errors
from kestrel_core.protocol.errors import EngineFailed, InvalidRequest, KestrelError, error_from_text
from kestrel_core.protocol.messages import Chunk, EngineResult, Finished, Request, Settings, Usage
from kestrel_core.protocol.results import Answer, Detection, Points
from kestrel_core.protocol.wire import (
    decode_request,
    decode_response,
    encode_chunk,
    encode_request,
    encode_result,
)

USAGE = Usage(745, 64, 3, 1.0, 12.5, 45.2, 15.0)
ENTRIES = ({"token": "a", "bytes": [97], "logprob": -0.5, "top": []},)
ERRORS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, KestrelError)]

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
SETTINGS = st.builds(
    Settings,
    temperature=st.none() | st.floats(0, 100, width=32),
    top_p=st.none() | st.floats(0, 1, width=32),
    top_k=st.none() | st.integers(0, 2**31 - 1),
    max_tokens=st.none() | st.integers(1, 2**31 - 1),
    max_objects=st.none() | st.integers(1, 2**31 - 1),
    adapter=st.none() | TEXT,
    seed=st.none() | st.integers(-(2**63), 2**63 - 1),
    stop=st.lists(TEXT, max_size=3).map(tuple),
    logprobs=st.integers(0, 20),
)
ROW = st.lists(st.floats(0, 1), min_size=2, max_size=4)
OWN = st.dictionaries(
    st.sampled_from(("least", "colour", "boxes")), st.integers() | TEXT | st.lists(st.booleans()), max_size=2
)
REQUESTS = st.builds(
    Request,
    skill=TEXT,
    arguments=st.builds(
        lambda known, own: {**known, **own},
        st.fixed_dictionaries(
            {},
            optional={
                "question": TEXT,
                "object": TEXT,
                "length": st.sampled_from(("short", "normal", "long")),
                "reasoning": st.booleans(),
                "spatial_refs": st.lists(ROW, max_size=3),
            },
        ),
        OWN,
    ),
    image=st.none() | st.binary(min_size=1, max_size=50),
    settings=SETTINGS,
    request_id=TEXT,
    stream=st.booleans(),
    priority=st.integers(-10, 10),
    cache_salt=st.just("") | TEXT,
    tenant=st.just("") | TEXT,
    traceparent=st.sampled_from(("", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")),
)


@given(REQUESTS)
def test_a_request_arrives_as_it_was_sent(request: Request) -> None:
    tensors, parameters = encode_request(request)
    assert decode_request(tensors, request.request_id, 0, parameters) == request


@pytest.mark.parametrize(
    "chunk", [Chunk("a é ", 5), Chunk("hm ", 2, "reasoning"), Chunk("a ", 1, "text", ENTRIES)]
)
def test_a_chunk_arrives_as_it_was_sent(chunk: Chunk) -> None:
    assert decode_response(encode_chunk(chunk)) == chunk


@pytest.mark.parametrize(
    ("output", "kind"),
    [
        ({"answer": "a b", "logprobs": []}, Answer),
        ({"objects": [{"x_min": 0.1, "y_min": 0.2, "x_max": 0.3, "y_max": 0.4}]}, Detection),
        ({"count": 1, "points": [{"x": 0.1, "y": 0.2}]}, Points),
        ({"spelling": ["a"]}, EngineResult),
    ],
)
def test_a_result_arrives_as_the_class_that_its_output_asks_for(
    output: dict[str, Any], kind: type[EngineResult]
) -> None:
    result = EngineResult("42", "stop", output, USAGE)
    for rest in (None, Chunk("b", 64), Chunk("", 64, "text", ENTRIES)):
        event = decode_response(encode_result(result, rest))
        assert isinstance(event, Finished) and type(event.result) is kind
        assert event.result.output == output and event.result.metrics == USAGE
        assert event.rest == (rest or Chunk("", 64))


@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: str(kind.__name__))
def test_an_error_arrives_as_the_class_it_was(kind: type[KestrelError]) -> None:
    error = kind("prompt needs 3: shorten it")
    assert error.wire_text.startswith(f"{error.code}: ")
    back = error_from_text(error.wire_text)
    assert (type(back), str(back)) == (kind, str(error))
    assert 400 <= kind.status < 600 and kind.reason == kind.reason.lower()


def test_no_two_errors_of_a_code_have_one_reason() -> None:
    assert len({(kind.code, kind.reason) for kind in ERRORS}) == len(ERRORS)


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("INVALID_ARG: OBJECT is required for detect", InvalidRequest),
        ("UNAVAILABLE: 256 requests wait", errors.Overloaded),
        ("Request for unknown model: 'moondream' is not found", EngineFailed),
        ("", EngineFailed),
    ],
)
def test_a_message_without_a_reason_is_the_first_error_of_its_code(
    message: str, kind: type[KestrelError]
) -> None:
    assert type(error_from_text(message)) is kind

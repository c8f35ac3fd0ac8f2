"""What crashed, filled or froze Triton: the guard refuses it before anything is made of it."""

import struct
from collections.abc import Callable, Iterator
from typing import Any

import grpc  # type: ignore[import-untyped]
import pytest
from guard import Guard, guarding, query, text
from tritonclient.grpc import service_pb2

MIB = 2**20
STREAM_INFER = "/inference.GRPCInferenceService/ModelStreamInfer"
Change = Callable[[Any], None]


@pytest.fixture(scope="module")
def guard() -> Iterator[Guard]:
    with guarding() as it:
        yield it


def refs(shape: list[int], data: bytes = b"") -> Any:
    message = query()
    message.inputs.add(name="SPATIAL_REFS", datatype="FP32", shape=shape)
    message.raw_input_contents.append(data)
    return message


@pytest.mark.parametrize(
    "shape",
    [
        [2**31, 2**31],
        [2**32, 2**32],
        [2**62, 4],
        [2**63 - 1, 2**63 - 1],
        [4, 2**62],
        [2**62, 0],
        [-1, 2],
        [-(2**31), -(2**31)],
        [1000, 4],
        [2],
        [],
        [1] * 1000,
    ],
)
def test_a_shape_that_overflows_is_refused(guard: Guard, shape: list[int]) -> None:
    assert "SPATIAL_REFS has the shape" in guard.refused(refs(shape))
    assert len(guard.refused(refs(shape))) < 300


def test_a_shape_of_nothing_needs_no_bytes(guard: Guard) -> None:
    assert "SPATIAL_REFS has 4 bytes" in guard.refused(refs([0, 2], b"\0" * 4))


def changed(what: Change) -> Any:
    message = query(max_tokens=3)
    what(message)
    return message


def _name(message: Any) -> None:
    message.inputs[1].name = "QUESTON"


def _type(message: Any) -> None:
    message.inputs[2].datatype = "INT64"


def _length(message: Any) -> None:
    message.raw_input_contents[1] = b"\xff\xff\xff\xffabc"


def _cut(message: Any) -> None:
    message.raw_input_contents[1] = b"\5\0"


def _more(message: Any) -> None:
    message.raw_input_contents[1] += b"x"


def _bytes(message: Any) -> None:
    message.raw_input_contents[2] = b"\1\0\0"


def _fewer(message: Any) -> None:
    del message.raw_input_contents[2]


def _twice(message: Any) -> None:
    message.inputs.append(message.inputs[0])
    message.raw_input_contents.append(message.raw_input_contents[0])


def _many(message: Any) -> None:
    for _ in range(30):
        _twice(message)


def _shared(message: Any) -> None:
    message.inputs[1].parameters["shared_memory_region"].string_param = "triton_python_backend_shm"


def _shared_output(message: Any) -> None:
    message.outputs.add(name="TEXT_OUTPUT").parameters["shared_memory_region"].string_param = "x"


def _output(message: Any) -> None:
    message.outputs.add(name="OTHER")


def _id(message: Any) -> None:
    message.id = "x" * 129


def _parameter(message: Any) -> None:
    message.parameters["max_tokens"].int64_param = 3


def _timeout(message: Any) -> None:
    message.parameters["timeout"].int64_param = -1


def _skill(message: Any) -> None:
    message.raw_input_contents[0] = struct.pack("<I", 7) + b"no\nsuch"


def _stops(message: Any) -> None:
    message.inputs.add(name="STOP", datatype="BYTES", shape=[1_000_000])
    message.raw_input_contents.append(b"\0" * 4_000_000)


def _too_long(message: Any) -> None:
    message.raw_input_contents[1] = struct.pack("<I", 8 * MIB) + b"x" * 8 * MIB


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_name, 'there is no input "QUESTON"; did you mean QUESTION?'),
        (_type, "MAX_TOKENS is of type INT64; it must be INT32"),
        (_length, "less than its strings need"),
        (_cut, "less than its strings need"),
        (_more, "more than its strings need"),
        (_bytes, "MAX_TOKENS has 3 bytes"),
        (_fewer, "3 inputs are named and 2 have contents"),
        (_twice, "SKILL is given twice"),
        (_many, "the request has 33 inputs"),
        (_shared, "shared memory, which is closed"),
        (_shared_output, "shared memory, which is closed"),
        (_output, 'there is no output "OTHER"'),
        (_id, "up to 128 printable letters"),
        (_parameter, "send the input MAX_TOKENS"),
        (_timeout, "timeout is -1"),
        (_skill, 'there is no skill "no\\nsuch"'),
        (_stops, "STOP has 1,000,000 strings"),
        (_too_long, "payload_too_large"),
    ],
)
def test_what_is_wrong_with_a_request_is_told(guard: Guard, change: Change, words: str) -> None:
    said = guard.refused(changed(change))
    assert said.startswith("INVALID_ARG: ") and words in said and len(said) < 400, said


@pytest.mark.parametrize(("name", "version"), [("other", ""), ("moondream", "2"), ("", "")])
def test_another_model_is_told_in_tritons_words(guard: Guard, name: str, version: str) -> None:
    message = query()
    message.model_name, message.model_version = name, version
    assert guard.refused(message).startswith("Request for unknown model: ")


def sent(guard: Guard, data: bytes) -> Any:
    """The response to bytes that need be no message."""
    with grpc.insecure_channel(guard.url, [("grpc.max_send_message_length", -1)]) as channel:
        call = channel.stream_stream(STREAM_INFER, None, service_pb2.ModelStreamInferResponse.FromString)
        [response] = call(iter([data]), timeout=60)
    return response


@pytest.mark.parametrize(
    "data",
    [
        b"\x2a\x00" * 8 * MIB,  # inputs, each of them empty
        b"\x22\x00" * MIB,  # parameters
        b"\x3a\x00" * MIB,  # raw contents
        b"\x2a\x80\x80\x80\x01" + b"\x22\x00" * MIB,  # parameters of one input
        b"\x2a\x85\x80\x80\x01\x1a\x80\x80\x80\x01" + b"\x01" * 2 * MIB,  # a shape of two million
    ],
)
def test_a_message_of_millions_of_parts_is_not_parsed(guard: Guard, data: bytes) -> None:
    assert "more than 2,000 parts" in sent(guard, data).error_message


@pytest.mark.parametrize(
    "data", [b"\xff" * 100, b"\xff" * 100_000, b"\x2b" * 40_000, b"\x3a\xff\xff\xff\x7f"]
)
def test_what_is_no_message_is_told_so(guard: Guard, data: bytes) -> None:
    assert "no ModelInferRequest" in sent(guard, data).error_message


def test_a_large_picture_goes_through(guard: Guard) -> None:
    picture = bytes(range(256)) * 4096 * 30
    [response] = guard.stream(query(image=picture))
    assert text(response)["answer"] == "a red circle"
    assert guard.gateway.upstream.asked[-1].image == picture


def test_a_picture_over_the_limit_is_refused(guard: Guard) -> None:
    assert "payload_too_large" in guard.refused(query(image=b"x" * 33 * MIB))


def test_a_message_over_the_limit_is_not_taken(guard: Guard) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        guard.stream(query(image=b"x" * 66 * MIB))
    assert raised.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_a_compressed_message_is_not_inflated(guard: Guard) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        guard.stream(query(image=b"\0" * 300 * MIB), compression=grpc.Compression.Gzip)
    assert raised.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert text(guard.stream(query())[0])["answer"] == "a red circle"


def test_metadata_over_the_limit_is_refused(guard: Guard) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        guard.stream(query(), metadata=(("x-long", "x" * 70_000),))
    assert raised.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_the_header_that_crashed_triton_changes_nothing(guard: Guard) -> None:
    """Errors on a shared stream, whose callers ask for a status of gRPC in place of each."""
    metadata = (("triton_grpc_error", "true"),)
    bad = query("bad")
    bad.inputs[0].name = "SKIL"
    for _ in range(5):
        found = guard.stream(bad, query("good"), bad, metadata=metadata)
        assert sorted(it.infer_response.id for it in found) == ["bad", "bad", "good"]
        assert sum(bool(it.error_message) for it in found) == 2

"""KServe v2 over gRPC: Triton's responses, errors and descriptions, over a scripted upstream."""

import queue
from collections.abc import Iterator
from typing import Any

import grpc  # type: ignore[import-untyped]
import numpy as np
import pytest
import tritonclient.grpc
from gateway_server import endless, failing
from guard import Guard, guarding, query, text
from tritonclient.grpc import service_pb2

from kestrel_core.protocol.errors import EngineFailed, Overloaded
from kestrel_core.protocol.fields import BY_NAME


@pytest.fixture(scope="module")
def shared() -> Iterator[Guard]:
    with guarding() as it:
        yield it


@pytest.fixture
def guard(shared: Guard) -> Guard:
    """Nobody has asked anything yet."""
    shared.gateway.upstream.asked.clear()
    shared.gateway.upstream.answers.clear()
    return shared


def test_tritons_own_client_finds_what_it_looks_for(guard: Guard) -> None:
    client = tritonclient.grpc.InferenceServerClient(guard.url)
    assert client.is_server_live() and client.is_server_ready()
    assert client.is_model_ready("moondream") and client.is_model_ready("moondream", "1")
    assert not client.is_model_ready("other") and not client.is_model_ready("moondream", "2")
    assert [it.name for it in client.get_model_metadata("moondream").inputs] == list(BY_NAME)
    assert client.get_model_config("moondream").config.model_transaction_policy.decoupled
    assert "generate" in client.get_server_metadata().extensions
    client.close()


def test_tritons_own_client_is_answered_on_its_stream(guard: Guard) -> None:
    answers: queue.Queue[Any] = queue.Queue()
    client = tritonclient.grpc.InferenceServerClient(guard.url)
    client.start_stream(lambda result, error: answers.put((result, error)))
    inputs = []
    for name, value in (("SKILL", b"query"), ("QUESTION", b"What?")):
        inputs.append(tritonclient.grpc.InferInput(name, [1], "BYTES"))
        inputs[-1].set_data_from_numpy(np.array([value], dtype=np.object_))
    for id in ("one", "two"):
        client.async_stream_infer(
            "moondream", inputs, request_id=id, enable_empty_final_response=True, timeout=5_000_000
        )
        result, error = answers.get(timeout=60)
        assert error is None and result.get_response().id == id
        assert b"a red circle" in result.as_numpy("TEXT_OUTPUT")[0]
    client.stop_stream()
    client.close()
    assert [asked.timeout_s for asked in guard.gateway.upstream.asked] == [5.0, 5.0]
    assert answers.empty()


def test_a_streamed_answer_is_many_responses_and_the_last_says_so(guard: Guard) -> None:
    responses = guard.stream(query(stream=True))
    assert [text(it)["chunk"] for it in responses] == ["a ", "red ", "circle", ""]
    finals = [it.infer_response.parameters["triton_final_response"].bool_param for it in responses]
    assert finals == [False, False, False, True]
    assert {(it.infer_response.model_name, it.infer_response.model_version) for it in responses} == {
        ("moondream", "1")
    }


def test_requests_on_one_stream_are_answered_side_by_side(guard: Guard) -> None:
    guard.gateway.upstream.scripts.append(endless)
    waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
    waiting.put(query("slow"))
    call = guard.stub.ModelStreamInfer(iter(waiting.get, None), timeout=60)
    waiting.put(query("quick"))
    assert next(call).infer_response.id == "quick"
    call.cancel()
    waiting.put(None)
    assert guard.gateway.upstream.answers[0].is_cancelled.wait(60)


def test_one_answer_is_given_by_the_plain_call_too(guard: Guard) -> None:
    response = guard.stub.ModelInfer(query("r-7", image=b"picture", max_tokens=5, seed=2**40), timeout=60)
    assert (response.id, text(response)["answer"]) == ("r-7", "a red circle")
    [asked] = guard.gateway.upstream.asked
    assert (asked.image, asked.settings.max_tokens, asked.settings.seed) == (b"picture", 5, 2**40)


def test_values_may_be_listed_instead_of_packed(guard: Guard) -> None:
    message = service_pb2.ModelInferRequest(model_name="moondream")
    for name, kind, field, value in (
        ("SKILL", "BYTES", "bytes_contents", b"query"),
        ("QUESTION", "BYTES", "bytes_contents", b"What?"),
        ("MAX_TOKENS", "INT32", "int_contents", 7),
        ("TEMPERATURE", "FP32", "fp32_contents", 0.5),
    ):
        given = message.inputs.add(name=name, datatype=kind, shape=[1])
        getattr(given.contents, field).append(value)
    assert text(guard.stub.ModelInfer(message, timeout=60))["answer"] == "a red circle"
    [asked] = guard.gateway.upstream.asked
    assert (asked.settings.max_tokens, asked.settings.temperature) == (7, 0.5)


def test_an_error_is_a_response_and_the_stream_goes_on(guard: Guard) -> None:
    guard.gateway.upstream.scripts.append(failing(Overloaded("the queue is full")))
    messages = [query("first"), query("second")]
    found = {it.infer_response.id: it for it in guard.stream(*messages)}
    assert found["first"].error_message == "UNAVAILABLE: the queue is full"
    assert text(found["second"])["answer"] == "a red circle"


def test_an_error_in_the_middle_of_an_answer_ends_it(guard: Guard) -> None:
    guard.gateway.upstream.scripts.append(failing(EngineFailed("broken"), after=1))
    first, last = guard.stream(query(stream=True))
    assert text(first)["chunk"] == "a " and last.error_message == "INTERNAL: broken"


@pytest.mark.parametrize(
    ("error", "code"),
    [(Overloaded("full"), grpc.StatusCode.RESOURCE_EXHAUSTED), (EngineFailed("x"), grpc.StatusCode.INTERNAL)],
)
def test_the_plain_call_has_a_status(guard: Guard, error: Exception, code: grpc.StatusCode) -> None:
    guard.gateway.upstream.scripts.append(failing(error))
    with pytest.raises(grpc.RpcError) as raised:
        guard.stub.ModelInfer(query(), timeout=60)
    assert raised.value.code() is code and str(error) in raised.value.details()


def test_a_stream_is_not_for_the_plain_call(guard: Guard) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        guard.stub.ModelInfer(query(stream=True), timeout=60)
    assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "ModelStreamInfer" in raised.value.details() and guard.gateway.upstream.asked == []


@pytest.mark.parametrize(
    ("name", "request_"),
    [
        ("RepositoryIndex", service_pb2.RepositoryIndexRequest()),
        ("RepositoryModelUnload", service_pb2.RepositoryModelUnloadRequest(model_name="moondream")),
        ("SystemSharedMemoryRegister", service_pb2.SystemSharedMemoryRegisterRequest(name="x", key="/y")),
        ("CudaSharedMemoryStatus", service_pb2.CudaSharedMemoryStatusRequest()),
        ("TraceSetting", service_pb2.TraceSettingRequest()),
        ("LogSettings", service_pb2.LogSettingsRequest()),
        ("ModelStatistics", service_pb2.ModelStatisticsRequest()),
    ],
)
def test_the_administration_is_closed(guard: Guard, name: str, request_: Any) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        getattr(guard.stub, name)(request_, timeout=60)
    assert raised.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert f"{name} is closed here" in raised.value.details()


def test_every_call_of_the_service_is_answered_or_refused(guard: Guard) -> None:
    methods = service_pb2.DESCRIPTOR.services_by_name["GRPCInferenceService"].methods
    assert {it.name for it in methods} <= set(vars(guard.stub))


def test_whoever_cancels_the_call_cancels_the_request(guard: Guard) -> None:
    guard.gateway.upstream.scripts.append(endless)
    call = guard.stub.ModelStreamInfer(iter([query(stream=True)]), timeout=60)
    assert text(next(call))["chunk"] == "a "
    call.cancel()
    assert guard.gateway.upstream.answers[0].is_cancelled.wait(60)


def test_the_deadline_of_the_call_is_the_requests(guard: Guard) -> None:
    guard.gateway.upstream.scripts.append(endless)
    with pytest.raises(grpc.RpcError) as raised:
        list(guard.stub.ModelStreamInfer(iter([query()]), timeout=2))
    assert raised.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert guard.gateway.upstream.answers[0].is_cancelled.wait(60)
    timeout_s = guard.gateway.upstream.asked[0].timeout_s
    assert 0 < timeout_s < 2.1  # gRPC rounds a deadline up

"""What of Triton is closed: every way to its administration, and with keys every way to an answer."""

import http.client
import json
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import grpc
import pytest
from triton_server import Served, served, tensor, until
from tritonclient.grpc import service_pb2, service_pb2_grpc

from kestrel_client import Client, Retry, ServerUnreachable
from kestrel_core.triton.restrictions import ADMINISTRATION, GRPC_HEADER, HTTP_HEADER
from kestrel_gateway.admission.key_file import make_key

pytestmark = pytest.mark.triton

SECRET = "a-secret-of-the-tests"
MODEL = "/v2/models/moondream"
QUESTION = {"SKILL": "query", "QUESTION": "What can you do?", "MAX_TOKENS": 2}
# All paths of Triton 24.10 (src/http_server.cc) and all calls of its gRPC service, by whether they are open.
OPEN_PATHS = ["/v2", "/v2/health/live", "/v2/health/ready", MODEL, f"{MODEL}/ready", f"{MODEL}/config"]
CLOSED_PATHS = [
    "POST /v2/repository/index",
    "POST /v2/repository/models/moondream/load",
    "POST /v2/repository/models/moondream/unload",
    "GET /v2/models/stats",
    f"GET {MODEL}/stats",
    f"GET {MODEL}/versions/1/stats",
    "GET /v2/logging",
    "POST /v2/logging",
    "GET /v2/trace/setting",
    "POST /v2/trace/setting",
    f"GET {MODEL}/trace/setting",
    f"POST {MODEL}/trace/setting",
    *(
        f"{method} /v2/{kind}sharedmemory/{action}"
        for kind in ("system", "cuda")
        for method, action in (
            ("GET", "status"),
            ("GET", "region/x/status"),
            ("POST", "region/x/register"),
            ("POST", "region/x/unregister"),
            ("POST", "unregister"),
        )
    ),
]
OPEN_CALLS = {"ServerLive", "ServerReady", "ServerMetadata", "ModelReady", "ModelMetadata", "ModelConfig"}
INFERENCE = {"ModelInfer", "ModelStreamInfer"}
CLOSED_CALLS = {
    *("RepositoryIndex", "RepositoryModelLoad", "RepositoryModelUnload", "ModelStatistics"),
    *(f"{kind}SharedMemory{what}" for kind in ("System", "Cuda") for what in ("Status", "Register")),
    *(f"{kind}SharedMemoryUnregister" for kind in ("System", "Cuda")),
    *("LogSettings", "TraceSetting"),
}
RESTRICTED = "restricted, expecting header"


@pytest.fixture(scope="module")
def key_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("keys") / "keys.toml"


@pytest.fixture(scope="module")
def key(key_file: Path) -> str:
    key, lines = make_key("first")
    key_file.write_text(lines)
    return key


@pytest.fixture(scope="module")
def keyed(model: Path, key: str, key_file: Path) -> Iterator[Served]:
    """A server with keys. Its secret is given, so that it is known here."""
    secret = {"KESTREL_UPSTREAM_SECRET": SECRET, "KESTREL_MODEL_PATH": str(model)}
    with served(key_file.with_name("log"), f"--api-keys={key_file}", gateway=True, **secret) as it:
        yield it


def ask_gateway(server: Served, key: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    with closing(connection):
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
        connection.request("POST", "/v1/query", '{"question": "?", "settings": {"max_tokens": 2}}', headers)
        return connection.getresponse().status


def fetch(server: Served, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=60)
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def call(server: Served, name: str, *metadata: tuple[str, str]) -> grpc.RpcError | None:
    """The error that a call ends with, if it does."""
    method = service_pb2.DESCRIPTOR.services_by_name["GRPCInferenceService"].methods_by_name[name]
    message = getattr(service_pb2, method.input_type.name)()
    for field in {"name", "model_name"} & {field.name for field in message.DESCRIPTOR.fields}:
        setattr(message, field, "moondream" if name.startswith("Model") else "x")
    with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel:
        stub = getattr(service_pb2_grpc.GRPCInferenceServiceStub(channel), name)
        try:
            if method.client_streaming:
                list(stub(iter([message]), metadata=metadata, timeout=60))
            else:
                stub(message, metadata=metadata, timeout=60)
        except grpc.RpcError as error:
            return error
    return None


@pytest.mark.parametrize("path", CLOSED_PATHS)
def test_every_path_of_administration_is_refused(server: Served, path: str) -> None:
    method, _, place = path.partition(" ")
    status, text = fetch(server, method, place, {} if method == "POST" else None)
    assert status == 403 and RESTRICTED in text


@pytest.mark.parametrize("name", sorted(CLOSED_CALLS))
def test_every_call_of_administration_is_refused(server: Served, name: str) -> None:
    error = call(server, name)
    assert error is not None and RESTRICTED in error.details()


def test_the_secret_of_inference_opens_no_administration(keyed: Served) -> None:
    assert fetch(keyed, "GET", "/v2/logging", **{HTTP_HEADER: SECRET, "admin": SECRET})[0] == 403
    error = call(keyed, "LogSettings", (GRPC_HEADER, SECRET), ("triton-grpc-protocol-admin", SECRET))
    assert error is not None and RESTRICTED in error.details()


def test_no_call_of_triton_is_forgotten_here() -> None:
    service = service_pb2.DESCRIPTOR.services_by_name["GRPCInferenceService"]
    assert {method.name for method in service.methods} == OPEN_CALLS | INFERENCE | CLOSED_CALLS
    assert len(ADMINISTRATION) == 5


@pytest.mark.parametrize("which", ["server", "keyed"])
def test_health_and_the_models_description_stay_open(which: str, request: pytest.FixtureRequest) -> None:
    it = request.getfixturevalue(which)
    for path in OPEN_PATHS:
        assert fetch(it, "GET", path)[0] == 200, path
    for name in OPEN_CALLS:
        assert call(it, name) is None, name


@pytest.mark.parametrize("path", ["generate", "generate_stream", "infer"])
@pytest.mark.parametrize("headers", [{}, {HTTP_HEADER: "a-guess"}, {GRPC_HEADER: SECRET}])
def test_with_keys_no_path_answers_without_the_secret(
    keyed: Served, path: str, headers: dict[str, str]
) -> None:
    for place in (f"{MODEL}/{path}", f"{MODEL}/versions/1/{path}"):
        status, text = fetch(keyed, "POST", place, QUESTION, **headers)
        assert status == 403 and RESTRICTED in text


@pytest.mark.parametrize("name", sorted(INFERENCE))
@pytest.mark.parametrize("metadata", [(), ((GRPC_HEADER, "a-guess"),), ((HTTP_HEADER, SECRET),)])
def test_with_keys_no_call_answers_without_the_secret(
    keyed: Served, name: str, metadata: tuple[tuple[str, str], ...]
) -> None:
    error = call(keyed, name, *metadata)
    assert error is not None and RESTRICTED in error.details()


def test_who_has_the_secret_is_answered(keyed: Served) -> None:
    assert fetch(keyed, "POST", f"{MODEL}/generate", QUESTION, **{HTTP_HEADER: SECRET})[0] == 200
    url = f"127.0.0.1:{keyed.grpc_port}"
    with Client(url, headers={GRPC_HEADER: SECRET}) as client:
        assert client.query(None, "What can you do?", max_tokens=2).text
    with Client(url, retry=Retry(limit=0)) as client, pytest.raises(ServerUnreachable, match=GRPC_HEADER):
        client.query(None, "What can you do?", max_tokens=2)


def test_who_has_a_key_is_answered_by_the_gateway_which_has_the_secret(keyed: Served, key: str) -> None:
    until(lambda: ask_gateway(keyed, key) == 200)
    assert ask_gateway(keyed, "kestrel-a-guess") == 401


def test_a_hangup_lets_the_gateway_read_its_keys_again_and_ends_nothing(
    keyed: Served, key: str, key_file: Path
) -> None:
    another, lines = make_key("second")
    assert ask_gateway(keyed, another) == 401
    with key_file.open("a") as file:
        file.write(lines)
    keyed.process.send_signal(signal.SIGHUP)
    until(lambda: ask_gateway(keyed, another) == 200)
    assert ask_gateway(keyed, key) == 200 and keyed.process.poll() is None


def test_shared_memory_cannot_be_named_in_a_request_either(server: Served) -> None:
    """Without registration there is no region that a request could point to."""
    message = service_pb2.ModelInferRequest(model_name="moondream")
    message.inputs.append(tensor("SKILL", "query")._get_tensor())
    message.inputs[0].parameters["shared_memory_region"].string_param = "x"
    message.inputs[0].parameters["shared_memory_byte_size"].int64_param = 9
    with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        [response] = stub.ModelStreamInfer(iter([message]), timeout=60)
    assert "Unable to find shared memory region" in response.error_message

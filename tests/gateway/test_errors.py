"""Every error that HTTP callers can meet, provoked once on each family of paths, in the one envelope."""

import json
import re
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from gateway_server import Running, failing, running

from kestrel_core.protocol.errors import (
    BadImage,
    DeadlinePassed,
    EngineFailed,
    KestrelError,
    Overloaded,
    PromptTooLong,
    ServerUnreachable,
    ShuttingDown,
    UnknownAdapter,
)
from kestrel_gateway.admission.key_file import digest_of

ALICE, BOB = "kestrel-alice", "kestrel-bob"
PICTURE = "data:image/png;base64,QUJD"
KEYS = f"""
[[keys]]
name = "alice"
sha256 = "{digest_of(ALICE.encode()).hex()}"
adapters = ["a@1"]

[[keys]]
name = "bob"
sha256 = "{digest_of(BOB.encode()).hex()}"
requests_per_minute = 1
skills = ["count"]
"""
INSIDE = re.compile(r"Traceback|/(usr|home|root|tmp|var|etc|work)/|site-packages|0x[0-9a-f]{6}")
Body = dict[str, Any]


@dataclass(frozen=True)
class Family:
    path: str
    body: Callable[[str, str], Body]  # of a picture and a model
    required: str  # a field without which nothing can be answered
    has_picture: bool = True

    def __str__(self) -> str:
        return self.path


def _chat(picture: str, model: str) -> Body:
    image = {"type": "image_url", "image_url": {"url": picture}}
    content = [image, {"type": "text", "text": "What?"}]
    return {"model": model, "messages": [{"role": "user", "content": content}]}


def _response(picture: str, model: str) -> Body:
    content = [{"type": "input_image", "image_url": picture}, {"type": "input_text", "text": "What?"}]
    return {"model": model, "input": [{"role": "user", "content": content}]}


REST = Family("/v1/query", lambda p, m: {"image_url": p, "question": "What?", "model": m}, "question")
CHAT = Family("/v1/chat/completions", _chat, "messages")
COMPLETIONS = Family(
    "/v1/completions", lambda p, m: {"model": m, "prompt": "What?"}, "prompt", has_picture=False
)
RESPONSES = Family("/v1/responses", _response, "input")
FAMILIES = [REST, CHAT, COMPLETIONS, RESPONSES]
WITH_PICTURES = [family for family in FAMILIES if family.has_picture]
each_family = pytest.mark.parametrize("family", FAMILIES, ids=str)
each_with_pictures = pytest.mark.parametrize("family", WITH_PICTURES, ids=str)


@pytest.fixture(scope="module")
def gateway() -> Iterator[Running]:
    with running(max_body_bytes=100_000, max_image_bytes=1000) as it:
        yield it


@pytest.fixture(scope="module")
def impatient() -> Iterator[Running]:
    with running(body_timeout_s=0.3) as it:
        yield it


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Running]:
    path = tmp_path / "keys.toml"
    path.write_text(KEYS)
    with running(api_keys=path) as it:
        yield it


def check(found: tuple[int, Any, dict[str, str]], status: int, kind: str, code: str | None = None) -> Body:
    """The envelope, with this status and type; the error itself comes back."""
    got, document, headers = found
    assert got == status, document
    assert list(document) == ["error"]
    error: Body = document["error"]
    assert error.keys() == {"message", "type", "param", "code"}
    assert (error["type"], code in (None, error["code"])) == (kind, True), error
    assert headers["content-type"] == "application/json" and headers["x-request-id"]
    assert ("retry-after" in headers) == (status in (429, 503))
    assert not INSIDE.search(error["message"])
    return error


@each_family
def test_what_is_asked_well_is_answered(gateway: Running, family: Family) -> None:
    assert gateway.post(family.path, family.body(PICTURE, "moondream"))[0] == 200


@each_family
@pytest.mark.parametrize("data", [b"{", b"[]", b"", b"{}", b'{"model": 7}'])
def test_400_for_a_body_that_asks_nothing(gateway: Running, family: Family, data: bytes) -> None:
    if family is REST and data == b"{}":
        return  # what a skill needs is known to the server alone
    check(gateway.post(family.path, data), 400, "invalid_request_error")


@each_family
def test_400_for_a_field_of_a_wrong_kind(gateway: Running, family: Family) -> None:
    body = family.body(PICTURE, "moondream") | {family.required: 7}
    check(gateway.post(family.path, body), 400, "invalid_request_error")
    body = family.body(PICTURE, "moondream") | {"temperature": "hot"}
    error = check(gateway.post(family.path, body), 400, "invalid_request_error")
    assert "temperature" in error["message"].lower()


@each_with_pictures
@pytest.mark.parametrize("picture", ["data:image/png;base64,!", "http://example.com/a.png"])
def test_400_for_a_picture_that_cannot_be_had(gateway: Running, family: Family, picture: str) -> None:
    found = gateway.post(family.path, family.body(picture, "moondream"))
    error = check(found, 400, "invalid_request_error", "image_decode_failed")
    assert "image_url" in error["param"]


@each_family
@pytest.mark.parametrize(
    ("headers", "status", "kind"),
    [
        ({}, 401, "authentication_error"),
        ({"authorization": "Bearer wrong"}, 401, "authentication_error"),
        ({"x_moondream_auth": BOB}, 403, "permission_error"),
    ],
)
def test_401_and_403_for_a_key_that_may_not(
    guarded: Running, family: Family, headers: dict[str, str], status: int, kind: str
) -> None:
    check(guarded.post(family.path, family.body(PICTURE, "moondream"), **headers), status, kind)
    assert guarded.upstream.asked == []


@each_family
def test_403_for_an_adapter_of_others(guarded: Running, family: Family) -> None:
    headers = {"authorization": f"Bearer {ALICE}"}
    assert guarded.post(family.path, family.body(PICTURE, "moondream/a@1"), **headers)[0] == 200
    check(
        guarded.post(family.path, family.body(PICTURE, "moondream/b@1"), **headers), 403, "permission_error"
    )


@each_family
def test_429_over_the_rate(guarded: Running, family: Family) -> None:
    headers = {"authorization": f"Bearer {BOB}"}
    assert guarded.post(family.path, b"{}", **headers)[0] != 429
    check(guarded.post(family.path, b"{}", **headers), 429, "rate_limit_error", "rate_limited")


@each_family
def test_404_for_a_model_that_is_not_here(gateway: Running, family: Family) -> None:
    found = gateway.post(family.path, family.body(PICTURE, "gpt-4"))
    check(found, 404, "not_found_error", "model_not_found")


@each_family
def test_405_for_another_method(gateway: Running, family: Family) -> None:
    check(gateway.get(family.path), 405, "invalid_request_error")


@each_family
def test_408_for_a_sender_who_does_not_send(impatient: Running, family: Family) -> None:
    with socket.create_connection(("127.0.0.1", impatient.port), timeout=60) as door:
        head = f"POST {family.path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
        door.sendall(head.encode() + b"Content-Length: 9\r\n\r\n")
        answer = b""
        while more := door.recv(4096):
            answer += more
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["type"] == "timeout_error"


@each_family
def test_413_for_a_body_over_the_limit(gateway: Running, family: Family) -> None:
    found = gateway.post(family.path, b" " * 100_001)
    check(found, 413, "invalid_request_error", "payload_too_large")


@each_with_pictures
def test_413_for_a_picture_over_the_limit(gateway: Running, family: Family) -> None:
    found = gateway.post(family.path, family.body("QUJD" * 334, "moondream"))
    check(found, 413, "invalid_request_error", "payload_too_large")


@each_family
def test_415_for_what_is_no_json(gateway: Running, family: Family) -> None:
    plain = gateway.ask("POST", family.path, b"{}", {"Content-Type": "text/plain"})
    check(plain, 415, "invalid_request_error")
    check(gateway.post(family.path, b"{}", content_encoding="gzip"), 415, "invalid_request_error")


@each_family
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (BadImage("this is no picture"), 400, "invalid_request_error"),
        (PromptTooLong("too long"), 400, "invalid_request_error"),
        (UnknownAdapter("there is no such adapter"), 404, "not_found_error"),
        (Overloaded("the queue is full"), 429, "rate_limit_error"),
        (EngineFailed("the engine failed"), 500, "server_error"),
        (ServerUnreachable("no server answers"), 503, "service_unavailable"),
        (ShuttingDown("this server is ending"), 503, "service_unavailable"),
        (DeadlinePassed("not answered in time"), 504, "timeout_error"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, KestrelError) else "",
)
def test_an_error_of_the_server_keeps_its_status(
    family: Family, stream: bool, error: KestrelError, status: int, kind: str
) -> None:
    with running() as gateway:
        gateway.upstream.scripts = [failing(error)] * 5  # where it is asked again, it fails again
        found = gateway.post(family.path, family.body(PICTURE, "moondream") | {"stream": stream})
        is_left = status == 503  # a server that does not serve is not asked again, and nobody else is here
        is_model = isinstance(error, UnknownAdapter) and family is not REST  # OpenAI's name for it
        code = "unreachable" if is_left else "model_not_found" if is_model else error.reason
        check(found, status, kind, code)


@each_family
def test_500_tells_nothing_of_our_inside(gateway: Running, family: Family) -> None:
    async def broken(request: Any) -> Any:
        raise ZeroDivisionError("/secret/path of ours")
        yield

    gateway.upstream.scripts = [broken]
    error = check(gateway.post(family.path, family.body(PICTURE, "moondream")), 500, "server_error")
    assert "secret" not in error["message"]


@pytest.mark.parametrize("path", [*(family.path for family in FAMILIES), "/v1/models", "/v1/models/a"])
def test_503_when_the_gateway_is_ending(path: str) -> None:
    with running(exit_timeout_s=5.0) as gateway:
        gateway.house.drain.num_open += 1  # as if a request were still running
        gateway.house.drain.begin()
        try:
            ask = gateway.get if path.startswith("/v1/models") else lambda path: gateway.post(path, b"{}")
            check(ask(path), 503, "service_unavailable", "shutting_down")
        finally:
            gateway.house.drain.num_open -= 1


@pytest.mark.parametrize("path", ["/v1/models", "/v1/models/moondream"])
def test_the_lists_of_models_have_the_same_envelope(guarded: Running, path: str) -> None:
    check(guarded.get(path), 401, "authentication_error")
    alice, bob = ({"authorization": f"Bearer {key}"} for key in (ALICE, BOB))
    assert guarded.get(path, **alice)[0] == 200
    check(guarded.post(path, {}, **alice), 405, "invalid_request_error")
    check(guarded.get("/v1/models/gpt-4", **alice), 404, "not_found_error", "model_not_found")
    assert guarded.get(path, **bob)[0] == 200
    check(guarded.get(path, **bob), 429, "rate_limit_error")


@pytest.mark.parametrize(
    ("method", "path", "status", "kind"),
    [
        ("GET", "/nothing", 404, "not_found_error"),
        ("GET", "/v1", 404, "not_found_error"),
        ("GET", "/v1/", 404, "not_found_error"),
        ("POST", "/v1/query/", 404, "not_found_error"),
        ("POST", "/v1/dance", 404, "not_found_error"),
        ("GET", "//v1/query", 404, "not_found_error"),
        ("GET", "/../../etc/passwd", 404, "not_found_error"),
        ("GET", "/%2e%2e/%00", 404, "not_found_error"),
        ("GET", "/" + "a" * 5000, 404, "not_found_error"),
        ("POST", "/livez", 405, "invalid_request_error"),
        ("DELETE", "/v1/models", 405, "invalid_request_error"),
        ("OPTIONS", "/v1/query", 405, "invalid_request_error"),
    ],
)
def test_a_path_or_method_that_there_is_not(
    gateway: Running, method: str, path: str, status: int, kind: str
) -> None:
    got, document, _ = gateway.ask(method, path, None, {})
    assert (got, document["error"]["type"]) == (status, kind)
    assert len(document["error"]["message"]) < 300

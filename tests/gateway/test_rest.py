"""Moondream's REST over a scripted upstream: what is asked, what comes back, and what becomes of a leaver."""

import base64
import http.client
import json
from collections.abc import Iterator

import pytest
from gateway_server import Running, endless, failing, running

from kestrel_core.protocol.errors import BadImage, EngineFailed, Overloaded

PICTURE = base64.b64encode(b"\x89PNG picture").decode()
URL = f"data:image/png;base64,{PICTURE}"


@pytest.fixture
def gateway() -> Iterator[Running]:
    with running() as it:
        yield it


def test_a_question_reaches_the_upstream_as_it_was_asked(gateway: Running) -> None:
    body = {"image_url": URL, "question": "What?", "reasoning": True, "settings": {"temperature": 0.2}}
    status, answer, headers = gateway.post("/v1/query", body, x_request_id="mine-1")
    assert (status, answer["answer"], answer["finish_reason"]) == (200, "a red circle", "stop")
    assert answer["request_id"] == headers["x-request-id"] == "mine-1"
    assert answer["metrics"]["ttft_ms"] == 15.0
    [asked] = gateway.upstream.asked
    assert asked.arguments == {"question": "What?", "reasoning": True}
    assert (asked.image, asked.settings.temperature) == (b"\x89PNG picture", 0.2)
    assert (asked.request_id, asked.timeout_s) == ("mine-1", 60.0)


@pytest.mark.parametrize("image", [URL, PICTURE, URL.replace("image/png", "image/svg+xml;charset=utf-8")])
def test_a_picture_is_a_data_url_or_base64(gateway: Running, image: str) -> None:
    status, _, _ = gateway.post("/v1/detect", {"image_url": image, "object": "cat"})
    assert (status, gateway.upstream.asked[0].image) == (200, b"\x89PNG picture")


def test_older_names_and_settings_beside_the_fields_are_taken(gateway: Running) -> None:
    body = {"image_url": URL, "question": "What?", "max_new_tokens": 5, "settings": {"max_points": 3}}
    gateway.post("/v1/query", body)
    settings = gateway.upstream.asked[0].settings
    assert (settings.max_tokens, settings.max_objects) == (5, 3)


@pytest.mark.parametrize("model", ["moondream-tiny", "moondream", "moondream3-preview"])
def test_the_model_has_its_name_an_alias_and_what_moondreams_client_sends_unasked(
    gateway: Running, model: str
) -> None:
    gateway.call_model("moondream-tiny")
    status, _, _ = gateway.post("/v1/query", {"question": "What?", "model": f"{model}/mine@1"})
    assert (status, gateway.upstream.asked[0].settings.adapter) == (200, "mine@1")


def test_a_form_carries_a_file_and_texts(gateway: Running) -> None:
    parts = [
        ("image", b"\x89PNG picture"),
        ("object", b"cat"),
        ("max_objects", b"3"),
        ("spatial_refs", b"[[0.5, 0.5]]"),
        ("settings", b'{"temperature": 0.5}'),
    ]
    body = b"".join(
        b'--x\r\nContent-Disposition: form-data; name="'
        + name.encode()
        + b'"'
        # A part with a file's name is a file.
        + (b'; filename="a.png"' if name == "image" else b"")
        + b"\r\n\r\n"
        + value
        + b"\r\n"
        for name, value in parts
    )
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    status, answer, _ = gateway.ask("POST", "/v1/point", body + b"--x--\r\n", headers)
    assert (status, answer["points"]) == (200, [{"x": 0.25, "y": 0.5}])
    [asked] = gateway.upstream.asked
    assert asked.image == b"\x89PNG picture"
    assert asked.arguments == {"object": "cat", "spatial_refs": [[0.5, 0.5]]}
    assert (asked.settings.max_objects, asked.settings.temperature) == (3, 0.5)


def test_a_stream_gives_its_chunks_and_then_the_whole(gateway: Running) -> None:
    events = gateway.events("/v1/caption", {"image_url": URL, "stream": True}, x_request_id="s")
    assert [event["chunk"] for event in events] == ["a ", "red ", "circle", ""]
    assert [event["completed"] for event in events] == [False, False, False, True]
    assert events[-1]["caption"] == "a red circle"
    assert {event["request_id"] for event in events} == {"s"}


def test_an_outline_has_the_names_of_the_clients_streamed_or_not(gateway: Running) -> None:
    _, answer, _ = gateway.post("/v1/segment", {"image_url": URL, "object": "cat"})
    assert (answer["path"], answer["bbox"]["x_max"]) == ("M 0 0 L 1 1 Z", 1.0)
    events = gateway.events("/v1/segment", {"image_url": URL, "object": "cat", "stream": True})
    assert [event["type"] for event in events] == ["bbox", "path_delta", "final"]
    assert events[-1]["path"] == events[1]["chunk"] == "M 0 0 L 1 1 Z"


@pytest.mark.parametrize("stream", [False, True])
def test_an_error_of_the_engine_keeps_its_status_before_the_first_chunk(
    gateway: Running, stream: bool
) -> None:
    gateway.upstream.scripts = [failing(BadImage("no picture")), failing(Overloaded("full"))]
    body = {"image_url": URL, "stream": stream}
    status, answer, _ = gateway.post("/v1/caption", body)
    assert (status, answer["error"]["code"]) == (400, "image_decode_failed")
    status, answer, headers = gateway.post("/v1/caption", body)
    assert (status, answer["error"]["type"], headers["retry-after"]) == (429, "rate_limit_error", "1")


def test_an_error_after_the_first_chunk_is_the_last_event(gateway: Running) -> None:
    gateway.upstream.scripts = [failing(EngineFailed("broken"), after=1)]
    events = gateway.events("/v1/caption", {"image_url": URL, "stream": True})
    assert events[0]["chunk"] == "a "
    assert (events[1]["error"]["code"], events[1]["completed"]) == ("engine_failed", True)


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_goes_is_cancelled(gateway: Running, stream: bool) -> None:
    gateway.upstream.scripts = [endless]
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)
    body = json.dumps({"image_url": URL, "stream": stream}).encode()
    connection.request("POST", "/v1/caption", body, {"Content-Type": "application/json"})
    while not gateway.upstream.answers:
        pass
    if stream:
        connection.getresponse().read1()
    connection.close()
    assert gateway.upstream.answers[0].is_cancelled.wait(60)


@pytest.mark.parametrize(
    ("method", "path", "data", "kind", "status", "code"),
    [
        ("GET", "/v1/query", None, "", 405, "method_not_allowed"),
        ("GET", "/v1/nothing", None, "", 404, "not_found"),
        ("POST", "/v1/query", b"{}", "text/plain", 415, "unsupported_media_type"),
        ("POST", "/v1/query", b"{", "application/json", 400, "invalid_request"),
        ("POST", "/v1/query", b"[1]", "application/json", 400, "invalid_request"),
        ("POST", "/v1/query", b"[" * 15_000, "application/json", 400, "invalid_request"),
        ("POST", "/v1/query", b"[" * 250_000, "application/json", 400, "invalid_request"),
        ("POST", "/v1/query", b'{"question": "\xff"}', "application/json", 400, "invalid_request"),
        ("POST", "/v1/query", b"x", "multipart/form-data", 400, "invalid_request"),
        ("POST", "/v1/query", b'{"image_url": "http://a/b"}', "application/json", 400, "image_decode_failed"),
        ("POST", "/v1/query", b'{"image_url": "data:x,y"}', "application/json", 400, "image_decode_failed"),
        ("POST", "/v1/query", b'{"model": "gpt"}', "application/json", 404, "model_not_found"),
        ("POST", "/v1/query", b'{"settings": 1}', "application/json", 400, "invalid_request"),
        ("POST", "/v1/query", b'{"settings": []}', "application/json", 400, "invalid_request"),
        (
            "POST",
            "/v1/query",
            b'{"max_points": 1, "max_objects": 2}',
            "application/json",
            400,
            "invalid_request",
        ),
        ("POST", "/v1/query", b'{"model": {}}', "application/json", 400, "invalid_request"),
        ("POST", "/v1/query", b'{"stream": 0}', "application/json", 400, "invalid_request"),
    ],
)
def test_every_refusal_is_the_same_envelope(
    gateway: Running, method: str, path: str, data: bytes | None, kind: str, status: int, code: str
) -> None:
    found, answer, headers = gateway.ask(method, path, data, {"Content-Type": kind} if kind else {})
    assert (found, answer["error"]["code"]) == (status, code)
    assert headers.get("allow") == ("POST" if status == 405 else None)
    assert answer["error"].keys() == {"message", "type", "param", "code"}
    assert gateway.upstream.asked == []

"""A picture that the server cannot read: the refusal names the field that it came in, on every path."""

from collections.abc import Iterator
from typing import Any

import pytest
from gateway_server import Running, failing, running

from kestrel_core.protocol.errors import BadImage, InvalidRequest

URL = "data:image/png;base64,AAAA"
TEXT = {"type": "text", "text": "What?"}
PICTURE = {"type": "image_url", "image_url": {"url": URL}}
SEEN = {"type": "input_image", "image_url": URL}
ASKED = {"type": "input_text", "text": "What?"}
PATHS = [
    ("/v1/caption", {"image_url": URL}, "image_url"),
    (
        "/v1/chat/completions",
        {"model": "moondream", "messages": [{"role": "user", "content": [TEXT, PICTURE]}]},
        "messages[0].content[1].image_url",
    ),
    (
        "/v1/responses",
        {"model": "moondream", "input": [{"role": "user", "content": [SEEN, ASKED]}]},
        "input[0].content[0].image_url",
    ),
]


@pytest.fixture
def gateway() -> Iterator[Running]:
    with running() as it:
        yield it


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("path", "body", "param"), PATHS)
def test_the_field_of_the_picture_is_named(
    gateway: Running, path: str, body: dict[str, Any], param: str, stream: bool
) -> None:
    gateway.upstream.scripts = [failing(BadImage("damaged"))]
    status, answer, _ = gateway.post(path, body | {"stream": stream})
    assert (status, answer["error"]["code"], answer["error"]["param"]) == (400, "image_decode_failed", param)


@pytest.mark.parametrize(("path", "body", "param"), PATHS)
def test_another_error_does_not_blame_the_picture(
    gateway: Running, path: str, body: dict[str, Any], param: str
) -> None:
    gateway.upstream.scripts = [failing(InvalidRequest("too hot"))]
    _, answer, _ = gateway.post(path, body)
    assert answer["error"]["param"] is None

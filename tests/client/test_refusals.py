"""What a server refuses is the same error here as there."""

import grpc
import pytest
from client.fake_triton import FakeTriton, break_off, refuse
from goldens import golden_language

from kestrel_client import (
    AdapterUnreachable,
    BadAdapter,
    BadImage,
    Cancelled,
    Client,
    DeadlinePassed,
    EngineFailed,
    InvalidRequest,
    KestrelError,
    Overloaded,
    PromptTooLong,
    Retry,
    TooLarge,
    UnknownAdapter,
    UnsupportedSkill,
)
from kestrel_core.protocol.messages import Request
from kestrel_core.skills.segment import SegmentSkill

AT_ONCE = Retry(limit=3, first_wait_s=0.001)


@pytest.mark.parametrize(
    ("message", "kind", "text"),
    [
        ("INVALID_ARG: OBJECT is required for detect", InvalidRequest, "OBJECT is required for detect"),
        ("INVALID_ARG: image_decode_failed: it is cut", BadImage, "it is cut"),
        ("INVALID_ARG: prompt_too_long: by far", PromptTooLong, "by far"),
        ("CANCELLED: deadline_passed: late", DeadlinePassed, "late"),
        ("NOT_FOUND: no adapter birds", UnknownAdapter, "no adapter birds"),
        ("INVALID_ARG: bad_adapter: its rank is 64", BadAdapter, "its rank is 64"),
        ("UNAVAILABLE: adapter_unreachable: not now", AdapterUnreachable, "not now"),
        ("CANCELLED: the deadline passed", Cancelled, "the deadline passed"),
        ("INTERNAL: our fault: 3", EngineFailed, "our fault: 3"),
        ('INVALID_ARG: there is no skill "is not ready"', InvalidRequest, "there is no skill"),
        ("Request for unknown model: 'moondream' is not found", EngineFailed, "Request for unknown model: "),
    ],
)
def test_a_refusal_is_an_error_of_its_type(
    fake: FakeTriton, message: str, kind: type[KestrelError], text: str
) -> None:
    fake.scripts.append(refuse(message))
    with Client(fake.url, retry=AT_ONCE) as client, pytest.raises(KestrelError) as caught:
        client.detect(b"picture", "circle")
    assert type(caught.value) is kind
    assert str(caught.value).startswith(text)
    assert len(fake.asked) == 1


def test_a_skill_the_model_lacks_is_told_from_a_bad_request(fake: FakeTriton) -> None:
    with pytest.raises(UnsupportedSkill) as of_the_engine:
        SegmentSkill().prompt(Request("segment", {"object": "dog"}, image=b"x"), golden_language("md3"))
    fake.scripts.append(refuse(of_the_engine.value.wire_text))
    with Client(fake.url) as client, pytest.raises(UnsupportedSkill):
        client.segment(b"picture", "dog")


def test_a_message_that_the_server_does_not_take_is_too_large(fake: FakeTriton) -> None:
    """gRPC's own limit, which Triton has raised and another server may not have."""
    with Client(fake.url, retry=AT_ONCE) as client, pytest.raises(TooLarge) as caught:
        client.caption(b"x" * 5_000_000)
    said = str(caught.value)
    assert said.startswith("the request has 5,000,") and "and the server takes 4,194,304" in said
    assert "smaller picture" in said and fake.asked == []


def test_headers_that_the_server_does_not_take_are_too_large(fake: FakeTriton) -> None:
    long = {"x-long": "x" * 70_000}
    with (
        Client(fake.url, retry=AT_ONCE, headers=long) as client,
        pytest.raises(TooLarge, match="the headers are larger than the server takes"),
    ):
        client.caption(b"picture")
    assert fake.asked == []


def test_a_server_that_takes_no_more_calls_is_asked_again(fake: FakeTriton) -> None:
    full = break_off(grpc.StatusCode.RESOURCE_EXHAUSTED, details="Concurrent RPC limit exceeded!")
    with Client(fake.url, retry=AT_ONCE) as client:
        fake.scripts.append(full)
        assert client.caption(b"picture").text == "a red circle"
        fake.scripts += [full] * 4
        with pytest.raises(Overloaded, match="takes no more calls"):
            client.caption(b"picture")
    assert len(fake.asked) == 2 + 4

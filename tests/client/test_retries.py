"""What the client sends again by itself: what was certainly not begun, so often, and never otherwise."""

from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from client.fake_triton import FakeTriton, Script, Silence, break_off, refuse, say
from free_ports import free_ports

from kestrel_client import Client, Overloaded, Retry, ServerUnreachable, ShuttingDown

AT_ONCE = Retry(limit=3, first_wait_s=0.001)
CHUNK = say({"chunk": "a red ", "completed": False, "token_index": 2})
NO_VERSIONS = "Request for unknown model: 'moondream' has no available versions"
ENDING = "UNAVAILABLE: shutting_down: this server is ending; ask again, another one will answer"


def test_a_server_that_comes_up_late_is_still_asked() -> None:
    [port] = free_ports(1)
    url = f"127.0.0.1:{port}"
    servers: list[FakeTriton] = []
    failures = []

    class Patient(Retry):
        def wait_s(self, attempt: int) -> float:
            failures.append(attempt)
            if attempt == 1:
                servers.append(FakeTriton(port))
            return 0.02

    with Client(url, retry=Patient(limit=200)) as client:
        assert client.query(None, "what?").text == "a red circle"
    assert failures[:2] == [0, 1]
    servers[0].stop()


@pytest.mark.parametrize(
    "script",
    [
        refuse("UNAVAILABLE: the queue holds 256 requests"),
        # What Triton itself says while it ends.
        refuse(f"[request id: 7] {NO_VERSIONS}"),
        refuse(NO_VERSIONS),
        break_off(grpc.StatusCode.UNAVAILABLE, details=NO_VERSIONS),
        break_off(grpc.StatusCode.NOT_FOUND, details=NO_VERSIONS),
        # What a gateway says, in a stream and as its end, and a balancer that has no server.
        refuse(ENDING),
        break_off(grpc.StatusCode.UNAVAILABLE, details=ENDING),
        break_off(grpc.StatusCode.UNAVAILABLE, details="Received http2 header with status: 503"),
        # What gRPC says of a call that reached a server which had just told its clients to go.
        break_off(grpc.StatusCode.CANCELLED, details="CANCELLED"),
    ],
)
def test_what_was_not_begun_is_tried_again(fake: FakeTriton, script: Script) -> None:
    fake.scripts += [script, script, script]
    with Client(fake.url, retry=AT_ONCE) as client:
        assert client.query(b"picture", "what?").text == "a red circle"
    assert len(fake.asked) == 4


@pytest.mark.parametrize("status", [None, grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.NOT_FOUND])
def test_a_server_that_ends_is_told_from_one_that_has_failed(
    fake: FakeTriton, status: grpc.StatusCode | None
) -> None:
    fake.scripts.append(refuse(NO_VERSIONS) if status is None else break_off(status, details=NO_VERSIONS))
    with Client(fake.url, retry=Retry(limit=0)) as client, pytest.raises(ShuttingDown, match="or ending"):
        client.query(None, "what?")
    assert len(fake.asked) == 1, "retries can be turned off"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (refuse("Stub process 'moondream_0_0' is not healthy."), "the process that runs the model has died"),
        (break_off(grpc.StatusCode.UNAVAILABLE, details="Socket closed"), "went away before it answered"),
        (break_off(grpc.StatusCode.UNAVAILABLE, details="status: 502"), "went away before it answered"),
        (
            break_off(grpc.StatusCode.INTERNAL, details="Internal error from Core"),
            "went away before it answered",
        ),
    ],
    ids=["stub dead", "server killed", "a balancer lost its server", "broken off while sending"],
)
def test_what_may_have_ended_its_server_is_not_sent_to_the_next_one(
    fake: FakeTriton, script: Script, said: str
) -> None:
    fake.scripts += [script, script]
    with Client(fake.url, retry=AT_ONCE) as client, pytest.raises(ServerUnreachable, match=said):
        client.query(b"picture", "what?")
    assert len(fake.asked) == 1


def test_a_server_that_is_killed_has_maybe_begun(fake: FakeTriton) -> None:
    """gRPC's own words for it, whichever its version has."""
    silence = Silence()
    fake.scripts.append(silence)
    with Client(fake.url, retry=AT_ONCE) as client, ThreadPoolExecutor(1) as pool:
        answer = pool.submit(client.query, None, "what?")
        assert silence.reached.wait(60)
        fake.stop()
        with pytest.raises(ServerUnreachable, match="went away before it answered"):
            answer.result(60)


def test_retries_have_an_end(fake: FakeTriton) -> None:
    fake.scripts += [refuse("UNAVAILABLE: the queue is full")] * 9
    with Client(fake.url, retry=AT_ONCE) as client, pytest.raises(Overloaded, match="the queue is full"):
        client.query(None, "what?")
    assert len(fake.asked) == 4


def test_retries_end_with_the_timeout(fake: FakeTriton) -> None:
    fake.scripts += [refuse("UNAVAILABLE: the queue is full")] * 9
    patient = Retry(limit=9, first_wait_s=60.0, max_wait_s=60.0)
    with Client(fake.url, retry=patient) as client, pytest.raises(Overloaded):
        client.query(None, "what?", timeout_s=5.0)
    assert len(fake.asked) == 1


def test_waits_double_up_to_a_limit() -> None:
    retry = Retry(first_wait_s=0.1, max_wait_s=0.5)
    for attempt, most in enumerate((0.1, 0.2, 0.4, 0.5, 0.5)):
        assert most / 2 <= retry.wait_s(attempt) <= most


def test_nothing_is_asked_again_once_the_answer_has_begun(fake: FakeTriton) -> None:
    fake.scripts.append(break_off(grpc.StatusCode.UNAVAILABLE, CHUNK))
    with Client(fake.url, retry=AT_ONCE) as client, client.query(None, "what?", stream=True) as stream:
        assert stream.next_chunk().text == "a red "
        with pytest.raises(ServerUnreachable, match="went away in the middle of the answer"):
            stream.next_chunk()
    assert len(fake.asked) == 1


def test_the_time_of_a_retry_is_what_is_left(fake: FakeTriton) -> None:
    fake.scripts.append(refuse("UNAVAILABLE: the queue is full"))
    with Client(fake.url, timeout_s=30.0, retry=AT_ONCE) as client:
        client.query(None, "what?")
    first, second = (asked.timeout_us for asked in fake.asked)
    assert 29_000_000 < second < first <= 30_000_000

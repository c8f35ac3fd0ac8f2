"""The synchronous client against a server that says what the test tells it to."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from client.fake_triton import (
    METRICS,
    Asked,
    FakeTriton,
    LateEnd,
    Response,
    Silence,
    break_off,
    refuse,
    say,
)
from free_ports import free_ports
from triton_server import until

from kestrel_client import (
    Box,
    Cancelled,
    Client,
    DeadlinePassed,
    EngineFailed,
    Grounding,
    Overloaded,
    Point,
    Reasoning,
    Retry,
    Segment,
    ServerUnreachable,
    exchange,
)
from kestrel_core.protocol.messages import Usage

AT_ONCE = Retry(limit=3, first_wait_s=0.001)
CHUNK = say({"chunk": "a red ", "completed": False, "token_index": 2})


def test_every_skill_gives_its_own_type(fake: FakeTriton) -> None:
    with Client(fake.url) as client:
        answer = client.query(b"picture", "what?", request_id="r1")
        assert (answer.text, answer.finish_reason, answer.request_id) == ("a red circle", "stop", "r1")
        assert answer.metrics == Usage(**METRICS)
        assert (answer.output["answer"], answer.reasoning) == ("a red circle", None)
        assert client.caption(b"picture").text == "a red circle"
        assert client.detect(b"picture", "circle").objects == (Box(0.1, 0.2, 0.3, 0.4),)
        assert client.point(b"picture", "circle").points == (Point(0.25, 0.5),)
        [segment] = client.segment(b"picture", "circle").segments
        assert segment == Segment("M 0 0 L 1 1 Z", Box(0, 0, 1, 1))


def test_reasoning_comes_with_its_points(fake: FakeTriton) -> None:
    thoughts = {"text": "I see it", "grounding": [{"start_idx": 2, "end_idx": 5, "points": [[0.1, 0.2]]}]}
    last = {"request_id": "1", "finish_reason": "stop", "answer": "yes", "reasoning": thoughts, "metrics": {}}
    fake.scripts.append(lambda asked, context: iter([say(last)]))
    with Client(fake.url) as client:
        answer = client.query(b"picture", "is it there?", reasoning=True)
    assert fake.asked[0].inputs["REASONING"] == [True]
    assert answer.reasoning == Reasoning("I see it", (Grounding(2, 5, (Point(0.1, 0.2),)),))
    assert answer.metrics == Usage(0, 0, 0, 0, 0, 0, 0)  # of an older server, which has fewer


def test_a_stream_gives_text_as_it_comes_and_then_the_whole(fake: FakeTriton) -> None:
    with Client(fake.url) as client, client.caption(b"picture", "short", stream=True) as stream:
        assert [chunk.text for chunk in stream] == ["a red ", "circle"]
        assert stream.result().text == "a red circle"
        assert stream.next_chunk() is None


def test_the_result_of_a_stream_needs_no_reading(fake: FakeTriton) -> None:
    with Client(fake.url) as client:
        assert client.query(None, "what?", stream=True).result().text == "a red circle"


def test_a_stream_is_read_to_its_end_before_its_last_text_is_shown(fake: FakeTriton) -> None:
    late = LateEnd()
    fake.scripts.append(late)
    with Client(fake.url) as client, ThreadPoolExecutor(1) as pool:
        stream = client.caption(b"picture", stream=True)
        assert stream.next_chunk().text == "a red "
        last = pool.submit(stream.next_chunk)
        with pytest.raises(TimeoutError):
            last.result(0.1)
        late.may_end.set()
        assert last.result(60).text == "circle"


@pytest.mark.parametrize("said", ["not json", "[]", '{"completed": false}', '{"answer": "but no more"}'])
def test_a_response_that_breaks_the_contract_is_an_error(fake: FakeTriton, said: str) -> None:
    fake.scripts.append(lambda asked, context: iter([say(said)]))
    with Client(fake.url) as client, pytest.raises(EngineFailed, match="not the contract's"):
        client.query(None, "what?")


def test_a_stream_that_ends_without_an_answer_is_an_error(fake: FakeTriton) -> None:
    fake.scripts.append(lambda asked, context: iter([CHUNK]))
    with Client(fake.url) as client, client.query(None, "what?", stream=True) as stream:
        assert stream.next_chunk().text == "a red "
        with pytest.raises(EngineFailed, match="without an answer"):
            stream.next_chunk()
        with pytest.raises(EngineFailed, match="without an answer"):
            stream.result()


def test_without_a_server_the_error_says_how_to_start_one() -> None:
    [port] = free_ports(1)
    url = f"127.0.0.1:{port}"
    with Client(url, retry=AT_ONCE) as client, pytest.raises(ServerUnreachable) as caught:
        client.query(None, "what?")
    assert f"no Triton server answers at {url}; start one with `kestrel serve --demo`" in str(caught.value)


def test_an_error_in_mid_stream_comes_behind_the_text(fake: FakeTriton) -> None:
    def script(asked: Asked, context: grpc.ServicerContext) -> Iterator[Response]:
        yield CHUNK
        yield from refuse("UNAVAILABLE: the server is shutting down")(asked, context)

    fake.scripts.append(script)
    with Client(fake.url, retry=AT_ONCE) as client, client.query(None, "what?", stream=True) as stream:
        assert stream.next_chunk().text == "a red "
        with pytest.raises(Overloaded, match="shutting down"):
            stream.next_chunk()
    assert len(fake.asked) == 1


def test_closing_a_stream_cancels_the_request(fake: FakeTriton) -> None:
    silence = Silence(CHUNK)
    fake.scripts.append(silence)
    with Client(fake.url) as client:
        with client.caption(b"picture", stream=True) as stream:
            assert stream.next_chunk().text == "a red "
            assert not silence.gone.is_set()
        assert silence.gone.wait(60)
        with pytest.raises(Cancelled, match="cancelled by its caller"):
            stream.result()
        assert client.query(None, "still there?").text == "a red circle"


def test_another_thread_can_cancel_a_stream_that_is_being_read(fake: FakeTriton) -> None:
    silence = Silence()
    fake.scripts.append(silence)
    with Client(fake.url) as client, ThreadPoolExecutor(1) as pool:
        stream = client.query(None, "what?", stream=True)
        reading = pool.submit(stream.result)
        assert silence.reached.wait(60)
        stream.cancel()
        with pytest.raises(Cancelled):
            reading.result(60)
        assert silence.gone.wait(60)


def test_closing_ends_the_wait_for_another_attempt(fake: FakeTriton) -> None:
    waiting = threading.Event()

    class Slow(Retry):
        def wait_s(self, attempt: int) -> float:
            waiting.set()
            return 600.0

    fake.scripts.append(refuse("UNAVAILABLE: the queue is full"))
    with Client(fake.url, retry=Slow(), timeout_s=None) as client, ThreadPoolExecutor(1) as pool:
        stream = client.query(None, "what?", stream=True)
        reading = pool.submit(stream.result)
        assert waiting.wait(60)
        stream.cancel()
        with pytest.raises(Cancelled):
            reading.result(60)


def test_cancelling_one_request_leaves_the_others_alone(fake: FakeTriton) -> None:
    silences = [Silence(CHUNK), Silence(CHUNK)]
    fake.scripts += silences
    with Client(fake.url) as client:
        streams = [client.query(None, "what?", stream=True) for _ in silences]
        assert [stream.next_chunk().text for stream in streams] == ["a red ", "a red "]
        streams[0].cancel()
        until(lambda: any(silence.gone.is_set() for silence in silences))
        [other] = (silence for silence in silences if not silence.gone.is_set())
        streams[1].cancel()
        assert other.gone.wait(60)


def test_the_timeout_is_told_to_the_server_in_microseconds(fake: FakeTriton) -> None:
    with Client(fake.url) as client:
        client.query(None, "what?", timeout_s=1000)
    assert 900_000_000 < fake.asked[0].timeout_us <= 1_000_000_000


def test_the_timeout_is_kept_here_too(fake: FakeTriton, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "GRACE_S", 0.05)
    silence = Silence()
    fake.scripts.append(silence)
    with Client(fake.url) as client, pytest.raises(Cancelled, match=r"gave no answer within 1 s"):
        client.query(None, "what?", timeout_s=1)
    assert silence.gone.wait(60)


def test_a_client_without_a_timeout_sets_none(fake: FakeTriton) -> None:
    with Client(fake.url, timeout_s=None) as client:
        client.query(None, "what?")
    assert fake.asked[0].timeout_us == 0


def test_closing_the_client_ends_its_requests(fake: FakeTriton) -> None:
    fake.scripts.append(Silence(CHUNK))
    client = Client(fake.url)
    stream = client.caption(b"picture", stream=True)
    assert stream.next_chunk().text == "a red "
    client.close()
    with pytest.raises(Cancelled):
        stream.next_chunk()


def test_a_closed_client_cancels_what_it_is_asked(fake: FakeTriton) -> None:
    client = Client(fake.url)
    client.close()
    with pytest.raises(Cancelled, match="the client was closed"):
        client.query(None, "what?")


def test_a_deadline_that_is_not_ours_is_told_too(fake: FakeTriton) -> None:
    fake.scripts.append(break_off(grpc.StatusCode.DEADLINE_EXCEEDED))
    with Client(fake.url, timeout_s=None) as client, pytest.raises(DeadlinePassed, match="no answer in time"):
        client.query(None, "what?")


def test_a_stream_that_failed_says_so_each_time_it_is_read(fake: FakeTriton) -> None:
    fake.scripts.append(refuse("INTERNAL: broken"))
    with Client(fake.url) as client, client.caption(b"picture", stream=True) as stream:
        for _ in range(2):
            with pytest.raises(EngineFailed, match="broken"):
                stream.next_chunk()


def test_a_channel_of_the_callers_own_is_used_and_left_open(fake: FakeTriton) -> None:
    with grpc.insecure_channel(fake.url) as channel:
        for _ in range(2):
            with Client(channel) as client:
                assert client.query(None, "what?").text == "a red circle"


def test_requests_are_dealt_to_all_replicas() -> None:
    fakes = [FakeTriton(), FakeTriton()]
    with Client("ipv4:" + ",".join(fake.url for fake in fakes)) as client:
        while not all(fake.asked for fake in fakes):  # the second connection may be up a little later
            assert sum(len(fake.asked) for fake in fakes) < 500, "one replica gets everything"
            client.query(None, "what?")
    for fake in fakes:
        fake.stop()


def test_an_answer_larger_than_grpc_would_take_by_default_comes_through(fake: FakeTriton) -> None:
    def script(asked: Asked, context: grpc.ServicerContext) -> Iterator[Response]:
        yield say({"request_id": "1", "finish_reason": "stop", "answer": "a" * 5_000_000, "metrics": {}})

    fake.scripts.append(script)
    with Client(fake.url) as client:
        assert len(client.query(None, "what?").text) == 5_000_000


def test_many_threads_may_share_a_client(fake: FakeTriton) -> None:
    with Client(fake.url) as client, ThreadPoolExecutor(8) as pool:
        ids = [str(number) for number in range(100)]
        answers = pool.map(lambda name: client.query(None, "what?", request_id=name), ids)
        assert [answer.request_id for answer in answers] == ids


def test_the_client_needs_neither_torch_nor_pictures_nor_tables() -> None:
    missing = ["torch", "PIL", "rich", "pyvips", "tokenizers", "safetensors", "huggingface_hub"]
    code = f"import sys; sys.modules.update(dict.fromkeys({missing})); import kestrel_client.command"
    subprocess.run(
        [sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path)}, timeout=60
    )

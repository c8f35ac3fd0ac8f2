"""The asynchronous client: what differs from the synchronous one, and that the rest does not."""

import asyncio
import gc
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import pytest
from client.fake_triton import FakeTriton, LateEnd, Silence, answer, break_off, refuse, say

from kestrel_client import (
    AsyncClient,
    Box,
    Cancelled,
    EngineFailed,
    InvalidRequest,
    Overloaded,
    Point,
    Retry,
    ServerUnreachable,
    UnsupportedSkill,
    async_client,
    exchange,
)

AT_ONCE = Retry(limit=3, first_wait_s=0.001)
CHUNK = say({"chunk": "a red ", "completed": False, "token_index": 2})


def run(fake: FakeTriton, body: Callable[[AsyncClient], Awaitable[None]], retry: Retry = AT_ONCE) -> None:
    async def main() -> None:
        async with AsyncClient(fake.url, retry=retry) as client:
            await asyncio.wait_for(body(client), 100)

    asyncio.run(main())


async def reach(silence: Silence, asking: asyncio.Task[Any]) -> None:
    """Until the server has the request; a request that ends before that says why."""
    arrived = asyncio.create_task(asyncio.to_thread(silence.reached.wait, 60))
    await asyncio.wait([arrived, asking], return_when=asyncio.FIRST_COMPLETED)
    if asking.done():
        silence.reached.set()  # so that no thread waits on
        pytest.fail(f"ended before the server had it: {asking}")
    assert await arrived


def test_every_skill_gives_its_own_type(fake: FakeTriton) -> None:
    async def body(client: AsyncClient) -> None:
        assert (await client.query(None, "what?")).text == "a red circle"
        assert (await client.caption(b"picture")).text == "a red circle"
        assert (await client.detect(b"picture", "circle")).objects == (Box(0.1, 0.2, 0.3, 0.4),)
        assert (await client.point(b"picture", "circle")).points == (Point(0.25, 0.5),)
        assert (await client.segment(b"picture", "circle")).segments[0].bbox == Box(0, 0, 1, 1)

    run(fake, body)


def test_a_stream_gives_text_as_it_comes_and_then_the_whole(fake: FakeTriton) -> None:
    async def body(client: AsyncClient) -> None:
        async with await client.caption(b"picture", stream=True) as stream:
            assert [chunk.text async for chunk in stream] == ["a red ", "circle"]
            assert (await stream.result()).text == "a red circle"
        assert (await (await client.query(None, "what?", stream=True)).result()).text == "a red circle"

    run(fake, body)


def test_an_answer_does_not_wait_for_the_end_of_its_stream_which_nobody_cuts_off(fake: FakeTriton) -> None:
    late = LateEnd()
    fake.scripts.append(late)

    async def body(client: AsyncClient) -> None:
        async with await client.caption(b"picture", stream=True) as stream:
            assert [chunk.text async for chunk in stream] == ["a red ", "circle"]
        stream.cancel()
        del stream
        gc.collect()
        closing = asyncio.ensure_future(client.close())
        done, _ = await asyncio.wait([closing], timeout=0.1)
        assert not done and late.was_left is None
        late.may_end.set()
        await closing
        assert late.was_left is False

    run(fake, body)


def test_a_stream_that_does_not_end_keeps_no_client_open(
    fake: FakeTriton, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(async_client, "END_S", 0.05)
    late = LateEnd()
    fake.scripts.append(late)

    async def body(client: AsyncClient) -> None:
        assert (await client.query(None, "what?")).text == "a red circle"
        await client.close()
        late.may_end.set()

    run(fake, body)


def test_a_hundred_requests_at_once_share_the_channel(fake: FakeTriton) -> None:
    async def body(client: AsyncClient) -> None:
        ids = [str(number) for number in range(100)]
        answers = await asyncio.gather(*(client.query(None, "what?", request_id=name) for name in ids))
        assert [answer.request_id for answer in answers] == ids

    run(fake, body)


def test_errors_have_their_types(fake: FakeTriton) -> None:
    fake.scripts += [
        refuse("INVALID_ARG: OBJECT is empty; say what is meant"),
        refuse("INVALID_ARG: unsupported_skill: segment is not supported by this model"),
        lambda asked, context: iter(()),
    ]

    async def body(client: AsyncClient) -> None:
        with pytest.raises(InvalidRequest, match="OBJECT is empty"):
            await client.detect(b"picture", " ")
        with pytest.raises(UnsupportedSkill):
            await client.segment(b"picture", "dog")
        with pytest.raises(EngineFailed, match="without an answer"):
            await client.query(None, "what?")

    run(fake, body)


def test_what_was_not_begun_is_tried_again(fake: FakeTriton) -> None:
    fake.scripts += [refuse("UNAVAILABLE: the queue is full"), refuse("'moondream' is not ready")]

    async def body(client: AsyncClient) -> None:
        assert (await client.query(None, "what?")).text == "a red circle"

    run(fake, body)
    assert len(fake.asked) == 3


def test_retries_have_an_end(fake: FakeTriton) -> None:
    fake.scripts += [refuse("UNAVAILABLE: the queue is full")] * 9

    async def body(client: AsyncClient) -> None:
        with pytest.raises(Overloaded, match="the queue is full"):
            await client.query(None, "what?")

    run(fake, body)
    assert len(fake.asked) == 4


def test_nothing_is_asked_again_once_the_answer_has_begun(fake: FakeTriton) -> None:
    fake.scripts.append(break_off(grpc.StatusCode.UNAVAILABLE, CHUNK))

    async def body(client: AsyncClient) -> None:
        stream = await client.query(None, "what?", stream=True)
        assert (await stream.next_chunk()).text == "a red "
        with pytest.raises(ServerUnreachable, match="went away in the middle"):
            await stream.next_chunk()

    run(fake, body)
    assert len(fake.asked) == 1


def test_without_a_server_the_error_says_how_to_start_one(fake: FakeTriton) -> None:
    fake.stop()

    async def body(client: AsyncClient) -> None:
        with pytest.raises(ServerUnreachable, match="start one with `kestrel serve --demo`"):
            await client.query(None, "what?")

    run(fake, body)


def test_closing_a_stream_cancels_the_request_and_no_other(fake: FakeTriton) -> None:
    silence = Silence(CHUNK)
    fake.scripts.append(silence)

    async def body(client: AsyncClient) -> None:
        async with await client.caption(b"picture", stream=True) as stream:
            assert (await stream.next_chunk()).text == "a red "
            assert (await client.query(None, "and this?")).text == "a red circle"
            assert not silence.gone.is_set()
        with pytest.raises(Cancelled, match="cancelled by its caller"):
            await stream.result()

    run(fake, body)
    assert silence.gone.wait(60)


def test_a_stream_closed_by_another_task_ends_with_cancelled(fake: FakeTriton) -> None:
    silence = Silence(CHUNK)
    fake.scripts.append(silence)

    async def body(client: AsyncClient) -> None:
        stream = await client.caption(b"picture", stream=True)
        assert (await stream.next_chunk()).text == "a red "
        reading = asyncio.create_task(stream.result())
        await asyncio.sleep(0)  # it reads now
        stream.cancel()
        with pytest.raises(Cancelled):
            await reading

    run(fake, body)
    assert silence.gone.wait(60)


def test_a_new_connection_leaves_those_under_way_on_the_old_one_until_the_client_is_closed(
    fake: FakeTriton,
) -> None:
    peers, may_answer = list[str](), threading.Event()

    def slow(asked: Any, context: grpc.ServicerContext) -> Any:
        peers.append(context.peer())
        assert may_answer.wait(60)
        yield from answer(asked, context)

    def noted(asked: Any, context: grpc.ServicerContext) -> Any:
        peers.append(context.peer())
        yield from answer(asked, context)

    silence = Silence(CHUNK)
    fake.scripts += [slow, silence, noted]

    async def body(client: AsyncClient) -> None:
        before = asyncio.create_task(client.query(None, "before"))
        while not peers:
            await asyncio.sleep(0.01)
        stream = await client.caption(b"picture", stream=True)
        assert (await stream.next_chunk()).text == "a red "
        client.reconnect()
        assert (await client.query(None, "behind")).text == "a red circle"
        may_answer.set()
        assert (await before).text == "a red circle" and len(set(peers)) == 2
        assert not silence.gone.is_set()

    run(fake, body)
    assert silence.gone.wait(60)


def test_cancelling_the_task_cancels_the_request(fake: FakeTriton) -> None:
    silence = Silence()
    fake.scripts.append(silence)

    async def body(client: AsyncClient) -> None:
        asking = asyncio.create_task(client.query(None, "what?"))
        await reach(silence, asking)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert await asyncio.to_thread(silence.gone.wait, 60)

    run(fake, body)


def test_closing_the_client_ends_its_requests_but_not_the_tasks(fake: FakeTriton) -> None:
    silence = Silence()
    fake.scripts.append(silence)

    async def body(client: AsyncClient) -> None:
        asking = asyncio.create_task(client.query(None, "what?"))
        await reach(silence, asking)
        await client.close()
        with pytest.raises(Cancelled):
            await asking

    run(fake, body)


def test_closing_ends_the_wait_for_another_attempt(fake: FakeTriton) -> None:
    waiting = asyncio.Event()

    class Slow(Retry):
        def wait_s(self, attempt: int) -> float:
            waiting.set()
            return 60.0

    fake.scripts.append(refuse("UNAVAILABLE: the queue is full"))

    async def body(client: AsyncClient) -> None:
        stream = await client.query(None, "what?", stream=True)
        reading = asyncio.create_task(stream.result())
        await waiting.wait()
        stream.cancel()
        with pytest.raises(Cancelled):
            await reading

    run(fake, body, Slow())


def test_the_timeout_is_told_to_the_server_in_microseconds(fake: FakeTriton) -> None:
    async def body(client: AsyncClient) -> None:
        await client.query(None, "what?", timeout_s=1000)

    run(fake, body)
    assert 900_000_000 < fake.asked[0].timeout_us <= 1_000_000_000


def test_the_timeout_is_kept_here_too(fake: FakeTriton, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "GRACE_S", 0.05)
    silence = Silence()
    fake.scripts.append(silence)

    async def body(client: AsyncClient) -> None:
        with pytest.raises(Cancelled, match=r"gave no answer within 1 s"):
            await client.query(None, "what?", timeout_s=1)

    run(fake, body)
    assert silence.gone.wait(60)


def test_a_channel_of_the_callers_own_is_used_and_left_open(fake: FakeTriton) -> None:
    async def main() -> None:
        async with grpc.aio.insecure_channel(fake.url) as channel:
            for _ in range(2):
                async with AsyncClient(channel) as client:
                    assert (await client.query(None, "what?")).text == "a red circle"

    asyncio.run(main())


def test_files_and_images_are_made_ready_beside_the_event_loop(
    fake: FakeTriton, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[bool] = []

    def encoded(image: Any) -> bytes:
        threads.append(threading.current_thread() is threading.main_thread())
        return b"picture"

    monkeypatch.setattr("kestrel_client.sending.encoded", encoded)

    async def body(client: AsyncClient) -> None:
        await client.caption("photo.jpg")

    run(fake, body)
    assert threads == [False]


def test_breaking_out_of_a_stream_cancels_the_request(fake: FakeTriton) -> None:
    silence = Silence(say({"chunk": "a red ", "completed": False, "token_index": 2}))
    fake.scripts.append(silence)

    async def body(client: AsyncClient) -> None:
        async for _ in await client.caption(b"picture", stream=True):
            break
        assert await asyncio.to_thread(silence.gone.wait, 60)

    run(fake, body)


def test_a_closed_client_cancels_what_it_is_asked(fake: FakeTriton) -> None:
    async def body(client: AsyncClient) -> None:
        await client.close()
        with pytest.raises(Cancelled, match="the client was closed"):
            await client.query(None, "what?")

    run(fake, body)

"""A guard that ends sends its gRPC clients on to the next one, and finishes what it has."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor

import grpc  # type: ignore[import-untyped]
from gateway_server import Script
from guard import guarding, query, text
from tritonclient.grpc import service_pb2_grpc

from kestrel_client.exchange import CROSSED
from kestrel_core.protocol.messages import Chunk, Request

SPREAD = [("grpc.service_config", '{"loadBalancingConfig": [{"round_robin": {}}]}')]


def held(until: threading.Event) -> Script:
    """Nothing, until the test lets it end."""

    async def script(request: Request) -> AsyncIterator[Chunk]:
        await asyncio.to_thread(until.wait, 60)
        if request.stream:
            yield Chunk("late", 1)

    return script


def test_clients_of_two_guards_lose_nothing_when_one_ends_that_has_work_to_finish() -> None:
    may_end = threading.Event()
    with guarding(drain_s=1.0) as ending, guarding() as other, ThreadPoolExecutor(1) as pool:
        ending.gateway.upstream.scripts.append(held(may_end))
        late = pool.submit(ending.stream, query())
        while not ending.gateway.upstream.asked:
            time.sleep(0.001)
        with grpc.insecure_channel(f"ipv4:{ending.url},{other.url}", SPREAD) as channel:
            stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
            drain = ending.gateway.house.drain
            answered = crossed = 0
            while not drain.is_closed or answered < 500:  # so long that a refusal would show
                try:
                    [response] = stub.ModelStreamInfer(iter([query()]), timeout=60)
                except grpc.RpcError as error:
                    assert (error.code(), error.details()) == (grpc.StatusCode.CANCELLED, CROSSED)
                    crossed += 1
                    continue
                assert not response.error_message and text(response)["answer"]
                answered += 1
                if answered == 50:
                    drain.begin()
        assert crossed <= 1, "only what meets the word to go on its way, and the client asks that again"
        asked = len(ending.gateway.upstream.asked) + len(other.gateway.upstream.asked)
        assert asked == 1 + answered, "it was not begun"
        assert len(ending.gateway.upstream.asked) > 25 and len(other.gateway.upstream.asked) > 25
        may_end.set()
        [response] = late.result(60)
        assert not response.error_message, "what was under way is answered"

"""The guard speaks KServe v2 in Triton's place: what crashes Triton is refused, and its clients go on."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import grpc
import numpy as np
import pytest
import tritonclient.grpc.aio as grpcclient
from attacks.stack import Stack
from triton_server import until

from kestrel_tools.bench.attacks.doors import (
    STREAM_INFER,
    Target,
    call_grpc,
    grpc_channel,
    metadata,
    send_http,
)
from kestrel_tools.bench.attacks.requests import (
    ATTACKS,
    GENERATE,
    Attack,
    error_header,
    infer_request,
    overflowing_shape,
    tensor,
)

pytestmark = pytest.mark.triton

LARGE = ("64 MB", "300 MB", "a million")
TIMES = 2
MAX_GROWTH = 200 * 2**20  # after requests of 64 and of 300 MB


def cases(wanted: bool) -> list[object]:
    return [
        pytest.param(attack, id=attack.name)
        for attack in ATTACKS
        if attack.needs_grpc and wanted is any(words in attack.name for words in LARGE)
    ]


async def at_once(attack: Attack, target: Target) -> set[str]:
    return set(await asyncio.gather(*(attack(target) for _ in range(TIMES))))


@pytest.mark.parametrize("attack", cases(False))
def test_what_harms_triton_is_refused_before_it(shared: Stack, attack: Attack) -> None:
    before = shared.processes()
    with shared.undisturbed():
        assert asyncio.run(at_once(attack, shared.attacker)) <= attack.right
    assert shared.processes() == before


@pytest.mark.attacks
@pytest.mark.parametrize("attack", cases(True))
def test_what_is_large_is_refused_before_it(shared: Stack, attack: Attack) -> None:
    before, size = shared.processes(), shared.memory()
    with shared.undisturbed():
        assert asyncio.run(at_once(attack, shared.attacker)) <= attack.right
    assert shared.processes() == before
    until(lambda: shared.memory() - size < MAX_GROWTH, 30)


def test_twenty_crashing_requests_crash_nothing(shared: Stack) -> None:
    """Six of them once ended the service for good."""
    before = shared.processes()

    async def all_of_them() -> set[str]:
        sent = (overflowing_shape(shared.attacker, (2**31, 2**31)) for _ in range(20))
        return set(await asyncio.gather(*sent))

    assert asyncio.run(all_of_them()) == {"refused"}
    assert shared.processes() == before


def test_errors_on_many_streams_with_triton_s_header_harm_nobody(shared: Stack) -> None:
    """Triton itself dies at the fifth or sixth."""
    before = shared.processes()

    async def one_after_another() -> set[str]:
        return {await error_header(shared.attacker) for _ in range(12)}

    assert asyncio.run(one_after_another()) == {"refused"}
    assert shared.processes() == before


def generate(shared: Stack, fields: dict[str, Any], path: str = GENERATE) -> tuple[int, Any]:
    kserve = replace(shared.attacker, port=shared.served.http_port)
    reply = asyncio.run(send_http(kserve, path, json.dumps(fields).encode()))
    return reply.status, reply.document if reply.body.startswith(b"{") else reply.body


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"MAX_TOKENS": 2**32 + 5}, "MAX_TOKENS"),
        ({"MAX_TOKENS": -(2**63)}, "MAX_TOKENS"),
        ({"PRIORITY": -(2**31)}, "PRIORITY"),
        ({"timeout": -1}, "timeout"),
        ({"STREAM": True}, "generate_stream"),
        ({"QUESTION": "x" * 70_000}, "QUESTION"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_over_http_a_request_that_cannot_be_is_refused_by_name(
    shared: Stack, fields: dict[str, Any], named: str
) -> None:
    status, answer = generate(shared, {"SKILL": "query", "QUESTION": "Why?"} | fields)
    assert 400 <= status < 500
    assert named in answer["error"] and len(answer["error"]) < 400


def test_a_deadline_before_now_is_refused_over_grpc_too(shared: Stack) -> None:
    request = infer_request()
    request.parameters["timeout"].int64_param = -1
    assert asyncio.run(call_grpc(shared.attacker, request.SerializeToString())) == "refused"


async def asked_by_tritonclient(shared: Stack) -> dict[str, Any]:
    """Unchanged code, but for the key."""

    async def requests() -> Any:
        inputs = []
        for name, text in (("SKILL", b"query"), ("QUESTION", b"What can you do?")):
            inputs.append(grpcclient.InferInput(name, [1], "BYTES"))
            inputs[-1].set_data_from_numpy(np.array([text], dtype=np.object_))
        yield {"model_name": "moondream", "inputs": inputs}

    headers = dict(metadata(shared.attacker))
    async with grpcclient.InferenceServerClient(shared.attacker.grpc) as client:
        async for result, error in client.stream_infer(requests(), headers=headers):
            assert error is None, error
            document: dict[str, Any] = json.loads(result.as_numpy("TEXT_OUTPUT")[0])
            return document
    raise AssertionError("no answer")


def test_clients_of_triton_keep_their_code(shared: Stack) -> None:
    status, answer = generate(shared, {"SKILL": "query", "QUESTION": "What can you do?", "TEMPERATURE": 0})
    assert status == 200 and json.loads(answer["TEXT_OUTPUT"])["answer"]
    assert asyncio.run(asked_by_tritonclient(shared))["answer"]


@pytest.mark.attacks
def test_whoever_cancels_leaves_nothing_behind(shared: Stack) -> None:
    """Streams that are cancelled before, while and after they are answered."""
    before = shared.footprint()
    request = infer_request(QUESTION=b"Tell me everything.")
    tensor(request, "MAX_TOKENS", "INT32", [1], np.int32(700).tobytes())
    tensor(request, "STREAM", "BOOL", [1], b"\1")
    message = request.SerializeToString()

    async def cancel_after(channel: Any, seconds: float) -> None:
        begin = channel.stream_stream(STREAM_INFER, request_serializer=None, response_deserializer=None)
        call = begin(iter([message]), metadata=metadata(shared.attacker))
        await asyncio.sleep(seconds)
        call.cancel()
        assert await call.code() in (grpc.StatusCode.CANCELLED, grpc.StatusCode.OK)

    async def cancel_many() -> None:
        async with grpc_channel(shared.attacker) as channel:
            await asyncio.gather(*(cancel_after(channel, 0.01 * turn) for turn in range(40)))

    asyncio.run(cancel_many())
    shared.await_idle(before, slack=4)

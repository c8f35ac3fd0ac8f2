"""The calls of KServe v2 over gRPC, answered as Triton answers them.

One stream may carry many requests; their responses interleave, each with the id of its request. An error is
a response too, and the stream goes on. Whoever cancels the call, or goes, cancels all that was asked on it.
"""

import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any
from urllib.parse import unquote

import grpc  # type: ignore[import-untyped]
from google.protobuf.json_format import ParseDict
from starlette.datastructures import Headers
from tritonclient.grpc import service_pb2

from kestrel_core.protocol.errors import KestrelError
from kestrel_gateway.house import ALIAS
from kestrel_gateway.kserve.answering import Answering, Reply
from kestrel_gateway.kserve.description import (
    OUTPUT,
    VERSION,
    check_model,
    model_config,
    model_metadata,
    server_metadata,
)
from kestrel_gateway.kserve.open_calls import OpenCalls
from kestrel_gateway.kserve.refusals import grpc_status, wire_text
from kestrel_gateway.kserve.stream_call import StreamCall
from kestrel_gateway.records.visits import address_of

SERVICE = service_pb2.DESCRIPTOR.services_by_name["GRPCInferenceService"]
HEALTH = ("ServerLive", "ServerReady", "ModelReady")  # which balancers ask, who have no key
FINAL = "triton_final_response"
CLOSED = "is closed here: repository, shared memory, tracing, logging and statistics are not served"
Context = Any  # grpc.aio's context of a call has no types


class Calls:
    def __init__(self, answering: Answering) -> None:
        self._answering = answering
        self._house = answering.house
        self._open = OpenCalls(answering.house.options)

    def handlers(self) -> grpc.GenericRpcHandler:
        """For every call of the service; those that are not served say so."""
        plain = {
            "ServerLive": (service_pb2.ServerLiveRequest, self.server_live),
            "ServerReady": (service_pb2.ServerReadyRequest, self.server_ready),
            "ServerMetadata": (service_pb2.ServerMetadataRequest, self.server_metadata),
            "ModelReady": (service_pb2.ModelReadyRequest, self.model_ready),
            "ModelMetadata": (service_pb2.ModelMetadataRequest, self.model_metadata),
            "ModelConfig": (service_pb2.ModelConfigRequest, self.model_config),
        }
        made = {
            it.name: grpc.stream_stream_rpc_method_handler(self._refuse(it.name)) for it in SERVICE.methods
        }
        for name, (kind, answer) in plain.items():
            made[name] = grpc.unary_unary_rpc_method_handler(
                self._guarded(name, answer), kind.FromString, lambda message: message.SerializeToString()
            )
        # On the wire a stream of one request is the same, and can be refused before it is read.
        made["ModelInfer"] = grpc.stream_unary_rpc_method_handler(self.infer)
        made["ModelStreamInfer"] = grpc.stream_stream_rpc_method_handler(self.stream_infer)
        return grpc.method_handlers_generic_handler(SERVICE.full_name, made)

    # What there is

    def server_live(self, request: Any) -> Any:
        return service_pb2.ServerLiveResponse(live=True)

    def server_ready(self, request: Any) -> Any:
        return service_pb2.ServerReadyResponse(ready=self._house.is_ready)

    def server_metadata(self, request: Any) -> Any:
        return ParseDict(server_metadata(), service_pb2.ServerMetadataResponse())

    def model_ready(self, request: Any) -> Any:
        is_known = request.name == ALIAS and request.version in ("", VERSION)
        return service_pb2.ModelReadyResponse(ready=is_known and self._house.is_ready)

    def model_metadata(self, request: Any) -> Any:
        check_model(request.name, request.version)
        return ParseDict(model_metadata(), service_pb2.ModelMetadataResponse())

    def model_config(self, request: Any) -> Any:
        check_model(request.name, request.version)
        return ParseDict({"config": model_config()}, service_pb2.ModelConfigResponse())

    def _guarded(self, name: str, answer: Callable[[Any], Any]) -> Callable[..., Awaitable[Any]]:
        async def call(request: Any, context: Context) -> Any:
            try:
                if name in HEALTH:
                    return answer(request)
                address = address_of(host_of(context))
                with self._house.keys.admission(path_of(name), headers_of(context), address):
                    return answer(request)
            except KestrelError as error:
                await refuse(context, error)

        return call

    def _refuse(self, name: str) -> Callable[..., Awaitable[None]]:
        async def call(requests: object, context: Context) -> None:
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, f"{name} {CLOSED}")

        return call

    # Answers

    async def infer(self, requests: AsyncIterator[bytes], context: Context) -> bytes:
        path, headers = path_of("ModelInfer"), headers_of(context)
        reply = WholeReply()
        try:
            async with self._place(path, headers, context):
                data = await anext(requests, b"")
                await self._answering.answer(
                    data, path, headers, host_of(context), context.time_remaining(), reply
                )
        except KestrelError as error:
            await refuse(context, error)
        return await reply.given(context)

    async def stream_infer(self, requests: object, context: Context) -> None:
        path, headers = path_of("ModelStreamInfer"), headers_of(context)
        call = StreamCall(context, self._house.options)

        async def answer(data: bytes) -> None:
            reply = StreamReply(call.write)
            await self._answering.answer(
                data, path, headers, host_of(context), context.time_remaining(), reply
            )

        try:
            async with self._place(path, headers, context):
                await call.answer_all(answer)
        except* KestrelError as group:
            error = group.exceptions[0]
            assert isinstance(error, KestrelError)
            await refuse(context, error)

    def _place(self, path: str, headers: Headers, context: Context) -> AbstractAsyncContextManager[None]:
        """Lets a call in. Whose key is not known is refused before anything that was sent is read."""
        name = self._house.keys.check(path, headers)
        return self._open.place(name or address_of(host_of(context)), context)


class StreamReply(Reply):
    def __init__(self, write: Callable[[bytes], Awaitable[None]]) -> None:
        self._write = write

    async def response(self, text: str, id: str, is_last: bool) -> None:
        message = service_pb2.ModelStreamInferResponse()
        fill(message.infer_response, text, id, is_last)
        await self._write(message.SerializeToString())

    async def failure(self, error: KestrelError, id: str) -> None:
        message = service_pb2.ModelStreamInferResponse(error_message=wire_text(error))
        message.infer_response.model_name, message.infer_response.id = ALIAS, id
        message.infer_response.parameters[FINAL].bool_param = True
        await self._write(message.SerializeToString())


class WholeReply(Reply):
    """Of a call that has one response, or a status that says why there is none."""

    streams = False

    def __init__(self) -> None:
        self._data = b""
        self._error: KestrelError | None = None

    async def response(self, text: str, id: str, is_last: bool) -> None:
        message = service_pb2.ModelInferResponse()
        fill(message, text, id, is_last)
        self._data = message.SerializeToString()

    async def failure(self, error: KestrelError, id: str) -> None:
        self._error = error

    async def given(self, context: Context) -> bytes:
        if self._error is not None:
            await refuse(context, self._error)
        return self._data


def fill(message: service_pb2.ModelInferResponse, text: str, id: str, is_last: bool) -> None:
    data = text.encode()
    message.model_name, message.model_version, message.id = ALIAS, VERSION, id
    message.parameters[FINAL].bool_param = is_last
    message.outputs.add(name=OUTPUT, datatype="BYTES", shape=[1])
    message.raw_output_contents.append(struct.pack("<I", len(data)) + data)


def path_of(name: str) -> str:
    return f"/{SERVICE.full_name}/{name}"


def headers_of(context: Context) -> Headers:
    given = context.invocation_metadata() or ()
    raw = [
        (name.encode(), it if isinstance(it, bytes) else it.encode("latin-1", "replace"))
        for name, it in given
    ]
    return Headers(raw=raw)


def host_of(context: Context) -> str:
    """The address that a call comes from: gRPC has `ipv4:HOST:PORT`, and `ipv6:[HOST]:PORT` quoted."""
    _, _, place = unquote(context.peer()).partition(":")
    return place.rpartition(":")[0].strip("[]")


async def refuse(context: Context, error: KestrelError) -> None:
    await context.abort(grpc_status(error), wire_text(error))

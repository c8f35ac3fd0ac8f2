"""A gRPC server on loopback that speaks Triton's protocol and says what a test tells it to."""

import json
import struct
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from tritonclient.grpc import service_pb2, service_pb2_grpc

METRICS = {
    "input_tokens": 740,
    "output_tokens": 3,
    "cached_tokens": 730,
    "queue_time_ms": 0.5,
    "prefill_time_ms": 12.5,
    "decode_time_ms": 45.2,
    "ttft_ms": 15.0,
}
OUTPUTS: dict[str, dict[str, Any]] = {
    "query": {"answer": "a red circle"},
    "caption": {"caption": "a red circle"},
    "detect": {"objects": [{"x_min": 0.1, "y_min": 0.2, "x_max": 0.3, "y_max": 0.4}]},
    "point": {"points": [{"x": 0.25, "y": 0.5}]},
    "segment": {
        "segments": [
            {"svg_path": "M 0 0 L 1 1 Z", "bbox": {"x_min": 0.0, "y_min": 0.0, "x_max": 1.0, "y_max": 1.0}}
        ]
    },
}
Response = service_pb2.ModelStreamInferResponse
Script = Callable[["Asked", grpc.ServicerContext], Iterator[Response]]


class Asked:
    """A request as a server reads it: tensors by name, strings still bytes."""

    def __init__(self, request: service_pb2.ModelInferRequest) -> None:
        self.id = request.id
        self.model = request.model_name
        self.timeout_us = request.parameters["timeout"].int64_param if "timeout" in request.parameters else 0
        self.spatial_refs = request.parameters["spatial_refs"].string_param
        self.inputs = {
            tensor.name: _unpack(tensor, content)
            for tensor, content in zip(request.inputs, request.raw_input_contents, strict=True)
        }
        self.datatypes = {tensor.name: tensor.datatype for tensor in request.inputs}
        self.shapes = {tensor.name: list(tensor.shape) for tensor in request.inputs}
        self.skill = self.inputs["SKILL"][0].decode()
        self.stream = self.inputs.get("STREAM") == [True]


class FakeTriton(service_pb2_grpc.GRPCInferenceServiceServicer):  # type: ignore[misc]
    """Each stream takes the next of `scripts`; when there are none left, requests are answered well."""

    def __init__(self, port: int = 0) -> None:
        self.scripts: list[Script] = []
        self.asked: list[Asked] = []
        self.headers: list[dict[str, str]] = []  # of each stream
        self._server = grpc.server(ThreadPoolExecutor(16), options=[("grpc.so_reuseport", 0)])
        service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(self, self._server)
        self.port = self._server.add_insecure_port(f"127.0.0.1:{port}")
        self.url = f"127.0.0.1:{self.port}"
        self._server.start()

    def ModelStreamInfer(self, requests: Iterator[Any], context: grpc.ServicerContext) -> Iterator[Response]:
        self.headers.append(dict(context.invocation_metadata()))
        for request in requests:
            asked = Asked(request)
            self.asked.append(asked)
            script = self.scripts.pop(0) if self.scripts else answer
            yield from script(asked, context)

    def stop(self) -> None:
        self._server.stop(grace=None).wait()


def answer(asked: Asked, context: grpc.ServicerContext) -> Iterator[Response]:
    if asked.stream:
        yield say({"chunk": "a red ", "completed": False, "token_index": 2})
        yield say({**result(asked), "chunk": "circle", "completed": True})
    else:
        yield say(result(asked))


def result(asked: Asked) -> dict[str, Any]:
    return {
        "request_id": asked.id or "1",
        "finish_reason": "stop",
        **OUTPUTS[asked.skill],
        "metrics": METRICS,
    }


def say(document: Any) -> Response:
    """One response with a JSON document, or with the very text given."""
    text = (document if isinstance(document, str) else json.dumps(document)).encode()
    response = Response()
    response.infer_response.outputs.add(name="TEXT_OUTPUT", datatype="BYTES", shape=[1])
    response.infer_response.raw_output_contents.append(struct.pack("<I", len(text)) + text)
    return response


def refuse(message: str) -> Script:
    def script(asked: Asked, context: grpc.ServicerContext) -> Iterator[Response]:
        yield Response(error_message=message)

    return script


def break_off(status: grpc.StatusCode, *before: Response, details: str = "broken off") -> Script:
    def script(asked: Asked, context: grpc.ServicerContext) -> Iterator[Response]:
        yield from before
        context.abort(status, details)

    return script


class Silence:
    """A script that says some responses and then nothing, until the client is gone; `gone` tells."""

    def __init__(self, *before: Response) -> None:
        self.before = before
        self.reached = threading.Event()
        self.gone = threading.Event()

    def __call__(self, asked: Asked, context: grpc.ServicerContext) -> Iterator[Response]:
        context.add_callback(self.gone.set)
        yield from self.before
        self.reached.set()
        assert self.gone.wait(60)


class LateEnd:
    """Answers well, but the stream stays open behind the last response until the test lets it end."""

    def __init__(self) -> None:
        self.may_end = threading.Event()
        self.was_left: bool | None = None  # before it could end; None, as long as it has not

    def __call__(self, asked: Asked, context: grpc.ServicerContext) -> Iterator[Response]:
        yield from answer(asked, context)
        assert self.may_end.wait(60)
        self.was_left = not context.is_active()


def _unpack(tensor: Any, content: bytes) -> list[Any]:
    formats = {"FP32": "<f", "INT32": "<i", "INT64": "<q", "BOOL": "<?"}
    if tensor.datatype in formats:
        return [value for (value,) in struct.iter_unpack(formats[tensor.datatype], content)]
    values = []
    while content:
        (size,) = struct.unpack_from("<I", content)
        values.append(content[4 : 4 + size])
        content = content[4 + size :]
    return values

"""The guard in this process, over a scripted upstream, and requests to it as Triton's clients make them."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import grpc  # type: ignore[import-untyped]
from free_ports import free_ports
from gateway_server import Running, running
from tritonclient.grpc import service_pb2_grpc

from kestrel_client.tensors import to_message
from kestrel_core.protocol.asking import make_request

UNLIMITED = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]


@dataclass
class Guard:
    gateway: Running
    url: str
    stub: service_pb2_grpc.GRPCInferenceServiceStub

    def stream(self, *messages: Any, **more: Any) -> list[Any]:
        """All responses on one stream."""
        return list(self.stub.ModelStreamInfer(iter(messages), timeout=60, **more))

    def refused(self, message: Any, **more: Any) -> str:
        """The error of a request that nobody behind the guard has seen."""
        asked = len(self.gateway.upstream.asked)
        [response] = self.stream(message, **more)
        assert response.infer_response.parameters["triton_final_response"].bool_param
        assert len(self.gateway.upstream.asked) == asked
        return str(response.error_message)


def query(id: str = "a", stream: bool = False, **options: Any) -> Any:
    message = to_message(
        make_request("query", options.pop("image", None), {"question": "What?"} | options, stream=stream)
    )
    message.id = id
    return message


def text(response: Any) -> dict[str, Any]:
    """The document in a response."""
    message = getattr(response, "infer_response", response)
    [output], [content] = message.outputs, message.raw_output_contents
    assert (output.name, output.datatype, list(output.shape)) == ("TEXT_OUTPUT", "BYTES", [1])
    assert int.from_bytes(content[:4], "little") == len(content) - 4
    return dict(json.loads(content[4:]))


@contextmanager
def guarding(**options: Any) -> Iterator[Guard]:
    [port] = free_ports(1)
    url = f"127.0.0.1:{port}"
    with (
        running(kserve_grpc_port=port, **options) as gateway,
        grpc.insecure_channel(url, UNLIMITED) as channel,
    ):
        grpc.channel_ready_future(channel).result(60)
        yield Guard(gateway, url, service_pb2_grpc.GRPCInferenceServiceStub(channel))

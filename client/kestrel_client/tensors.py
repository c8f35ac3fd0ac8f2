"""Requests and responses as Triton's gRPC messages. `protocol.wire` says what they mean."""

import struct
from typing import Any

from tritonclient.grpc import service_pb2

from kestrel_core.protocol import wire
from kestrel_core.protocol.errors import InvalidRequest
from kestrel_core.protocol.fields import BY_NAME
from kestrel_core.protocol.messages import Chunk, Finished, Request
from kestrel_core.protocol.names import shown

MODEL = "moondream"
FORMATS = {"FP32": "<f", "INT32": "<i", "INT64": "<q", "BOOL": "<?"}


def to_message(request: Request) -> service_pb2.ModelInferRequest:
    """The request's image has to be bytes by now."""
    tensors, parameters = wire.encode_request(request)
    message = service_pb2.ModelInferRequest(model_name=MODEL, id=request.request_id)
    for name, values in tensors.items():
        datatype = BY_NAME[name].type.replace("STRING", "BYTES")
        message.inputs.add(name=name, datatype=datatype, shape=[len(values)])
        message.raw_input_contents.append(b"".join(_packed(name, datatype, value) for value in values))
    for name, text in parameters.items():
        message.parameters[name].string_param = text
    return message


def from_message(response: service_pb2.ModelInferResponse) -> Chunk | Finished | None:
    """None where it holds nothing but the final flag. Raises as `wire.decode_response` does."""
    for output, content in zip(response.outputs, response.raw_output_contents, strict=True):
        if output.name == "TEXT_OUTPUT":
            return wire.decode_response(content[4:])  # behind its length, as Triton packs strings
    return None


def _packed(name: str, datatype: str, value: Any) -> bytes:
    if datatype != "BYTES":
        try:
            return struct.pack(FORMATS[datatype], value)
        except struct.error as error:
            raise InvalidRequest(
                f"{name} is {shown(repr(value))}; it does not fit {datatype} ({error})"
            ) from None
    if not isinstance(value, str | bytes):
        raise InvalidRequest(f"{name} is a {type(value).__name__}; it must be a string")
    try:
        data = value.encode() if isinstance(value, str) else value
    except UnicodeEncodeError:
        raise InvalidRequest(f"{name} is not UTF-8 text") from None
    return struct.pack("<I", len(data)) + data

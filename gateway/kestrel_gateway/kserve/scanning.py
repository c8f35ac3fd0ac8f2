"""Looks at a gRPC message's bytes before it is parsed: how many parts it would be made of.

An empty part takes two bytes on the wire and some ninety in memory, so that a message within the limit of
bytes could still become gigabytes, all in one call that nobody can interrupt. What the parts are is known
from the descriptor; strings and bytes count as one, whatever their length.
"""

from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError
from tritonclient.grpc import service_pb2

from kestrel_core.protocol.errors import InvalidRequest, TooLarge

MAX_PARTS = 2000
SMALL_BYTES = 2**15  # a message of so many cannot become large
PACKED_BYTES = 16  # of packed numbers that count as one part
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
NO_MESSAGE = "the message is no ModelInferRequest"

# By a field's number: the table of the message that it holds, or None where it holds packed numbers.
Table = dict[int, Any]


def parse(data: bytes) -> service_pb2.ModelInferRequest:
    if len(data) > SMALL_BYTES:
        scan(data)
    try:
        return service_pb2.ModelInferRequest.FromString(data)
    except DecodeError:
        raise InvalidRequest(NO_MESSAGE) from None


def scan(data: bytes) -> None:
    """Raises if the message has too many parts, or is none."""
    try:
        _count(data, 0, len(data), INFER_REQUEST, MAX_PARTS)
    except IndexError:
        raise InvalidRequest(NO_MESSAGE) from None


def _count(data: bytes, at: int, end: int, table: Table, left: int) -> int:
    """How many parts may still come. An IndexError is a part that would end behind the message."""
    while at < end:
        key, at = _varint(data, at)
        kind, number = key & 7, key >> 3
        left -= 1
        if kind == BYTES:
            size, at = _varint(data, at)
            if at + size > end:
                raise IndexError
            if number in table:
                inner = table[number]
                if inner is None:
                    left -= size // PACKED_BYTES
                else:
                    left = _count(data, at, at + size, inner, left)
            at += size
        elif kind == VARINT:
            _, at = _varint(data, at)
        elif kind in (FIXED32, FIXED64):
            at += 4 if kind == FIXED32 else 8
        else:
            raise InvalidRequest(NO_MESSAGE)
        if left < 0:
            raise TooLarge(f"the message has more than {MAX_PARTS:,} parts, which is the limit; send less")
    if at != end:
        raise IndexError
    return left


def _varint(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    if byte < 0x80:
        return byte, at + 1
    value, shift = byte & 0x7F, 7
    while byte >= 0x80:
        if shift > 63:
            raise IndexError
        at += 1
        byte = data[at]
        value |= (byte & 0x7F) << shift
        shift += 7
    return value, at + 1


def _table(descriptor: Descriptor) -> Table:
    table: Table = {}
    for field in descriptor.fields:
        if field.message_type is not None:
            table[field.number] = _table(field.message_type)
        elif field.is_repeated and field.type not in (
            FieldDescriptor.TYPE_STRING,
            FieldDescriptor.TYPE_BYTES,
        ):
            table[field.number] = None
    return table


INFER_REQUEST = _table(service_pb2.ModelInferRequest.DESCRIPTOR)

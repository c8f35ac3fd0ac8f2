"""Tensors from outside, checked before anything is made of them: name, type, shape, size, length of strings.

Triton multiplies shapes in 64 bits, where [2**32, 2**32] are no bytes at all; Python's numbers do not
overflow. Over gRPC a tensor is bytes (`raw_input_contents`) or a list of values (`contents`); in JSON it is
a value or a list.
"""

import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from tritonclient.grpc import service_pb2

from kestrel_core.protocol.errors import InvalidRequest, TooLarge
from kestrel_core.protocol.fields import BY_NAME, INPUTS, MAX_SPATIAL_REFS, Field
from kestrel_core.protocol.names import nearest, shown
from kestrel_core.protocol.wire import REFS_FORM
from kestrel_gateway.kserve.description import OUTPUT, check_model, datatype
from kestrel_gateway.kserve.request import Asked, check_id

LETTERS = {"FP32": "f", "INT32": "i", "INT64": "q", "BOOL": "?"}
CONTENTS = {
    "BYTES": "bytes_contents",
    "FP32": "fp32_contents",
    "INT32": "int_contents",
    "INT64": "int64_contents",
    "BOOL": "bool_contents",
}
KINDS: dict[str, tuple[type, ...]] = {
    "BYTES": (str,),
    "FP32": (int, float),
    "INT32": (int,),
    "INT64": (int,),
    "BOOL": (bool,),
}
IN_WORDS = {
    "BYTES": "a string",
    "FP32": "a number",
    "INT32": "a whole number",
    "INT64": "a whole number",
    "BOOL": "true or false",
}
MAX_NUMBERS = 4 * MAX_SPATIAL_REFS
SHARED_MEMORY = "shared_memory"


# gRPC


def read_message(message: service_pb2.ModelInferRequest) -> Asked:
    check_model(message.model_name, message.model_version)
    if len(message.inputs) > len(INPUTS):
        raise InvalidRequest(f"the request has {len(message.inputs):,} inputs; there are {len(INPUTS)}")
    for output in message.outputs:
        _refuse_shared_memory(output)
        if output.name != OUTPUT:
            raise InvalidRequest(f'there is no output "{shown(output.name)}"; there is {OUTPUT}')
    tensors: dict[str, Any] = {}
    raw = message.raw_input_contents
    if raw and len(raw) != len(message.inputs):
        raise InvalidRequest(f"{len(message.inputs)} inputs are named and {len(raw):,} have contents")
    for index, given in enumerate(message.inputs):
        field = _field(given.name)
        if given.name in tensors:
            raise InvalidRequest(f"{given.name} is given twice")
        _refuse_shared_memory(given)
        if given.datatype != datatype(field):
            kind = f"{given.name} is of type {shown(given.datatype)}"
            raise InvalidRequest(f"{kind}; it must be {datatype(field)}")
        shape = _checked(field, list(given.shape))
        if raw:
            values = _unpacked(field, raw[index], math.prod(shape))
        else:
            values = _listed(field, given.contents, math.prod(shape))
        tensors[field.name] = values if len(shape) == 1 else _in_rows(values, shape[1])
    parameters = {name: _parameter(value) for name, value in message.parameters.items()}
    return Asked(check_id(message.id), tensors, parameters)


def _field(name: str) -> Field:
    if name not in BY_NAME:
        raise InvalidRequest(f'there is no input "{shown(name)}"{nearest(name, BY_NAME)}')
    return BY_NAME[name]


def _refuse_shared_memory(tensor: Any) -> None:
    for name in tensor.parameters:
        if name.startswith(SHARED_MEMORY):
            raise InvalidRequest(f"{shown(tensor.name)} is in shared memory, which is closed; send its bytes")


def _checked(field: Field, shape: list[int]) -> list[int]:
    """The shape, if it is the field's and small enough: how many values there are follows from it."""
    if len(shape) != len(field.dims) or any(
        given < 0 or wanted not in (-1, given) for given, wanted in zip(shape, field.dims, strict=True)
    ):
        form = f"it must have the shape {list(field.dims)}, where -1 is any number"
        raise InvalidRequest(f"{field.name} has the shape {shown(shape)}; {form}")
    count = math.prod(shape)
    if field.type != "STRING" and (count > MAX_NUMBERS or count < shape[0]):
        limit = f"at most {MAX_SPATIAL_REFS} rows of 2 or 4 numbers are taken"
        raise TooLarge(f"{field.name} has the shape {shown(shape)}; {limit}")
    if field.type == "STRING" and field.dims == (-1,) and count > field.argument.max_items:
        raise TooLarge(f"{field.name} has {count:,} strings; at most {field.argument.max_items} are taken")
    return shape


def _unpacked(field: Field, data: bytes, count: int) -> Sequence[Any]:
    if field.type == "STRING":
        return _strings(field, data, count)
    letter = LETTERS[field.type]
    size = count * struct.calcsize(f"<{letter}")
    if len(data) != size:
        raise InvalidRequest(f"{field.name} has {len(data):,} bytes; {count:,} of its values are {size:,}")
    return struct.unpack(f"<{count}{letter}", data)


def _strings(field: Field, data: bytes, count: int) -> list[bytes]:
    """Each is 4 bytes of its length, then itself."""
    found, at, end = [], 0, len(data)
    for _ in range(count):
        length = int.from_bytes(data[at : at + 4], "little") if at + 4 <= end else end
        if at + 4 + length > end:
            raise InvalidRequest(f"{field.name} has {end:,} bytes, which are less than its strings need")
        found.append(data[at + 4 : at + 4 + length])
        at += 4 + length
    if at != end:
        raise InvalidRequest(f"{field.name} has {end:,} bytes, which are more than its strings need")
    return found


def _listed(field: Field, contents: service_pb2.InferTensorContents, count: int) -> Sequence[Any]:
    values = getattr(contents, CONTENTS[datatype(field)])
    if len(values) != count:
        raise InvalidRequest(f"{field.name} has {len(values):,} values; its shape says {count:,}")
    return list(values)


def _parameter(value: service_pb2.InferParameter) -> Any:
    kind = value.WhichOneof("parameter_choice")
    return None if kind is None else getattr(value, kind)


# JSON


def read_document(body: Mapping[str, Any]) -> Asked:
    """As Triton reads it: the name of an input is that input, any other name is a parameter."""
    given = dict(body)
    id = check_id(given.pop("id", ""))
    nested = given.pop("parameters", {})
    if not isinstance(nested, dict):
        raise InvalidRequest("parameters must be an object of names and values")
    tensors = {name: _values(BY_NAME[name], value) for name, value in given.items() if name in BY_NAME}
    parameters = {name: value for name, value in given.items() if name not in BY_NAME} | nested
    for name, value in parameters.items():
        if not isinstance(value, str | int | float):
            kind = f"{type(value).__name__}"
            raise InvalidRequest(
                f'"{shown(name)}" is no input and a {kind}; a parameter is a number, a string, true or false'
            )
    return Asked(id, tensors, parameters)


def _values(field: Field, value: Any) -> list[Any]:
    if len(field.dims) == 2:
        return _rows(value)
    values = value if isinstance(value, list) else [value]
    for one in values:
        _check_kind(field, one)
    return values


def _rows(value: Any) -> list[Any]:
    """Rows of numbers; a flat list is one row, as Triton has it."""
    if not isinstance(value, list):
        raise InvalidRequest(REFS_FORM)
    rows = value if value and isinstance(value[0], list) else [value]
    if len(rows) > MAX_SPATIAL_REFS or any(not isinstance(row, list) or len(row) > 4 for row in rows):
        raise InvalidRequest(REFS_FORM)
    for row in rows:
        for number in row:
            _check_kind(BY_NAME["SPATIAL_REFS"], number)
    return rows


def _check_kind(field: Field, value: Any) -> None:
    kind = datatype(field)
    if not isinstance(value, KINDS[kind]) or (isinstance(value, bool) and kind != "BOOL"):
        raise InvalidRequest(f"{field.name} is {shown(value)}; it must be {IN_WORDS[kind]}")


def _in_rows(values: Sequence[Any], width: int) -> list[Sequence[Any]]:
    return [values[start : start + width] for start in range(0, len(values), width or 1)]

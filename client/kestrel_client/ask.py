"""What is asked: a skill's keywords turned into the tensors of the contract, checked before they leave.

Limits of numbers are those of `kestrel_core.protocol.messages`, so what the server would refuse costs no
round trip; everything else is the server's to judge.
"""

import io
import json
import os
import struct
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypedDict, TypeVar

from tritonclient.grpc import service_pb2

from kestrel_core.protocol import wire
from kestrel_core.protocol.errors import BadImage, InvalidRequest
from kestrel_core.protocol.messages import number, parse_settings

from .results import Result

if TYPE_CHECKING:
    from PIL.Image import Image

    Picture: TypeAlias = bytes | str | os.PathLike[str] | Image
else:  # Pillow need not be there
    Picture = object

MODEL = "moondream"
MAX_TIMEOUT_S = 30 * 86_400.0

DATATYPES = {
    **dict.fromkeys(("TEMPERATURE", "TOP_P"), "FP32"),
    **dict.fromkeys(("MAX_TOKENS", "MAX_OBJECTS", "LOGPROBS", "PRIORITY"), "INT32"),
    "SEED": "INT64",
    **dict.fromkeys(wire.FLAGS, "BOOL"),
}  # and BYTES for the others
FORMATS = {"FP32": "<f", "INT32": "<i", "INT64": "<q", "BOOL": "<?"}

SpatialRefs: TypeAlias = Sequence[Sequence[float]]
R = TypeVar("R", bound=Result)


class Options(TypedDict, total=False):
    """Keywords of every skill. None, like leaving one out, is the server's default."""

    temperature: float | None
    top_p: float | None
    max_tokens: int | None
    adapter: str | None
    seed: int | None
    priority: int | None  # lower is served first
    request_id: str | None
    timeout_s: float | None  # for the whole call, retries included; None is the client's own


class TextOptions(Options, total=False):
    stop: str | Sequence[str] | None
    logprobs: int | None


class ObjectOptions(Options, total=False):
    max_objects: int | None


@dataclass(frozen=True, slots=True)
class Ask(Generic[R]):
    """One request, and what its answer will be."""

    skill: str
    request: service_pb2.ModelInferRequest
    answer: type[R]
    timeout_s: float | None


def ask(
    answer: type[R],
    skill: str,
    image: Picture | None,
    arguments: Mapping[str, Any],
    options: Mapping[str, Any],
    *,
    stream: bool = False,
    timeout_s: float | None = None,
) -> Ask[R]:
    """`arguments` are the skill's own; `timeout_s` holds where `options` have none."""
    given = {name: value for name, value in options.items() if value is not None}
    request_id = given.pop("request_id", "")
    timeout_s = check_timeout(given.pop("timeout_s", timeout_s))
    inputs: dict[str, Sequence[Any]] = {"SKILL": [skill]}
    for name, ours in wire.ARGUMENTS.items():
        if arguments.get(ours) is not None:
            inputs[name] = [arguments[ours]]
    if image is not None:
        inputs["IMAGE"] = [encoded(image)]
    if stream:
        inputs["STREAM"] = [True]
    if "priority" in given:
        inputs["PRIORITY"] = [number("PRIORITY", given.pop("priority"), int, -(2**31), 2**31 - 1)]
    settings = parse_settings(given)
    inputs |= {name: [getattr(settings, name.lower())] for name in wire.SETTINGS if name.lower() in given}
    if settings.stop:
        inputs["STOP"] = settings.stop
    request = service_pb2.ModelInferRequest(model_name=MODEL, id=request_id)
    for name, values in inputs.items():
        datatype = DATATYPES.get(name, "BYTES")
        request.inputs.add(name=name, datatype=datatype, shape=[len(values)])
        request.raw_input_contents.append(b"".join(_packed(name, datatype, value) for value in values))
    if arguments.get("spatial_refs") is not None:
        # The parameter, not the tensor: points and boxes may be mixed, and a tensor's rows have one length.
        request.parameters["spatial_refs"].string_param = _rows(arguments["spatial_refs"])
    return Ask(skill, request, answer, timeout_s)


def check_timeout(timeout_s: float | None) -> float | None:
    return None if timeout_s is None else float(number("timeout_s", timeout_s, float, 1e-6, MAX_TIMEOUT_S))


def encoded(image: Picture) -> bytes:
    """A picture's file as it is; a PIL image as PNG, upright, so that nothing is lost or turned."""
    if isinstance(image, bytes | bytearray | memoryview):
        return bytes(image)
    if isinstance(image, str | os.PathLike):
        try:
            with open(image, "rb") as file:
                return file.read()
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not a path"
            raise BadImage(f"{os.fspath(image)!r} cannot be read ({reason})") from error
    module = sys.modules.get("PIL.Image")  # whoever holds a PIL image has imported PIL; we need not
    if module is None or not isinstance(image, module.Image):
        raise BadImage(f"an image is encoded bytes, a path or a PIL image, not {type(image).__name__}")
    from PIL import ImageOps

    try:
        upright = ImageOps.exif_transpose(image)
        picture = upright if upright.mode.startswith("I;16") else upright.convert("RGB")
        png = io.BytesIO()
        picture.save(png, "PNG", compress_level=1)  # large is cheaper than late
    except (OSError, SyntaxError, ValueError) as error:  # PIL reads files late
        raise BadImage("the PIL image cannot be read; its file is damaged or gone") from error
    return png.getvalue()


def _packed(name: str, datatype: str, value: Any) -> bytes:
    if datatype != "BYTES":
        return struct.pack(FORMATS[datatype], value)
    if not isinstance(value, str | bytes):
        raise InvalidRequest(f"{name} is a {type(value).__name__}; it must be a str")
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<I", len(data)) + data


def _rows(refs: SpatialRefs) -> str:
    try:
        return json.dumps([[float(part) for part in row] for row in refs])
    except (TypeError, ValueError):
        raise InvalidRequest("SPATIAL_REFS must be rows of 2 or 4 numbers") from None

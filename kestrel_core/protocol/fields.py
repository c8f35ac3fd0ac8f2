"""The one registry of what a request consists of: every input tensor, its type, its meaning and its limits.

`config.pbtxt`, the wire in both directions, the clients, the error texts and docs/interface.md follow it; a
test holds each of them against it. An input is a part of the request itself, an argument of its skill, or a
setting of its answer.
"""

from dataclasses import dataclass
from typing import Any, Literal

from kestrel_core.protocol.arguments import MAX_TEXT_BYTES, Argument

DataType = Literal["STRING", "FP32", "INT32", "INT64", "BOOL"]

MAX_INT32 = 2**31 - 1
SETTING = "input_limits"  # of an operator who wants other limits than these
MAX_STOPS = 16
MAX_SPATIAL_REFS = 100
DEFAULT_OF_THE_MODEL = "the model's"


@dataclass(frozen=True, slots=True)
class Field:
    """One input tensor. `argument.name` is its name in Python and in REST."""

    name: str
    type: DataType
    role: Literal["request", "argument", "setting"]
    argument: Argument
    default: str = "none"
    dims: tuple[int, ...] = (1,)

    @property
    def key(self) -> str:
        return self.argument.name


def _argument(name: str, type: DataType, meaning: str, kind: type, **more: Any) -> Field:
    return _field(name, type, "argument", meaning, kind, **more)


def _setting(name: str, type: DataType, meaning: str, kind: type, **more: Any) -> Field:
    return _field(name, type, "setting", meaning, kind, **{"default": DEFAULT_OF_THE_MODEL, **more})


def _field(
    name: str,
    type: DataType,
    role: Literal["request", "argument", "setting"],
    meaning: str,
    kind: type,
    default: str = "none",
    dims: tuple[int, ...] = (1,),
    **limits: Any,
) -> Field:
    argument = Argument(name.lower(), kind, meaning, **{"setting": SETTING, **limits})
    return Field(name, type, role, argument, default, dims)


INPUTS: tuple[Field, ...] = (
    _field("SKILL", "STRING", "request", "what is asked for", str, "required", max_bytes=128),
    _argument("QUESTION", "STRING", "the question", str, max_bytes=MAX_TEXT_BYTES),
    _argument("OBJECT", "STRING", "what to look for, in words", str, max_bytes=1024),
    _field("IMAGE", "STRING", "request", "bytes of a picture's file, base64 of them, or a data URL", bytes),
    _argument(
        "LENGTH",
        "STRING",
        "how long a caption shall be",
        str,
        default="normal",
        choices=("short", "normal", "long"),
    ),
    _setting("TEMPERATURE", "FP32", "0 is always the likeliest token", float, least=0.0, most=100.0),
    _setting(
        "TOP_P",
        "FP32",
        "choose among the likeliest tokens that make up this share",
        float,
        least=0.0,
        most=1.0,
    ),
    _setting(
        "TOP_K",
        "INT32",
        "choose among so many likeliest tokens; 0 is no limit",
        int,
        default="0",
        least=0,
        most=MAX_INT32,
    ),
    _setting("MAX_TOKENS", "INT32", "tokens of a text", int, least=1, most=MAX_INT32),
    _setting("MAX_OBJECTS", "INT32", "objects to find", int, least=1, most=MAX_INT32),
    _argument("REASONING", "BOOL", "think first", bool, default="false"),
    _field("STREAM", "BOOL", "request", "many responses instead of one", bool, "false"),
    _argument(
        "SPATIAL_REFS",
        "FP32",
        "points (2 numbers) and boxes (4) that the words refer to",
        list,
        dims=(-1, -1),
        max_items=MAX_SPATIAL_REFS,
    ),
    _setting(
        "ADAPTER",
        "STRING",
        "a LoRA adapter by its name: of the server's folder, `org/name[@revision]`, or `finetune_id@step`",
        str,
        default="none",
        max_bytes=1024,
    ),
    _setting(
        "SEED",
        "INT64",
        "the same one gives the same answer again",
        int,
        default="random",
        least=-(2**63),
        most=2**63 - 1,
    ),
    _setting("STOP", "STRING", "end before this text", list, default="none", dims=(-1,), max_items=MAX_STOPS),
    _setting("LOGPROBS", "INT32", "so many log probabilities a token", int, default="0", least=0, most=20),
    _field("ARGUMENTS", "STRING", "request", "a JSON object: arguments of a skill of your own", str),
    _field("PRIORITY", "INT32", "request", "lower is served first", int, "0", least=-10, most=10),
)
BY_NAME = {field.name: field for field in INPUTS}
ARGUMENTS = {field.key: field for field in INPUTS if field.role == "argument"}
SETTINGS = {field.key: field for field in INPUTS if field.role == "setting"}

STOP = Argument("stop", str, max_bytes=1024, setting=SETTING)  # each of them

# Decided, and not served yet: refused by name rather than as unknown.
LATER = (
    "N",
    "PRESENCE_PENALTY",
    "FREQUENCY_PENALTY",
    "REPETITION_PENALTY",
    "MIN_TOKENS",
    "IGNORE_EOS",
    "RESPONSE_SCHEMA",
    "INCLUDE",
)

# Names of older versions. In Python they are refused with the name of today.
OLD_NAMES = {"max_new_tokens": "max_tokens", "max_points": "max_objects"}

# Over HTTP, everything that is not exactly the name of an input arrives as a parameter. These parameters are
# ours; those that begin as `TRITONS_OWN` says are Triton's.
PARAMETERS = {
    argument.name: argument
    for argument in (
        Argument(
            "spatial_refs",
            str,
            "rows of SPATIAL_REFS as a JSON string, since HTTP JSON cannot carry nested lists",
        ),
        Argument(
            "timeout", int, "microseconds that the request may take; 0 is the server's default", least=0
        ),
        Argument(
            "cache_salt",
            str,
            "requests share what was computed of equal beginnings and pictures only with those of one salt",
            max_bytes=128,
        ),
        Argument(
            "traceparent",
            str,
            "W3C trace context: the caller's span; one that cannot be read is ignored",
            max_bytes=55,
        ),
        Argument(
            "tenant",
            str,
            "whose request it is: tenants that wait share the queue and the slots evenly",
            max_bytes=128,
        ),
    )
}
TRITONS_OWN = ("triton_", "sequence_", "binary_data")

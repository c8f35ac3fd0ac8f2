"""Reads a body of OpenAI's API: a struct says what is served, two tables what is refused and what is ignored.

Every refusal names its field as OpenAI's own errors do: `param` is `messages[0].content[1].image_url`.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, TypeVar

import msgspec
from msgspec import Meta

from kestrel_core.protocol.errors import InvalidRequest
from kestrel_core.protocol.fields import MAX_INT32
from kestrel_core.protocol.names import nearest, shown
from kestrel_gateway.reading.bodies import Body

FIELD = re.compile(r"Object (?P<what>missing required|contains unknown) field `(?P<name>.*)`", re.DOTALL)
INDEX = re.compile(r"\[\d+\]")

# Types of fields that several bodies have.
ModelName = Annotated[str, Meta(min_length=1)]
TokenLimit = Annotated[int, Meta(ge=1, le=MAX_INT32)]
Temperature = Annotated[float, Meta(ge=0, le=2)]
TopP = Annotated[float, Meta(ge=0, le=1)]
TopK = Annotated[int, Meta(ge=0, le=MAX_INT32)]
Seed = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Stops = str | Annotated[list[Annotated[str, Meta(min_length=1)]], Meta(max_length=4)]
TopLogprobs = Annotated[int, Meta(ge=0, le=20)]

# Settings of the answer that the engine does not have yet, and the values that ask for nothing.
NOT_YET: dict[str, tuple[object, ...]] = {
    "n": (1,),
    "presence_penalty": (0, 0.0),
    "frequency_penalty": (0, 0.0),
    "repetition_penalty": (1, 1.0),
    "logit_bias": ({},),
    "min_tokens": (0,),
    "ignore_eos": (False,),
}
HINTS = {"stop": "a text, or up to 4 of them"}


class StreamOptions(msgspec.Struct):
    include_usage: bool | None = None
    include_obfuscation: bool | None = None


class OpenAIBody(msgspec.Struct):
    """The fields of a subclass are those that are served.

    `unserved` are refused unless they have one of the given values, which ask for nothing. `ignored` are
    taken and change nothing. `hints` say what a place in the body takes, where its type alone does not.
    """

    unserved: ClassVar[Mapping[str, tuple[object, ...]]] = {}
    ignored: ClassVar[tuple[str, ...]] = ()
    hints: ClassVar[Mapping[str, str]] = {}


B = TypeVar("B", bound=OpenAIBody)


def read_body(kind: type[B], body: Body) -> B:
    served = {}
    for name, value in body.items():
        if name in kind.__struct_fields__:
            served[name] = value
        elif name in kind.unserved:
            _check_harmless(name, value, kind.unserved[name])
        elif name not in kind.ignored:
            known = (*kind.__struct_fields__, *kind.ignored)
            raise refused(shown(name), f'there is no field "{shown(name)}"{nearest(name, known)}')
    try:
        return msgspec.convert(served, kind)
    except msgspec.ValidationError as error:
        raise _told(str(error), kind.hints) from None


def refused(param: str, text: str) -> InvalidRequest:
    error = InvalidRequest(text)
    error.param = param  # type: ignore[attr-defined]
    return error


def _check_harmless(name: str, value: Any, harmless: tuple[object, ...]) -> None:
    if value is None or any(type(value) is type(one) and value == one for one in harmless):
        return
    instead = f" or send {msgspec.json.encode(harmless[0]).decode()}" if harmless else ""
    raise refused(name, f"{name} is not served here; leave it out{instead}")


def _told(message: str, hints: Mapping[str, str]) -> InvalidRequest:
    """What msgspec says of a place in the body, as an error about that place."""
    told, has_place, place = message.rpartition(" - at `$")  # the last: a text of the caller's may hold more
    text = told if has_place else message
    param = place.removeprefix(".").removesuffix("`") if has_place else ""
    if field := FIELD.fullmatch(text):
        param = f"{param}.{field['name']}".removeprefix(".")
        text = "it is required" if field["what"] == "missing required" else "there is no such field"
    param = shown(param, 120)
    hint = hints.get(INDEX.sub("[]", param))
    said = f"{text[:1].lower()}{text[1:]}".replace("`", "")
    return refused(param, f"{param}: {shown(said, 200)}{f'; {hint}' if hint else ''}")

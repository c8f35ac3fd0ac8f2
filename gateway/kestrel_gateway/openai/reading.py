"""Reads a body of OpenAI's API: a struct says what is served, two tables what is refused and what is ignored.

Every refusal names its field as OpenAI's own errors do: `param` is `messages[0].content[1].image_url`.
"""

import re
from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

import msgspec

from kestrel_core.protocol.errors import InvalidRequest
from kestrel_core.protocol.names import nearest, shown
from kestrel_gateway.bodies import Body

PLACE = re.compile(r"(?P<text>.*?)(?: - at `\$\.?(?P<path>.*)`)?", re.DOTALL)
FIELD = re.compile(r"Object (?P<what>missing required|contains unknown) field `(?P<name>.*)`", re.DOTALL)
INDEX = re.compile(r"\[\d+\]")


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
    found = PLACE.fullmatch(message)
    assert found is not None
    text, param = found["text"], found["path"] or ""
    if field := FIELD.fullmatch(text):
        param = f"{param}.{field['name']}".removeprefix(".")
        text = "it is required" if field["what"] == "missing required" else "there is no such field"
    param = shown(param, 120)
    hint = hints.get(INDEX.sub("[]", param))
    said = f"{text[:1].lower()}{text[1:]}".replace("`", "")
    return refused(param, f"{param}: {shown(said, 200)}{f'; {hint}' if hint else ''}")

"""What a server is: its model, its version, and what its skills take. `SKILL` is `about` to ask for it.

`about` is a word of the wire and no skill: it is answered at once, with `about` in place of an answer, and it
does not wait for the model. So it says what a server can do, not whether its model is well.

    about = await client.about()
    for skill in about.skills:
        for argument in skill.arguments:
            argument.check(value)          # as the server itself will check it
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal, cast

from kestrel_core.protocol.arguments import Argument
from kestrel_core.protocol.errors import EngineFailed, InvalidRequest
from kestrel_core.protocol.messages import Chunk, EngineResult, Finished, Request, Settings, Usage

ABOUT = "about"
KINDS: dict[type, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    list: "list",
    dict: "object",
}
TYPES = {name: kind for kind, name in KINDS.items()}
USUAL_BATCH = 64  # of a server that does not say
ANYTHING = "anything"  # a kind that JSON has no word for


@dataclass(frozen=True, slots=True)
class SkillAbout:
    """What one skill takes. `settings` are names of `fields.SETTINGS`."""

    name: str
    meaning: str
    answers: str
    image: Literal["required", "optional"]
    streams: bool
    supported: bool  # False: this model does not know it, and refuses it
    settings: tuple[str, ...]
    arguments: tuple[Argument, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "meaning": self.meaning,
            "answers": self.answers,
            "image": self.image,
            "streams": self.streams,
            "supported": self.supported,
            "settings": list(self.settings),
            "arguments": [_argument_to_json(argument) for argument in self.arguments],
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "SkillAbout":
        return cls(
            name=str(document["name"]),
            meaning=str(document["meaning"]),
            answers=str(document["answers"]),
            image="required" if document["image"] == "required" else "optional",
            streams=bool(document["streams"]),
            supported=bool(document["supported"]),
            settings=tuple(map(str, document["settings"])),
            arguments=tuple(map(_argument_from_json, document["arguments"])),
        )


@dataclass(frozen=True, slots=True)
class About:
    model: str
    version: str  # of kestrel-triton
    max_context: int  # positions of prompt and answer together, those of a picture included
    skills: tuple[SkillAbout, ...]
    adapters: tuple[str, ...] = ()
    max_batch_size: int = USUAL_BATCH  # sequences that are decoded together

    def to_json(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "version": self.version,
            "max_context": self.max_context,
            "max_batch_size": self.max_batch_size,
            "adapters": list(self.adapters),
            "skills": [skill.to_json() for skill in self.skills],
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "About":
        """Raises KeyError, TypeError, ValueError or AttributeError where it is not ours."""
        return cls(
            model=str(document["model"]),
            version=str(document["version"]),
            max_context=int(document["max_context"]),
            skills=tuple(map(SkillAbout.from_json, document["skills"])),
            adapters=tuple(map(str, document["adapters"])),
            max_batch_size=int(document.get("max_batch_size", USUAL_BATCH)),
        )

    def answer(self, request: Request) -> Finished:
        """The one event of a request whose skill is `about`."""
        if request.arguments or request.image is not None or request.settings != Settings():
            raise InvalidRequest("about takes nothing but SKILL; leave the other inputs out")
        usage = Usage(0, 0, 0, 0.0, 0.0, 0.0, 0.0)
        return Finished(
            EngineResult(request.request_id, "stop", {"about": self.to_json()}, usage), Chunk("", 0)
        )


def about_of(result: EngineResult) -> About:
    """What the result of an `about` says."""
    try:
        return About.from_json(result.output["about"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise EngineFailed(f"what the server tells about itself is not the contract's: {error!r}") from None


def own_version() -> str:
    try:
        return version("kestrel-triton")
    except PackageNotFoundError:  # run from a source tree that was never installed
        return "unknown"


def _argument_to_json(argument: Argument) -> dict[str, Any]:
    """Limits that are not there are left out."""
    document: dict[str, Any] = {
        "name": argument.name,
        "kind": KINDS.get(argument.kind, ANYTHING),
        "meaning": argument.meaning,
        "required": argument.required,
    }
    if argument.default is not None and _is_json(argument.default):
        document["default"] = argument.default
    for name in ("least", "most"):
        if math.isfinite(getattr(argument, name)):
            document[name] = getattr(argument, name)
    if argument.choices:
        document["choices"] = list(argument.choices)
    if argument.kind is str:
        document["max_bytes"] = argument.max_bytes
    if argument.kind is list:
        document["max_items"] = argument.max_items
    return document


def _argument_from_json(document: Mapping[str, Any]) -> Argument:
    limits = {
        name: document[name]
        for name in ("default", "least", "most", "max_bytes", "max_items")
        if name in document
    }
    return Argument(
        name=str(document["name"]),
        kind=TYPES.get(document["kind"], cast(type, object)),
        meaning=str(document["meaning"]),
        required=bool(document["required"]),
        choices=tuple(map(str, document.get("choices", ()))),
        **limits,
    )


def _is_json(value: object) -> bool:
    try:
        json.dumps(value, allow_nan=False)
        return True
    except (TypeError, ValueError, RecursionError):
        return False

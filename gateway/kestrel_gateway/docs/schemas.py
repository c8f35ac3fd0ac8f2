"""JSON schemas of what is sent and what comes back, made from the registries that check and write them."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

import msgspec

from kestrel_core.protocol.about import KINDS, SkillAbout
from kestrel_core.protocol.arguments import Argument
from kestrel_core.protocol.fields import BY_NAME, DEFAULT_OF_THE_MODEL, OLD_NAMES, SETTINGS, STOP
from kestrel_core.protocol.messages import FinishReason, Usage
from kestrel_core.protocol.results import Box, Point
from kestrel_gateway.openai.reading import OpenAIBody

Schema = dict[str, Any]
REF = "#/components/schemas/{name}"
TEXT: Schema = {"type": "string"}
STREAMING = ("segment",)  # over REST it is told in events too
PICTURE: Schema = TEXT | {
    "minLength": 1,
    "description": "A data URL (data:image/jpeg;base64,...) or base64 of the file.",
}

EXAMPLE_PICTURE = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAHUlEQVR42mP4jwMwwGgGBEJIIIvC5KgtgdN"
    "ybAAA8Yd/gSVDee4AAAAASUVORK5CYII="
)


def ref(name: str) -> Schema:
    return {"$ref": REF.format(name=name)}


def nullable(schema: Schema) -> Schema:
    """None, like leaving a field out, is its default."""
    kind = schema.get("type")
    if isinstance(kind, str) and "enum" not in schema:
        return schema | {"type": [kind, "null"]}
    words: Schema = {key: schema[key] for key in ("description", "default") if key in schema}
    return {"anyOf": [{k: v for k, v in schema.items() if k not in words}, {"type": "null"}], **words}


def of_argument(argument: Argument, default: str = "") -> Schema:
    words = f"{argument.meaning[:1].upper()}{argument.meaning[1:]}." if argument.meaning else ""
    if default and default != "none":
        words += f" Default: {default}."
    schema = {**_values(argument), **({"description": words} if words else {})}
    if argument.default is not None:
        schema["default"] = argument.default
    return schema if argument.required else nullable(schema)


def _values(argument: Argument) -> Schema:
    known = BY_NAME.get(argument.name.upper())
    if argument.kind is list and known is not None and len(known.dims) == 2:
        number = {"type": "number", "minimum": 0, "maximum": 1}
        rows = [{"type": "array", "items": number, "minItems": n, "maxItems": n} for n in (2, 4)]
        return {"type": "array", "items": {"anyOf": rows}, "maxItems": argument.max_items}
    if argument.kind is list and known is not None:
        one = _values(STOP) | {"minLength": 1}
        return {"anyOf": [one, {"type": "array", "items": one, "maxItems": argument.max_items}]}
    if argument.kind is list:
        return {"type": "array", "maxItems": argument.max_items}
    if argument.choices:
        return {"enum": list(argument.choices)}
    if argument.kind is str:  # bytes are counted, and a letter has at least one
        return TEXT | {"maxLength": argument.max_bytes} | ({"pattern": r"\S"} if argument.required else {})
    limits = {"minimum": argument.least, "maximum": argument.most}
    finite = {key: value for key, value in limits.items() if math.isfinite(value)}
    return {"type": KINDS[argument.kind]} | finite if argument.kind in KINDS else {}


def settings_of(skill: SkillAbout) -> dict[str, Schema]:
    made = {}
    for name in skill.settings:
        default = SETTINGS[name].default
        shown = "" if default == DEFAULT_OF_THE_MODEL else default
        made[name] = of_argument(SETTINGS[name].argument, shown)
    for old, name in OLD_NAMES.items():
        if name in made:
            made[name]["description"] += f" Its older name {old} is taken too."
    return made


def skill_request(skill: SkillAbout) -> Schema:
    """The JSON body of a skill's path."""
    settings: Schema = {"type": "object", "properties": settings_of(skill), "additionalProperties": False}
    properties: dict[str, Schema] = {
        "image_url": PICTURE if skill.image == "required" else nullable(PICTURE),
        **{argument.name: of_argument(argument) for argument in skill.arguments},
        "settings": nullable(
            settings | {"description": "Of the answer; each may also stand beside the fields."}
        ),
        **_of_every_request(skill),
    }
    required = [argument.name for argument in skill.arguments if argument.required]
    required += ["image_url"] * (skill.image == "required")
    return _object(properties, required) | {"additionalProperties": False}


def skill_form(skill: SkillAbout) -> Schema:
    """The same as a form. The picture is a file; texts stand for the values that JSON would have."""
    file = TEXT | {"format": "binary", "contentMediaType": "application/octet-stream"}
    required = [argument.name for argument in skill.arguments if argument.required]
    properties = {
        "image": file | {"description": "The picture's file."},
        **{argument.name: of_argument(argument) for argument in skill.arguments},
        **settings_of(skill),
        **_of_every_request(skill),
    }
    required += ["image"] * (skill.image == "required")
    return _object(properties, required) | {"additionalProperties": False}


def _of_every_request(skill: SkillAbout) -> dict[str, Schema]:
    model = TEXT | {"description": "The model that is served, alone or as model/adapter. Default: that one."}
    fields: dict[str, Schema] = {
        "model": nullable(model),
        "priority": of_argument(BY_NAME["PRIORITY"].argument, "0"),
        "timeout_s": nullable(
            {"type": "number", "exclusiveMinimum": 0, "description": "Seconds the request may take."}
        ),
    }
    if skill.streams or skill.name in STREAMING:
        words = "Events instead of one document. Default: false."
        fields["stream"] = nullable({"type": "boolean", "description": words})
    return fields


def skill_answer(skill: SkillAbout) -> Schema:
    properties = {
        "request_id": TEXT,
        "finish_reason": {"enum": list(get_args(FinishReason))},
        "metrics": ref("Usage"),
        "logprobs": {"type": "array", "items": {"type": "object"}, "description": "If they were asked for."},
    }
    own, optional = OUTPUTS.get(skill.name, {}), ("reasoning",)
    required = ["request_id", "finish_reason", "metrics", *(name for name in own if name not in optional)]
    return _object(own | properties, required)


def parts(bodies: Sequence[type[OpenAIBody]]) -> dict[str, Schema]:
    """The schemas that others refer to, OpenAI's bodies among them."""
    _, made = msgspec.json.schema_components([Usage, Box, Point, *bodies], ref_template=REF)
    made = {name: _without_noise(part) for name, part in made.items()}
    made["Usage"]["required"] = list(made["Usage"]["properties"])  # what has a default is written too
    for kind in bodies:
        body = made[kind.__name__]
        body["additionalProperties"] = False
        for name, harmless in kind.unserved.items():
            words = "Not served; may be sent so."
            body["properties"][name] = {"enum": [*harmless, None], "description": words}
        for name in kind.ignored:
            body["properties"][name] = {"description": "Taken, and ignored."}
    return made | {"Error": ERROR}


def _object(properties: Mapping[str, Schema], required: Iterable[str] = ()) -> Schema:
    return {"type": "object", "properties": dict(properties), "required": list(required)}


def _without_noise(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_noise(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: _without_noise(value)
        for name, value in schema.items()
        if name != "title" and not (name == "default" and value is None)
    }


GROUNDING = _object(
    {
        "start_idx": {"type": "integer"},
        "end_idx": {"type": "integer"},
        "points": {
            "type": "array",
            "items": {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2},
        },
    },
    ("start_idx", "end_idx", "points"),
)
OUTPUTS: dict[str, dict[str, Schema]] = {
    "query": {
        "answer": TEXT,
        "reasoning": _object(
            {"text": TEXT, "grounding": {"type": "array", "items": GROUNDING}}, ("text", "grounding")
        ),
    },
    "caption": {"caption": TEXT},
    "detect": {"objects": {"type": "array", "items": ref("Box")}},
    "point": {"points": {"type": "array", "items": ref("Point")}},
    "segment": {
        "segments": {
            "type": "array",
            "items": _object({"svg_path": TEXT, "bbox": ref("Box")}, ("svg_path", "bbox")),
        },
        "path": TEXT | {"description": "Of the first segment; 0 to 1 across its box."},
        "bbox": {"anyOf": [ref("Box"), {"type": "null"}]},
    },
}
ERROR = _object(
    {
        "error": _object(
            {
                "message": TEXT,
                "type": TEXT,
                "param": {"type": ["string", "null"]},
                "code": {"type": ["string", "null"]},
            },
            ("message", "type", "param", "code"),
        )
        | {"additionalProperties": False}
    },
    ("error",),
)

"""Reads a checkpoint's `config.json`. What it leaves out is the default of its generation, or of the
releases before mid-2025, whose tokens and prompts were others.

Unknown keys are ignored. Everything that cannot be built is named in one `BadCheckpoint`.
"""

import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from kestrel_core.moondream.config import (
    LEGACY_DIALOG,
    LEGACY_EOS_ID,
    LEGACY_TOKENIZER,
    MOONDREAM2,
    MOONDREAM3,
    MoondreamConfig,
    Template,
)
from kestrel_core.protocol.errors import BadCheckpoint


def parse_config(document: object, default: MoondreamConfig | None = None) -> MoondreamConfig:
    """A checkpoint's `config.json` over the defaults of its generation (or `default`, if it does not say)."""
    if not isinstance(document, Mapping):
        raise BadCheckpoint("config.json holds no JSON object; it is not a Moondream configuration")
    sections = document.get("config", document)
    if not isinstance(sections, Mapping):
        raise BadCheckpoint('config.json: "config" is not an object')
    base = _generation(document, sections) or default or MOONDREAM2
    tokenizer = _overlay(base.tokenizer, sections.get("tokenizer"), "config.json: tokenizer")
    is_old = tokenizer.eos_id == LEGACY_EOS_ID
    if is_old and base.tokenizer.eos_id != LEGACY_EOS_ID:
        base = replace(base, tokenizer=LEGACY_TOKENIZER, dialog=LEGACY_DIALOG)
    merged = {
        name: _overlay(getattr(base, name), sections.get(name), f"config.json: {name}")
        for name in ("text", "vision", "region", "tokenizer", "dialog")
    }
    text = sections.get("text")
    if isinstance(text, Mapping) and "n_heads" in text and "n_kv_heads" not in text:
        merged["text"] = replace(merged["text"], n_kv_heads=merged["text"].n_heads)
    config = replace(base, **merged)
    validate(config)
    return config


def _generation(document: Mapping[str, Any], sections: Mapping[str, Any]) -> MoondreamConfig | None:
    kind = document.get("model_type")
    if kind is not None:
        known = {"moondream1": MOONDREAM2, "moondream2": MOONDREAM2, "moondream3": MOONDREAM3}
        if not isinstance(kind, str) or kind not in known:
            raise BadCheckpoint(f'config.json: model_type "{kind}" is none of {", ".join(known)}')
        return known[kind]
    text, region = sections.get("text"), sections.get("region")
    if isinstance(text, Mapping) and "moe" in text:
        return MOONDREAM3
    if isinstance(region, Mapping) and "inner_dim" in region:
        return MOONDREAM2
    return None


T = TypeVar("T")


def _overlay(base: T, values: object, where: str) -> T:
    """`base` with the fields that `values` gives, typed as declared; unknown keys are ignored."""
    if values is None:
        return base
    if not isinstance(values, Mapping):
        raise BadCheckpoint(f"{where} is not an object")
    assert is_dataclass(base) and not isinstance(base, type)
    hints = get_type_hints(type(base))
    given = {
        f.name: _value(hints[f.name], getattr(base, f.name), values[f.name], f"{where}.{f.name}")
        for f in fields(base)
        if f.name in values
    }
    return replace(base, **given)


def _value(kind: Any, current: object, value: object, where: str) -> object:
    if get_origin(kind) in (Union, types.UnionType):
        if value is None:
            return None
        kind = next(arm for arm in get_args(kind) if arm is not types.NoneType)
    if is_dataclass(kind):
        assert isinstance(kind, type)
        return _overlay(current if current is not None else kind(), value, where)
    if kind is int and isinstance(value, int) and not isinstance(value, bool):
        return value
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if kind in (bool, str) and isinstance(value, kind):
        return value
    if get_origin(kind) is Literal and value in get_args(kind):
        return value
    if get_origin(kind) is tuple and isinstance(value, list) and all(type(item) is int for item in value):
        return tuple(value)
    raise BadCheckpoint(f"{where} is {value!r}, which is not {getattr(kind, '__name__', kind)}")


def validate(config: MoondreamConfig) -> None:
    """Refuse dimensions that cannot be built, with a sentence for each."""
    problems = list(_problems(config))
    if problems:
        raise BadCheckpoint("config.json describes no possible model: " + "; ".join(problems))


def _problems(config: MoondreamConfig) -> list[str]:
    text, vision, region, tokenizer = config.text, config.vision, config.region, config.tokenizer
    found: list[str] = []
    for name, section in (("text", text), ("vision", vision), ("region", region), ("text.moe", text.moe)):
        for f in fields(section) if section is not None else ():
            value = getattr(section, f.name)
            least = 0 if f.name in ("start_layer", "overlap_margin") else 1
            if type(value) is int and value < least:
                found.append(f"{name}.{f.name} is {value}, and at least {least} is needed")
    if found:
        return found

    def must(true: bool, sentence: str) -> None:
        if not true:
            found.append(sentence)

    must(text.dim % text.n_heads == 0, f"text.dim {text.dim} does not divide into {text.n_heads} heads")
    must(text.head_dim % 4 == 0, f"heads of {text.head_dim} cannot rotate half of their entries in pairs")
    must(
        text.n_heads % text.n_kv_heads == 0,
        f"text.n_heads {text.n_heads} is no multiple of n_kv_heads {text.n_kv_heads}",
    )
    must(
        not text.tau or text.n_kv_heads == text.n_heads,
        f"tau scales the values of {text.n_heads} heads, and there are {text.n_kv_heads} n_kv_heads",
    )
    if text.moe is not None:
        must(
            text.moe.experts_per_token <= text.moe.num_experts,
            f"{text.moe.experts_per_token} experts_per_token exceed {text.moe.num_experts} num_experts",
        )
    must(
        vision.enc_dim % vision.enc_n_heads == 0,
        f"vision.enc_dim {vision.enc_dim} does not divide into {vision.enc_n_heads} heads",
    )
    must(
        vision.crop_size % vision.enc_patch_size == 0,
        f"vision.crop_size {vision.crop_size} is no multiple of enc_patch_size {vision.enc_patch_size}",
    )
    must(vision.in_channels == 3, f"vision.in_channels is {vision.in_channels}, and pictures have 3")
    must(
        2 * vision.overlap_margin < vision.grid,
        f"vision.overlap_margin {vision.overlap_margin} leaves nothing of a crop of {vision.grid} patches",
    )
    must(
        vision.proj_out_dim == text.dim,
        f"vision.proj_out_dim {vision.proj_out_dim} is not text.dim {text.dim}",
    )
    must(region.dim == text.dim, f"region.dim {region.dim} is not text.dim {text.dim}")
    for name in ("coord_feat_dim", "size_feat_dim", "size_out_dim"):
        must(getattr(region, name) % 2 == 0, f"region.{name} {getattr(region, name)} is odd")
    must(region.num_size_bins > 1, "region.size_out_dim leaves a single size")
    must(
        text.max_context > config.image_prefix_length,
        f"text.max_context {text.max_context} leaves no room behind {config.image_prefix_length} positions",
    )
    templates = tokenizer.templates
    ids = {
        *tokenizer.control_ids,
        *templates.caption.short,
        *templates.caption.normal,
        *templates.caption.long,
    }
    for template in (templates.query, templates.detect, templates.point, templates.segment or Template()):
        ids |= {*template.prefix, *template.suffix}
    outside = sorted(i for i in ids if not 0 <= i < text.vocab_size)
    must(not outside, f"tokenizer ids {outside} lie outside the vocabulary of {text.vocab_size}")
    return found

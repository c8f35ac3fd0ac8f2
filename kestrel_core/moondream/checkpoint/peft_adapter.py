"""Adapters of PEFT: a folder with `adapter_config.json` and `adapter_model.safetensors`.

Any of the matrices may be left out. What B is multiplied by is in the configuration. Settings that would
compute something else than W x + B (A x) are refused by their names, and so are those we have never heard of.

Experts are PEFT's `target_parameters`: A [experts * rank, in] has the experts one behind the other, B
[out, rank * experts] has them innermost. Before PEFT 0.19 A and B were the other way round.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from torch import Tensor

from kestrel_core.moondream.checkpoint.adapter_tensors import Matrix, Place
from kestrel_core.moondream.checkpoint.weights import current_name
from kestrel_core.moondream.config import TextConfig
from kestrel_core.moondream.lora import Target
from kestrel_core.protocol.errors import BadAdapter
from kestrel_core.protocol.names import shown

PREFIX = "base_model.model."
NAME = re.compile(r"(?P<module>.+)\.lora_(?P<part>[AB])\.weight")
BLOCK = re.compile(
    r"text\.blocks\.(?P<layer>\d{1,4})\.(?P<matrix>attn\.qkv|attn\.proj|mlp\.fc1|mlp\.fc2)\.weight"
)
MATRICES: dict[str, Target] = {"attn.qkv": "qkv", "attn.proj": "proj", "mlp.fc1": "fc1", "mlp.fc2": "fc2"}
EXPERTS: dict[str, Target] = {"mlp.fc1": "expert_fc1", "mlp.fc2": "expert_fc2"}
EXPERTS_SINCE = (0, 19)

# Settings that say how an adapter was trained or where it belongs, and change nothing about what it computes.
HARMLESS = {
    *("auto_mapping", "base_model_name_or_path", "inference_mode", "peft_version", "revision", "task_type"),
    *("exclude_modules", "layers_pattern", "layers_to_transform", "target_modules", "target_parameters"),
    *("corda_config", "eva_config", "loftq_config", "lora_ga_config", "lora_dropout"),
    *("ensure_weight_tying", "megatron_core", "qalora_group_size", "runtime_config"),
}
READ = {
    *("peft_type", "r", "lora_alpha", "rank_pattern", "alpha_pattern", "use_rslora"),
    *("bias", "init_lora_weights"),
}
FLAGS = ("use_rslora", "use_dora", "use_qalora", "lora_bias", "fan_in_fan_out")  # true, false or null
# Ways to begin the training that leave the model's own weights alone; the others change those.
PLAIN_STARTS = (None, True, False, "gaussian", "eva", "orthogonal")

# Patterns are regular expressions from a foreign file. Few repetitions, and none of groups, end in time.
MAX_PATTERNS = 1000
MAX_PATTERN_LETTERS = 200
MAX_REPETITIONS = 3
REPETITION = re.compile(r"(?<!\\)[*+?{]")
REPEATED_GROUP = re.compile(r"\)\s*[*+?{]")


@dataclass(frozen=True)
class Pattern:
    """A number for the modules whose names end in what the expression fits."""

    expression: re.Pattern[str]
    number: float


@dataclass(frozen=True)
class PeftConfig:
    rank: int
    alpha: float
    rank_patterns: tuple[Pattern, ...] = ()
    alpha_patterns: tuple[Pattern, ...] = ()
    use_rslora: bool = False
    parameters: tuple[str, ...] = ()  # ends of the names of those that are no module's
    version: tuple[int, int] = (0, 0)

    @classmethod
    def parse(cls, document: object) -> "PeftConfig":
        if not isinstance(document, dict):
            raise BadAdapter("adapter_config.json holds no settings by name")
        _refuse_unsupported(document)
        return cls(
            rank=int(_number(document, "r", whole=True)),
            alpha=_number(document, "lora_alpha"),
            rank_patterns=_patterns(document, "rank_pattern", whole=True),
            alpha_patterns=_patterns(document, "alpha_pattern"),
            use_rslora=document.get("use_rslora") is True,
            parameters=_names(document, "target_parameters"),
            version=_version(document.get("peft_version")),
        )

    def matrices(self, tensors: Mapping[str, Tensor], config: TextConfig) -> Iterator[Matrix]:
        """What each tensor is. Raises if one is none of the model's."""
        for name, tensor in tensors.items():
            module, layer, matrix, part = _placed(name)
            if config.has_experts(layer) and matrix in EXPERTS:
                place = Place(layer, EXPERTS[matrix], part)
                tensor = self._experts(name, tensor, part, config)
            else:
                place = Place(layer, MATRICES[matrix], part)
            # Patterns are for what was asked for: a module, or its parameter.
            parameter = f".{module}.weight"
            is_parameter = any(parameter.endswith(f".{end}") for end in self.parameters)
            key = f"{module}.weight" if is_parameter else module
            rank = self._rank(name, tensor, part, key)
            alpha = _first(self.alpha_patterns, key, self.alpha)
            yield Matrix(name, place, tensor, alpha / (math.sqrt(rank) if self.use_rslora else rank))

    def _rank(self, name: str, tensor: Tensor, part: Literal["a", "b"], key: str) -> int:
        rank = int(_first(self.rank_patterns, key, self.rank))
        if tensor.ndim < 2 or tensor.shape[-2 if part == "a" else -1] != rank:
            raise BadAdapter(
                f"{shown(name)} has the shape {list(tensor.shape)}, and adapter_config.json says "
                f"that its rank is {rank}"
            )
        return rank

    def _experts(self, name: str, tensor: Tensor, part: Literal["a", "b"], config: TextConfig) -> Tensor:
        """The matrices of all experts, [experts, rank, in] or [experts, out, rank]."""
        assert config.moe is not None
        if self.version < EXPERTS_SINCE:
            raise BadAdapter(
                f"{shown(name)} is of experts, and PEFT older than 0.19 laid them out otherwise; "
                "save the adapter again with PEFT 0.19 or newer"
            )
        count = config.moe.num_experts
        if tensor.ndim != 2 or tensor.shape[0 if part == "a" else 1] % count:
            needed = f"[{count} * rank, in]" if part == "a" else f"[out, rank * {count}]"
            raise BadAdapter(f"{shown(name)} has the shape {list(tensor.shape)}, and experts need {needed}")
        if part == "a":
            return tensor.reshape(count, -1, tensor.shape[1])
        return tensor.reshape(tensor.shape[0], -1, count).permute(2, 0, 1)


def _placed(name: str) -> tuple[str, int, str, Literal["a", "b"]]:
    """Module as PEFT names it, layer, matrix and part of a tensor."""
    match = NAME.fullmatch(name.removeprefix(PREFIX)) if name.startswith(PREFIX) else None
    if match is None:
        raise BadAdapter(
            f"{shown(name)} is no matrix of LoRA: those are named {PREFIX}(module).lora_A.weight "
            "and .lora_B.weight"
        )
    block = BLOCK.fullmatch(current_name(f"{match['module']}.weight"))
    if block is None:
        raise BadAdapter(
            f"{shown(name)} changes a matrix that adapters do not reach here, which are "
            f"{', '.join(MATRICES)} of the text model's blocks; train without it"
        )
    return match["module"], int(block["layer"]), block["matrix"], "a" if match["part"] == "A" else "b"


def _refuse_unsupported(document: Mapping[str, Any]) -> None:
    kind = document.get("peft_type")
    if kind != "LORA":
        raise BadAdapter(f'peft_type is "{shown(kind)}" in adapter_config.json, and only "LORA" is served')
    for name in FLAGS:
        if not isinstance(value := document.get(name), bool | None):  # "false" in quotes is true to Python
            raise BadAdapter(
                f"{name} is {shown(json.dumps(value))} in adapter_config.json, and must be true or false"
            )
    for name, value in document.items():
        if name not in HARMLESS and name not in READ and value and value != "none":
            raise BadAdapter(
                f"{shown(name)} is set in adapter_config.json, and is not served; train without it"
            )
    if document.get("bias", "none") != "none":
        raise BadAdapter(
            f'bias is "{shown(document["bias"])}" in adapter_config.json, and only "none" is served'
        )
    start = document.get("init_lora_weights")
    if not isinstance(start, bool | str | None) or start not in PLAIN_STARTS:  # 1 is in them, being True
        raise BadAdapter(
            f'init_lora_weights is "{shown(start)}" in adapter_config.json, which changes the model too; '
            "convert the adapter to plain LoRA"
        )


def _number(document: Mapping[str, Any], name: str, whole: bool = False) -> float:
    return _positive(document.get(name), name, whole)


def _positive(value: Any, name: str, whole: bool) -> float:
    kinds = (int,) if whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds) or not 0 < value < 1e6:
        kind = "a whole number" if whole else "a number"
        raise BadAdapter(
            f"{shown(name)} is {shown(value)} in adapter_config.json, and must be {kind} above 0"
        )
    return float(value)


def _names(document: Mapping[str, Any], name: str) -> tuple[str, ...]:
    found = document.get(name) or []
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise BadAdapter(f"{name} in adapter_config.json must be a list of names")
    return tuple(found)


def _patterns(document: Mapping[str, Any], name: str, whole: bool = False) -> tuple[Pattern, ...]:
    found = document.get(name) or {}
    if not isinstance(found, dict) or len(found) > MAX_PATTERNS:
        raise BadAdapter(
            f"{name} in adapter_config.json must be at most {MAX_PATTERNS} patterns with a number each"
        )
    return tuple(
        Pattern(_expression(text, name), _positive(number, f"{name} of {text}", whole))
        for text, number in found.items()
    )


def _expression(text: str, name: str) -> re.Pattern[str]:
    if (
        len(text) > MAX_PATTERN_LETTERS
        or len(REPETITION.findall(text)) > MAX_REPETITIONS
        or REPEATED_GROUP.search(text)
    ):
        raise BadAdapter(
            f'"{shown(text)}" in {name} of adapter_config.json is too involved; write the names out, '
            "or use fewer repetitions"
        )
    try:
        return re.compile(rf"(?:.*\.)?(?:{text})$")
    except re.error as error:
        raise BadAdapter(
            f'"{shown(text)}" in {name} of adapter_config.json is no regular expression: {error}'
        ) from error


def _first(patterns: tuple[Pattern, ...], key: str, otherwise: float) -> float:
    return next((one.number for one in patterns if one.expression.match(key)), otherwise)


def _version(text: object) -> tuple[int, int]:
    match = re.match(r"(\d{1,4})\.(\d{1,4})", text) if isinstance(text, str) else None
    return (int(match[1]), int(match[2])) if match else (0, 0)

"""How the engine runs: one frozen dataclass, from keywords, `KESTREL_*` variables or Triton parameters."""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, get_args, get_type_hints

from kestrel_core.protocol.errors import InvalidRequest


def _option(default: Any, meaning: str) -> Any:
    return field(default=default, metadata={"meaning": meaning})


@dataclass(frozen=True, slots=True)
class RuntimeConfig:
    model: str = _option(
        "moondream3-preview", "moondream2, moondream3-preview, moondream3.1-9B-A2B or moondream-tiny"
    )
    model_path: str | None = _option(None, "local checkpoint: a folder, a safetensors file or index, a .pt")
    tokenizer_path: str | None = _option(None, "tokenizer.json, where it is not beside the checkpoint")
    weights: str = _option("checkpoint", "checkpoint, or random: seeded weights of the model's shape")
    seed: int = _option(0, "of random weights")
    device: str = _option("cuda", "cuda, cuda:N or cpu")
    dtype: str = _option("auto", "auto (bfloat16 on CUDA, float32 on CPU), float32, bfloat16 or float16")
    runtime: str = _option("auto", "the device half: auto (the fast one on CUDA), or torch, the plain path")
    flashinfer: str = _option("auto", "auto: FlashInfer's attention where it runs (CUDA, 16 bits), or off")
    cuda_graphs: bool = _option(True, "on CUDA, capture steps into graphs at start and replay them")
    compile: str = _option("auto", "auto: fused and compiled kernels where they win (CUDA), or off")
    vision_dtype: str = _option("auto", "auto (as dtype), or fp8: pictures are encoded in 8 bits (CUDA)")
    max_batch_size: int = _option(4, "sequences decoded together")
    max_context: int | None = _option(
        None, "positions of a sequence, the image's included; as the model's config says"
    )
    kv_cache_tokens: int | None = _option(
        None, "positions the KV cache holds; two full contexts a sequence, or what fits"
    )
    prefix_cache: bool = _option(True, "share the KV of equal beginnings: pictures, prompts, answers")
    step_tokens: int | None = _option(
        None, "positions computed in a step before further prompts have to wait; 4096 on CUDA, 2048 on a CPU"
    )
    max_queue: int = _option(256, "requests that may wait; more are refused")
    max_queue_bytes: int = _option(512 * 2**20, "bytes of pictures that may wait; more are refused")
    priority_s: float = _option(10.0, "seconds of waiting that outweigh one step of priority")
    default_timeout_s: float | None = _option(None, "deadline of requests that bring none")
    image_workers: int | None = _option(
        None, "threads that decode pictures; half as many as there are cores, from 2 to 8"
    )
    max_image_bytes: int = _option(64 * 2**20, "of an encoded picture")
    max_image_pixels: int = _option(100_000_000, "of a picture, read from its header")

    def __post_init__(self) -> None:
        for option in fields(self):
            value = getattr(self, option.name)
            if type(value) in (int, float) and option.name != "seed" and not 0 < value < math.inf:
                raise InvalidRequest(f"{option.name} is {value}; it must be more than 0, and finite")
        for name, known in (
            ("weights", ("checkpoint", "random")),
            ("dtype", ("auto", "float32", "bfloat16", "float16")),
            ("runtime", ("auto", "torch")),
            ("flashinfer", ("auto", "off")),
            ("compile", ("auto", "off")),
            ("vision_dtype", ("auto", "fp8")),
        ):
            if getattr(self, name) not in known:
                raise InvalidRequest(f'{name} is "{getattr(self, name)}"; it can be {", ".join(known)}')

    @property
    def max_step_tokens(self) -> int:
        """On CUDA the products of a step gain from more rows; on a CPU they only take longer."""
        return self.step_tokens or (2048 if self.device == "cpu" else 4096)

    @property
    def num_image_workers(self) -> int:
        return self.image_workers or min(max(2, (os.cpu_count() or 2) // 2), 8)

    @classmethod
    def from_strings(cls, values: Mapping[str, str]) -> "RuntimeConfig":
        """From texts by field name, as Triton's parameters are; an unknown name is an error."""
        hints = get_type_hints(cls)
        unknown = sorted(set(values) - set(hints))
        if unknown:
            raise InvalidRequest(f"there is no option {', '.join(unknown)}; there are {', '.join(hints)}")
        return cls(**{name: _parse(name, hints[name], text) for name, text in values.items()})

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None, **fixed: str) -> "RuntimeConfig":
        """`KESTREL_MODEL`, `KESTREL_MAX_BATCH_SIZE` and so on; `fixed` ones win over them."""
        source = os.environ if environment is None else environment
        found = {option.name: source.get(f"KESTREL_{option.name.upper()}", "") for option in fields(cls)}
        return cls.from_strings({name: text for name, text in found.items() if text} | fixed)

    @classmethod
    def from_parameters(
        cls,
        parameters: Mapping[str, str],
        instance: int = 0,
        environment: Mapping[str, str] | None = None,
    ) -> "RuntimeConfig":
        """The environment's, and from a Triton model's parameters what the environment leaves open.

        The parameter `devices` is a list by comma: each instance of the model takes its own.
        """
        given = dict(parameters)
        if devices := [name.strip() for name in given.pop("devices", "").split(",") if name.strip()]:
            if instance >= len(devices):
                raise InvalidRequest(
                    f"devices names {len(devices)} and this is instance {instance + 1}; name one for each"
                )
            given["device"] = devices[instance]
        cls.from_strings(given)  # so that a wrong name is an error here too
        source = os.environ if environment is None else environment
        return cls.from_environment(
            {f"KESTREL_{name.upper()}": text for name, text in given.items()}
            | {name: text for name, text in source.items() if text}
        )


def _parse(name: str, kind: Any, text: str) -> Any:
    kinds = [arm for arm in get_args(kind) if arm is not type(None)] or [kind]
    if kind not in kinds and text.lower() in ("", "none"):
        return None
    try:
        if kinds[0] is bool:
            return {"1": True, "true": True, "0": False, "false": False}[text.strip().lower()]
        return kinds[0](text)
    except (KeyError, ValueError):
        raise InvalidRequest(f'{name} is "{text}"; it must be a {kinds[0].__name__}') from None

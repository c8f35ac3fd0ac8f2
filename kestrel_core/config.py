"""How the engine runs: one frozen dataclass, from keywords, `KESTREL_*` variables or Triton parameters.

All three are checked here, once: an unknown name is refused with the nearest known one, and so is a value of
the wrong type.
"""

import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, wraps
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

from kestrel_core.intake.models import DEFAULT, MODELS
from kestrel_core.protocol.errors import InvalidRequest
from kestrel_core.protocol.limits import InputLimits
from kestrel_core.protocol.names import nearest

PREFIX = "KESTREL_"
API_KEY = "MOONDREAM_API_KEY"  # a variable, and no option: what is configured is shown, and this is secret
RENAMED = {"weights_path": "model_path", "max_seq_length": "max_context"}  # names of older versions
# Kubernetes sets such variables in every pod beside a service called `kestrel`; no user wrote them.
SERVICE_LINK = re.compile(r"KESTREL_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)\w*)?)")
TYPES = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
SWITCH = ("auto", "off", "required")
SERVED_TIMEOUT_S = 60.0
CHOICES = {
    "weights": ("checkpoint", "random"),
    "dtype": ("auto", "float32", "bfloat16", "float16"),
    "runtime": ("auto", "torch"),
    "flashinfer": SWITCH,
    "cuda_graphs": SWITCH,
    "compile": SWITCH,
    "decode_kernels": ("off", "attention", "products", "early"),
    "vision_dtype": ("auto", "fp8"),
    "kv_dtype": ("auto", "fp8"),
    "vision_attention": ("auto", "ours", "cudnn"),
    "vision_pacing": ("off", "slices"),
    "quantize": ("off", "fp8", "int4"),
}
YES_OR_NO = {"1": True, "true": True, "0": False, "false": False}

Config = TypeVar("Config")


def _option(default: Any, meaning: str) -> Any:
    return field(default=default, metadata={"meaning": meaning})


def _refusing_unknown_names(made: type[Config]) -> type[Config]:
    """A dataclass's own `__init__` answers an unknown keyword with a TypeError that names no other."""
    initialise = made.__init__

    @wraps(initialise)
    def checked(self: Config, *values: Any, **options: Any) -> None:
        _check_names(options)
        initialise(self, *values, **options)

    made.__init__ = checked  # type: ignore[method-assign, assignment]
    return made


@_refusing_unknown_names
@dataclass(frozen=True, slots=True)
class RuntimeConfig:
    model: str = _option(DEFAULT, f"{', '.join([*MODELS][:-1])} or {[*MODELS][-1]}")
    model_path: str | None = _option(None, "local checkpoint: a folder, a safetensors file or index, a .pt")
    revision: str | None = _option(
        None, "commit, tag or branch of the model's repository, in place of the recorded one"
    )
    tokenizer_path: str | None = _option(None, "tokenizer.json, where it is not beside the checkpoint")
    weights: str = _option("checkpoint", "checkpoint, or random: seeded weights of the model's shape")
    verify_weights: bool = _option(
        False, "compare the SHA-256 of the weights with the one recorded beside them, before they are loaded"
    )
    seed: int = _option(0, "of random weights")
    device: str = _option("cuda", "cuda, cuda:N or cpu")
    dtype: str = _option("auto", "auto (bfloat16 on CUDA, float32 on CPU), float32, bfloat16 or float16")
    runtime: str = _option("auto", "the device half: auto (the fast one on CUDA), or torch, the plain path")
    flashinfer: str = _option(
        "auto", "FlashInfer's attention: auto (where it runs: CUDA, 16 bits), off, or required"
    )
    cuda_graphs: str = _option(
        "auto", "capture steps into graphs at start and replay them: auto (on CUDA), off, or required"
    )
    quick_start: bool = _option(
        False,
        "compile FlashInfer beside all else, its kernels for large steps while requests are served, and "
        "capture most graphs after the start, in idle moments (CUDA)",
    )
    cache_folder: str | None = _option(
        None,
        "folder for compiled kernels, FlashInfer's too, which the next start takes from there; those of the "
        "libraries, in the home folder",
    )
    compile: str = _option(
        "auto", "fused and compiled kernels: auto (where they win, on CUDA), off, or required"
    )
    decode_kernels: str = _option(
        "off",
        "kernels of our own for steps of few rows (CUDA), each with those before it: attention, products, or "
        "early (launched before the last has ended: Hopper); off: as for many rows",
    )
    vision_dtype: str = _option("auto", "auto (as dtype), or fp8: pictures are encoded in 8 bits (CUDA)")
    kv_dtype: str = _option(
        "auto",
        "auto (as dtype), or fp8: keys and values are kept in 8 bits, twice the positions in the same memory "
        "(CUDA from 8.9 on)",
    )
    vision_attention: str = _option(
        "auto",
        "attention of the vision encoder (CUDA): auto (the fastest of torch's and our own), cudnn, or ours "
        "(Hopper; auto where it cannot be built; in fp8 it rounds its own results)",
    )
    vision_pacing: str = _option(
        "off",
        "pictures while answers stream: off (encoded in the step that needs them), or slices (a few crops "
        "between two steps)",
    )
    picture_steps: int = _option(
        20,
        "steps over which pacing spreads what waits: with more, pauses are shorter and pictures take longer",
    )
    quantize: str = _option(
        "off",
        "off, fp8 (pictures and text in 8 bits, CUDA from 8.9 on), or int4 (weights in 4 and 8 bits, for "
        "small GPUs)",
    )
    scales_path: str | None = _option(
        None, "fp8: the scales that kestrel quantize wrote, where they are not beside the checkpoint"
    )
    skills: str | None = _option(None, "skills of your own: module:name or file.py:name, by comma")
    adapters: str | None = _option(
        None, "folder of LoRA adapters, a file or sub-folder each; a bundled model may bring its own"
    )
    adapter_hub: bool = _option(False, "whether an adapter may be named by its Hugging Face id, and fetched")
    max_adapters: int = _option(8, "adapters on the device at once")
    max_adapter_rank: int = _option(32, "rank of the largest adapter that is taken")
    max_batch_size: int = _option(4, "sequences decoded together")
    max_context: int | None = _option(
        None, "positions of a sequence, the image's included; as the model's config says"
    )
    kv_cache_tokens: int | None = _option(
        None, "positions the KV cache holds; two full contexts a sequence, or what fits"
    )
    prefix_cache: bool = _option(True, "share the KV of equal beginnings: pictures, prompts, answers")
    share_pictures: bool = _option(False, "share the KV of equal pictures between salts; never that of texts")
    step_tokens: int | None = _option(
        None, "positions computed in a step before further prompts have to wait; 4096 on CUDA, 2048 on a CPU"
    )
    max_step_s: float | None = _option(
        None,
        "seconds of a step after which its engine counts as stuck and is replaced; 120 on CUDA, 600 on a CPU",
    )
    max_queue: int = _option(256, "requests that may wait; more are refused")
    max_queue_bytes: int = _option(512 * 2**20, "bytes of pictures that may wait; more are refused")
    max_prepared_bytes: int = _option(
        512 * 2**20, "bytes of decoded pictures that may wait before they are computed"
    )
    priority_s: float = _option(2.0, "seconds of waiting that outweigh one step of priority")
    default_timeout_s: float | None = _option(
        None, f"deadline of requests that bring none; {SERVED_TIMEOUT_S:g} where Triton serves"
    )
    threads: int | None = _option(
        None, "threads that compute on a CPU; one for each core, and fewer while others use the cores"
    )
    image_workers: int | None = _option(
        None, "threads that decode pictures; half as many as there are cores, from 2 to 8"
    )
    input_limits: str = _option(
        "",
        "other limits than docs/interface.md has, by input: question=131072,stop=4,max_tokens=512",
    )
    max_image_bytes: int = _option(64 * 2**20, "of an encoded picture")
    max_image_pixels: int = _option(100_000_000, "of a picture, read from its header")
    max_image_cost: int = _option(
        400_000_000,
        "of decoding a picture, read from its header: pixels, times how much longer than a plain JPEG's each "
        "takes (format, scans, channels, hardly any bytes)",
    )
    max_image_frames: int = _option(1000, "frames or pages of a picture's file, of which the first is taken")

    def __post_init__(self) -> None:
        for name in _types():
            value = _checked(name, getattr(self, name))
            object.__setattr__(self, name, value)  # as the class is frozen

    @property
    def graphs(self) -> str:
        """`cuda_graphs`, or "lazy" where most of them may come after the start."""
        return "lazy" if self.quick_start and self.cuda_graphs == "auto" else self.cuda_graphs

    @property
    def max_step_tokens(self) -> int:
        """On CUDA the products of a step gain from more rows; on a CPU they only take longer."""
        return self.step_tokens or (2048 if self.device == "cpu" else 4096)

    @property
    def step_limit_s(self) -> float:
        """Far above what a step takes, even one for which a kernel is compiled, or a large model on a CPU."""
        return self.max_step_s or (600.0 if self.device == "cpu" else 120.0)

    @property
    def num_image_workers(self) -> int:
        return self.image_workers or min(max(2, (os.cpu_count() or 2) // 2), 8)

    @property
    def adapters_folder(self) -> Path | None:
        """The one that is named, or that the model brings with it. A folder that is not there holds none."""
        if self.adapters is not None:
            return Path(self.adapters)
        known = MODELS.get(self.model)
        is_other = self.model_path is not None or self.weights == "random"
        return None if known is None or is_other else known.adapters

    @classmethod
    def from_strings(cls, values: Mapping[str, str]) -> "RuntimeConfig":
        """From texts by field name, as Triton's parameters are."""
        _check_names(values)
        return cls(**{name: _parse(name, text) for name, text in values.items()})

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None, **fixed: str) -> "RuntimeConfig":
        """`KESTREL_MODEL`, `KESTREL_MAX_BATCH_SIZE` and so on; `fixed` ones win over them."""
        return cls.from_strings(_from_variables(os.environ if environment is None else environment) | fixed)

    @classmethod
    def from_parameters(
        cls,
        parameters: Mapping[str, str],
        instance: int = 0,
        environment: Mapping[str, str] | None = None,
    ) -> "RuntimeConfig":
        """From the environment, and for what that leaves out from the parameters of a Triton model.

        The parameter `devices` is a list by comma: each instance of the model takes its own. A caller of
        Triton may be gone without being noticed, so here there is a deadline unless another one is given.
        """
        given = dict(parameters)
        devices = [name.strip() for name in given.pop("devices", "").split(",") if name.strip()]
        cls.from_strings(given)  # a wrong parameter is an error even where a variable takes its place
        given.setdefault("default_timeout_s", str(SERVED_TIMEOUT_S))
        chosen = given | _from_variables(os.environ if environment is None else environment)
        if devices:
            chosen["device"] = _own_device(devices, instance, chosen.get("device"))
        return cls.from_strings(chosen)


def moondream_api_key() -> str | None:
    """For adapters that Moondream hosts; without it none of them is asked for."""
    return os.environ.get(API_KEY) or None


def variable(option: str) -> str:
    """The environment variable of an option."""
    return PREFIX + option.upper()


def _from_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The texts of our variables by field name, without empty ones."""
    known = {variable(name): name for name in _types()}
    found = {name: text for name, text in environment.items() if name.startswith(PREFIX) and text}
    for name in found:
        if name not in known and not SERVICE_LINK.fullmatch(name):
            raise InvalidRequest(f"there is no variable {name}{_hint(name, known, variable)}")
    return {known[name]: text for name, text in found.items() if name in known}


def _own_device(devices: list[str], instance: int, device: str | None) -> str:
    """The instance's own device. The option `device` may name them all: cuda:0 and cuda:1 are `cuda`."""
    if device is not None and any(name != device and not name.startswith(f"{device}:") for name in devices):
        raise InvalidRequest(
            f"the parameter devices is {', '.join(devices)} and device ({variable('device')}) is {device}; "
            "leave one of them out"
        )
    if instance >= len(devices):
        raise InvalidRequest(
            f"devices names {len(devices)} and this is instance {instance + 1}; name one for each"
        )
    return devices[instance]


def _check_names(names: Iterable[str]) -> None:
    for name in names:
        if name not in _types():
            raise InvalidRequest(f"there is no option {name}{_hint(name, _types(), str)}")


def _hint(name: str, known: Iterable[str], spelt: Any) -> str:
    replaced = {spelt(old): spelt(new) for old, new in RENAMED.items()}
    return f"; it is called {replaced[name]} now" if name in replaced else nearest(name, known)


@cache
def _types() -> dict[str, tuple[type, bool]]:
    """The type of each option, and whether it may be None."""
    found = {}
    for name, hint in get_type_hints(RuntimeConfig).items():
        kinds = get_args(hint) or (hint,)
        found[name] = kinds[0], type(None) in kinds
    return found


def _checked(name: str, value: Any) -> Any:
    kind, may_be_none = _types()[name]
    if value is None and may_be_none:
        return None
    if name == "cuda_graphs" and isinstance(value, bool):  # what it took before there was `required`
        value = "auto" if value else "off"
    if kind is str and isinstance(value, os.PathLike):
        value = os.fspath(value)
    fitting = (int, float) if kind is float else (kind,)
    if type(value) not in fitting:  # not isinstance: True is an int
        raise InvalidRequest(f"{name} is {value!r}; it must be {TYPES[kind]}")
    if kind in (int, float) and name != "seed" and not 0 < value < math.inf:
        raise InvalidRequest(f"{name} is {value}; it must be more than 0, and finite")
    if name == "input_limits":
        InputLimits.parse(value)
    if name in CHOICES and value not in CHOICES[name]:
        raise InvalidRequest(f'{name} is "{value}"; it can be {", ".join(CHOICES[name])}')
    return value


def _parse(name: str, text: str) -> Any:
    kind, may_be_none = _types()[name]
    word = text.strip().lower()
    if may_be_none and word in ("", "none"):
        return None
    try:
        if kind is bool or (name == "cuda_graphs" and word in YES_OR_NO):
            return YES_OR_NO[word]
        return kind(text)
    except (KeyError, ValueError):
        raise InvalidRequest(f'{name} is "{text}"; it must be {TYPES[kind]}') from None

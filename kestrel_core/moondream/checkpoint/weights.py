"""Gives the tensors of a checkpoint, or random ones, to a model built on the meta device.

Names may be as published (with or without `model.` in front), from compiled modules, or in the first spelling
of Moondream 2. Experts may be float8 with scales, and linear layers of Moondream 2 int4. Tensors that are
missing, unknown or do not fit are all named in one error, before any tensor is read. Moondream 2 ignores
unknown ones, because programs that saved a running model left all kinds of them, but no whole blocks.
"""

import logging
import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor, nn

from kestrel_core.moondream.checkpoint.config_file import parse_config
from kestrel_core.moondream.checkpoint.files import Checkpoint, open_checkpoint, read_json
from kestrel_core.moondream.checkpoint.uploads import Upload, side_by_side
from kestrel_core.moondream.config import MOONDREAM2, MOONDREAM3, MoondreamConfig
from kestrel_core.protocol.errors import BadCheckpoint
from kestrel_core.protocol.names import shown

log = logging.getLogger("kestrel")

FLOATS = ("bfloat16", "float16", "float32", "float64")
NAMED = 3  # of the tensors that are ignored
KV_CACHES = (".kv_cache.k_cache", ".kv_cache.v_cache")  # scripts that saved a running model left them
BLOCK = re.compile(r"(text|vision)\.blocks\.(\d+)\.")
EXPERT_SCALES = {"fc1.weight": "up_scale", "fc2.weight": "down_scale"}

Give = Callable[[nn.Module, str, Tensor], bool]

LEGACY_NAMES = (
    ("vision_encoder.encoder.model.visual.patch_embed.linear.", "vision.patch_emb."),
    ("vision_encoder.encoder.model.visual.pos_embed", "vision.pos_emb"),
    ("vision_encoder.encoder.model.visual.blocks.", "vision.blocks."),
    ("vision_encoder.encoder.model.visual.norm.", "vision.post_ln."),
    ("vision_encoder.projection.mlp.", "vision.proj_mlp."),
    (".norm1.", ".ln1."),
    (".norm2.", ".ln2."),
    ("text_model.transformer.embd.wte.weight", "text.wte"),
    ("text_model.transformer.h.", "text.blocks."),
    ("text_model.lm_head.ln.", "text.post_ln."),
    ("text_model.lm_head.linear.", "text.lm_head."),
    (".mixer.Wqkv.", ".attn.qkv."),
    (".mixer.out_proj.", ".attn.proj."),
    ("region_model.coordinate_features.weight", "region.coord_features"),
    ("region_model.size_features.weight", "region.size_features"),
    ("region_model.coordinate_", "region.coord_"),
    ("region_model.size_", "region.size_"),
)
LEGACY_TRANSPOSED = ("region_model.coordinate_features.weight", "region_model.size_features.weight")


@dataclass(frozen=True, slots=True)
class Stored:
    """A tensor of the checkpoint, seen as the model names and transposes it."""

    raw: str
    shape: tuple[int, ...]
    dtype: str
    transposed: bool


@dataclass(frozen=True, slots=True)
class Wanted:
    shape: tuple[int, ...]
    dtypes: tuple[str, ...] = FLOATS


def load_config(path: Path, default: MoondreamConfig | None = None) -> MoondreamConfig:
    """The configuration beside a checkpoint, completed by what only its tensors tell."""
    stored = _by_name(open_checkpoint(path))
    told = _told_generation(stored)
    base = default or (told and {2: MOONDREAM2, 3: MOONDREAM3}[told[0]]) or None
    file = (path if path.is_dir() else path.parent) / "config.json"
    if file.is_file():
        config = parse_config(read_json(file), base)
    elif base is not None:
        config = base
    else:
        raise BadCheckpoint(f"{path} has no config.json beside it, and its tensors are no Moondream's")
    if (
        told is not None and told[0] != config.generation
    ):  # said here, before something is found wrong with its tokenizer
        raise BadCheckpoint(_other_generation(told, config))
    if config.region.norm and not {"region.ln.weight", "region.ln.bias"} & stored.keys():
        # Early revisions of the preview have none.
        config = replace(config, region=replace(config.region, norm=False))
    return config


@torch.no_grad()
def load_weights(
    model: nn.Module,
    config: MoondreamConfig,
    checkpoint: Checkpoint,
    device: torch.device,
    dtype: torch.dtype,
    progress: Callable[[int, int], None] | None = None,
    give: Give | None = None,
    num_threads: int = 1,
) -> None:
    """Give every parameter its tensor, on `device` and in `dtype`. `progress`: bytes done, bytes in all.

    `give` may give the model something else in a tensor's place, and says whether it did.
    """
    stored = _by_name(checkpoint)
    shapes = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
    parts = {name: _parts(name, shape, stored, config) for name, shape in shapes.items()}
    _check(parts, stored, config, checkpoint.path)

    def read(name: str) -> Tensor:
        tensor = checkpoint.read(stored[name].raw)
        return tensor.T if stored[name].transposed else tensor

    place = {raw: index for index, raw in enumerate(checkpoint.tensors)}
    total = sum(math.prod(shape) for shape in shapes.values()) * dtype.itemsize
    done = 0
    in_order = sorted(shapes, key=lambda name: place[stored[next(iter(parts[name]))].raw])
    # Files are mapped here, in one thread; what lies in them is read in the others.
    jobs = ((name, [read(part) for part in parts[name]]) for name in in_order)

    def load(upload: Upload | None, job: tuple[str, list[Tensor]]) -> tuple[str, Tensor]:
        name, made_of = job
        weight = torch.empty(shapes[name], device=device, dtype=dtype)
        _fill(weight, made_of, upload)
        return name, weight

    loaded: Iterator[tuple[str, Tensor]] = (load(None, job) for job in jobs)
    if num_threads > 1:
        loaded = side_by_side(load, jobs, device, num_threads)
    for name, weight in loaded:
        if weight.is_cuda:  # of another stream, which must not reuse it while this one still packs it
            weight.record_stream(torch.cuda.current_stream(device))
        _assign(model, name, weight, give)
        done += weight.nbytes
        if progress is not None:
            progress(done, total)
    checkpoint.close()


def _fill(weight: Tensor, parts: list[Tensor], upload: Upload | None) -> None:
    match parts:
        case [plain]:
            weight.copy_(plain) if upload is None else upload.copy(weight, plain)
        case [float8, scale]:
            unscale_float8(float8, scale, weight)
        case [packed, scale, zero_point]:
            unpack_int4(packed, scale, zero_point, weight)


def unscale_float8(weight: Tensor, scale: Tensor, out: Tensor) -> None:
    """weight, out: [experts, rows, columns]; scale: [experts, rows]. Multiplied in float32, rounded once."""
    # One expert at a time: all experts of a layer in float32 would take four times their size.
    for expert in range(len(out)):
        rows = weight[expert].to(out.device).float()
        out[expert].copy_(rows * scale[expert].to(out.device).float()[:, None])


def unpack_int4(packed: Tensor, scale: Tensor, zero_point: Tensor, out: Tensor) -> None:
    """packed: [groups / 2, group], high nibbles first; scale, zero_point: [groups, 1]; out: any shape."""
    packed, scale, zero_point = (t.to(out.device) for t in (packed, scale, zero_point))
    steps = torch.cat((packed >> 4, packed & 15)).float() - zero_point.float()
    # Rounded twice, as in the reference, which keeps intermediate results in the model's dtype.
    out.copy_((steps.to(out.dtype) * scale.float()).reshape(out.shape))


@torch.no_grad()
def random_weights(
    model: nn.Module,
    device: torch.device,
    dtype: torch.dtype,
    seed: int,
    give: Give | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Weights that keep activations of order one through any number of layers, for benchmarks and tests.
    `progress`: bytes done, bytes in all.
    """
    generator = torch.Generator(device).manual_seed(seed)
    shapes = [(name, parameter.shape) for name, parameter in model.named_parameters()]
    done, total = 0, sum(shape.numel() for _, shape in shapes) * dtype.itemsize
    for name, shape in shapes:
        mean, std = _spread(name, shape, model)
        weight = torch.empty(shape, device=device, dtype=dtype).normal_(mean, std, generator=generator)
        _assign(model, name, weight, give)
        done += shape.numel() * dtype.itemsize
        if progress is not None:
            progress(done, total)


def _spread(name: str, shape: torch.Size, model: nn.Module) -> tuple[float, float]:
    part, leaf = name.split(".")[0], name.rsplit(".", 1)[-1]
    if leaf in ("wte", "pos_emb", "coord_features", "size_features", "alpha"):
        return 0.0, 1.0
    if len(shape) == 1:
        return (1.0 if leaf == "weight" else 0.0), 0.05
    std = shape[-1] ** -0.5
    if ".blocks." in name and name.endswith(("attn.proj.weight", "mlp.fc2.weight")):
        blocks = model.get_submodule(f"{part}.blocks")
        assert isinstance(blocks, nn.ModuleList)
        std *= (2 * len(blocks)) ** -0.5  # each block adds two outputs to the residual
    return 0.0, std


def _assign(model: nn.Module, name: str, weight: Tensor, give: Give | None) -> None:
    if give is not None and give(model, name, weight):
        return
    owner, _, leaf = name.rpartition(".")
    setattr(model.get_submodule(owner), leaf, nn.Parameter(weight, requires_grad=False))


def current_name(raw: str) -> str:
    """A published tensor's name as the model has it, from any of the spellings."""
    name = _plain(raw)
    for old, new in LEGACY_NAMES:
        name = name.replace(old, new)
    return name


def _plain(raw: str) -> str:
    """Without what compiled modules and the published files put into names."""
    return raw.replace("._orig_mod", "").removeprefix("_orig_mod.").removeprefix("model.")


def _by_name(checkpoint: Checkpoint) -> dict[str, Stored]:
    """The checkpoint's tensors under the names of the model."""
    stored: dict[str, Stored] = {}
    twice: list[str] = []
    for raw, info in checkpoint.tensors.items():
        if raw.endswith(KV_CACHES):
            continue
        name = current_name(raw)
        transposed = _plain(raw) in LEGACY_TRANSPOSED
        if name in stored:
            twice.append(f"{stored[name].raw} and {raw}")
        stored[name] = Stored(raw, info.shape[::-1] if transposed else info.shape, info.dtype, transposed)
    if twice:
        raise BadCheckpoint(f"{checkpoint.path} holds the same tensor under two names: {'; '.join(twice)}")
    return stored


def _told_generation(names: Iterable[str]) -> tuple[int, str] | None:
    """The generation that a tensor's name tells, because no other has such a tensor, and that name."""
    for name in names:
        if ".attn.tau." in name or ".mlp.router." in name:
            return 3, name
        if name.startswith(("region.coord_decoder.fc", "region.size_decoder.fc")):
            return 2, name
    return None


def _other_generation(told: tuple[int, str], config: MoondreamConfig) -> str:
    generation, name = told
    return (
        f"this is a Moondream {generation} checkpoint (it has {name}), "
        f"but the configuration says Moondream {config.generation}"
    )


def _parts(
    name: str, shape: tuple[int, ...], stored: dict[str, Stored], config: MoondreamConfig
) -> dict[str, Wanted]:
    """The stored tensors of one parameter: itself, a float8 and its scale, or the three of an int4."""
    if name in stored and stored[name].dtype.startswith("float8") and len(shape) == 3:
        mlp, leaf = name.split("mlp.")
        scale = f"{mlp}moe_quant.{EXPERT_SCALES[leaf]}"
        return {name: Wanted(shape, (stored[name].dtype,)), scale: Wanted(shape[:-1])}
    group = _group_size(name, config)
    packed, scale, zero_point = f"{name}.packed", f"{name}.scale", f"{name}.zero_point"
    if (
        group is not None
        and math.prod(shape) % (2 * group) == 0
        and {packed, scale, zero_point} & stored.keys()
    ):
        groups = math.prod(shape) // group
        rows = Wanted((groups, 1))
        return {packed: Wanted((groups // 2, group), ("uint8",)), scale: rows, zero_point: rows}
    return {name: Wanted(shape)}


def _group_size(name: str, config: MoondreamConfig) -> int | None:
    if name.startswith("text.blocks."):
        return config.text.group_size
    return config.region.group_size if name.startswith("region.") else None


def misfits(model: nn.Module, config: MoondreamConfig, checkpoint: Checkpoint) -> dict[str, list[str]]:
    """Names of tensors by what is wrong with them: missing, unexpected, or of wrong shape or type."""
    stored = _by_name(checkpoint)
    shapes = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
    return _misfits({name: _parts(name, shape, stored, config) for name, shape in shapes.items()}, stored)


def _misfits(parts: dict[str, dict[str, Wanted]], stored: dict[str, Stored]) -> dict[str, list[str]]:
    wanted = {part: want for made_of in parts.values() for part, want in made_of.items()}
    shared = {name: (want, stored[name]) for name, want in wanted.items() if name in stored}
    found = {
        "missing": [name for name in wanted if name not in stored],
        "unexpected": [have.raw for name, have in stored.items() if name not in wanted],
    }
    for name, (want, have) in shared.items():
        if have.shape != want.shape:
            found.setdefault(f"{list(have.shape)} instead of {list(want.shape)}", []).append(name)
        elif have.dtype not in want.dtypes:
            found.setdefault(f"{have.dtype} instead of {' or '.join(want.dtypes)}", []).append(name)
    return {what: names for what, names in found.items() if names}


def are_ignored(misfits: dict[str, list[str]], config: MoondreamConfig) -> bool:
    """Whether a model loads all the same: of Moondream 2, with tensors too many and nothing else.

    They are not those of further blocks: a model that breaks off would answer, and be another one.
    """
    if config.generation != 2 or misfits.keys() != {"unexpected"}:
        return False
    num_blocks = {"text": config.text.n_layers, "vision": config.vision.enc_n_layers}
    found = filter(None, map(BLOCK.match, map(current_name, misfits["unexpected"])))
    return all(int(block[2]) < num_blocks[block[1]] for block in found)


def _check(
    parts: dict[str, dict[str, Wanted]], stored: dict[str, Stored], config: MoondreamConfig, path: Path
) -> None:
    """Raise one error that names every tensor that is missing, not wanted, or of wrong shape or type."""
    found = _misfits(parts, stored)
    if not found:
        return
    if are_ignored(found, config):
        strange = found["unexpected"]
        names = [shown(name) for name in fold(strange)]
        few = ", ".join(names[:NAMED]) + (" and more" if len(names) > NAMED else "")
        log.warning("%s: what Moondream 2 does not have is ignored (%d tensors): %s", path, len(strange), few)
        return
    problems = [f"{what}: {', '.join(fold(names))}" for what, names in found.items()]
    told = _told_generation(stored)
    if told is not None and told[0] != config.generation:
        opening = _other_generation(told, config)
    else:
        opening = f"{path} does not hold the tensors that its configuration asks for"
    raise BadCheckpoint(f"{opening}: {'; '.join(problems)}")


def fold(names: Iterable[str]) -> list[str]:
    """Write names that differ only in their layer as one: `text.blocks.{0..2,5}.ln.bias`."""
    layers: dict[tuple[str, str], list[int]] = {}
    folded: list[str] = []
    for name in names:
        match re.split(r"(?<=\.)(0|[1-9]\d*)(?=\.)", name, maxsplit=1):
            case [before, layer, after]:
                layers.setdefault((before, after), []).append(int(layer))
            case _:
                folded.append(name)
    for (before, after), numbers in layers.items():
        runs = _runs(sorted(numbers))
        folded.append(f"{before}{runs if len(numbers) == 1 else f'{{{runs}}}'}{after}")
    return folded


def _runs(numbers: list[int]) -> str:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}..{run[-1]}" for run in runs)

"""What rounding to few bits costs the choices of a golden folder, whatever computes it.

    python tools/few_bits_gaps.py GOLDEN/md3

The plain network in float32 decodes every golden request. Then its weights, and for float8 its inputs, are
rounded in plain torch as with `quantize`, float8 without any code of the fast paths, and it makes each choice
once more behind the same inputs. The gaps are those of `kestrel parity --engine`: how far, by the exact
network, a choice lies below the best one, as a share of the largest logit. Scales times another factor round
to other numbers, none of them better or worse. Limits of `kestrel parity` follow from the scatter; faults, by
which one matrix is 1.3 times what it should be or two experts are exchanged, show what the limits notice.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from kestrel_core.build import LoadedModel, load_model
from kestrel_core.loop.step import Kind, PreparedImage
from kestrel_core.moondream.few_bits_layers import kind_of
from kestrel_core.moondream.lora import Stacks
from kestrel_core.moondream.model import Moondream
from kestrel_core.moondream.moe import MoE
from kestrel_core.moondream.ops.few_bits import pack_weights, unpack
from kestrel_core.moondream.scales import measure_scales, sample_pictures, sample_prompts
from kestrel_core.moondream.text import Block
from kestrel_core.runtime.torch_runtime import TorchRuntime, best_page_size
from kestrel_tools.noted import NotedReply, Walk, walk
from kestrel_tools.parity.adapters import MixedAdapters, read_golden_adapter
from kestrel_tools.parity.command import _layout
from kestrel_tools.parity.report import Report
from kestrel_tools.parity.runs import SKILLS, GoldenRun, drive, prompt_of
from kestrel_tools.parity.subject import Subject
from kestrel_tools.reference import NOT_TOKENS, Adapted, Reference

MARGIN = 4.0  # of float8 scales of inputs, as in `moondream.scales`
FLOAT8_MAX = 448.0
FACTORS = (1.0, 1.09, 1.19, 1.3, 1.41, 1.54, 1.68, 1.83)  # with 2 they begin anew
FAULTS = ((0, "attn.qkv"), (1, "attn.proj"), (2, "mlp.fc1"), (3, "mlp.fc2"), (5, "mlp.fc1"), (5, "attn.qkv"))
MAX_RANK = 64

Encode = Callable[[PreparedImage], Tensor]


class Decoded(NamedTuple):
    run: GoldenRun
    path: Walk
    rows: "list[tuple[Tensor, Tensor]]"  # by the exact network: logits of each choice, and what is allowed


def decode(model: LoadedModel, runs: Sequence[GoldenRun], encode: Encode) -> list[Decoded]:
    """Every run by the exact network."""
    config, page_size = model.network.config, best_page_size(model.network.config.image_prefix_length)
    stacks = Stacks(config.text, 1, MAX_RANK, model.device, torch.float32)
    num_pages = 1 + -(-config.text.max_context // page_size)
    runtime = TorchRuntime(model.network, num_pages, page_size, stacks=stacks)
    runtime.encode_image = encode  # type: ignore[assignment]
    advance, decoded = drive(runtime, config.image_prefix_length), []
    for run in runs:
        prompt, skill = prompt_of(run, model.language), SKILLS[run.request.skill]
        reply = NotedReply(skill.reply(run.request, model.language))
        advance(run, prompt, reply)
        fresh = skill.reply(run.request, model.language)
        path = walk(run.where, prompt.inputs, fresh, reply.choices, run.image is not None)
        decoded.append(Decoded(run, path, [*_rows(model.network, run, path, encode)]))
    return decoded


def gaps(network: Moondream, decoded: Sequence[Decoded], encode: Encode) -> Tensor:
    """Of the choices that this network makes behind the inputs of the exact one."""
    found = []
    for run, path, exact in decoded:
        for (row, allowed), (_, ours) in zip(exact, _rows(network, run, path, encode), strict=True):
            found.append((allowed.max() - allowed[ours.argmax()]) / row.abs().max())
    return torch.stack(found)


def _rows(network: Moondream, run: GoldenRun, path: Walk, encode: Any) -> Iterator[tuple[Tensor, Tensor]]:
    adapted = Adapted.by(run.adapter, network.text.wte) if run.adapter is not None else None
    [hidden] = Reference(network, encode)._hidden(run.image, [path], adapted)
    for at, readout, (kind, sample, _) in path.readings:
        state, ended = hidden[at : at + 1], False
        if kind not in NOT_TOKENS:
            row = allowed = network.text.logits(state)[0]
            if readout.choices:
                allowed = torch.full_like(row, -torch.inf)
                allowed[list(readout.choices)] = row[list(readout.choices)]
            if readout.suppressed:
                allowed = allowed.index_fill(0, torch.tensor(readout.suppressed), -torch.inf)
            yield row, allowed
            ended = kind is Kind.OBJECT and sample.token == network.config.tokenizer.eos_id
        if sample.coord is not None and not ended:
            yield (network.region.coord_logits(state)[0],) * 2
        if sample.size is not None:
            for side in network.region.size_logits(state)[0]:
                yield side, side


def float8(x: Tensor, scale: Tensor | float) -> Tensor:
    return (x / scale).clamp(-FLOAT8_MAX, FLOAT8_MAX).to(torch.float8_e4m3fn).float() * scale


def in_float8(network: Moondream, largest: dict[str, float], factor: float = 1.0) -> Moondream:
    """Weights of a block have a scale for each matrix, those of experts and the output layer one for each
    row. All inputs are rounded, also those of few rows, which an engine leaves as they are.
    """
    network = deepcopy(network)

    def round_weights(by_row: bool, *layers: nn.Module) -> None:
        weights: list[Any] = [layer.weight for layer in layers]
        most = weights[0].abs().amax(-1, keepdim=True) if by_row else max(w.abs().max() for w in weights)
        for weight in weights:
            weight.copy_(float8(weight, most * (factor / FLOAT8_MAX)))

    def round_inputs(name: str, *layers: nn.Module) -> None:
        scale = largest[name] * MARGIN * factor / FLOAT8_MAX
        for layer in layers:
            layer.register_forward_pre_hook(lambda _, given: (float8(given[0], scale), *given[1:]))

    for at, block in enumerate(network.text.blocks):
        assert isinstance(block, Block)
        attn, mlp, name = block.attn, block.mlp, f"text.blocks.{at}"
        if isinstance(mlp, MoE):
            round_weights(False, attn.qkv)
            round_weights(True, mlp.fc1)
            round_weights(True, mlp.fc2)
        else:
            round_weights(False, attn.qkv, mlp.fc1)  # stored as one
            round_weights(False, mlp.fc2)
        round_weights(False, attn.proj)
        round_inputs(f"{name}.attn.qkv", attn.qkv, mlp.fc1)
        round_inputs(f"{name}.attn.proj", attn.proj)
        round_inputs(f"{name}.mlp.fc2", mlp.fc2)
    round_weights(True, network.text.lm_head)
    return network


def in_int4(network: Moondream, factor: float = 1.0) -> Moondream:
    """Weights alone. The factor moves what is rounded in 16 bits: scales, and which of them are best."""
    network = deepcopy(network)
    for name, weight in network.text.named_parameters(prefix="text"):
        if kind := kind_of(name):
            weight.copy_(unpack(pack_weights(weight * factor, kind), torch.float32) / factor)
    return network


def scaled(network: Moondream, layer: int, name: str) -> Moondream:
    weight: Any = network.text.blocks[layer].get_submodule(name).weight
    weight.mul_(1.3)
    return network


def exchanged(network: Moondream) -> Moondream:
    weight: Any = network.text.blocks[-1].get_submodule("mlp.fc1").weight
    weight[[0, 1]] = weight[[1, 0]]
    return network


@torch.inference_mode()
def main(folder: Path) -> None:
    model, layout = load_model(folder, None, torch.device("cpu"), torch.float32), _layout(folder)
    network, report, files = model.network, Report("relative RMS", 0.0), layout.adapter_files(folder)
    page_size = best_page_size(network.config.image_prefix_length)
    encode = TorchRuntime(network, 2, page_size).encode_image
    adapter = read_golden_adapter(files, network.config.text, torch.float32, report)
    runs = layout.runs(folder, Subject(network, model.device, encode, {}, adapter), model.language)
    with MixedAdapters.among([r for r in runs if r.on_image], files, network.config.text) as mixed:
        decoded = decode(model, mixed.runs, encode)
    config = network.config
    largest = dict(measure_scales(network, sample_pictures(config.vision), sample_prompts(config)).largest)

    def tell(what: str, other: Moondream) -> None:
        found = gaps(other, decoded, encode)
        told = f"mean {found.mean():.5f}, 99 % {found.quantile(0.99):.4f}, max {found.max():.4f}"
        print(f"{what}: {told}, {(found > 0).sum()} of {len(found)} are others", flush=True)

    for factor in FACTORS:
        tell(f"fp8, scales times {factor}", in_float8(network, largest, factor))
    for factor in FACTORS[::2]:
        tell(f"int4, weights times {factor}", in_int4(network, factor))
    for kind, made in (("fp8", partial(in_float8, network, largest)), ("int4", partial(in_int4, network))):
        for layer, name in FAULTS:
            if layer < config.text.n_layers:
                tell(f"{kind}, {name} of block {layer} times 1.3", scaled(made(), layer, name))
        if config.text.moe is not None:
            tell(f"{kind}, two experts of the last block exchanged", exchanged(made()))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""A network for small GPUs: which of its weights are kept in 4 or 8 bits, and the layers that keep them.

The MLPs and experts of the text model, which are most of it, have 4 bits, but for the first four blocks: with
8 bits in two of them short captions lost half as much, and with four so did counts by reasoning. Attention
has 8, as in 4 it changed answers that MLPs in 4 did not; so have the vision encoder and the output layer.
Decoders of coordinates and sizes, whose many bins are nearly as good as each other, stay as they are, and so
do embeddings, routers, tau, norms and biases. Embeddings, of which a token needs one row, stay on the host.
Layers are packed while they are loaded, so a device never holds more than one of them unpacked.
"""

import re
from types import ModuleType

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kestrel_core.moondream.config import MoondreamConfig
from kestrel_core.moondream.host_tables import left_on_host
from kestrel_core.moondream.model import Moondream
from kestrel_core.moondream.moe import Experts
from kestrel_core.moondream.ops import few_bits
from kestrel_core.moondream.ops.few_bits import FewBits, Kind, num_bytes, pack_weights, unpack
from kestrel_core.moondream.ops.protocol import FEW_ROWS

EMBEDDINGS = "text.wte"
IN_4_BITS = re.compile(r"text\.blocks\.([4-9]|\d\d+)\.mlp\.fc[12]\.weight")
IN_8_BITS = re.compile(
    r"(text\.(blocks\.\d+\.attn\.(qkv|proj)|blocks\.[0-3]\.mlp\.fc[12]|lm_head)"
    r"|vision\.(blocks\.\d+\.(attn\.(qkv|proj)|mlp\.fc[12])|proj_mlp\.fc[12]))\.weight"
)


def kind_of(name: str) -> Kind | None:
    """How a parameter is kept, by its name in the network; None: as it is."""
    if IN_4_BITS.fullmatch(name):
        return "int4"
    return "fp8" if IN_8_BITS.fullmatch(name) else None


def weights_bytes(config: MoondreamConfig, dtype: torch.dtype, int4: bool) -> int:
    """What a network's weights take on a device."""
    with torch.device("meta"):
        parameters = dict(Moondream(config).named_parameters())
    total = 0
    for name, parameter in parameters.items():
        if int4 and name == EMBEDDINGS:
            continue
        kind = kind_of(name) if int4 else None
        wide = parameter.numel() * dtype.itemsize
        total += wide if kind is None else num_bytes(tuple(parameter.shape), kind)
    return total


class PackedLinear(nn.Module):
    """A linear layer in few bits. Whoever asks for its `weight` gets it unpacked, for the moment."""

    def __init__(self, packed: FewBits, bias: Tensor, dtype: torch.dtype) -> None:
        super().__init__()
        self.packed = packed
        self.in_features, self.out_features = packed.in_dim, packed.out_dim
        self.bias = nn.Parameter(bias, requires_grad=False)
        self._dtype = dtype
        self._ops = _ops_for(packed.values.device)

    @property
    def weight(self) -> Tensor:
        return _unpacked(self.packed, self._dtype, self._ops)

    def forward(self, x: Tensor) -> Tensor:
        if x.dim() == 2:
            y: Tensor = self._ops.linear(x, self.packed, self.bias)
            return y
        return F.linear(x, self.weight, self.bias)


class OutputLayer8(nn.Module):
    """The output layer with weights in 8 bits for few rows, whose time is that of reading it. More rows meet
    the same numbers, as wide as before: unpacking would take them longer than multiplying does.
    """

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.packed = pack_weights(layer.weight, "fp8")
        self.bias = layer.bias
        self._ops = _ops_for(layer.weight.device)
        self.weight = nn.Parameter(_unpacked(self.packed, layer.weight.dtype, self._ops), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        if x.dim() == 2 and len(x) <= FEW_ROWS:
            y: Tensor = self._ops.linear(x, self.packed, self.bias)
            return y
        return F.linear(x, self.weight, self.bias)


class PackedExperts(nn.Module):
    def __init__(self, packed: FewBits, dtype: torch.dtype) -> None:
        super().__init__()
        self.packed = packed
        self._dtype = dtype
        self._ops = _ops_for(packed.values.device)

    @property
    def weight(self) -> Tensor:
        return _unpacked(self.packed, self._dtype, self._ops)

    def forward(self, h: Tensor, index: int) -> Tensor:
        values, scales, kind, in_dim = self.packed
        one = FewBits(values[index], scales[index], kind, in_dim)
        return F.linear(h, _unpacked(one, self._dtype, self._ops))


def _unpacked(packed: FewBits, dtype: torch.dtype, ops: ModuleType) -> Tensor:
    out = torch.empty(packed.shape, dtype=dtype, device=packed.values.device)
    ops.unpack_into(packed, out)
    return out


def _ops_for(device: torch.device) -> ModuleType:
    if device.type != "cuda":
        return few_bits
    try:
        from kestrel_core.moondream.ops import few_bits_kernels
    except ImportError:
        return few_bits  # without the kernels' language; `ops.choose` says what that costs
    return few_bits_kernels


def is_packed(model: nn.Module) -> bool:
    return any(isinstance(layer, (PackedLinear, PackedExperts)) for layer in model.modules())


def give_packed(model: nn.Module, name: str, weight: Tensor) -> bool:
    """Give a network this parameter packed, or left on the host, if it is one of those; whether it was."""
    if name == EMBEDDINGS:
        owner, _, leaf = name.rpartition(".")
        setattr(model.get_submodule(owner), leaf, nn.Parameter(left_on_host(weight), requires_grad=False))
        return True
    kind = kind_of(name)
    if kind is not None:
        layer = name.removesuffix(".weight")
        replace_layer(model, layer, pack_weights(weight, kind), weight.dtype)
    return kind is not None


def pack_network(model: nn.Module) -> None:
    """What loading does with each matrix as it is read, for a network that was loaded as it is."""
    for name, weight in [*model.named_parameters()]:
        give_packed(model, name, weight)


def give_rounded(model: nn.Module, name: str, weight: Tensor, most: Kind) -> bool:
    """The same where nothing multiplies packed weights, as on a CPU, whose memory is large: they are rounded
    to what their packed form stands for, and kept as wide as they were. In fp8 all of them have 8 bits."""
    kind = kind_of(name)
    if kind is not None:
        packed = pack_weights(weight, "fp8" if most == "fp8" else kind)
        layer = model.get_submodule(name.removesuffix(".weight"))
        layer.weight = nn.Parameter(unpack(packed, weight.dtype), requires_grad=False)
    return kind is not None


def replace_layer(model: nn.Module, name: str, packed: FewBits, dtype: torch.dtype) -> None:
    owner, _, leaf = name.rpartition(".")
    layer = model.get_submodule(name)
    if isinstance(layer, Experts):
        setattr(model.get_submodule(owner), leaf, PackedExperts(packed, dtype))
    else:
        assert isinstance(layer, nn.Linear)
        setattr(model.get_submodule(owner), leaf, PackedLinear(packed, layer.bias, dtype))

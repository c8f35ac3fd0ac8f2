"""The model of `kestrel_core.moondream` in training: first weights, batched attention, experts, and the loss.

The network is the server's own. Here are the parts a server does differently: all sequences of a batch have
one layout, so attention needs no pages, and every token meets every expert, which is quicker than sorting.
"""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention.flex_attention import BlockMask, flex_attention

from kestrel_core.moondream.config import MoondreamConfig
from kestrel_core.moondream.lora import Adapt, no_adapters
from kestrel_core.moondream.model import Moondream
from kestrel_core.moondream.moe import MoE
from kestrel_core.moondream.text import Block
from kestrel_core.moondream.vision import pool, stitch
from kestrel_tools.scenes.render import to_device

from .batches import Rows

BLOCK = 128  # positions
SMOOTHING = 2.0  # bins: a coordinate next to the right one is nearly right


class AllExperts(MoE):
    """The same parameters and the same result, with the experts as one wide gated layer."""

    balance: Tensor

    def forward(self, h: Tensor, adapt: Adapt = no_adapters) -> Tensor:
        """No adapter takes part: the model is only being made."""
        with full_precision(h.device):
            logits = self.router(h.float())
        best, ids = logits.topk(self.experts_per_token, dim=-1)
        weights = torch.zeros_like(logits).scatter(-1, ids, F.softmax(best, dim=-1))  # [tokens, experts]
        # Share of tokens of each expert times its mean probability: smallest when all are used equally.
        used = (weights.detach() > 0).float().mean(0) / self.experts_per_token
        self.balance = len(used) * (used * logits.softmax(-1).mean(0)).sum()
        both = F.linear(h, self.fc1.weight.flatten(0, 1)).unflatten(-1, (len(used), -1))
        activation, gate = both.chunk(2, dim=-1)
        inner = F.gelu(activation) * (gate + 1.0) * weights[..., None].to(both.dtype)
        return F.linear(inner.flatten(-2), self.fc2.weight.transpose(1, 2).flatten(0, 1).T)


def new_model(config: MoondreamConfig, device: torch.device, seed: int) -> Moondream:
    """Fresh weights. Coordinates and sizes have fixed frequencies, exact in bfloat16, as they are shipped."""
    with torch.device("meta"):
        model = Moondream(config)
        for block in model.text.blocks:
            assert isinstance(block, Block)
            if isinstance(block.mlp, MoE) and config.text.moe is not None:
                block.mlp = AllExperts(config.text.dim, config.text.moe)
    model.to_empty(device=device)
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        value = _first_value(name, tuple(parameter.shape), config, generator)
        parameter.data.copy_(value)
        parameter.requires_grad = not name.endswith("_features")
    return model


def _first_value(
    name: str, shape: tuple[int, ...], config: MoondreamConfig, generator: torch.Generator
) -> Tensor:
    leaf = name.rsplit(".", 1)[-1]
    if leaf == "coord_features":
        return _frequencies(shape[1], 64.0)[None]
    if leaf == "size_features":
        # Widths use the first half of the columns, heights the second, so that neither disturbs the other.
        half = shape[1] // 2
        features = torch.zeros(shape)
        features[0, :half], features[1, half:] = _frequencies(half, 32.0), _frequencies(shape[1] - half, 32.0)
        return features
    if len(shape) == 1:
        return torch.ones(shape) if leaf == "weight" else torch.zeros(shape)
    if leaf in ("wte", "pos_emb"):
        return 0.1 * torch.randn(shape, generator=generator)
    if leaf in ("wq", "wv") or ".router." in name:
        return 0.02 * torch.randn(shape, generator=generator)
    std: float = shape[-1] ** -0.5
    if ".blocks." in name and name.endswith(("attn.proj.weight", "mlp.fc2.weight")):
        layers = config.text.n_layers if name.startswith("text.") else config.vision.enc_n_layers
        std *= (2 * layers) ** -0.5
    return torch.randn(shape, generator=generator) * std


def _frequencies(count: int, most: float) -> Tensor:
    return (0.25 * (4 * most) ** torch.linspace(0, 1, count)).to(torch.bfloat16).float()


def full_precision(device: torch.device) -> AbstractContextManager[object]:
    return torch.autocast(device.type, enabled=False)


class Together:
    """Attention of a batch with one layout: an image prefix, then tasks that see it and themselves.

    `in_blocks` computes only the blocks of 128 positions in which something is seen; it has to be compiled.
    The tensors stay the same and are filled anew for each batch, so nothing is compiled twice.
    """

    def __init__(self, batch: int, prefix: int, length: int, device: torch.device, in_blocks: bool) -> None:
        whole = prefix + length
        self._batch, self._prefix, self.in_blocks = batch, prefix, in_blocks
        self._at = torch.arange(whole, device=device)
        self._seen = torch.full((batch, whole), prefix, dtype=torch.int32, device=device)
        self._begin = self._at.int().masked_fill(self._at < prefix, 0).repeat(batch, 1)
        self._mask = torch.empty(0)
        self._sees = sees_of(self._seen, self._begin)
        self._blocks = BlockMask.from_kv_blocks(
            *_listed(self.blocks_seen()),
            BLOCK_SIZE=BLOCK,
            mask_mod=self._sees,
            seq_lengths=(whole, whole),
        )

    def look(self, begin: Tensor, alone: Tensor) -> Tensor:
        """Take over a batch's tasks, as `Rows` has them. Returns the position of every token, packed."""
        cut = self._prefix
        self._begin[:, cut:] = begin + cut
        self._seen[:, cut:] = (~alone).int() * cut
        if self.in_blocks:
            blocks = self.blocks_seen()
            kept = self._blocks
            for held, new in zip(
                (kept.kv_num_blocks, kept.kv_indices, kept.q_num_blocks, kept.q_indices),
                (*_listed(blocks), *_listed(blocks.mT)),
                strict=True,
            ):
                assert held is not None
                held.copy_(new)
        else:
            rows = torch.arange(self._batch, device=begin.device)[:, None, None]
            seen = self._sees(rows, rows, self._at[cut:, None], self._at)
            # In the form that is added to the scores, which the fast kernels take as it is.
            dtype = torch.bfloat16 if begin.is_cuda else torch.float32
            self._mask = torch.zeros(seen.shape, dtype=dtype, device=begin.device)
            self._mask = self._mask.masked_fill_(~seen, -torch.inf)[:, None]
        own = self._at - self._begin + self._seen
        return torch.where(self._at < cut, self._at, own).flatten()

    def blocks_seen(self) -> Tensor:
        """Where something may be seen: [rows, 1, query blocks, key blocks]. Tasks lie in order."""
        block = torch.arange(-(-self._begin.shape[1] // BLOCK), device=self._begin.device)
        first = self._begin[:, ::BLOCK, None] // BLOCK
        own = (block >= first) & (block <= block[:, None])
        return (own | (block <= (self._prefix - 1) // BLOCK))[:, None]

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        cut = self._prefix
        if q.device.type == "cuda":
            q, k, v = q.bfloat16(), k.bfloat16(), v.bfloat16()
        q, k, v = (t.unflatten(0, (self._batch, -1)).transpose(1, 2) for t in (q, k, v))
        if self.in_blocks:
            mixed = flex_attention(q, k, v, block_mask=self._blocks)
            assert isinstance(mixed, Tensor)
            return mixed.transpose(1, 2).flatten(0, 1)
        seen = F.scaled_dot_product_attention(q[:, :, cut:], k, v, attn_mask=self._mask)
        image = F.scaled_dot_product_attention(q[:, :, :cut], k[:, :, :cut], v[:, :, :cut])
        return torch.cat((image, seen), dim=2).transpose(1, 2).flatten(0, 1)


def sees_of(seen: Tensor, begin: Tensor) -> Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]:
    """Whether a position sees a key: of the image, unless its task is alone, or before it in its task."""

    def sees(row: Tensor, head: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return (k < seen[row, q]) | ((k >= begin[row, q]) & (k <= q))

    return sees


def _listed(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """How many blocks of each row are seen, and their numbers, those first."""
    seen = blocks.int()
    return seen.sum(-1, dtype=torch.int32), seen.argsort(dim=-1, descending=True, stable=True).int()


def features(model: Moondream, crops: Tensor) -> Tensor:
    encoded: Tensor = model.vision.encode(crops)
    return encoded


def image_embeddings(
    model: Moondream, crops: Tensor, tiling: tuple[int, int], encode: Callable[..., Tensor] = features
) -> Tensor:
    """crops: uint8 [pictures, crops, size, size, 3], a single tile left out. To [pictures, patches, dim]."""
    vision, (count, per_picture) = model.vision, crops.shape[:2]
    encoded = encode(model, crops.flatten(0, 1)).unflatten(0, (count, per_picture))
    whole = encoded[:, 0]
    if per_picture == 1:
        local = whole
    else:
        # Pictures become channels, since stitching and pooling take one picture only.
        tiles = encoded[:, 1:].permute(1, 2, 0, 3).flatten(2)
        pooled = pool(stitch(tiles, tiling, vision.config), vision.config.grid)
        local = pooled.flatten(0, 1).unflatten(-1, (count, -1)).transpose(0, 1)
    embeddings: Tensor = vision.proj_mlp(torch.cat((whole, local), dim=-1))
    return embeddings


@dataclass(frozen=True, slots=True)
class Fed:
    """`Rows` on the device; indices count packed tokens, image prefixes included."""

    ids: Tensor
    begin: Tensor
    alone: Tensor
    coord_at: Tensor
    coord_in: Tensor
    size_at: Tensor
    size_in: Tensor
    token_from: Tensor
    tokens: Tensor
    token_weights: Tensor
    coord_from: Tensor
    coords: Tensor
    size_from: Tensor
    sizes: Tensor

    @classmethod
    def of(cls, rows: Rows, prefix: int, device: torch.device) -> "Fed":
        length = rows.ids.shape[1]
        tensors = {}
        for f in fields(rows):
            array = getattr(rows, f.name)
            if f.name.endswith("_from"):
                array = array + (array // length + 1) * prefix
            dtype = array.dtype if array.dtype in (np.float32, np.bool_) else np.int64
            tensors[f.name] = to_device(np.ascontiguousarray(array, dtype), device)
        return cls(**tensors)


def embed(model: Moondream, fed: Fed, jitter: bool) -> Tensor:
    """[rows, length, dim]. `jitter` adds small errors to fed coordinates, as the model's own have."""
    x = model.text.embed(fed.ids).flatten(0, 1).float()
    coords, sizes = fed.coord_in, fed.size_in
    if jitter:
        coords = coords + 0.0015 * torch.randn_like(coords)
        sizes = sizes * (1 + 0.02 * torch.randn_like(sizes))
    with full_precision(x.device):
        x = x.index_copy(0, fed.coord_at, model.region.encode_coord(coords))
        x = x.index_copy(0, fed.size_at, model.region.encode_size(sizes))
    return x.view(*fed.ids.shape, -1)


def losses(model: Moondream, hidden: Tensor, fed: Fed) -> dict[str, Tensor]:
    """hidden: [tokens, dim] of the packed batch."""
    each = F.cross_entropy(
        model.text.logits(hidden.index_select(0, fed.token_from)).float(), fed.tokens, reduction="none"
    )
    found = {"token": (each * fed.token_weights).sum() / fed.token_weights.sum()}
    with full_precision(hidden.device):
        if len(fed.coords):
            read = hidden.index_select(0, fed.coord_from).float()
            found["coord"] = near(model.region.coord_logits(read), fed.coords)
        if len(fed.sizes):
            read = hidden.index_select(0, fed.size_from).float()
            found["size"] = near(model.region.size_logits(read), fed.sizes)
    return found


def near(logits: Tensor, bins: Tensor) -> Tensor:
    """Cross entropy against a narrow bell around the right bin, less its lowest possible value."""
    offsets = torch.arange(logits.shape[-1], device=logits.device) - bins[..., None]
    bell = torch.softmax(-(offsets**2) / (2 * SMOOTHING**2), dim=-1)
    least = math.log(SMOOTHING * math.sqrt(2 * math.pi * math.e))
    return -(bell * logits.log_softmax(-1)).sum(-1).mean() - least


def balance(model: nn.Module) -> Tensor:
    """1 when all experts are used equally."""
    return torch.stack([part.balance for part in model.modules() if isinstance(part, AllExperts)]).mean()

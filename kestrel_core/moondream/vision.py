"""From crops to image embeddings: a ViT over every crop, local features stitched, pooled and projected."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kestrel_core.moondream.config import VisionConfig
from kestrel_core.moondream.text import LN_EPS, MLP


class VisionAttention(nn.Module):
    def __init__(self, config: VisionConfig) -> None:
        super().__init__()
        self.num_heads = config.enc_n_heads
        self.qkv = nn.Linear(config.enc_dim, 3 * config.enc_dim)
        self.proj = nn.Linear(config.enc_dim, config.enc_dim)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, self.num_heads, -1)).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v)  # [crops, heads, patches, head_dim]
        y: Tensor = self.proj(mixed.transpose(1, 2).flatten(2))
        return y


class VisionBlock(nn.Module):
    def __init__(self, config: VisionConfig) -> None:
        super().__init__()
        self.ln1 = nn.LayerNorm(config.enc_dim, LN_EPS)
        self.attn = VisionAttention(config)
        self.ln2 = nn.LayerNorm(config.enc_dim, LN_EPS)
        self.mlp = MLP(config.enc_dim, config.enc_ff_dim, config.enc_dim)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln1(x))
        out: Tensor = x + self.mlp(self.ln2(x))
        return out


class Vision(nn.Module):
    def __init__(self, config: VisionConfig) -> None:
        super().__init__()
        self.config = config
        self.patch_emb = nn.Linear(config.patch_dim, config.enc_dim)
        self.pos_emb = nn.Parameter(torch.empty(1, config.num_patches, config.enc_dim))
        self.blocks = nn.ModuleList(VisionBlock(config) for _ in range(config.enc_n_layers))
        self.post_ln = nn.LayerNorm(config.enc_dim, LN_EPS)
        self.proj_mlp = MLP(2 * config.enc_dim, config.proj_inner_dim, config.proj_out_dim)

    def patches(self, crops: Tensor) -> Tensor:
        """uint8 [crops, size, size, 3] to normalised [crops, patches, channel * row * column]."""
        side, grid = self.config.enc_patch_size, self.config.grid
        cut = crops.unflatten(2, (grid, side)).unflatten(1, (grid, side))  # [crops, r, y, c, x, channel]
        patches = (
            cut.permute(0, 1, 3, 5, 2, 4).flatten(3).flatten(1, 2)
        )  # moved while they are bytes, which is less to move
        pixels = patches.to(torch.bfloat16 if self.config.pixel_dtype == "bfloat16" else torch.float32)
        normalised: Tensor = ((pixels / 255 - 0.5) / 0.5).to(self.pos_emb.dtype)
        return normalised

    def encode(self, crops: Tensor) -> Tensor:
        """Features of every crop: uint8 [crops, size, size, 3] to [crops, patches, enc_dim]."""
        x = self.patch_emb(self.patches(crops)) + self.pos_emb
        for block in self.blocks:
            x = block(x)
        y: Tensor = self.post_ln(x)
        return y

    def project(self, features: Tensor, tiling: tuple[int, int]) -> Tensor:
        """From one image's features, the global crop's first, to its embeddings [patches, proj_out_dim]."""
        pooled = pool(stitch(features[1:], tiling, self.config), self.config.grid)
        y: Tensor = self.proj_mlp(torch.cat((features[0], pooled.flatten(0, 1)), dim=-1))
        return y


def stitch(local: Tensor, tiling: tuple[int, int], config: VisionConfig) -> Tensor:
    """Lay tiles [rows * cols, patches, dim] edge to edge, keeping the outer margins: [height, width, dim]."""
    rows, cols = tiling
    tiles = local.unflatten(1, (config.grid, config.grid)).unflatten(0, tiling)

    def kept(index: int, count: int) -> slice:
        margin = config.overlap_margin
        return slice(margin if index > 0 else 0, config.grid - (margin if index < count - 1 else 0))

    return torch.cat(
        [
            torch.cat([tiles[i, j, kept(i, rows), kept(j, cols)] for j in range(cols)], dim=1)
            for i in range(rows)
        ]
    )


def pool(features: Tensor, grid: int) -> Tensor:
    """Adaptive average of a map [height, width, dim] to [grid, grid, dim]; the averaged parts may overlap."""
    return F.adaptive_avg_pool2d(features.permute(2, 0, 1), grid).permute(1, 2, 0)


def num_crops(tiling: tuple[int, int]) -> int:
    """How many crops have to be encoded. The only tile of a (1, 1) tiling equals the global crop."""
    rows, cols = tiling
    return 1 if rows == cols == 1 else 1 + rows * cols


class Mosaic:
    """`stitch` and `pool` for many pictures of any tilings at once: lists the patches of every average."""

    def __init__(self, config: VisionConfig, device: torch.device) -> None:
        self._config = config
        self._device = device
        self._bags: dict[tuple[int, int], tuple[Tensor, Tensor]] = {}  # there are a few dozen tilings

    def __call__(self, features: Tensor, tilings: Sequence[tuple[int, int]]) -> Tensor:
        """[crops, patches, dim] of all pictures, `num_crops` each, to [pictures, patches, 2 * dim]."""
        patches, starts, offsets = [], [], []
        crop, length = 0, 0
        for tiling in tilings:
            bag_patches, bag_offsets = self._bag(tiling)
            patches.append(bag_patches + crop * self._config.num_patches)
            offsets.append(bag_offsets + length)
            starts.append(crop)
            crop += num_crops(tiling)
            length += len(bag_patches)
        pooled = F.embedding_bag(torch.cat(patches), features.flatten(0, 1), torch.cat(offsets), mode="mean")
        # Slices, not a list of indices: the list would be copied to the device, and the host would wait.
        whole = torch.stack([features[start] for start in starts])
        return torch.cat((whole, pooled.unflatten(0, (len(starts), -1))), dim=-1)

    def _bag(self, tiling: tuple[int, int]) -> tuple[Tensor, Tensor]:
        """The patches of every average, end to end, and where those of each begin. Counted from crop 0."""
        if tiling not in self._bags:
            config, (rows, cols) = self._config, tiling
            first = num_crops(tiling) - rows * cols  # the first tile
            labels = torch.arange(first * config.num_patches, num_crops(tiling) * config.num_patches)
            labels = stitch(labels.view(rows * cols, config.num_patches, 1), tiling, config)[..., 0]
            bags = [
                labels[row, col].flatten()
                for row in _pooled_slices(labels.shape[0], config.grid)
                for col in _pooled_slices(labels.shape[1], config.grid)
            ]
            ends = torch.tensor([len(bag) for bag in bags]).cumsum(0)
            offsets = torch.cat((ends.new_zeros(1), ends[:-1]))
            self._bags[tiling] = torch.cat(bags).to(self._device), offsets.to(self._device)
        return self._bags[tiling]


def _pooled_slices(length: int, grid: int) -> list[slice]:
    return [slice(k * length // grid, -(-(k + 1) * length // grid)) for k in range(grid)]

"""From crops to image embeddings: a ViT over every crop, local features stitched, pooled and projected."""

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
        pixels = crops.to(torch.bfloat16 if self.config.pixel_dtype == "bfloat16" else torch.float32)
        pixels = ((pixels / 255 - 0.5) / 0.5).to(self.pos_emb.dtype)
        cut = pixels.unflatten(2, (grid, side)).unflatten(1, (grid, side))  # [crops, r, y, c, x, channel]
        patches: Tensor = cut.permute(0, 1, 3, 5, 2, 4).flatten(3).flatten(1, 2)
        return patches

    def encode(self, crops: Tensor) -> Tensor:
        """Features of every crop: uint8 [crops, size, size, 3] to [crops, patches, enc_dim]."""
        x = self.patch_emb(self.patches(crops)) + self.pos_emb
        for block in self.blocks:
            x = block(x)
        y: Tensor = self.post_ln(x)
        return y

    def project(self, features: Tensor, tiling: tuple[int, int]) -> Tensor:
        """One image's features, the global crop's first, to its embeddings [patches, proj_out_dim]."""
        pooled = pool(stitch(features[1:], tiling, self.config), self.config.grid)
        y: Tensor = self.proj_mlp(torch.cat((features[0], pooled.flatten(0, 1)), dim=-1))
        return y


def stitch(local: Tensor, tiling: tuple[int, int], config: VisionConfig) -> Tensor:
    """Lay tiles [rows * cols, patches, dim] edge to edge, with outer margins only: [height, width, dim]."""
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
    """Adaptive average of a map [height, width, dim] to [grid, grid, dim]; cells may overlap."""
    return F.adaptive_avg_pool2d(features.permute(2, 0, 1), grid).permute(1, 2, 0)

"""Coordinates and sizes: as embeddings that the text model takes, and as logits of its hidden states."""

import math

import torch
from torch import Tensor, nn

from kestrel_core.moondream.config import RegionConfig
from kestrel_core.moondream.text import LN_EPS, MLP


class Region(nn.Module):
    def __init__(self, config: RegionConfig) -> None:
        super().__init__()
        self.config = config
        self.coord_features = nn.Parameter(torch.empty(1, config.coord_feat_dim // 2))
        self.size_features = nn.Parameter(torch.empty(2, config.size_feat_dim // 2))
        self.coord_encoder = nn.Linear(config.coord_feat_dim, config.dim)
        self.size_encoder = nn.Linear(config.size_feat_dim, config.dim)
        self.coord_decoder = _decoder(config, config.coord_out_dim)
        self.size_decoder = _decoder(config, config.size_out_dim)
        self.ln = nn.LayerNorm(config.dim, LN_EPS) if config.norm else None

    def encode_coord(self, coords: Tensor) -> Tensor:
        """coords: [n], fractions of the picture. Returns [n, dim]."""
        y: Tensor = self.coord_encoder(self.fourier(coords[:, None], self.coord_features))
        return y

    def encode_size(self, sizes: Tensor) -> Tensor:
        """sizes: [n, 2], width and height. Returns [n, dim]."""
        y: Tensor = self.size_encoder(self.fourier(sizes, self.size_features))
        return y

    def fourier(self, values: Tensor, features: Tensor) -> Tensor:
        # Phases span many periods, so rounding changes the embedding: round as the generation was trained.
        dtype = torch.float32 if self.config.float32_phases else features.dtype
        phases = (2 * math.pi * values.to(dtype)) @ features.to(dtype)
        return torch.cat((phases.cos(), phases.sin()), dim=-1).to(features.dtype)

    def coord_logits(self, hidden: Tensor) -> Tensor:
        """hidden: [n, dim], before the text model's last norm. Returns [n, bins]."""
        y: Tensor = self.coord_decoder(self._normed(hidden))
        return y

    def size_logits(self, hidden: Tensor) -> Tensor:
        """Returns [n, 2, bins]: widths, then heights."""
        y: Tensor = self.size_decoder(self._normed(hidden)).unflatten(-1, (2, -1))
        return y

    def coord_of_bin(self, bins: Tensor) -> Tensor:
        return bins.to(torch.float32) / self.config.coord_out_dim

    def size_of_bin(self, bins: Tensor) -> Tensor:
        """Sizes are spaced logarithmically: the first bin is 1/1024, the last 1."""
        exponent = bins.to(torch.float32) / (self.config.num_size_bins - 1) * 10.0 - 10.0
        return torch.pow(2.0, exponent)

    def _normed(self, hidden: Tensor) -> Tensor:
        if self.ln is None:
            return hidden
        y: Tensor = self.ln(hidden)
        return y


def _decoder(config: RegionConfig, out_dim: int) -> nn.Module:
    if config.inner_dim is None:
        return nn.Linear(config.dim, out_dim)
    return MLP(config.dim, config.inner_dim, out_dim)

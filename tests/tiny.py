"""Models small enough for a test: every part of both generations, with seeded random weights."""

from dataclasses import replace
from typing import Any

import torch

from kestrel_core.build import LoadedModel, start_engine
from kestrel_core.config import RuntimeConfig
from kestrel_core.engine import InferenceEngine
from kestrel_core.intake.tokenizer import Tokenizer
from kestrel_core.moondream.checkpoint.config_file import validate
from kestrel_core.moondream.checkpoint.weights import random_weights
from kestrel_core.moondream.config import (
    MOONDREAM2,
    MOONDREAM3,
    Captions,
    MoEConfig,
    MoondreamConfig,
    Template,
    Templates,
)
from kestrel_core.moondream.model import Moondream
from kestrel_core.skills.registry import SkillRegistry
from kestrel_core.skills.spec import Language

TEMPLATES = Templates(
    Captions((1, 24, 2, 25, 3), (1, 24, 2, 26, 3), (1, 24, 2, 27, 3)),
    query=Template((1, 20, 2), (3,)),
    detect=Template((1, 21, 22, 2), (3,)),
    point=Template((1, 23, 2), (3,)),
)


def tiny_config(generation: int = 2, **text: Any) -> MoondreamConfig:
    """Crops of 2 x 2 patches, so an image prefix is 5 positions. `text` overrides the text model."""
    base = {2: MOONDREAM2, 3: MOONDREAM3}[generation]
    moe = MoEConfig(num_experts=6, start_layer=1, experts_per_token=2, expert_inner_dim=8)
    sizes: dict[str, Any] = {"dim": 32, "ff_dim": 48, "n_layers": 3, "vocab_size": 64, "max_context": 128}
    sizes |= {"n_heads": 4, "n_kv_heads": 4, "moe": moe if base.text.moe else None, **text}
    config = replace(
        base,
        text=replace(base.text, **sizes),
        vision=replace(
            base.vision,
            enc_dim=16,
            enc_n_layers=2,
            enc_ff_dim=24,
            enc_n_heads=2,
            proj_inner_dim=40,
            proj_out_dim=sizes["dim"],
            crop_size=28,
            overlap_margin=0,
        ),
        region=replace(
            base.region,
            dim=sizes["dim"],
            coord_feat_dim=8,
            coord_out_dim=16,
            size_feat_dim=12,
            size_out_dim=32,
            inner_dim=20 if base.region.inner_dim else None,
        ),
        tokenizer=replace(base.tokenizer, templates=TEMPLATES),
    )
    validate(config)
    return config


def tiny_model(config: MoondreamConfig, seed: int = 0, dtype: torch.dtype = torch.float32) -> Moondream:
    with torch.device("meta"):
        model = Moondream(config)
    random_weights(model, torch.device("cpu"), dtype, seed)
    return model.eval()


def tiny_engine(generation: int = 2, skills: SkillRegistry | None = None, **options: Any) -> InferenceEngine:
    """A running engine over a tiny model with a word a byte. `options` are those of `RuntimeConfig`."""
    config = tiny_config(generation, vocab_size=300)
    language = Language(config, Tokenizer.of_bytes(config))
    model = LoadedModel(tiny_model(config), language, torch.device("cpu"))
    return InferenceEngine(start_engine(model, RuntimeConfig(device="cpu", **options), skills))

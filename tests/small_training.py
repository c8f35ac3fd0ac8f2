"""A model that is quick to train, and rows of tasks for it."""

from dataclasses import replace
from functools import partial
from random import Random

import torch

from examples.train_tiny import batches, network
from examples.train_tiny.teacher import Task, Teacher
from kestrel_core.moondream.checkpoint.config_file import validate
from kestrel_core.moondream.config import MOONDREAM_TINY, MoEConfig, MoondreamConfig
from kestrel_core.moondream.model import Moondream
from kestrel_tools.scenes.world import Scene

CPU = torch.device("cpu")
TEACHER = Teacher(MOONDREAM_TINY.tokenizer)


def smaller_config() -> MoondreamConfig:
    """The same words and skills, with less behind them: pictures of 4 x 4 patches."""
    config = replace(
        MOONDREAM_TINY,
        text=replace(
            MOONDREAM_TINY.text,
            dim=32,
            ff_dim=48,
            n_layers=3,
            n_heads=2,
            n_kv_heads=2,
            moe=MoEConfig(num_experts=4, start_layer=1, experts_per_token=2, expert_inner_dim=16),
        ),
        vision=replace(
            MOONDREAM_TINY.vision,
            enc_dim=32,
            enc_n_layers=1,
            enc_ff_dim=48,
            enc_n_heads=2,
            crop_size=56,
            overlap_margin=1,
            proj_inner_dim=48,
            proj_out_dim=32,
        ),
        region=replace(MOONDREAM_TINY.region, dim=32, coord_feat_dim=16, size_feat_dim=16),
    )
    validate(config)
    return config


def new_model(seed: int = 3) -> Moondream:
    return network.new_model(smaller_config(), CPU, seed)


def row_of_tasks(rng: Random, scene: Scene) -> list[Task]:
    draw = partial(batches.shape_task, scene=scene, teacher=TEACHER)
    return batches.fill(rng, draw, batches.ORDER, [batches.short_talk(rng, TEACHER, False)])

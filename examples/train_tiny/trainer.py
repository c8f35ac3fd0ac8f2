"""One step of the training: draw the pictures, let the model read them and its tasks, and improve it."""

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import torch
from torch import Tensor

from kestrel_core.moondream.model import Moondream
from kestrel_tools.scenes import render

from . import camera, network, pictures
from .batches import LENGTH, Batch
from .muon import Muon
from .worlds import SHAPES, World

WEIGHTS = {"token": 1.0, "coord": 0.4, "size": 0.4, "balance": 0.01}
WEIGHT_DECAY = 0.05


class Trainer:
    def __init__(
        self,
        model: Moondream,
        batch: int,
        lr: float,
        muon: bool = True,
        compiled: bool = False,
        world: World = SHAPES,
        ema: float = 0.0,
        seed: int = 0,
    ) -> None:
        self.model, self.lr, self.world = model, lr, world
        self.device = model.text.wte.device
        self.prefix = model.config.image_prefix_length
        on_cuda = self.device.type == "cuda"
        self._attend = network.Together(batch, self.prefix, LENGTH, self.device, compiled and on_cuda)
        self._step, self._ema = 0, ema
        self.average = deepcopy(model).requires_grad_(False) if ema else model  # of the weights, to be saved
        self.mark: Callable[[str], None] = lambda part: None  # told which part of a step is over
        inner, outer, plain = split_parameters(model, muon)
        self._muon = Muon(inner, WEIGHT_DECAY)
        self._adamw = torch.optim.AdamW(
            [{"params": outer, "weight_decay": WEIGHT_DECAY}, {"params": plain, "weight_decay": 0.0}],
            lr=lr,
            betas=(0.9, 0.98),
            fused=on_cuda,
        )
        self._painter = world.painter(self.device, compiled, seed)
        self._wear: Callable[..., Tensor] = camera.wear
        self._features: Callable[..., Tensor] = network.features
        self._decode: Callable[..., Tensor] = _decode
        if compiled:
            torch._dynamo.config.cache_size_limit = 64  # sizes of 1 are compiled apart from all others
            self._wear = torch.compile(camera.wear, dynamic=True)
            self._features = torch.compile(network.features, dynamic=True)
            self._decode = torch.compile(_decode, dynamic=False)

    @torch.no_grad()
    def crops(self, batch: Batch) -> Tensor:
        vision = self.model.config.vision
        height, width = (
            8 * round(batch.zoom * (n * vision.window_px + 2 * vision.margin_px) / 8)
            if batch.zoom != 1
            else n * vision.window_px + 2 * vision.margin_px
            for n in batch.tiling
        )
        scenes = render.to_tensors(batch.scenes, self.device)
        picture = camera.worn(self._painter.draw(scenes, height, width, None), None, self._wear)
        return camera.cut_crops(picture, batch.tiling, vision)

    def step(self, batch: Batch, rate: float) -> dict[str, Tensor]:
        found = self.losses(batch)
        total = torch.stack([WEIGHTS[name] * value for name, value in found.items()]).sum()
        self.mark("losses")
        self.model.zero_grad(set_to_none=True)
        total.backward()
        self.mark("backward")
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for group in self._adamw.param_groups:
            group["lr"] = self.lr * rate
        self._adamw.step()
        self._muon.step(self.lr * rate)
        self._step += 1
        self._take_average()
        self.mark("optimizer")
        return {
            "loss": total.detach(),
            "norm": norm,
            **{name: value.detach() for name, value in found.items()},
        }

    @torch.no_grad()
    def _take_average(self) -> None:
        """Of the last 1 / (1 - ema) steps; of fewer at the beginning, when the first weights mean nothing."""
        if self._ema:
            kept = min(self._ema, (1 + self._step) / (10 + self._step))
            torch._foreach_lerp_(list(self.average.parameters()), list(self.model.parameters()), 1 - kept)

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        model = self.model
        crops = self.crops(batch)
        self.mark("drawing")
        fed = network.Fed.of(batch.rows, self.prefix, self.device)
        positions = self._attend.look(fed.begin, fed.alone)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            image = network.image_embeddings(model, crops, batch.tiling, self._features)
            self.mark("vision")
            bos = model.text.wte[model.config.tokenizer.bos_id].expand(len(image), 1, -1)
            x = torch.cat((bos, image.float(), network.embed(model, fed, jitter=True)), dim=1)
            hidden = self._decode(model, x.flatten(0, 1), positions, self._attend)
            self.mark("text")
            found = network.losses(model, hidden, fed)
            found["balance"] = network.balance(model)
        return found

    def warm_up(self, batch: Batch) -> None:
        """Compile most of it; nothing is learnt. Without attention in blocks where that does not compile."""
        try:
            self._try(batch)
        except Exception as error:  # whatever the compiler raises
            if not self._attend.in_blocks:
                raise
            print(f"attention with a whole mask, since in blocks it fails: {str(error)[:2000]}", flush=True)
            torch._dynamo.reset()
            self._attend = network.Together(len(batch.rows.ids), self.prefix, LENGTH, self.device, False)
            self._try(batch)

    def _try(self, batch: Batch) -> None:
        torch.stack(list(self.losses(batch).values())).sum().backward()
        self.model.zero_grad(set_to_none=True)

    def draw_sheet(self, batch: Batch, path: Path) -> None:
        crops = self.crops(batch)[:48, 0].cpu().numpy()
        pictures.write_png(path, pictures.sheet(crops, 8))


def split_parameters(
    model: Moondream, muon: bool
) -> tuple[list[torch.nn.Parameter], list[torch.nn.Parameter], list[torch.nn.Parameter]]:
    """The matrices inside the network, for Muon; those at its ends; and all that has no weight decay."""
    inner, outer, plain = [], [], []
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        if parameter.ndim < 2 or name.endswith(("wte", "pos_emb")):
            plain.append(parameter)
        elif muon and ".blocks." in name and not any(part in name for part in (".router.", ".tau.")):
            inner.append(parameter)
        else:
            outer.append(parameter)
    return inner, outer, plain


def _decode(model: Moondream, x: Tensor, positions: Tensor, attend: network.Together) -> Tensor:
    hidden: Tensor = model.text(x, positions, attend)
    return hidden
